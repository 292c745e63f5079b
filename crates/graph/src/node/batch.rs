//! Batch nodes: write numbers to memory and wait for numbers in memory.

use std::sync::Arc;

use cuda_handles::{Batch, BatchOperation, Context, Owner};
use cuda_sys::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUgraphNodeParams, CUgraphNodeType, CUstreamBatchMemOpParams, Call,
};

use crate::build::frontier::Frontier;
use crate::error::wrong_context::Spans;
use crate::error::{Error, NodeError, Result};
use crate::graph::node::{Node, typed};
use crate::state::owners::{Owners, replace_memory};
use crate::state::params::NodeParams;
use crate::state::raw_params::blank;

typed! {
    /// A node that runs a [`Batch`] of memory operations, in their order.
    ///
    /// An operation writes a number to device or pinned memory, or waits until a number there meets
    /// a condition. A batch synchronises a graph with other streams, processes or devices without a
    /// kernel. The node keeps the memory of its batch alive.
    ///
    /// The node stays in the context that it was made with, and changed batches have memory of that
    /// context: the graph's, or that of another graph which was embedded in it.
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
    /// Calls `cuGraphNodeSetParams` (CUDA 12.2), and `cuGraphBatchMemOpNodeGetParams` (CUDA 11.7)
    /// in a graph that spans several contexts.
    ///
    /// # Errors
    /// [`NodeError::Removed`], if the node was removed, and the errors of [`Frontier::batch`]. The
    /// node is then unchanged.
    #[doc(alias = "cuGraphBatchMemOpNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    pub fn set(&self, batch: &Batch) -> Result<()> {
        let context = context_of(self)?;
        check(context, batch)?;
        let mut list = batch.params();
        let mut params = params(context, &mut list);
        self.replace(node_params(batch), owners(batch), &mut params)
    }

    /// Replaces one operation, by that of a batch of one. The others stay.
    ///
    /// The node drops the memory before, unless another operation uses it. Existing executables
    /// keep the old batch.
    ///
    /// ```no_run
    /// # use cuda_graph::{BatchNode, Result};
    /// # use cuda_handles::{Batch, Buffer};
    /// # fn example(node: &BatchNode, flags: &Buffer<u32>) -> Result<()> {
    /// node.set_operation(1, Batch::new().write(flags, 1, 8)?)
    /// # }
    /// ```
    ///
    /// Calls `cuGraphNodeSetParams` (CUDA 12.2), and `cuGraphBatchMemOpNodeGetParams` (CUDA 11.7)
    /// in a graph that spans several contexts.
    ///
    /// # Errors
    /// - [`NodeError::NoEntry`]: there is no operation with this index, which counts from 0.
    /// - [`NodeError::NotOneOperation`]: the batch has another number of operations.
    /// - [`NodeError::Removed`], and the errors of [`Frontier::batch`].
    ///
    /// The node is then unchanged.
    #[doc(alias = "cuGraphBatchMemOpNodeSetParams")]
    #[doc(alias = "cuGraphNodeSetParams")]
    pub fn set_operation(&self, index: usize, operation: &Batch) -> Result<()> {
        let [new] = operation.operations() else {
            let (node, count) = (self.name().into(), operation.len());
            return Err(NodeError::NotOneOperation { node, count }.into());
        };
        let context = context_of(self)?;
        check(context, operation)?;
        let name = self.name();
        self.change(
            |node_params, owners| {
                let NodeParams::Batch(operations) = node_params else { return Err(self.removed()) };
                let mut list = operations.to_vec();
                let count = list.len();
                let Some(place) = list.get_mut(index) else {
                    let what = "operation";
                    return Err(NodeError::NoEntry { node: name.into(), what, index, count }.into());
                };
                let gone = core::mem::replace(place, *new);
                let kept: Vec<u64> = list.iter().filter_map(address_of).collect();
                replace_memory(owners, address_of(&gone).unwrap_or(0), &kept, operation.memory());
                *operations = list.into();
                Ok(())
            },
            |node_params, give| {
                let NodeParams::Batch(operations) = node_params else { return Err(self.removed()) };
                let mut list: Vec<_> = operations.iter().map(BatchOperation::params).collect();
                give(&mut params(context, &mut list))
            },
        )
    }
}

/// The address of an operation's number, if it has one.
fn address_of(operation: &BatchOperation) -> Option<u64> {
    match *operation {
        BatchOperation::Write { address, .. } | BatchOperation::Wait { address, .. } => Some(address),
        // The enum is of another crate and `#[non_exhaustive]`; the rest has none.
        _ => None,
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
        check(self.graph().context(), batch)?;
        let mut list = batch.params();
        let mut params = params(self.graph().context(), &mut list);
        self.add(node_params(batch), owners(batch), &mut params).map(BatchNode::wrap)
    }
}

/// The context that a batch node was made with. Mostly the home of its graph; in a graph of several
/// contexts the node may come from an embedded graph of another one.
pub(crate) fn context_of(node: &Node) -> Result<&Context> {
    let graph = node.graph();
    if !graph.is_wide() {
        return Ok(graph.home());
    }
    let mut made_with = CUDA_BATCH_MEM_OP_NODE_PARAMS::default();
    {
        let guard = graph.enter()?;
        let raw = guard.record(node.id()).ok_or_else(|| node.removed())?.raw.0;
        // SAFETY: a live batch node of a locked graph, and the out pointer is valid.
        let result = unsafe { guard.driver().cuGraphBatchMemOpNodeGetParams(raw, &raw mut made_with) };
        guard.answer(Call::cuGraphBatchMemOpNodeGetParams, result)?;
    }
    let is_its = |context: &&Context| context.as_raw() == made_with.ctx;
    Ok(graph.others().iter().find(is_its).unwrap_or(graph.home()))
}

/// Refuses a batch that a node of the context cannot run.
pub(crate) fn check(context: &Context, batch: &Batch) -> Result<()> {
    if batch.is_empty() {
        return Err(Error::Node(NodeError::NoElements { what: "batch" }));
    }
    Ok(batch.check(context)?)
}

pub(crate) fn node_params(batch: &Batch) -> NodeParams {
    NodeParams::Batch(batch.operations().into())
}

pub(crate) fn owners(batch: &Batch) -> Owners {
    batch.memory().iter().map(Owner::from).collect()
}

/// The driver's parameters of a batch node. They point into `list`, which has to outlive the call.
pub(crate) fn params(context: &Context, list: &mut [CUstreamBatchMemOpParams]) -> CUgraphNodeParams {
    let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    let fields = &mut params.__bindgen_anon_1;
    fields.memOp.ctx = context.as_raw();
    // At most `Batch::LIMIT`.
    fields.memOp.count = list.len() as u32;
    fields.memOp.paramArray = list.as_mut_ptr();
    params
}
