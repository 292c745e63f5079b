//! Nodes that do nothing.

use cuda_sys::{CUgraphNodeParams, CUgraphNodeType};

use super::handle::{blank, typed};

typed! {
    /// A node that does nothing: one point for others to wait for, in place of an edge between any two.
    EmptyNode, Empty
}

/// The driver's form of an empty node.
pub(crate) fn params() -> CUgraphNodeParams {
    blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY)
}
