//! Other code: what it does to graphs, with the driver alone.

use core::ptr;

use cuda_handles::{Context, Stream};
use cuda_sys::{
    CUDA_GRAPH_INSTANTIATE_PARAMS, CUDA_HOST_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS_v2,
    CUDA_MEM_ALLOC_NODE_PARAMS, CUdeviceptr, CUgraph, CUgraphConditionalNodeType, CUgraphExec, CUgraphNode,
    CUgraphNodeParams, CUgraphNodeType, CUmemAllocationType, CUmemLocationType,
};
use cuda_tests::{device, raw};

pub(crate) fn graph() -> CUgraph {
    let mut graph = ptr::null_mut();
    // SAFETY: the out pointer is valid.
    raw::ok(unsafe { raw::driver().cuGraphCreate(&raw mut graph, 0) });
    graph
}

pub(crate) fn clone(graph: CUgraph) -> CUgraph {
    let mut clone = ptr::null_mut();
    // SAFETY: the graph lives, and the out pointer is valid.
    raw::ok(unsafe { raw::driver().cuGraphClone(&raw mut clone, graph) });
    clone
}

pub(crate) fn destroy(graph: CUgraph) {
    // SAFETY: the graph is other code's, which is done with it.
    raw::ok(unsafe { raw::driver().cuGraphDestroy(graph) });
}

pub(crate) fn instantiate(context: &Context, graph: CUgraph) -> CUgraphExec {
    let mut exec = ptr::null_mut();
    let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS::default();
    // SAFETY: graph and context live, and the out pointers are valid.
    unsafe {
        raw::ok(raw::driver().cuCtxPushCurrent(context.as_raw()));
        raw::ok(raw::driver().cuGraphInstantiateWithParams(&raw mut exec, graph, &raw mut params));
        let mut popped = ptr::null_mut();
        raw::ok(raw::driver().cuCtxPopCurrent(&raw mut popped));
    }
    exec
}

pub(crate) fn launch(exec: CUgraphExec, stream: &Stream) {
    // SAFETY: both live.
    raw::ok(unsafe { raw::driver().cuGraphLaunch(exec, stream.as_raw()) });
}

pub(crate) fn destroy_exec(exec: CUgraphExec) {
    // SAFETY: other code is done with it.
    raw::ok(unsafe { raw::driver().cuGraphExecDestroy(exec) });
}

fn dependencies(after: &[CUgraphNode]) -> *const CUgraphNode {
    if after.is_empty() { ptr::null() } else { after.as_ptr() }
}

pub(crate) fn empty(graph: CUgraph, after: &[CUgraphNode]) -> CUgraphNode {
    let mut node = ptr::null_mut();
    // SAFETY: graph and nodes live, and the out pointer is valid.
    raw::ok(unsafe {
        raw::driver().cuGraphAddEmptyNode(&raw mut node, graph, dependencies(after), after.len())
    });
    node
}

/// A node that does what another one does.
pub(crate) fn kernel(
    graph: CUgraph,
    after: &[CUgraphNode],
    params: CUDA_KERNEL_NODE_PARAMS_v2,
) -> CUgraphNode {
    let params = CUDA_KERNEL_NODE_PARAMS_v2 { func: ptr::null_mut(), ..params };
    let mut node = ptr::null_mut();
    // SAFETY: graph and nodes live, the parameters are those of a kernel node that lives, and
    // the out pointer is valid.
    raw::ok(unsafe {
        raw::driver().cuGraphAddKernelNode(
            &raw mut node,
            graph,
            dependencies(after),
            after.len(),
            &raw const params,
        )
    });
    node
}

pub(crate) fn child(graph: CUgraph, of: CUgraph) -> CUgraphNode {
    let mut node = ptr::null_mut();
    // SAFETY: both graphs live, and the out pointer is valid.
    raw::ok(unsafe { raw::driver().cuGraphAddChildGraphNode(&raw mut node, graph, ptr::null(), 0, of) });
    node
}

/// An allocation node and its address.
pub(crate) fn alloc(graph: CUgraph, after: &[CUgraphNode], bytes: usize) -> (CUgraphNode, CUdeviceptr) {
    let mut params = CUDA_MEM_ALLOC_NODE_PARAMS { bytesize: bytes, ..Default::default() };
    params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    params.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    params.poolProps.location.__bindgen_anon_1.id = device().as_raw();
    let mut node = ptr::null_mut();
    // SAFETY: graph and nodes live, the parameters are complete, and the out pointer is valid.
    raw::ok(unsafe {
        raw::driver().cuGraphAddMemAllocNode(
            &raw mut node,
            graph,
            dependencies(after),
            after.len(),
            &raw mut params,
        )
    });
    (node, params.dptr)
}

pub(crate) fn free(graph: CUgraph, after: &[CUgraphNode], address: CUdeviceptr) -> CUgraphNode {
    let mut node = ptr::null_mut();
    // SAFETY: graph and nodes live, and the out pointer is valid.
    raw::ok(unsafe {
        raw::driver().cuGraphAddMemFreeNode(&raw mut node, graph, dependencies(after), after.len(), address)
    });
    node
}

unsafe extern "C" fn nothing(_: *mut core::ffi::c_void) {}

pub(crate) fn host(graph: CUgraph) -> CUgraphNode {
    let mut node = ptr::null_mut();
    let params = CUDA_HOST_NODE_PARAMS_v1 { fn_: Some(nothing), userData: ptr::null_mut() };
    // SAFETY: the graph lives, and the pointers are valid.
    raw::ok(unsafe {
        raw::driver().cuGraphAddHostNode(&raw mut node, graph, ptr::null(), 0, &raw const params)
    });
    node
}

pub(crate) fn record(graph: CUgraph, event: &cuda_handles::Event) -> CUgraphNode {
    let mut node = ptr::null_mut();
    let event = event.as_raw();
    // SAFETY: graph and event live, and the out pointer is valid.
    raw::ok(unsafe { raw::driver().cuGraphAddEventRecordNode(&raw mut node, graph, ptr::null(), 0, event) });
    node
}

/// A handle for one conditional node.
pub(crate) fn condition(context: &Context, graph: CUgraph, default: u32) -> u64 {
    let (mut handle, flags) = (0, cuda_sys::CU_GRAPH_COND_ASSIGN_DEFAULT);
    // SAFETY: graph and context live, and the out pointer is valid.
    let result = unsafe {
        let context = context.as_raw();
        raw::driver().cuGraphConditionalHandleCreate(&raw mut handle, graph, context, default, flags)
    };
    raw::ok(result.unwrap());
    handle
}

/// A conditional node, and its bodies.
pub(crate) fn conditional(
    context: &Context,
    graph: CUgraph,
    handle: u64,
    class: CUgraphConditionalNodeType,
    size: u32,
) -> (CUgraphNode, Vec<CUgraph>) {
    let mut node = ptr::null_mut();
    let mut params = CUgraphNodeParams {
        type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
        ..CUgraphNodeParams::default()
    };
    let to = &mut params.__bindgen_anon_1;
    to.conditional.handle = handle;
    to.conditional.type_ = class;
    to.conditional.size = size;
    to.conditional.ctx = context.as_raw();
    // SAFETY: the graph lives, the parameters are complete, and the out pointer is valid; then
    // the driver tells of as many bodies.
    unsafe {
        raw::ok(raw::driver().cuGraphAddNode(&raw mut node, graph, ptr::null(), 0, &raw mut params));
        let bodies = params.__bindgen_anon_1.conditional.phGraph_out;
        (node, core::slice::from_raw_parts(bodies, size as usize).to_vec())
    }
}

pub(crate) fn connect(graph: CUgraph, from: CUgraphNode, to: CUgraphNode) {
    // SAFETY: graph and nodes live.
    raw::ok(unsafe { raw::driver().cuGraphAddDependencies(graph, &raw const from, &raw const to, 1) });
}

pub(crate) fn remove(node: CUgraphNode) {
    // SAFETY: the node lives.
    raw::ok(unsafe { raw::driver().cuGraphDestroyNode(node) });
}
