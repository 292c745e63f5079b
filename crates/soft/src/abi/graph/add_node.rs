//! Calls that add nodes.

use crate::graph::edit::add;
use crate::graph::edit::conditional;
use crate::graph::edit::memory_node;
use cuda_sys::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, CUDA_EXT_SEM_WAIT_NODE_PARAMS,
    CUDA_HOST_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS_v2, CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEMCPY3D_v2,
    CUDA_MEMSET_NODE_PARAMS_v1, CUcontext, CUdeviceptr, CUevent, CUgraph, CUgraphEdgeData, CUgraphNode,
    CUgraphNodeParams, CUgraphNodeType,
};

use super::node_list::read_nodes;
use crate::abi::gate::refuse_in_callbacks;
use crate::abi::table::Entries;
use crate::driver::handle::{number, to_raw};
use crate::driver::pointer::{given, given_mut, put, required};
use crate::driver::result_code::Answer;
use crate::graph::edit::add::Insertion;
use crate::graph::model::store::store;
use crate::graph::model::task::Task;
use crate::graph::params::generic::{self, NewNode};
use crate::graph::params::parse;
use crate::graph::params::read_back::with_context;
use crate::stream::attribute::Attributes;

pub(super) const fn add(entries: Entries) -> Entries {
    Entries {
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
        ..entries
    }
}

/// Adds the node whose parameters `new` parses.
///
/// # Safety
/// `out` is null or valid for a write, the arrays are null or valid for `count` elements.
unsafe fn add_node(
    out: *mut CUgraphNode,
    graph: CUgraph,
    (dependencies, edges, count): (*const CUgraphNode, *const CUgraphEdgeData, usize),
    new: impl FnOnce() -> Answer<NewNode>,
) -> Answer<u64> {
    required(out)?;
    store().graphs.graph(number(graph))?;
    // SAFETY: the caller's promise.
    let dependencies = unsafe { read_nodes(dependencies, edges, count)? };
    let insertion = Insertion { graph: number(graph), dependencies };
    let new = new()?;
    let node = add::add_node(&mut store().graphs, &insertion, new)?;
    // SAFETY: the caller's promise.
    unsafe { put(out, to_raw(node))? };
    Ok(node)
}

/// Whether nodes of this type can be added and set inside callbacks. (Empty and conditional nodes
/// can only be added there.)
pub(crate) fn is_light(kind: CUgraphNodeType) -> bool {
    matches!(
        kind,
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP
            | CUgraphNodeType::CU_GRAPH_NODE_TYPE_HOST
            | CUgraphNodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD
            | CUgraphNodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT
    )
}

/// # Safety
/// The arguments are valid as CUDA's documentation demands.
unsafe fn add_any(
    out: *mut CUgraphNode,
    graph: CUgraph,
    dependencies: (*const CUgraphNode, *const CUgraphEdgeData, usize),
    params: *mut CUgraphNodeParams,
) -> Answer {
    // SAFETY: the caller's promise.
    let params = unsafe { given_mut(params)? };
    let is_alloc = params.type_ == CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC;
    type T = CUgraphNodeType;
    let is_permitted =
        [T::CU_GRAPH_NODE_TYPE_EMPTY, T::CU_GRAPH_NODE_TYPE_CONDITIONAL].contains(&params.type_);
    if !is_permitted && !is_light(params.type_) {
        refuse_in_callbacks()?;
    }
    // SAFETY: the caller's promise.
    let node = unsafe { add_node(out, graph, dependencies, || generic::parse_node(params))? };
    let mut store = store();
    if is_alloc {
        params.__bindgen_anon_1.alloc.dptr = memory_node::address_of(&store.graphs, node)?;
    }
    if let Ok(bodies) = conditional::body_array(&mut store.graphs, node) {
        params.__bindgen_anon_1.conditional.phGraph_out = bodies;
    }
    Ok(())
}

/// Defines the typed calls, which add a node with plain edges.
macro_rules! adders {
    ($($gate:ident fn $name:ident($($arg:ident: $ty:ty),*) $make:block)*) => {
        entries! {
            $($gate fn $name(
                out: *mut CUgraphNode,
                graph: CUgraph,
                dependencies: *const CUgraphNode,
                count: usize,
                $($arg: $ty),*
            ) {
                add_node(out, graph, (dependencies, core::ptr::null(), count), || Ok($make)).map(drop)
            })*
        }
    };
}

adders! {
    live fn cuGraphAddKernelNode(params: *const CUDA_KERNEL_NODE_PARAMS_v2) {
        NewNode::Task(Task::Kernel(parse::kernel_spec(given(params)?, Attributes::new())?))
    }

    init fn cuGraphAddMemcpyNode(params: *const CUDA_MEMCPY3D_v2, ctx: CUcontext) {
        NewNode::Task(Task::Copy(parse::copy_node(given(params)?, number(ctx))?))
    }

    init fn cuGraphAddMemsetNode(params: *const CUDA_MEMSET_NODE_PARAMS_v1, ctx: CUcontext) {
        NewNode::Task(Task::Fill(parse::fill_node(&with_context(given(params)?, ctx))?))
    }

    init fn cuGraphAddHostNode(params: *const CUDA_HOST_NODE_PARAMS_v1) {
        NewNode::Task(Task::Host(parse::host_node(given(params)?)?))
    }

    init fn cuGraphAddChildGraphNode(child: CUgraph) {
        NewNode::Child { graph: number(child), by_move: false }
    }

    initialised fn cuGraphAddEmptyNode() {
        NewNode::Task(Task::Empty)
    }

    init fn cuGraphAddEventRecordNode(event: CUevent) {
        NewNode::Task(Task::EventRecord(parse::event_node(event)?))
    }

    init fn cuGraphAddEventWaitNode(event: CUevent) {
        NewNode::Task(Task::EventWait(parse::event_node(event)?))
    }

    init fn cuGraphAddBatchMemOpNode(params: *const CUDA_BATCH_MEM_OP_NODE_PARAMS) {
        NewNode::Task(Task::Batch(parse::batch_node(given(params)?)?))
    }

    init fn cuGraphAddExternalSemaphoresSignalNode(params: *const CUDA_EXT_SEM_SIGNAL_NODE_PARAMS) {
        NewNode::Task(parse::signal_node(given(params)?, core::ptr::null_mut())?)
    }

    init fn cuGraphAddExternalSemaphoresWaitNode(params: *const CUDA_EXT_SEM_WAIT_NODE_PARAMS) {
        NewNode::Task(parse::wait_node(given(params)?, core::ptr::null_mut())?)
    }

    init fn cuGraphAddMemFreeNode(dptr: CUdeviceptr) {
        NewNode::Free(dptr)
    }
}

entries! {
    init fn cuGraphAddMemAllocNode(
        out: *mut CUgraphNode,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        count: usize,
        params: *mut CUDA_MEM_ALLOC_NODE_PARAMS,
    ) {
        let params = given_mut(params)?;
        let node = add_node(out, graph, (dependencies, core::ptr::null(), count), || {
            Ok(NewNode::Alloc(parse::typed_new_memory(params)?))
        })?;
        params.dptr = memory_node::address_of(&store().graphs, node)?;
        Ok(())
    }

    initialised fn cuGraphAddNode(
        out: *mut CUgraphNode,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        count: usize,
        params: *mut CUgraphNodeParams,
    ) {
        add_any(out, graph, (dependencies, core::ptr::null(), count), params)
    }

    initialised fn cuGraphAddNode_v12030(
        out: *mut CUgraphNode,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        edges: *const CUgraphEdgeData,
        count: usize,
        params: *mut CUgraphNodeParams,
    ) {
        add_any(out, graph, (dependencies, edges, count), params)
    }
}
