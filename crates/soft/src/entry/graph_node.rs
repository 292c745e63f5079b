//! The parameters of nodes, read back and set, and kernel node attributes.

use core::ffi::{c_uint, c_ulonglong};

use cuda_sys::{
    CUDA_CONDITIONAL_NODE_PARAMS, CUDA_HOST_NODE_PARAMS_v1, CUDA_HOST_NODE_PARAMS_v2,
    CUDA_KERNEL_NODE_PARAMS_v2, CUDA_MEM_ALLOC_NODE_PARAMS, CUDA_MEM_ALLOC_NODE_PARAMS_v2,
    CUDA_MEMCPY_NODE_PARAMS, CUDA_MEMCPY3D_v2, CUDA_MEMSET_NODE_PARAMS_v1, CUdeviceptr, CUevent, CUgraph,
    CUgraphConditionalNodeType, CUgraphNode, CUgraphNodeParams, CUgraphNodeType, CUlaunchAttributeID,
    CUlaunchAttributeValue, CUmemAllocationType, CUmemLocationType, CUmemPoolProps,
};

use super::Entries;
use super::graph_build::with_context;
use crate::code::{Answer, INVALID_VALUE, NOT_SUPPORTED};
use crate::copy::Fill;
use crate::device::GREATEST_PRIORITY;
use crate::fault;
use crate::gate::{put, required};
use crate::graph::build::{self, Wanted, given};
use crate::graph::payload::{AllocNode, CopyNode, FillNode, KernelNode, Payload};
use crate::graph::store::{Graphs, Owner, graphs};
use crate::handle::{number, to_raw};
use crate::launch::{self, AttributeValue, Attributes, PRIORITY};

pub(super) const fn add(entries: Entries) -> Entries {
    Entries {
        cuGraphNodeGetType,
        cuGraphNodeSetParams,
        cuGraphNodeGetParams,
        cuGraphNodeSetParams_v13040: cuGraphNodeSetParams,
        cuGraphKernelNodeGetParams,
        cuGraphKernelNodeSetParams,
        cuGraphMemcpyNodeGetParams,
        cuGraphMemcpyNodeSetParams,
        cuGraphMemsetNodeGetParams,
        cuGraphMemsetNodeSetParams,
        cuGraphHostNodeGetParams,
        cuGraphHostNodeSetParams,
        cuGraphChildGraphNodeGetGraph,
        cuGraphEventRecordNodeGetEvent,
        cuGraphEventRecordNodeSetEvent,
        cuGraphEventWaitNodeGetEvent,
        cuGraphEventWaitNodeSetEvent,
        cuGraphMemAllocNodeGetParams,
        cuGraphMemFreeNodeGetParams,
        cuGraphKernelNodeGetAttribute,
        cuGraphKernelNodeSetAttribute,
        cuGraphKernelNodeCopyAttributes,
        cuGraphNodeGetContainingGraph,
        cuGraphNodeGetLocalId,
        cuGraphNodeGetToolsId,
        cuGraphGetId,
        ..entries
    }
}

fn kernel_params(kernel: &KernelNode) -> CUDA_KERNEL_NODE_PARAMS_v2 {
    let (spec, (values, extra)) = (&kernel.spec, kernel.block.raw());
    let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (spec.sizes.grid, spec.sizes.block);
    CUDA_KERNEL_NODE_PARAMS_v2 {
        func: to_raw(spec.function.handle),
        gridDimX: grid_x,
        gridDimY: grid_y,
        gridDimZ: grid_z,
        blockDimX: block_x,
        blockDimY: block_y,
        blockDimZ: block_z,
        sharedMemBytes: spec.sizes.shared,
        kernelParams: values,
        extra,
        kern: to_raw(spec.function.kernel),
        ctx: to_raw(spec.function.module.context.handle),
    }
}

fn fill_params(fill: &Fill) -> CUDA_MEMSET_NODE_PARAMS_v1 {
    CUDA_MEMSET_NODE_PARAMS_v1 {
        dst: fill.address,
        pitch: fill.pitch,
        value: fill.value,
        elementSize: fill.element,
        width: fill.width,
        height: fill.height,
    }
}

/// The pool's part of an allocation node's parameters.
fn pool_props(alloc: &AllocNode) -> CUmemPoolProps {
    let mut props = CUmemPoolProps { maxSize: alloc.max, ..CUmemPoolProps::default() };
    props.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
    props.location.__bindgen_anon_1.id = alloc.memory.device;
    props
}

/// The parameters of any node, as the generic call has them.
fn generic_params(payload: &mut Payload) -> CUgraphNodeParams {
    let mut params = CUgraphNodeParams { type_: payload.kind(), ..CUgraphNodeParams::default() };
    let fields = &mut params.__bindgen_anon_1;
    match payload {
        Payload::Kernel(kernel) => fields.kernel = build::as_v3(&kernel_params(kernel)),
        Payload::Copy(node) => {
            let params = CUDA_MEMCPY_NODE_PARAMS {
                copyCtx: to_raw(node.context),
                copyParams: node.raw,
                ..Default::default()
            };
            fields.memcpy = params;
        }
        Payload::Fill(node) => fields.memset = with_context(&fill_params(&node.fill), to_raw(node.context)),
        Payload::Host(callback) => {
            fields.host = CUDA_HOST_NODE_PARAMS_v2 {
                fn_: Some(callback.function),
                userData: callback.data,
                ..Default::default()
            };
        }
        Payload::Child(child) => fields.graph.graph = to_raw(*child),
        Payload::Empty => {}
        Payload::EventWait(event) => fields.eventWait.event = to_raw(*event),
        Payload::EventRecord(event) => fields.eventRecord.event = to_raw(*event),
        Payload::Alloc(alloc) => {
            fields.alloc = CUDA_MEM_ALLOC_NODE_PARAMS_v2 {
                poolProps: pool_props(alloc),
                bytesize: alloc.memory.len,
                dptr: alloc.memory.start,
                ..Default::default()
            };
        }
        Payload::Free(address) => fields.free.dptr = *address,
        Payload::Conditional(node) => {
            fields.conditional = CUDA_CONDITIONAL_NODE_PARAMS {
                handle: node.handle,
                type_: CUgraphConditionalNodeType(node.condition as c_uint),
                size: c_uint::try_from(node.bodies.len()).unwrap_or(c_uint::MAX),
                phGraph_out: node.bodies.as_mut_ptr().cast(),
                ctx: to_raw(node.context),
            };
        }
    }
    params
}

fn kernel(all: &mut Graphs, node: u64) -> Answer<&mut KernelNode> {
    match &mut all.node_mut(node)?.payload {
        Payload::Kernel(kernel) => Ok(kernel),
        _ => Err(INVALID_VALUE),
    }
}

fn copy(all: &mut Graphs, node: u64) -> Answer<&mut CopyNode> {
    match &mut all.node_mut(node)?.payload {
        Payload::Copy(copy) => Ok(copy),
        _ => Err(INVALID_VALUE),
    }
}

fn fill(all: &mut Graphs, node: u64) -> Answer<&mut FillNode> {
    match &mut all.node_mut(node)?.payload {
        Payload::Fill(fill) => Ok(fill),
        _ => Err(INVALID_VALUE),
    }
}

fn event(all: &mut Graphs, node: u64, record: bool) -> Answer<&mut u64> {
    match &mut all.node_mut(node)?.payload {
        Payload::EventRecord(event) if record => Ok(event),
        Payload::EventWait(event) if !record => Ok(event),
        _ => Err(INVALID_VALUE),
    }
}

/// # Safety
/// The parameters are as the interface demands.
unsafe fn set_kernel(node: u64, raw: &CUDA_KERNEL_NODE_PARAMS_v2) -> Answer {
    let attributes = kernel(&mut graphs(), node)?.spec.attributes.clone();
    // SAFETY: the caller's promise.
    let spec = unsafe { build::kernel_spec(raw, attributes)? };
    kernel(&mut graphs(), node)?.set(spec);
    Ok(())
}

/// Sets the parameters of the generic call in a node of a graph.
///
/// # Safety
/// The parameters are as the interface demands.
unsafe fn set_params(node: u64, params: &mut CUgraphNodeParams) -> Answer {
    let kind = graphs().node(node)?.payload.kind();
    if kind != params.type_ {
        return Err(INVALID_VALUE);
    }
    match kind {
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL => {
            build::check_padding(params)?;
            // SAFETY: the type of the parameters says which field counts.
            return unsafe { set_kernel(node, &build::as_v2(&params.__bindgen_anon_1.kernel)) };
        }
        CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC
        | CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE
        | CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL => return Err(NOT_SUPPORTED),
        _ => {}
    }
    // SAFETY: the caller's promise.
    match unsafe { build::wanted(params)? } {
        Wanted::Plain(payload) => {
            graphs().node_mut(node)?.payload = *payload;
            Ok(())
        }
        Wanted::Child { graph, by_move } => replace_child(node, graph, by_move),
        Wanted::Free(_) | Wanted::Conditional(_) => Err(NOT_SUPPORTED),
    }
}

/// Another graph for a child node; the old embedded graph ends.
fn replace_child(node: u64, child: u64, by_move: bool) -> Answer {
    let destructors = {
        let mut all = graphs();
        all.graph(child)?;
        let graph = all.node(node)?.graph;
        if all.is_inside(graph, child) {
            drop(all);
            fault::crash("a graph is embedded in itself or in a part of itself");
        }
        if all.holds_conditionals(child) || all.holds_memory_nodes(child) {
            return Err(NOT_SUPPORTED);
        }
        let embedded = if by_move { child } else { all.duplicate(child, Owner::User)? };
        all.graph_mut(embedded)?.owner = Owner::Child { node, moved: by_move };
        match std::mem::replace(&mut all.node_mut(node)?.payload, Payload::Child(embedded)) {
            Payload::Child(old) => all.discard(old),
            _ => Vec::new(),
        }
    };
    destructors.into_iter().for_each(|destructor| destructor.call());
    Ok(())
}

/// An attribute's value where none was set.
fn default_attribute(attribute: CUlaunchAttributeID) -> CUlaunchAttributeValue {
    let mut value = CUlaunchAttributeValue { pad: [0; 64] };
    if attribute == CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP {
        value.memSyncDomainMap.remote = 1;
    }
    if attribute == CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT {
        value.sharedMemCarveout = u32::MAX;
    }
    value
}

fn set_attributes(all: &mut Graphs, node: u64, attributes: Attributes) -> Answer {
    let kernel = kernel(all, node)?;
    launch::check(&kernel.spec.function.code, &kernel.spec.sizes, &attributes)?;
    kernel.spec.attributes = attributes;
    Ok(())
}

entries! {
    init fn cuGraphNodeGetType(node: CUgraphNode, kind: *mut CUgraphNodeType) {
        put(kind, graphs().kind(number(node))?)
    }

    init fn cuGraphNodeGetParams(node: CUgraphNode, params: *mut CUgraphNodeParams) {
        let mut all = graphs();
        put(params, generic_params(&mut all.node_mut(number(node))?.payload))
    }

    init fn cuGraphNodeSetParams(node: CUgraphNode, params: *mut CUgraphNodeParams) {
        required(params)?;
        set_params(number(node), &mut *params)
    }

    init fn cuGraphKernelNodeGetParams(node: CUgraphNode, params: *mut CUDA_KERNEL_NODE_PARAMS_v2) {
        let mut all = graphs();
        let kernel = kernel(&mut all, number(node))?;
        put(params, kernel_params(kernel))
    }

    live fn cuGraphKernelNodeSetParams(node: CUgraphNode, params: *const CUDA_KERNEL_NODE_PARAMS_v2) {
        set_kernel(number(node), given(params)?)
    }

    init fn cuGraphMemcpyNodeGetParams(node: CUgraphNode, params: *mut CUDA_MEMCPY3D_v2) {
        put(params, copy(&mut graphs(), number(node))?.raw)
    }

    init fn cuGraphMemcpyNodeSetParams(node: CUgraphNode, params: *const CUDA_MEMCPY3D_v2) {
        let mut all = graphs();
        let own = copy(&mut all, number(node))?;
        *own = build::copy_node(given(params)?, own.context)?;
        Ok(())
    }

    init fn cuGraphMemsetNodeGetParams(node: CUgraphNode, params: *mut CUDA_MEMSET_NODE_PARAMS_v1) {
        let fill = fill(&mut graphs(), number(node))?.fill;
        put(params, fill_params(&fill))
    }

    init fn cuGraphMemsetNodeSetParams(node: CUgraphNode, params: *const CUDA_MEMSET_NODE_PARAMS_v1) {
        let mut all = graphs();
        let own = fill(&mut all, number(node))?;
        *own = build::fill_node(&with_context(given(params)?, to_raw(own.context)))?;
        Ok(())
    }

    init fn cuGraphHostNodeGetParams(node: CUgraphNode, params: *mut CUDA_HOST_NODE_PARAMS_v1) {
        match &graphs().node(number(node))?.payload {
            Payload::Host(callback) => {
                put(params, CUDA_HOST_NODE_PARAMS_v1 { fn_: Some(callback.function), userData: callback.data })
            }
            _ => Err(INVALID_VALUE),
        }
    }

    init fn cuGraphHostNodeSetParams(node: CUgraphNode, params: *const CUDA_HOST_NODE_PARAMS_v1) {
        let callback = build::host_node(given(params)?)?;
        match &mut graphs().node_mut(number(node))?.payload {
            Payload::Host(own) => {
                *own = callback;
                Ok(())
            }
            _ => Err(INVALID_VALUE),
        }
    }

    init fn cuGraphChildGraphNodeGetGraph(node: CUgraphNode, graph: *mut CUgraph) {
        match &graphs().node(number(node))?.payload {
            Payload::Child(child) => put(graph, to_raw(*child)),
            _ => Err(INVALID_VALUE),
        }
    }

    init fn cuGraphEventRecordNodeGetEvent(node: CUgraphNode, out: *mut CUevent) {
        put(out, to_raw(*event(&mut graphs(), number(node), true)?))
    }

    init fn cuGraphEventRecordNodeSetEvent(node: CUgraphNode, new: CUevent) {
        let new = build::event_node(new)?;
        *event(&mut graphs(), number(node), true)? = new;
        Ok(())
    }

    init fn cuGraphEventWaitNodeGetEvent(node: CUgraphNode, out: *mut CUevent) {
        put(out, to_raw(*event(&mut graphs(), number(node), false)?))
    }

    init fn cuGraphEventWaitNodeSetEvent(node: CUgraphNode, new: CUevent) {
        let new = build::event_node(new)?;
        *event(&mut graphs(), number(node), false)? = new;
        Ok(())
    }

    init fn cuGraphMemAllocNodeGetParams(node: CUgraphNode, out: *mut CUDA_MEM_ALLOC_NODE_PARAMS) {
        let all = graphs();
        let Payload::Alloc(alloc) = &all.node(number(node))?.payload else { return Err(INVALID_VALUE) };
        put(out, CUDA_MEM_ALLOC_NODE_PARAMS {
            poolProps: pool_props(alloc),
            bytesize: alloc.memory.len,
            dptr: alloc.memory.start,
            ..Default::default()
        })
    }

    init fn cuGraphMemFreeNodeGetParams(node: CUgraphNode, out: *mut CUdeviceptr) {
        match &graphs().node(number(node))?.payload {
            Payload::Free(address) => put(out, *address),
            _ => Err(INVALID_VALUE),
        }
    }

    init fn cuGraphKernelNodeGetAttribute(
        node: CUgraphNode,
        attribute: CUlaunchAttributeID,
        value: *mut CUlaunchAttributeValue,
    ) {
        let mut all = graphs();
        let kernel = kernel(&mut all, number(node))?;
        if !launch::is_node_attribute(attribute.0) {
            return Err(INVALID_VALUE);
        }
        let known = kernel.spec.attributes.get(&attribute.0).map(|known| known.0);
        put(value, known.unwrap_or_else(|| default_attribute(attribute)))
    }

    init fn cuGraphKernelNodeSetAttribute(
        node: CUgraphNode,
        attribute: CUlaunchAttributeID,
        value: *const CUlaunchAttributeValue,
    ) {
        let mut value = *given(value)?;
        let mut all = graphs();
        let mut attributes = kernel(&mut all, number(node))?.spec.attributes.clone();
        if !launch::is_node_attribute(attribute.0) {
            return Err(INVALID_VALUE);
        }
        if attribute.0 == PRIORITY {
            value.priority = value.priority.clamp(GREATEST_PRIORITY, 0);
        }
        attributes.insert(attribute.0, AttributeValue(value));
        set_attributes(&mut all, number(node), attributes)
    }

    init fn cuGraphKernelNodeCopyAttributes(dst: CUgraphNode, src: CUgraphNode) {
        let mut all = graphs();
        let attributes = kernel(&mut all, number(src))?.spec.attributes.clone();
        set_attributes(&mut all, number(dst), attributes)
    }

    init fn cuGraphNodeGetContainingGraph(node: CUgraphNode, graph: *mut CUgraph) {
        put(graph, to_raw(graphs().node(number(node))?.graph))
    }

    init fn cuGraphNodeGetLocalId(node: CUgraphNode, id: *mut c_uint) {
        let all = graphs();
        let node = all.node(number(node))?;
        let before = all.graph(node.graph)?.order.range(..node.seq).count();
        put(id, c_uint::try_from(before).unwrap_or(c_uint::MAX))
    }

    init fn cuGraphNodeGetToolsId(node: CUgraphNode, id: *mut c_ulonglong) {
        put(id, graphs().node(number(node))?.uid)
    }

    init fn cuGraphGetId(graph: CUgraph, id: *mut c_uint) {
        put(id, graphs().graph(number(graph))?.uid as c_uint)
    }
}
