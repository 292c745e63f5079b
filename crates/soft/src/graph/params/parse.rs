//! Parsing and checking node parameters, a function for each type.

use core::ffi::c_uint;
use std::sync::Arc;

use cuda_sys::{
    CUDA_BATCH_MEM_OP_NODE_PARAMS, CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, CUDA_EXT_SEM_WAIT_NODE_PARAMS,
    CUDA_HOST_NODE_PARAMS_v1, CUDA_KERNEL_NODE_PARAMS_v2, CUDA_MEM_ALLOC_NODE_PARAMS_v2, CUDA_MEMCPY3D_v2,
    CUDA_MEMSET_NODE_PARAMS_v2, CUcontext, CUexternalSemaphore, CUmemAccessDesc, CUmemAllocationType,
    CUmemLocation, CUmemLocationType, CUresult,
};

use crate::device::context::{self, check_device, current};
use crate::device::loss;
use crate::driver;
use crate::driver::abort::crash;
use crate::driver::handle::number;
use crate::driver::pointer::slice;
use crate::driver::result_code::{
    Answer, INVALID_DEVICE, INVALID_HANDLE, INVALID_VALUE, NOT_SUPPORTED, OUT_OF_MEMORY,
};
use crate::graph::model::copied_declaration;
use crate::graph::model::task::{BatchNode, CopyNode, FillNode, KernelSpec, SemaphoreNode, Task};
use crate::launch::{self, Sizes, declared};
use crate::memory::copy_params;
use crate::memory::fill::Fill;
use crate::memory::memory_kind::Accept;
use crate::memory::peer_access;
use crate::memory::pool;
use crate::module;
use crate::stream::attribute::Attributes;
use crate::stream::callback::Callback;
use crate::stream::event;
use crate::stream::mem_op::{self, MemOp};
use crate::stream::semaphore::{self, SignalParams, WaitParams};

/// Parses the parameters of a kernel; `attributes` are those that the node has.
///
/// # Safety
/// The parameters are valid as CUDA's documentation demands.
pub(crate) unsafe fn kernel_spec(
    raw: &CUDA_KERNEL_NODE_PARAMS_v2,
    attributes: Attributes,
) -> Answer<Arc<KernelSpec>> {
    loss::check_all()?;
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
    loss::check_device(function.module.context.device)?;
    let sizes = Sizes {
        grid: [raw.gridDimX, raw.gridDimY, raw.gridDimZ],
        block: [raw.blockDimX, raw.blockDimY, raw.blockDimZ],
        shared: raw.sharedMemBytes,
    };
    launch::check(&function.code, &sizes, &attributes)?;
    // SAFETY: the caller's promise.
    let arguments =
        unsafe { launch::read_arguments(&function.code, raw.kernelParams, raw.extra, INVALID_VALUE)? };
    let declared = declared::expected(&function)
        .or_else(|| copied_declaration::find(raw.kernelParams, &function, &sizes, &arguments));
    Ok(Arc::new(KernelSpec { function, sizes, arguments, attributes, declared }))
}

/// Parses the parameters of a copy node.
pub(crate) fn copy_node(raw: &CUDA_MEMCPY3D_v2, context: u64) -> Answer<Arc<CopyNode>> {
    let copy = copy_params::parse(raw, Accept::Reserved)?;
    check_reach(&[copy.src.address, copy.dst.address], context)?;
    Ok(Arc::new(CopyNode { raw: *raw, copy, context, has_no_context: false }))
}

/// Checks that the device of a copy or fill may access the pools of other devices. Plain memory is
/// always accessible.
pub(crate) fn check_reach(addresses: &[u64], context: u64) -> Answer {
    let in_reach = |address: &u64| peer_access::is_in_reach_of_copy(*address, context);
    if addresses.iter().all(in_reach) { Ok(()) } else { Err(INVALID_VALUE) }
}

/// Parses the parameters of a fill node.
pub(crate) fn fill_node(raw: &CUDA_MEMSET_NODE_PARAMS_v2) -> Answer<FillNode> {
    let fill = Fill {
        address: raw.dst,
        pitch: raw.pitch,
        value: raw.value,
        element: raw.elementSize,
        width: raw.width,
        height: raw.height,
    };
    fill.check(Accept::Reserved)?;
    check_reach(&[fill.address], number(raw.ctx))?;
    Ok(FillNode { fill, context: number(raw.ctx), is_captured: false })
}

/// Parses the parameters of a host node.
pub(crate) fn host_node(raw: &CUDA_HOST_NODE_PARAMS_v1) -> Answer<Callback> {
    Ok(Callback { function: raw.fn_.ok_or(INVALID_VALUE)?, data: raw.userData })
}

/// Parses the parameters of a node of memory operations.
///
/// # Safety
/// The array is null or valid for its count.
pub(crate) unsafe fn batch_node(raw: &CUDA_BATCH_MEM_OP_NODE_PARAMS) -> Answer<Arc<BatchNode>> {
    if raw.ctx.is_null() || raw.flags != 0 {
        return Err(INVALID_VALUE);
    }
    context::get(number(raw.ctx))?;
    // SAFETY: the caller's promise.
    let ops = unsafe { mem_ops(raw.paramArray, raw.count)? };
    Ok(Arc::new(BatchNode { ops, context: number(raw.ctx) }))
}

/// Parses an array of memory operations.
///
/// # Safety
/// The array is null or valid for its count.
pub(crate) unsafe fn mem_ops(
    array: *const cuda_sys::CUstreamBatchMemOpParams,
    count: c_uint,
) -> Answer<Box<[MemOp]>> {
    let count = count as usize;
    if count > mem_op::MOST {
        return Err(INVALID_VALUE);
    }
    // SAFETY: the caller's promise.
    unsafe { slice(array, count)? }.iter().map(MemOp::new).collect()
}

/// Parses semaphore handles with their parameters.
///
/// # Safety
/// The arrays are null or valid for their count.
pub(crate) unsafe fn semaphores<R, P>(
    handles: *const CUexternalSemaphore,
    params: *const R,
    count: c_uint,
    context: CUcontext,
    wrap: fn(R) -> P,
) -> Answer<Arc<SemaphoreNode<P>>>
where
    R: Copy,
{
    // SAFETY: the caller's promise.
    let (handles, params) = unsafe { (slice(handles, count as usize)?, slice(params, count as usize)?) };
    let found = handles.iter().map(|handle| semaphore::get(number(*handle))).collect::<Answer<_>>()?;
    Ok(Arc::new(SemaphoreNode {
        semaphores: found,
        handles: handles.iter().map(|handle| number(*handle)).collect(),
        params: params.iter().copied().map(wrap).collect(),
        context: number(context),
    }))
}

/// Parses the parameters of a signal node.
///
/// # Safety
/// The arrays are null or valid for their count.
pub(crate) unsafe fn signal_node(raw: &CUDA_EXT_SEM_SIGNAL_NODE_PARAMS, context: CUcontext) -> Answer<Task> {
    // SAFETY: the caller's promise.
    unsafe { semaphores(raw.extSemArray, raw.paramsArray, raw.numExtSems, context, SignalParams) }
        .map(Task::Signal)
}

/// Parses the parameters of a node that waits for semaphores.
///
/// # Safety
/// The arrays are null or valid for their count.
pub(crate) unsafe fn wait_node(raw: &CUDA_EXT_SEM_WAIT_NODE_PARAMS, context: CUcontext) -> Answer<Task> {
    // SAFETY: the caller's promise.
    unsafe { semaphores(raw.extSemArray, raw.paramsArray, raw.numExtSems, context, WaitParams) }
        .map(Task::Wait)
}

/// Parses an event of a node, which must exist.
pub(crate) fn event_node(raw: cuda_sys::CUevent) -> Answer<u64> {
    if event::exists(number(raw)) { Ok(number(raw)) } else { Err(INVALID_VALUE) }
}

/// The device of a location.
fn device_of(location: &CUmemLocation) -> Option<i32> {
    if location.type_ != CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE {
        return None;
    }
    // SAFETY: the type of the location says which field counts.
    Some(unsafe { location.__bindgen_anon_1.id })
}

/// The memory that an allocation node will allocate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NewMemory {
    pub(crate) len: usize,
    pub(crate) device: i32,
    /// The pool's largest size as the user gave it.
    pub(crate) max: usize,
    /// Managed memory. Here it is device memory, which the host cannot access.
    pub(crate) is_managed: bool,
}

/// The answer to an allocation node for a location that is no device.
fn code_without_device(location: CUmemLocationType, is_managed: bool) -> CUresult {
    type T = CUmemLocationType;
    let is_host = matches!(location, T::CU_MEM_LOCATION_TYPE_HOST | T::CU_MEM_LOCATION_TYPE_HOST_NUMA);
    if is_managed || is_host { NOT_SUPPORTED } else { INVALID_VALUE }
}

/// Parses the parameters of an allocation node.
///
/// # Safety
/// The access descriptions are valid for their count.
pub(crate) unsafe fn new_memory(raw: &CUDA_MEM_ALLOC_NODE_PARAMS_v2) -> Answer<NewMemory> {
    let is_managed = match raw.poolProps.allocType {
        CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED => false,
        CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_MANAGED if driver::version() >= pool::MANAGED_POOLS => {
            true
        }
        _ => return Err(INVALID_VALUE),
    };
    if raw.bytesize == 0 {
        return Err(INVALID_VALUE);
    }
    let elsewhere = || code_without_device(raw.poolProps.location.type_, is_managed);
    let device = device_of(&raw.poolProps.location).ok_or_else(elsewhere)?;
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
        let access: CUmemAccessDesc = unsafe { raw.accessDescs.add(index).read_unaligned() };
        let target = device_of(&access.location).ok_or(NOT_SUPPORTED)?;
        check_device(target).map_err(|_| INVALID_DEVICE)?;
        const READ_WRITE: c_uint = 3;
        if target == device && access.flags.0 != READ_WRITE {
            return Err(NOT_SUPPORTED);
        }
    }
    // More than the address space of any device.
    if raw.bytesize as u64 >= 1 << 40 {
        return Err(OUT_OF_MEMORY);
    }
    Ok(NewMemory { len: raw.bytesize, device, max: raw.poolProps.maxSize, is_managed })
}

/// As [`new_memory`], for the typed call.
///
/// # Safety
/// The access descriptions are valid for their count.
pub(crate) unsafe fn typed_new_memory(raw: &cuda_sys::CUDA_MEM_ALLOC_NODE_PARAMS) -> Answer<NewMemory> {
    let params = CUDA_MEM_ALLOC_NODE_PARAMS_v2 {
        poolProps: raw.poolProps,
        accessDescs: raw.accessDescs,
        accessDescCount: raw.accessDescCount,
        bytesize: raw.bytesize,
        dptr: raw.dptr,
    };
    // SAFETY: the caller's promise.
    unsafe { new_memory(&params) }
}
