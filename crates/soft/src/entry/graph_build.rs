//! Building graphs: graphs, clones, and adding and destroying nodes.

use core::ffi::{CStr, c_char, c_uint};

use cuda_sys::{
    CUDA_HOST_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS_v2, CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEMCPY3D_v2,
    CUDA_MEMSET_NODE_PARAMS_v1, CUDA_MEMSET_NODE_PARAMS_v2, CUcontext, CUdeviceptr, CUevent, CUgraph,
    CUgraphConditionalHandle, CUgraphEdgeData, CUgraphNode, CUgraphNodeParams, CUgraphNodeType,
};

use super::Entries;
use crate::code::{Answer, ILLEGAL_STATE, INVALID_VALUE, NOT_SUPPORTED, OPERATING_SYSTEM};
use crate::fault::crash;
use crate::gate::{put, required, slice};
use crate::graph::build::{self, Wanted, given};
use crate::graph::edge_data::Edge;
use crate::graph::payload::{KernelNode, Payload};
use crate::graph::store::{Owner, graphs};
use crate::graph::{capture, edge};
use crate::handle::{number, to_raw};
use crate::launch::Attributes;

pub(super) const fn add(entries: Entries) -> Entries {
    Entries {
        cuGraphCreate,
        cuGraphDestroy,
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
        cuGraphAddMemAllocNode,
        cuGraphAddMemFreeNode,
        cuGraphConditionalHandleCreate,
        cuGraphDestroyNode,
        cuGraphDebugDotPrint,
        ..entries
    }
}

/// Where a node goes: its graph and dependencies.
struct Place {
    graph: u64,
    dependencies: Vec<(u64, Edge)>,
}

impl Place {
    /// # Safety
    /// The arrays are null or valid for `count` elements.
    unsafe fn read(
        out: *mut CUgraphNode,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        edges: *const CUgraphEdgeData,
        count: usize,
    ) -> Answer<Self> {
        required(out)?;
        graphs().graph(number(graph))?;
        // SAFETY: the caller's promise.
        let nodes = unsafe { slice(dependencies, count)? };
        let mut read = Vec::with_capacity(count);
        for (index, node) in nodes.iter().enumerate() {
            // SAFETY: the caller's promise.
            let data = if edges.is_null() { None } else { Some(unsafe { &*edges.add(index) }) };
            read.push((number(*node), edge::parse(data)?));
        }
        Ok(Self { graph: number(graph), dependencies: read })
    }

    /// The dependencies suit a node of this type.
    fn check(&self, kind: CUgraphNodeType) -> Answer {
        let all = graphs();
        let nodes: Vec<u64> = self.dependencies.iter().map(|(node, _)| *node).collect();
        all.check_dependencies(self.graph, &nodes)?;
        for (node, edge) in &self.dependencies {
            edge::check_kinds(*edge, all.node(*node)?.payload.kind(), kind)?;
        }
        Ok(())
    }

    /// # Safety
    /// `out` is valid for a write.
    unsafe fn add(&self, out: *mut CUgraphNode, payload: Payload) -> Answer {
        self.check(payload.kind())?;
        let node = graphs().add_plain(self.graph, &self.dependencies, payload)?;
        // SAFETY: the caller's promise.
        unsafe { put(out, to_raw(node)) }
    }
}

/// # Safety
/// The arguments are as the interface demands.
unsafe fn add_node(
    out: *mut CUgraphNode,
    graph: CUgraph,
    dependencies: *const CUgraphNode,
    edges: *const CUgraphEdgeData,
    count: usize,
    params: *mut CUgraphNodeParams,
) -> Answer {
    required(params)?;
    // SAFETY: the caller's promise.
    let place = unsafe { Place::read(out, graph, dependencies, edges, count)? };
    // SAFETY: not null, and so valid by the caller's promise.
    let params = unsafe { &mut *params };
    place.check(params.type_)?;
    // SAFETY: the caller's promise.
    let node = match unsafe { build::wanted(params)? } {
        // SAFETY: the out pointer has been checked.
        Wanted::Plain(payload) => return unsafe { place.add(out, *payload) },
        Wanted::Child { graph, by_move } => {
            graphs().add_child(place.graph, &place.dependencies, graph, by_move)?
        }
        Wanted::Free(address) => graphs().add_free(place.graph, &place.dependencies, address)?,
        Wanted::Conditional(raw) => {
            let mut all = graphs();
            let node = all.add_conditional(place.graph, &place.dependencies, &raw)?;
            params.__bindgen_anon_1.conditional.phGraph_out = all.body_array(node)?;
            node
        }
    };
    // SAFETY: the out pointer has been checked.
    unsafe { put(out, to_raw(node)) }
}

entries! {
    init fn cuGraphCreate(out: *mut CUgraph, flags: c_uint) {
        required(out)?;
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        put(out, to_raw(graphs().create(Owner::User)))
    }

    init fn cuGraphDestroy(graph: CUgraph) {
        if capture::is_capturing(number(graph)) {
            return Err(ILLEGAL_STATE);
        }
        let destructors = {
            let mut all = graphs();
            let own = all.graph(number(graph))?;
            if own.owner != Owner::User || own.is_lost {
                return Err(INVALID_VALUE);
            }
            all.discard(number(graph))
        };
        destructors.into_iter().for_each(|destructor| destructor.call());
        Ok(())
    }

    init fn cuGraphClone(out: *mut CUgraph, original: CUgraph) {
        required(out)?;
        let mut all = graphs();
        let graph = number(original);
        let owner = all.graph(graph)?.owner;
        if matches!(owner, Owner::Body { .. }) || all.holds_memory_nodes(graph) || all.holds_conditionals(graph) {
            return Err(NOT_SUPPORTED);
        }
        put(out, to_raw(all.duplicate(graph, Owner::User)?))
    }

    init fn cuGraphNodeFindInClone(out: *mut CUgraphNode, original: CUgraphNode, clone: CUgraph) {
        required(out)?;
        put(out, to_raw(graphs().find_in_clone(number(original), number(clone))?))
    }

    init fn cuGraphAddNode(
        out: *mut CUgraphNode,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        count: usize,
        params: *mut CUgraphNodeParams,
    ) {
        add_node(out, graph, dependencies, core::ptr::null(), count, params)
    }

    init fn cuGraphAddNode_v12030(
        out: *mut CUgraphNode,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        edges: *const CUgraphEdgeData,
        count: usize,
        params: *mut CUgraphNodeParams,
    ) {
        add_node(out, graph, dependencies, edges, count, params)
    }

    live fn cuGraphAddKernelNode(
        out: *mut CUgraphNode,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        count: usize,
        params: *const CUDA_KERNEL_NODE_PARAMS_v2,
    ) {
        let place = Place::read(out, graph, dependencies, core::ptr::null(), count)?;
        let spec = build::kernel_spec(given(params)?, Attributes::new())?;
        place.add(out, Payload::Kernel(KernelNode::new(spec)))
    }

    init fn cuGraphAddMemcpyNode(
        out: *mut CUgraphNode,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        count: usize,
        params: *const CUDA_MEMCPY3D_v2,
        ctx: CUcontext,
    ) {
        let place = Place::read(out, graph, dependencies, core::ptr::null(), count)?;
        place.add(out, Payload::Copy(build::copy_node(given(params)?, number(ctx))?))
    }

    init fn cuGraphAddMemsetNode(
        out: *mut CUgraphNode,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        count: usize,
        params: *const CUDA_MEMSET_NODE_PARAMS_v1,
        ctx: CUcontext,
    ) {
        let place = Place::read(out, graph, dependencies, core::ptr::null(), count)?;
        place.add(out, Payload::Fill(build::fill_node(&with_context(given(params)?, ctx))?))
    }

    init fn cuGraphAddHostNode(
        out: *mut CUgraphNode,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        count: usize,
        params: *const CUDA_HOST_NODE_PARAMS_v1,
    ) {
        let place = Place::read(out, graph, dependencies, core::ptr::null(), count)?;
        place.add(out, Payload::Host(build::host_node(given(params)?)?))
    }

    init fn cuGraphAddChildGraphNode(
        out: *mut CUgraphNode,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        count: usize,
        child: CUgraph,
    ) {
        let place = Place::read(out, graph, dependencies, core::ptr::null(), count)?;
        place.check(CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH)?;
        let node = graphs().add_child(place.graph, &place.dependencies, number(child), false)?;
        put(out, to_raw(node))
    }

    init fn cuGraphAddEmptyNode(
        out: *mut CUgraphNode,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        count: usize,
    ) {
        Place::read(out, graph, dependencies, core::ptr::null(), count)?.add(out, Payload::Empty)
    }

    init fn cuGraphAddEventRecordNode(
        out: *mut CUgraphNode,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        count: usize,
        event: CUevent,
    ) {
        let place = Place::read(out, graph, dependencies, core::ptr::null(), count)?;
        place.add(out, Payload::EventRecord(build::event_node(event)?))
    }

    init fn cuGraphAddEventWaitNode(
        out: *mut CUgraphNode,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        count: usize,
        event: CUevent,
    ) {
        let place = Place::read(out, graph, dependencies, core::ptr::null(), count)?;
        place.add(out, Payload::EventWait(build::event_node(event)?))
    }

    init fn cuGraphAddMemAllocNode(
        out: *mut CUgraphNode,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        count: usize,
        params: *mut CUDA_MEM_ALLOC_NODE_PARAMS,
    ) {
        required(params)?;
        let place = Place::read(out, graph, dependencies, core::ptr::null(), count)?;
        place.check(CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC)?;
        place.add(out, build::typed_alloc(&mut *params)?)
    }

    init fn cuGraphAddMemFreeNode(
        out: *mut CUgraphNode,
        graph: CUgraph,
        dependencies: *const CUgraphNode,
        count: usize,
        dptr: CUdeviceptr,
    ) {
        let place = Place::read(out, graph, dependencies, core::ptr::null(), count)?;
        place.check(CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE)?;
        put(out, to_raw(graphs().add_free(place.graph, &place.dependencies, dptr)?))
    }

    init fn cuGraphConditionalHandleCreate(
        out: *mut CUgraphConditionalHandle,
        graph: CUgraph,
        ctx: CUcontext,
        default: c_uint,
        flags: c_uint,
    ) {
        const ASSIGN_DEFAULT: c_uint = 1;
        required(out)?;
        if flags & !ASSIGN_DEFAULT != 0 {
            return Err(INVALID_VALUE);
        }
        let default = (flags & ASSIGN_DEFAULT != 0).then_some(default);
        put(out, graphs().create_condition(number(graph), number(ctx), default)?)
    }

    init fn cuGraphDestroyNode(node: CUgraphNode) {
        if capture::is_pending(number(node)) {
            return Err(ILLEGAL_STATE);
        }
        let destructors = {
            let mut all = graphs();
            if all.is_destroyed(number(node)) {
                drop(all);
                crash("a graph node is destroyed twice");
            }
            let graph = all.node(number(node))?.graph;
            if all.holds_memory_nodes(graph) {
                return Err(NOT_SUPPORTED);
            }
            all.remove(number(node))
        };
        destructors.into_iter().for_each(|destructor| destructor.call());
        Ok(())
    }

    init fn cuGraphDebugDotPrint(graph: CUgraph, path: *const c_char, flags: c_uint) {
        let _ = flags;
        required(path)?;
        let text = graphs().dot(number(graph))?;
        let path = CStr::from_ptr(path).to_str().map_err(|_| INVALID_VALUE)?;
        std::fs::write(path, text).map_err(|_| OPERATING_SYSTEM)
    }
}

/// The newer layout of a fill's parameters.
pub(super) fn with_context(raw: &CUDA_MEMSET_NODE_PARAMS_v1, ctx: CUcontext) -> CUDA_MEMSET_NODE_PARAMS_v2 {
    CUDA_MEMSET_NODE_PARAMS_v2 {
        dst: raw.dst,
        pitch: raw.pitch,
        value: raw.value,
        elementSize: raw.elementSize,
        width: raw.width,
        height: raw.height,
        ctx,
    }
}
