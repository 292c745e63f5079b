//! Nodes that do nothing.

use cuda_sys::{CUgraphNodeParams, CUgraphNodeType};

use crate::build::frontier::Frontier;
use crate::error::Result;
use crate::graph::node::typed;
use crate::state::owners::Owners;
use crate::state::params::NodeParams;
use crate::state::raw_params::blank;

typed! {
    /// A node that does nothing: one point for others to wait for, in place of an edge between any
    /// two.
    EmptyNode, Empty
}

impl Frontier<'_> {
    /// Adds a node that does nothing.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2.
    ///
    /// # Errors
    /// A node of the frontier was removed, or what the driver answers.
    #[doc(alias = "cuGraphAddEmptyNode")]
    #[doc(alias = "cuGraphAddNode")]
    pub fn empty(&self) -> Result<EmptyNode> {
        let mut params = params();
        self.add(NodeParams::Empty, Owners::new(), &mut params).map(EmptyNode::wrap)
    }
}

/// The driver's form of an empty node.
pub(crate) fn params() -> CUgraphNodeParams {
    blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY)
}
