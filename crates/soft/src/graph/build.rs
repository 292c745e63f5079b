//! Reading the parameters of nodes, with the checks that each type has.

use core::ffi::{c_char, c_uint};

use cuda_sys::{
    CUDA_CONDITIONAL_NODE_PARAMS, CUDA_HOST_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS_v2,
    CUDA_MEM_ALLOC_NODE_PARAMS_v2, CUDA_MEMCPY3D_v2, CUDA_MEMSET_NODE_PARAMS_v2, CUgraphConditionalNodeType,
    CUgraphNodeParams, CUgraphNodeType, CUmemAccessDesc, CUmemAllocationType, CUmemLocation,
    CUmemLocationType, Version,
};

use super::edge_data::Edge;
use super::memory_node;
use super::payload::{
    AllocNode, Condition, ConditionalNode, CopyNode, FillNode, KernelNode, KernelSpec, Payload,
};
use super::store::{Graphs, Owner};
use crate::callback::Callback;
use crate::code::{
    Answer, INVALID_CONTEXT, INVALID_DEVICE, INVALID_HANDLE, INVALID_VALUE, NOT_SUPPORTED, OUT_OF_MEMORY,
};
use crate::context::{self, check_device, current};
use crate::copy::{self, Fill, Promised};
use crate::driver;
use crate::event;
use crate::fault::{self, crash};
use crate::gate::required;
use crate::handle::number;
use crate::launch::{self, Attributes, Sizes};
use crate::module;

/// Reads the parameters of a kernel; `attributes` are those that the node has.
///
/// # Safety
/// The parameters are as the interface demands.
pub(crate) unsafe fn kernel_spec(
    raw: &CUDA_KERNEL_NODE_PARAMS_v2,
    attributes: Attributes,
) -> Answer<KernelSpec> {
    fault::check_all()?;
    let function = if !raw.func.is_null() {
        if context::current_handle() == 0 {
            crash("a kernel node is given by its function while no context is current");
        }
        module::function(number(raw.func))?
    } else if !raw.kern.is_null() {
        let kernel = module::kernel(number(raw.kern))?;
        let context = if raw.ctx.is_null() { current()? } else { context::get(number(raw.ctx))? };
        kernel.function(&context)?
    } else {
        return Err(INVALID_HANDLE);
    };
    fault::check_device(function.module.context.device)?;
    let sizes = Sizes {
        grid: [raw.gridDimX, raw.gridDimY, raw.gridDimZ],
        block: [raw.blockDimX, raw.blockDimY, raw.blockDimZ],
        shared: raw.sharedMemBytes,
    };
    launch::check(&function.code, &sizes, &attributes)?;
    // SAFETY: the caller's promise.
    let arguments =
        unsafe { launch::read_arguments(&function.code, raw.kernelParams, raw.extra, INVALID_VALUE)? };
    Ok(KernelSpec { function, sizes, arguments, attributes })
}

/// Reads the parameters of a copy node.
pub(crate) fn copy_node(raw: &CUDA_MEMCPY3D_v2, context: u64) -> Answer<CopyNode> {
    Ok(CopyNode { raw: *raw, copy: copy::parse(raw, Promised::Yes)?, context })
}

/// Reads the parameters of a fill node.
pub(crate) fn fill_node(raw: &CUDA_MEMSET_NODE_PARAMS_v2) -> Answer<FillNode> {
    let fill = Fill {
        address: raw.dst,
        pitch: raw.pitch,
        value: raw.value,
        element: raw.elementSize,
        width: raw.width,
        height: raw.height,
    };
    fill.check(Promised::Yes)?;
    Ok(FillNode { fill, context: number(raw.ctx) })
}

/// Reads the parameters of a host node.
pub(crate) fn host_node(raw: &CUDA_HOST_NODE_PARAMS_v1) -> Answer<Callback> {
    Ok(Callback { function: raw.fn_.ok_or(INVALID_VALUE)?, data: raw.userData })
}

/// An event of a node, which has to live.
pub(crate) fn event_node(raw: cuda_sys::CUevent) -> Answer<u64> {
    if event::exists(number(raw)) { Ok(number(raw)) } else { Err(INVALID_VALUE) }
}

/// The number of the device that a location names.
fn device_of(location: &CUmemLocation) -> Option<i32> {
    if location.type_ != CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE {
        return None;
    }
    // SAFETY: the type of the location says which field counts.
    Some(unsafe { location.__bindgen_anon_1.id })
}

/// Reads the parameters of an allocation node and takes an address for it.
///
/// # Safety
/// The access descriptions are valid for their count.
unsafe fn alloc_node(raw: &CUDA_MEM_ALLOC_NODE_PARAMS_v2) -> Answer<AllocNode> {
    if raw.bytesize == 0 || raw.poolProps.allocType != CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED {
        return Err(INVALID_VALUE);
    }
    let Some(device) = device_of(&raw.poolProps.location) else { return Err(NOT_SUPPORTED) };
    if check_device(device).is_err() {
        return Err(INVALID_VALUE);
    }
    if raw.poolProps.handleTypes.0 != 0 {
        return Err(NOT_SUPPORTED);
    }
    if raw.accessDescCount > 0 && raw.accessDescs.is_null() {
        crash("an allocation node has a count of access descriptions without their array");
    }
    for index in 0..raw.accessDescCount {
        // SAFETY: the caller's promise.
        let access: CUmemAccessDesc = unsafe { raw.accessDescs.add(index).read() };
        let target = device_of(&access.location).ok_or(NOT_SUPPORTED)?;
        check_device(target).map_err(|_| INVALID_DEVICE)?;
        const READ_WRITE: c_uint = 3;
        if target == device && access.flags.0 != READ_WRITE {
            return Err(NOT_SUPPORTED);
        }
    }
    // More than any address space of a device holds.
    if raw.bytesize as u64 >= 1 << 40 {
        return Err(OUT_OF_MEMORY);
    }
    Ok(AllocNode { memory: memory_node::reserve(raw.bytesize, device), max: raw.poolProps.maxSize })
}

fn condition(raw: &CUDA_CONDITIONAL_NODE_PARAMS) -> Answer<Condition> {
    let newer = driver::version() >= Version::new(12, 8);
    match (raw.type_, raw.size) {
        (CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF, 1) => Ok(Condition::If),
        (CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF, 2) if newer => Ok(Condition::If),
        (CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE, 1) => Ok(Condition::While),
        (CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_SWITCH, 1..) if newer => Ok(Condition::Switch),
        _ => Err(INVALID_VALUE),
    }
}

/// The bytes of the parameters that their type uses.
fn used_bytes(kind: CUgraphNodeType) -> Option<usize> {
    type T = CUgraphNodeType;
    Some(match kind {
        T::CU_GRAPH_NODE_TYPE_KERNEL => size_of::<CUDA_KERNEL_NODE_PARAMS_v2>(),
        T::CU_GRAPH_NODE_TYPE_MEMCPY => size_of::<cuda_sys::CUDA_MEMCPY_NODE_PARAMS>(),
        T::CU_GRAPH_NODE_TYPE_MEMSET => size_of::<CUDA_MEMSET_NODE_PARAMS_v2>(),
        T::CU_GRAPH_NODE_TYPE_HOST => size_of::<cuda_sys::CUDA_HOST_NODE_PARAMS_v2>(),
        T::CU_GRAPH_NODE_TYPE_GRAPH => size_of::<cuda_sys::CUDA_CHILD_GRAPH_NODE_PARAMS>(),
        T::CU_GRAPH_NODE_TYPE_EMPTY => 0,
        T::CU_GRAPH_NODE_TYPE_WAIT_EVENT => size_of::<cuda_sys::CUDA_EVENT_WAIT_NODE_PARAMS>(),
        T::CU_GRAPH_NODE_TYPE_EVENT_RECORD => size_of::<cuda_sys::CUDA_EVENT_RECORD_NODE_PARAMS>(),
        T::CU_GRAPH_NODE_TYPE_MEM_ALLOC => size_of::<CUDA_MEM_ALLOC_NODE_PARAMS_v2>(),
        T::CU_GRAPH_NODE_TYPE_MEM_FREE => size_of::<cuda_sys::CUDA_MEM_FREE_NODE_PARAMS>(),
        T::CU_GRAPH_NODE_TYPE_CONDITIONAL => size_of::<CUDA_CONDITIONAL_NODE_PARAMS>(),
        _ => return None,
    })
}

/// Reserved and unused bytes have to be zero.
pub(crate) fn check_padding(raw: &CUgraphNodeParams) -> Answer {
    let used = used_bytes(raw.type_).ok_or(INVALID_VALUE)?;
    // SAFETY: every byte of the parameters was given by the caller.
    let bytes: [c_char; 232] = unsafe { raw.__bindgen_anon_1.asBytes };
    let clean = bytes.iter().skip(used).all(|byte| *byte == 0);
    if clean && raw.reserved0 == [0; 3] && raw.reserved2 == 0 { Ok(()) } else { Err(INVALID_VALUE) }
}

/// What a node of the generic call adds: its payload, or a part that needs the graph itself.
pub(crate) enum Wanted {
    Plain(Box<Payload>),
    Child { graph: u64, by_move: bool },
    Conditional(CUDA_CONDITIONAL_NODE_PARAMS),
    Free(u64),
}

/// Reads the parameters of the generic call.
///
/// # Safety
/// The parameters are as the interface demands.
pub(crate) unsafe fn wanted(raw: &mut CUgraphNodeParams) -> Answer<Wanted> {
    type T = CUgraphNodeType;
    check_padding(raw)?;
    // SAFETY (of all blocks): the type of the parameters says which of the fields counts.
    Ok(Wanted::Plain(Box::new(match raw.type_ {
        T::CU_GRAPH_NODE_TYPE_KERNEL => {
            // SAFETY: as above.
            let spec = unsafe { kernel_spec(&as_v2(&raw.__bindgen_anon_1.kernel), Attributes::new())? };
            Payload::Kernel(KernelNode::new(spec))
        }
        T::CU_GRAPH_NODE_TYPE_MEMCPY => {
            // SAFETY: as above.
            let params = unsafe { raw.__bindgen_anon_1.memcpy };
            if params.flags != 0 || params.reserved != 0 {
                return Err(INVALID_VALUE);
            }
            Payload::Copy(copy_node(&params.copyParams, number(params.copyCtx))?)
        }
        // SAFETY: as above.
        T::CU_GRAPH_NODE_TYPE_MEMSET => Payload::Fill(fill_node(unsafe { &raw.__bindgen_anon_1.memset })?),
        T::CU_GRAPH_NODE_TYPE_HOST => {
            // SAFETY: as above.
            let params = unsafe { raw.__bindgen_anon_1.host };
            Payload::Host(host_node(&CUDA_HOST_NODE_PARAMS_v1 {
                fn_: params.fn_,
                userData: params.userData,
            })?)
        }
        T::CU_GRAPH_NODE_TYPE_GRAPH => {
            // SAFETY: as above.
            let params = unsafe { raw.__bindgen_anon_1.graph };
            let by_move = params.ownership.0 == 1 && driver::version() >= Version::new(12, 9);
            return Ok(Wanted::Child { graph: number(params.graph), by_move });
        }
        T::CU_GRAPH_NODE_TYPE_EMPTY => Payload::Empty,
        T::CU_GRAPH_NODE_TYPE_WAIT_EVENT => {
            // SAFETY: as above.
            Payload::EventWait(event_node(unsafe { raw.__bindgen_anon_1.eventWait.event })?)
        }
        T::CU_GRAPH_NODE_TYPE_EVENT_RECORD => {
            // SAFETY: as above.
            Payload::EventRecord(event_node(unsafe { raw.__bindgen_anon_1.eventRecord.event })?)
        }
        T::CU_GRAPH_NODE_TYPE_MEM_ALLOC => {
            // SAFETY: as above.
            let node = unsafe { alloc_node(&raw.__bindgen_anon_1.alloc)? };
            raw.__bindgen_anon_1.alloc.dptr = node.memory.start;
            Payload::Alloc(node)
        }
        // SAFETY: as above.
        T::CU_GRAPH_NODE_TYPE_MEM_FREE => return Ok(Wanted::Free(unsafe { raw.__bindgen_anon_1.free.dptr })),
        T::CU_GRAPH_NODE_TYPE_CONDITIONAL => {
            // SAFETY: as above.
            return Ok(Wanted::Conditional(unsafe { raw.__bindgen_anon_1.conditional }));
        }
        _ => return Err(INVALID_VALUE),
    })))
}

/// The third layout of kernel parameters has the fields of the second.
pub(crate) fn as_v2(raw: &cuda_sys::CUDA_KERNEL_NODE_PARAMS_v3) -> CUDA_KERNEL_NODE_PARAMS_v2 {
    CUDA_KERNEL_NODE_PARAMS_v2 {
        func: raw.func,
        gridDimX: raw.gridDimX,
        gridDimY: raw.gridDimY,
        gridDimZ: raw.gridDimZ,
        blockDimX: raw.blockDimX,
        blockDimY: raw.blockDimY,
        blockDimZ: raw.blockDimZ,
        sharedMemBytes: raw.sharedMemBytes,
        kernelParams: raw.kernelParams,
        extra: raw.extra,
        kern: raw.kern,
        ctx: raw.ctx,
    }
}

/// The second layout of kernel parameters in the third.
pub(crate) fn as_v3(raw: &CUDA_KERNEL_NODE_PARAMS_v2) -> cuda_sys::CUDA_KERNEL_NODE_PARAMS_v3 {
    cuda_sys::CUDA_KERNEL_NODE_PARAMS_v3 {
        func: raw.func,
        gridDimX: raw.gridDimX,
        gridDimY: raw.gridDimY,
        gridDimZ: raw.gridDimZ,
        blockDimX: raw.blockDimX,
        blockDimY: raw.blockDimY,
        blockDimZ: raw.blockDimZ,
        sharedMemBytes: raw.sharedMemBytes,
        kernelParams: raw.kernelParams,
        extra: raw.extra,
        kern: raw.kern,
        ctx: raw.ctx,
    }
}

/// An allocation node of the typed call.
///
/// # Safety
/// The access descriptions are valid for their count.
pub(crate) unsafe fn typed_alloc(raw: &mut cuda_sys::CUDA_MEM_ALLOC_NODE_PARAMS) -> Answer<Payload> {
    let params = CUDA_MEM_ALLOC_NODE_PARAMS_v2 {
        poolProps: raw.poolProps,
        accessDescs: raw.accessDescs,
        accessDescCount: raw.accessDescCount,
        bytesize: raw.bytesize,
        dptr: raw.dptr,
    };
    // SAFETY: the caller's promise.
    let node = unsafe { alloc_node(&params)? };
    raw.dptr = node.memory.start;
    Ok(Payload::Alloc(node))
}

impl Graphs {
    /// Adds a node that needs nothing of the graph. All has been checked but the graph.
    pub(crate) fn add_plain(
        &mut self,
        graph: u64,
        dependencies: &[(u64, Edge)],
        payload: Payload,
    ) -> Answer<u64> {
        if matches!(payload, Payload::Alloc(_)) {
            self.check_alloc(graph)?;
        }
        self.insert(graph, dependencies, payload)
    }

    /// Allocation nodes are for graphs of the user, without an executable of their own.
    fn check_alloc(&self, graph: u64) -> Answer {
        match self.graph(graph)?.owner {
            Owner::User => Ok(()),
            Owner::Child { .. } | Owner::Body { .. } => Err(NOT_SUPPORTED),
        }
    }

    /// Adds a free node.
    pub(crate) fn add_free(&mut self, graph: u64, dependencies: &[(u64, Edge)], address: u64) -> Answer<u64> {
        let reservation = memory_node::find(address).ok_or(INVALID_VALUE)?;
        let root = self.graph(self.root(graph))?.uid;
        let own = self.reserving_root(address).ok_or(INVALID_VALUE)?;
        reservation.add_free(root, own)?;
        self.insert(graph, dependencies, Payload::Free(address))
    }

    /// The uid of the root graph that allocates at an address; 0 when it is gone.
    fn reserving_root(&self, address: u64) -> Option<u64> {
        let node = self
            .nodes
            .values()
            .find(|node| matches!(&node.payload, Payload::Alloc(alloc) if alloc.memory.start == address));
        match node {
            Some(node) => self.graph(self.root(node.graph)).ok().map(|graph| graph.uid),
            None => Some(0),
        }
    }

    /// Adds a child node.
    pub(crate) fn add_child(
        &mut self,
        graph: u64,
        dependencies: &[(u64, Edge)],
        child: u64,
        by_move: bool,
    ) -> Answer<u64> {
        self.check_embedding(graph, child, by_move)?;
        let embedded = if by_move { child } else { self.duplicate(child, Owner::User)? };
        let node = self.insert(graph, dependencies, Payload::Child(embedded))?;
        self.graph_mut(embedded)?.owner = Owner::Child { node, moved: by_move };
        Ok(node)
    }

    fn check_embedding(&mut self, graph: u64, child: u64, by_move: bool) -> Answer {
        self.graph(graph)?;
        let owner = self.graph(child)?.owner;
        if by_move && self.is_inside(graph, child) {
            // The driver takes it, and the graph is lost.
            self.graph_mut(child)?.is_lost = true;
            return Err(NOT_SUPPORTED);
        }
        if self.is_inside(graph, child) {
            crash("a graph is embedded in itself or in a part of itself");
        }
        match owner {
            Owner::Body { .. } | Owner::Child { moved: true, .. } => return Err(NOT_SUPPORTED),
            Owner::Child { .. } if by_move => return Err(NOT_SUPPORTED),
            Owner::Child { .. } | Owner::User => {}
        }
        if self.holds_conditionals(child) || (!by_move && self.holds_memory_nodes(child)) {
            return Err(NOT_SUPPORTED);
        }
        if by_move && self.graph(child)?.live_execs > 0 && self.holds_memory_nodes(child) {
            return Err(NOT_SUPPORTED);
        }
        Ok(())
    }

    /// Whether the graph has a conditional node in it or a condition that no node uses.
    pub(crate) fn holds_conditionals(&self, graph: u64) -> bool {
        let unused = self.graph(graph).is_ok_and(|graph| !graph.conditions.is_empty());
        unused || self.any_node(graph, |payload| matches!(payload, Payload::Conditional(_)))
    }

    /// Makes a condition of the root of a graph.
    pub(crate) fn create_condition(&mut self, graph: u64, context: u64, default: Option<u32>) -> Answer<u64> {
        if context == 0 || context::get(context).is_err() {
            return Err(INVALID_CONTEXT);
        }
        self.graph(graph)?;
        let root = self.root(graph);
        let root = self.graph_mut(root)?;
        let handle = root.next_condition;
        root.next_condition += 1;
        root.conditions.insert(handle, super::store::ConditionHandle { default, context, node: None });
        root.values.add(handle);
        Ok(handle)
    }

    /// Adds a conditional node with empty bodies.
    pub(crate) fn add_conditional(
        &mut self,
        graph: u64,
        dependencies: &[(u64, Edge)],
        raw: &CUDA_CONDITIONAL_NODE_PARAMS,
    ) -> Answer<u64> {
        let condition = condition(raw)?;
        self.graph(graph)?;
        let root = self.root(graph);
        let known = self.graph(root)?.conditions.get(&raw.handle).copied().ok_or(INVALID_VALUE)?;
        let context = number(raw.ctx);
        if known.node.is_some() || (context != 0 && context != known.context) {
            return Err(INVALID_VALUE);
        }
        let bodies: Box<[u64]> = (0..raw.size).map(|_| self.create(Owner::User)).collect();
        let payload =
            ConditionalNode { handle: raw.handle, condition, bodies: bodies.clone(), context: known.context };
        let node = self.insert(graph, dependencies, Payload::Conditional(payload))?;
        for body in bodies {
            self.graph_mut(body)?.owner = Owner::Body { node };
        }
        if let Some(condition) = self.graph_mut(root)?.conditions.get_mut(&raw.handle) {
            condition.node = Some(node);
        }
        Ok(node)
    }

    /// The driver's array of a conditional node's bodies.
    pub(crate) fn body_array(&mut self, node: u64) -> Answer<*mut cuda_sys::CUgraph> {
        match &mut self.node_mut(node)?.payload {
            Payload::Conditional(conditional) => Ok(conditional.bodies.as_mut_ptr().cast()),
            _ => Err(INVALID_VALUE),
        }
    }
}

/// A typed call's parameters may not be null.
///
/// # Safety
/// `raw` is null or valid for a read.
pub(crate) unsafe fn given<'a, T>(raw: *const T) -> Answer<&'a T> {
    required(raw)?;
    // SAFETY: not null, and so valid by the caller's promise.
    Ok(unsafe { &*raw })
}
