//! Batch nodes: write numbers to memory and wait for numbers in memory.

use std::sync::Arc;

use cuda_handles::{Batch, BatchOperation, Owner};
use cuda_sys::{CUgraphNodeParams, CUgraphNodeType, CUstreamBatchMemOpParams};

use crate::build::frontier::Frontier;
use crate::error::{Error, NodeError, Result};
use crate::graph::Graph;
use crate::graph::node::typed;
use crate::state::owners::Owners;
use crate::state::params::NodeParams;
use crate::state::raw_params::blank;

typed! {
    /// A node that runs a [`Batch`] of memory operations, in their order.
    ///
    /// An operation writes a number to device or pinned memory, or waits until a number there meets
    /// a condition. A batch synchronises a graph with other streams, processes or devices without a
    /// kernel. The node keeps the memory of its batch alive.
    ///
    /// Add one with [`Frontier::batch`].
    #[doc(alias = "CUDA_BATCH_MEM_OP_NODE_PARAMS")]
    BatchNode, Batch
}

impl BatchNode {
    /// The operations, in the order in which they run.
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed.
    #[doc(alias = "cuGraphBatchMemOpNodeGetParams")]
    #[doc(alias = "cudaGraphBatchMemOpNodeGetParams")]
    pub fn operations(&self) -> Result<Arc<[BatchOperation]>> {
        match self.node_params()? {
            NodeParams::Batch(operations) => Ok(operations),
            // A handle is made only for a record of its kind, and a record keeps its kind.
            _ => Err(self.removed()),
        }
    }

    /// Replaces the node's batch. Existing executables keep the old one.
    ///
    /// Calls `cuGraphNodeSetParams` (CUDA 12.2).
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed, and the errors of [`Frontier::batch`]. The
    /// node is then unchanged.
    #[doc(alias = "cuGraphBatchMemOpNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    pub fn set(&self, batch: &Batch) -> Result<()> {
        check(self.graph(), batch)?;
        let mut list = batch.params();
        let mut params = params(self.graph(), &mut list);
        self.replace(node_params(batch), owners(batch), &mut params)
    }
}

impl Frontier<'_> {
    /// Adds a node that runs a batch of 1 to [`Batch::LIMIT`] memory operations.
    ///
    /// A wait blocks the nodes after this one until its number is written.
    ///
    /// ```no_run
    /// # use cuda_graph::{Graph, Result};
    /// # use cuda_handles::Buffer;
    /// # fn example(graph: &Graph, flags: &Buffer<u32>) -> Result<()> {
    /// use cuda_handles::{Batch, Compare};
    ///
    /// let mut batch = Batch::new();
    /// batch.wait(flags, 0, Compare::AtLeast, 1)?.write(flags, 1, 7)?;
    /// let node = graph.root().batch(&batch)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Calls `cuGraphAddNode` (CUDA 12.2). Operations that not every device supports also need
    /// `cuDeviceGetAttribute` (CUDA 2.0).
    ///
    /// # Errors
    /// - [`NodeError::NoElements`], if the batch is empty.
    /// - [`Error::Handles`], if [`Batch::check`] refuses the batch, or the driver reports an error.
    /// - [`ConditionError::NotInBody`](crate::ConditionError::NotInBody), if the frontier lies in
    ///   the body of a conditional node.
    /// - [`NodeError::Removed`], if a node of the frontier was removed.
    #[doc(alias = "cuGraphAddBatchMemOpNode")]
    #[doc(alias = "cuGraphAddNode")]
    #[doc(alias = "cuStreamBatchMemOp")]
    #[doc(alias = "cuStreamWaitValue32")]
    #[doc(alias = "cuStreamWriteValue32")]
    pub fn batch(&self, batch: &Batch) -> Result<BatchNode> {
        check(self.graph(), batch)?;
        let mut list = batch.params();
        let mut params = params(self.graph(), &mut list);
        self.add(node_params(batch), owners(batch), &mut params).map(BatchNode::wrap)
    }
}

pub(crate) fn check(graph: &Graph, batch: &Batch) -> Result<()> {
    if batch.is_empty() {
        return Err(Error::Node(NodeError::NoElements { what: "batch" }));
    }
    Ok(batch.check(graph.context())?)
}

pub(crate) fn node_params(batch: &Batch) -> NodeParams {
    NodeParams::Batch(batch.operations().into())
}

pub(crate) fn owners(batch: &Batch) -> Owners {
    batch.memory().iter().map(Owner::from).collect()
}

/// The driver's parameters of a batch node. They point into `list`, which has to outlive the call.
pub(crate) fn params(graph: &Graph, list: &mut [CUstreamBatchMemOpParams]) -> CUgraphNodeParams {
    let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    let fields = &mut params.__bindgen_anon_1;
    fields.memOp.ctx = graph.context().as_raw();
    // At most `Batch::LIMIT`.
    fields.memOp.count = list.len() as u32;
    fields.memOp.paramArray = list.as_mut_ptr();
    params
}
