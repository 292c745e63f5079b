//! Empty nodes: points of synchronisation.

use cuda_sys::{CUgraphNodeParams, CUgraphNodeType};

use crate::build::frontier::Frontier;
use crate::error::Result;
use crate::graph::node::typed;
use crate::param::bind::NewBinding;
use crate::state::owners::Owners;
use crate::state::params::NodeParams;
use crate::state::raw_params::blank;

typed! {
    /// A node that does no work.
    ///
    /// It joins branches: `n` nodes before it and `m` nodes after it need `n + m` edges instead of
    /// `n * m`.
    ///
    /// ```no_run
    /// # use cuda_graph::{Graph, MemsetNode, Result};
    /// # fn example(graph: &Graph, left: &MemsetNode, right: &MemsetNode) -> Result<()> {
    /// let join = graph.after([left, right])?.empty()?;
    /// # Ok(())
    /// # }
    /// ```
    #[doc(alias = "cudaGraphNodeTypeEmpty")]
    EmptyNode, Empty
}

impl Frontier<'_> {
    /// Adds a node that does no work.
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2).
    ///
    /// # Errors
    /// - [`NodeError::Removed`](crate::NodeError::Removed), if a node of the frontier was removed.
    /// - [`Error::Handles`](crate::Error::Handles), if the driver reports an error.
    #[doc(alias = "cuGraphAddEmptyNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cudaGraphAddEmptyNode")]
    #[doc(alias = "cudaGraphAddNode")]
    pub fn empty(&self) -> Result<EmptyNode> {
        let mut params = params();
        self.add(NodeParams::Empty, Owners::new(), &mut params).map(EmptyNode::wrap)
    }
}

impl Frontier<'_> {
    /// Adds an empty node that follows a graph parameter, for a decision of the host.
    pub(crate) fn bound_empty(&self, binding: NewBinding) -> Result<EmptyNode> {
        self.add_bound(NodeParams::Empty, Owners::new(), &mut params(), binding).map(EmptyNode::wrap)
    }
}

/// The driver's parameters of an empty node.
pub(crate) fn params() -> CUgraphNodeParams {
    blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY)
}
