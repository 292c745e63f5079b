//! Copies of single nodes for another graph, with the parameters that the driver reports of the
//! original.

use cuda_sys::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, CUDA_EXT_SEM_WAIT_NODE_PARAMS, CUgraph,
    CUgraphEdgeData, CUgraphNode, CUgraphNodeParams, CUgraphNodeType as T, Call,
};

use crate::edge_kind::EdgeKind;
use crate::error::{Error, InteropError, Result};
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::kernel_config::KernelConfig;
use crate::state::params::NodeParams;
use crate::state::raw_params::blank;

/// The parameters of a copy.
pub(crate) struct NodeCopy {
    params: CUgraphNodeParams,
    /// The kernel node whose attributes the copy gets.
    kernel: Option<CUgraphNode>,
}

impl NodeCopy {
    /// An empty node.
    pub(crate) fn empty() -> Self {
        Self { params: blank(T::CU_GRAPH_NODE_TYPE_EMPTY), kernel: None }
    }

    /// A copy of a live node whose graph is locked. Its parameters point to data of the original,
    /// so the copy has to be added before the original changes. `None` for a node that cannot be
    /// copied alone: memory nodes, graphs in nodes, and types that the driver does not describe.
    pub(crate) fn of(guard: &GraphGuard<'_>, raw: CUgraphNode, id: NodeId) -> Result<Option<Self>> {
        let Some(kind) = guard.record(id).map(|record| record.node_params.raw_kind()) else {
            return Err(Error::Interop(InteropError::UnknownNode { raw: raw.addr() }));
        };
        let mut copied = Self { params: blank(kind), kernel: None };
        match kind {
            T::CU_GRAPH_NODE_TYPE_EMPTY => {}
            T::CU_GRAPH_NODE_TYPE_KERNEL => {
                copied.read_kernel(guard, raw)?;
                copied.kernel = may_have_attributes(guard, id).then_some(raw);
            }
            T::CU_GRAPH_NODE_TYPE_MEMCPY => copied.read_copy(guard, (raw, id))?,
            T::CU_GRAPH_NODE_TYPE_MEMSET => copied.read_fill(guard, (raw, id))?,
            T::CU_GRAPH_NODE_TYPE_HOST => copied.read_host(guard, raw)?,
            T::CU_GRAPH_NODE_TYPE_EVENT_RECORD => {
                copied.params.__bindgen_anon_1.eventRecord.event = guard.recorded_event(raw)?;
            }
            T::CU_GRAPH_NODE_TYPE_WAIT_EVENT => {
                copied.params.__bindgen_anon_1.eventWait.event = guard.awaited_event(raw)?;
            }
            T::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => copied.read_batch(guard, raw)?,
            T::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL => copied.read_signal(guard, raw)?,
            T::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT => copied.read_wait(guard, raw)?,
            // The driver's own types: a new one is not copied until it is decided.
            _ => return Ok(None),
        }
        Ok(Some(copied))
    }

    /// Adds the copy to a graph that nobody else knows, after nodes of that graph.
    pub(crate) fn add_to(
        mut self,
        guard: &GraphGuard<'_>,
        graph: CUgraph,
        after: &[(CUgraphNode, EdgeKind)],
    ) -> Result<CUgraphNode> {
        let node = add_after(guard, graph, after, &mut self.params)?;
        self.finish(guard, node)?;
        Ok(node)
    }

    /// The parameters of the copy.
    pub(crate) fn params(&mut self) -> &mut CUgraphNodeParams {
        &mut self.params
    }

    /// Copies what takes a call of its own, once the copy is in its graph.
    pub(crate) fn finish(&self, guard: &GraphGuard<'_>, node: CUgraphNode) -> Result<()> {
        let Some(original) = self.kernel else { return Ok(()) };
        // SAFETY: both are live kernel nodes, the one of a locked graph, the other of one that
        // nobody else knows.
        let result = unsafe { guard.driver().cuGraphKernelNodeCopyAttributes(node, original) };
        guard.answer(Call::cuGraphKernelNodeCopyAttributes, result)
    }

    fn read_kernel(&mut self, guard: &GraphGuard<'_>, raw: CUgraphNode) -> Result<()> {
        let from = guard.kernel_params(raw)?;
        let to = &mut self.params.__bindgen_anon_1;
        // Field by field, so that padding stays zero.
        to.kernel.gridDimX = from.gridDimX;
        to.kernel.gridDimY = from.gridDimY;
        to.kernel.gridDimZ = from.gridDimZ;
        to.kernel.blockDimX = from.blockDimX;
        to.kernel.blockDimY = from.blockDimY;
        to.kernel.blockDimZ = from.blockDimZ;
        to.kernel.sharedMemBytes = from.sharedMemBytes;
        to.kernel.kernelParams = from.kernelParams;
        to.kernel.extra = from.extra;
        to.kernel.kern = from.kern;
        to.kernel.ctx = from.ctx;
        // A function of a module has no `CUkernel`. The context has to be current for it, and is.
        if from.kern.is_null() {
            to.kernel.func = from.func;
        }
        Ok(())
    }

    fn read_copy(&mut self, guard: &GraphGuard<'_>, (raw, id): (CUgraphNode, NodeId)) -> Result<()> {
        let to = &mut self.params.__bindgen_anon_1;
        to.memcpy.copyCtx = guard.context_of(id).as_raw();
        // SAFETY: a live memcpy node; the out pointer is to this part of the union, which is zeroed
        // as a whole.
        let result = unsafe { guard.driver().cuGraphMemcpyNodeGetParams(raw, &raw mut to.memcpy.copyParams) };
        guard.answer(Call::cuGraphMemcpyNodeGetParams, result)
    }

    fn read_fill(&mut self, guard: &GraphGuard<'_>, (raw, id): (CUgraphNode, NodeId)) -> Result<()> {
        let from = guard.fill_params(raw)?;
        let to = &mut self.params.__bindgen_anon_1;
        to.memset.dst = from.dst;
        to.memset.pitch = from.pitch;
        to.memset.value = from.value;
        to.memset.elementSize = from.elementSize;
        to.memset.width = from.width;
        to.memset.height = from.height;
        to.memset.ctx = guard.context_of(id).as_raw();
        Ok(())
    }

    fn read_host(&mut self, guard: &GraphGuard<'_>, raw: CUgraphNode) -> Result<()> {
        let from = guard.host_params(raw)?;
        let to = &mut self.params.__bindgen_anon_1;
        to.host.fn_ = from.fn_;
        to.host.userData = from.userData;
        Ok(())
    }

    fn read_batch(&mut self, guard: &GraphGuard<'_>, raw: CUgraphNode) -> Result<()> {
        let mut from = CUDA_BATCH_MEM_OP_NODE_PARAMS::default();
        // SAFETY: a live batch node, and the out pointer is valid.
        let result = unsafe { guard.driver().cuGraphBatchMemOpNodeGetParams(raw, &raw mut from) };
        guard.answer(Call::cuGraphBatchMemOpNodeGetParams, result)?;
        let to = &mut self.params.__bindgen_anon_1;
        // Captured on a stream of another device, the batch is of that device's context.
        to.memOp.ctx = if from.ctx.is_null() { guard.context().as_raw() } else { from.ctx };
        to.memOp.count = from.count;
        to.memOp.paramArray = from.paramArray;
        to.memOp.flags = from.flags;
        Ok(())
    }

    fn read_signal(&mut self, guard: &GraphGuard<'_>, raw: CUgraphNode) -> Result<()> {
        let mut from = CUDA_EXT_SEM_SIGNAL_NODE_PARAMS::default();
        // SAFETY: a live node that signals, and the out pointer is valid.
        let result =
            unsafe { guard.driver().cuGraphExternalSemaphoresSignalNodeGetParams(raw, &raw mut from) };
        guard.answer(Call::cuGraphExternalSemaphoresSignalNodeGetParams, result)?;
        let to = &mut self.params.__bindgen_anon_1;
        to.extSemSignal.extSemArray = from.extSemArray;
        to.extSemSignal.paramsArray = from.paramsArray;
        to.extSemSignal.numExtSems = from.numExtSems;
        Ok(())
    }

    fn read_wait(&mut self, guard: &GraphGuard<'_>, raw: CUgraphNode) -> Result<()> {
        let mut from = CUDA_EXT_SEM_WAIT_NODE_PARAMS::default();
        // SAFETY: a live node that waits, and the out pointer is valid.
        let result = unsafe { guard.driver().cuGraphExternalSemaphoresWaitNodeGetParams(raw, &raw mut from) };
        guard.answer(Call::cuGraphExternalSemaphoresWaitNodeGetParams, result)?;
        let to = &mut self.params.__bindgen_anon_1;
        to.extSemWait.extSemArray = from.extSemArray;
        to.extSemWait.paramsArray = from.paramsArray;
        to.extSemWait.numExtSems = from.numExtSems;
        Ok(())
    }
}

/// Whether a kernel node may have launch attributes: other code may have given it some.
fn may_have_attributes(guard: &GraphGuard<'_>, id: NodeId) -> bool {
    let params = guard.record(id).map(|record| &record.node_params);
    guard.is_shared()
        || !matches!(params, Some(NodeParams::Kernel { config: KernelConfig::Plain { .. }, .. }))
}

/// Adds a node to a graph that nobody else knows, after nodes of that graph.
pub(crate) fn add_after(
    guard: &GraphGuard<'_>,
    graph: CUgraph,
    after: &[(CUgraphNode, EdgeKind)],
    params: &mut CUgraphNodeParams,
) -> Result<CUgraphNode> {
    let nodes: Vec<CUgraphNode> = after.iter().map(|(node, _)| *node).collect();
    let mut raw = core::ptr::null_mut();
    if after.iter().all(|(_, kind)| *kind == EdgeKind::Full) {
        // SAFETY: the graph is live and nobody else's, as are its nodes; the parameters are
        // complete for their type, and what they point to is the original node's, whose graph is
        // locked.
        let result = unsafe {
            guard.driver().cuGraphAddNode(&raw mut raw, graph, nodes.as_ptr(), nodes.len(), params)
        };
        guard.answer(Call::cuGraphAddNode, result)?;
        return Ok(raw);
    }
    let kinds: Vec<CUgraphEdgeData> = after.iter().map(|(_, kind)| kind.data()).collect();
    // SAFETY: as above; there are as many kinds as nodes.
    let result = unsafe {
        let (nodes, count) = (nodes.as_ptr(), nodes.len());
        guard.driver().cuGraphAddNode_v12030(&raw mut raw, graph, nodes, kinds.as_ptr(), count, params)
    };
    guard.answer(Call::cuGraphAddNode_v12030, result.map_err(cuda_handles::Error::from)?)?;
    Ok(raw)
}
