//! Graph calls of the null driver: calls that add a node return a new handle, calls that list nodes
//! return none.

use core::ffi::c_uint;

use cuda_sys::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, CUDA_EXT_SEM_WAIT_NODE_PARAMS,
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_HOST_NODE_PARAMS_v1,
    CUDA_KERNEL_NODE_PARAMS_v2, CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEMCPY3D_v2, CUDA_MEMSET_NODE_PARAMS_v1,
    CUcontext, CUdeviceptr, CUevent, CUexternalSemaphore, CUgraph, CUgraphConditionalHandle, CUgraphEdgeData,
    CUgraphExec, CUgraphExecUpdateResultInfo, CUgraphInstantiateResult, CUgraphNode, CUgraphNodeParams,
    CUgraphNodeType, CUresult, cuuint64_t,
};

use super::{fresh, fresh_span, make, tell};
use crate::abi::table::Entries;

pub(super) const fn add(entries: Entries) -> Entries {
    Entries {
        cuGraphCreate,
        cuGraphClone,
        cuGraphNodeFindInClone,
        cuGraphAddNode,
        cuGraphAddNode_v12030,
        cuGraphAddNode_v13040: cuGraphAddNode_v12030,
        cuGraphAddKernelNode,
        cuGraphAddMemcpyNode,
        cuGraphAddMemsetNode,
        cuGraphAddHostNode,
        cuGraphAddChildGraphNode,
        cuGraphAddEmptyNode,
        cuGraphAddEventRecordNode,
        cuGraphAddEventWaitNode,
        cuGraphAddBatchMemOpNode,
        cuGraphAddExternalSemaphoresSignalNode,
        cuGraphAddExternalSemaphoresWaitNode,
        cuGraphAddMemAllocNode,
        cuGraphAddMemFreeNode,
        cuGraphChildGraphNodeGetGraph,
        cuGraphConditionalHandleCreate,
        cuGraphNodeGetType,
        cuGraphGetNodes,
        cuGraphGetRootNodes: cuGraphGetNodes,
        cuGraphGetEdges,
        cuGraphGetEdges_v12030,
        cuGraphNodeGetDependencies,
        cuGraphNodeGetDependencies_v12030,
        cuGraphNodeGetDependentNodes: cuGraphNodeGetDependencies,
        cuGraphNodeGetDependentNodes_v12030: cuGraphNodeGetDependencies_v12030,
        cuGraphInstantiateWithFlags,
        cuGraphInstantiateWithParams,
        cuGraphExecGetFlags,
        cuGraphExecUpdate,
        cuGraphNodeGetEnabled,
        cuImportExternalSemaphore,
        ..entries
    }
}

/// Defines the typed calls that add a node. Their parameters are ignored.
macro_rules! adders {
    ($($name:ident($($arg:ident: $ty:ty),*);)*) => {
        bare! {
            $(fn $name(
                out: *mut CUgraphNode,
                _g: CUgraph,
                _d: *const CUgraphNode,
                _n: usize,
                $($arg: $ty),*
            ) {
                make(out)
            })*
        }
    };
}

adders! {
    cuGraphAddKernelNode(_p: *const CUDA_KERNEL_NODE_PARAMS_v2);
    cuGraphAddMemcpyNode(_p: *const CUDA_MEMCPY3D_v2, _c: CUcontext);
    cuGraphAddMemsetNode(_p: *const CUDA_MEMSET_NODE_PARAMS_v1, _c: CUcontext);
    cuGraphAddHostNode(_p: *const CUDA_HOST_NODE_PARAMS_v1);
    cuGraphAddChildGraphNode(_p: CUgraph);
    cuGraphAddEmptyNode();
    cuGraphAddEventRecordNode(_p: CUevent);
    cuGraphAddEventWaitNode(_p: CUevent);
    cuGraphAddBatchMemOpNode(_p: *const CUDA_BATCH_MEM_OP_NODE_PARAMS);
    cuGraphAddExternalSemaphoresSignalNode(_p: *const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS);
    cuGraphAddExternalSemaphoresWaitNode(_p: *const CUDA_EXT_SEM_WAIT_NODE_PARAMS);
    cuGraphAddMemFreeNode(_p: CUdeviceptr);
}

/// Fills the out fields of node parameters.
///
/// # Safety
/// `params` is null or valid.
unsafe fn fill(params: *mut CUgraphNodeParams) {
    // SAFETY: the caller's promise; the type says which field counts.
    unsafe {
        let Some(params) = params.as_mut() else { return };
        let fields = &mut params.__bindgen_anon_1;
        match params.type_ {
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC => {
                fields.alloc.dptr = fresh_span(fields.alloc.bytesize)
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL => {
                // The bodies of a node live as long as the process.
                let bodies = (0..fields.conditional.size).map(|_| fresh()).collect::<Box<[usize]>>();
                fields.conditional.phGraph_out = Box::leak(bodies).as_mut_ptr().cast();
            }
            _ => {}
        }
    }
}

bare! {
    fn cuGraphCreate(out: *mut CUgraph, _f: c_uint) { make(out) }
    fn cuGraphClone(out: *mut CUgraph, _g: CUgraph) { make(out) }
    fn cuGraphAddNode(
        out: *mut CUgraphNode,
        _g: CUgraph,
        _d: *const CUgraphNode,
        _n: usize,
        params: *mut CUgraphNodeParams,
    ) {
        fill(params);
        make(out)
    }
    fn cuGraphAddNode_v12030(
        out: *mut CUgraphNode,
        _g: CUgraph,
        _d: *const CUgraphNode,
        _e: *const CUgraphEdgeData,
        _n: usize,
        params: *mut CUgraphNodeParams,
    ) {
        fill(params);
        make(out)
    }
    fn cuGraphInstantiateWithFlags(out: *mut CUgraphExec, _g: CUgraph, _f: u64) { make(out) }
    fn cuGraphInstantiateWithParams(
        out: *mut CUgraphExec,
        _g: CUgraph,
        params: *mut CUDA_GRAPH_INSTANTIATE_PARAMS,
    ) {
        if let Some(params) = params.as_mut() {
            params.hErrNode_out = core::ptr::null_mut();
            params.result_out = CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_SUCCESS;
        }
        make(out)
    }
    fn cuGraphAddMemAllocNode(
        out: *mut CUgraphNode,
        _g: CUgraph,
        _d: *const CUgraphNode,
        _n: usize,
        params: *mut CUDA_MEM_ALLOC_NODE_PARAMS,
    ) {
        if let Some(params) = params.as_mut() {
            params.dptr = fresh_span(params.bytesize);
        }
        make(out)
    }
    fn cuGraphNodeFindInClone(out: *mut CUgraphNode, _o: CUgraphNode, _c: CUgraph) { make(out) }
    fn cuGraphChildGraphNodeGetGraph(_n: CUgraphNode, out: *mut CUgraph) { make(out) }
    fn cuGraphConditionalHandleCreate(
        out: *mut CUgraphConditionalHandle,
        _g: CUgraph,
        _c: CUcontext,
        _v: c_uint,
        _f: c_uint,
    ) {
        tell(out, fresh() as u64)
    }
    fn cuGraphNodeGetType(_n: CUgraphNode, out: *mut CUgraphNodeType) { tell(out, CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY) }
    fn cuGraphGetNodes(_g: CUgraph, _n: *mut CUgraphNode, count: *mut usize) { tell(count, 0) }
    fn cuGraphGetEdges(_g: CUgraph, _f: *mut CUgraphNode, _t: *mut CUgraphNode, count: *mut usize) { tell(count, 0) }
    fn cuGraphGetEdges_v12030(
        _g: CUgraph,
        _f: *mut CUgraphNode,
        _t: *mut CUgraphNode,
        _e: *mut CUgraphEdgeData,
        count: *mut usize,
    ) {
        tell(count, 0)
    }
    fn cuGraphNodeGetDependencies(_n: CUgraphNode, _d: *mut CUgraphNode, count: *mut usize) { tell(count, 0) }
    fn cuGraphNodeGetDependencies_v12030(
        _n: CUgraphNode,
        _d: *mut CUgraphNode,
        _e: *mut CUgraphEdgeData,
        count: *mut usize,
    ) {
        tell(count, 0)
    }
    fn cuGraphExecGetFlags(_e: CUgraphExec, out: *mut cuuint64_t) { tell(out, 0) }
    fn cuGraphExecUpdate(_e: CUgraphExec, _g: CUgraph, result: *mut CUgraphExecUpdateResultInfo) {
        tell(result, CUgraphExecUpdateResultInfo::default())
    }
    fn cuGraphNodeGetEnabled(_e: CUgraphExec, _n: CUgraphNode, out: *mut c_uint) { tell(out, 1) }
    fn cuImportExternalSemaphore(out: *mut CUexternalSemaphore, _d: *const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC) {
        make(out)
    }
}
