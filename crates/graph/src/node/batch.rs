//! Nodes that write numbers to memory and wait for numbers in memory.

use std::sync::Arc;

use cuda_handles::{Batch, BatchOperation, Owner};
use cuda_sys::{CUgraphNodeParams, CUgraphNodeType, CUstreamBatchMemOpParams};

use crate::build::frontier::Frontier;
use crate::error::{Error, Result};
use crate::graph::Graph;
use crate::graph::node::typed;
use crate::state::owners::Owners;
use crate::state::params::NodeParams;
use crate::state::raw_params::blank;

typed! {
    /// A node that does a [`Batch`] of memory operations, one after the other.
    BatchNode, Batch
}

impl BatchNode {
    /// The operations, in their order.
    ///
    /// # Errors
    /// The node was removed.
    #[doc(alias = "cuGraphBatchMemOpNodeGetParams")]
    pub fn operations(&self) -> Result<Arc<[BatchOperation]>> {
        match self.node_params()? {
            NodeParams::Batch(operations) => Ok(operations),
            // The handle is made for rows of its kind only, and a row keeps its kind.
            _ => Err(self.removed()),
        }
    }

    /// Does another batch from now on. Executables made before go on as they are.
    ///
    /// Stands on `cuGraphNodeSetParams`, CUDA 12.2.
    ///
    /// # Errors
    /// As [`Frontier::batch`]; the node is as it was then.
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
    /// Adds a node that does the operations of a batch, at least one and at most [`Batch::LIMIT`].
    /// A wait holds up what comes after the node for as long as nobody writes the number.
    ///
    /// Stands on `cuGraphAddNode`, CUDA 12.2, and on `cuDeviceGetAttribute`, CUDA 2.0, for what not
    /// every device can.
    ///
    /// # Errors
    /// No operations; as [`Batch::check`]; a node of the frontier was removed; or what the driver
    /// answers.
    #[doc(alias = "cuGraphAddBatchMemOpNode")]
    #[doc(alias = "cuGraphAddNode")]
    pub fn batch(&self, batch: &Batch) -> Result<BatchNode> {
        check(self.graph(), batch)?;
        let mut list = batch.params();
        let mut params = params(self.graph(), &mut list);
        self.add(node_params(batch), owners(batch), &mut params).map(BatchNode::wrap)
    }
}

fn check(graph: &Graph, batch: &Batch) -> Result<()> {
    if batch.is_empty() {
        return Err(Error::NoElements { what: "batch" });
    }
    Ok(batch.check(graph.context())?)
}

fn node_params(batch: &Batch) -> NodeParams {
    NodeParams::Batch(batch.operations().into())
}

fn owners(batch: &Batch) -> Owners {
    batch.memory().iter().map(Owner::from).collect()
}

/// The driver's form of a batch; the list has to live over the call.
fn params(graph: &Graph, list: &mut [CUstreamBatchMemOpParams]) -> CUgraphNodeParams {
    let mut params = blank(CUgraphNodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP);
    let to = &mut params.__bindgen_anon_1;
    to.memOp.ctx = graph.context().as_raw();
    // At most `Batch::LIMIT`.
    to.memOp.count = list.len() as u32;
    to.memOp.paramArray = list.as_mut_ptr();
    params
}
