//! Memory calls: allocation, freeing, pointer attributes.

use core::ffi::{c_int, c_longlong, c_uint, c_ulonglong, c_void};
use std::sync::Arc;

use cuda_sys::{
    CUcontext, CUdeviceptr, CUmemoryPool, CUmemorytype, CUpointer_attribute,
    CUpointer_attribute_enum as Attribute, CUstream,
};

use super::table::Entries;
use crate::device::context::{Context, current};
use crate::device::loss;
use crate::driver;
use crate::driver::handle::{number, to_raw};
use crate::driver::pointer::{put, put_if, required};
use crate::driver::result_code::{
    Answer, HOST_MEMORY_ALREADY_REGISTERED, HOST_MEMORY_NOT_REGISTERED, INVALID_VALUE, NOT_SUPPORTED,
};
use crate::graph::capture;
use crate::graph::capture::open_captures;
use crate::graph::edit::memory_node;
use crate::graph::exec::lifetimes;
use crate::graph::params::parse::NewMemory;
use crate::memory::memory_kind::{MemoryKind, has_context};
use crate::memory::pool::{self, Place, Pool};
use crate::memory::{self, Allocation, Origin, Request};
use crate::stream::{self, Stream};

pub(crate) const fn add(entries: Entries) -> Entries {
    Entries {
        cuMemAlloc,
        cuMemAllocPitch,
        cuMemAllocManaged,
        cuMemFree,
        cuMemAllocAsync,
        cuMemAllocFromPoolAsync,
        cuMemFreeAsync,
        cuMemAllocHost,
        cuMemHostAlloc,
        cuMemFreeHost,
        cuMemHostRegister,
        cuMemHostUnregister,
        cuMemHostGetDevicePointer,
        cuMemHostGetFlags,
        cuMemGetInfo,
        cuMemGetAddressRange,
        cuPointerGetAttribute,
        cuPointerSetAttribute,
        cuPointerGetAttributes,
        ..entries
    }
}

fn request(origin: Origin, len: usize, context: &Context, flags: u32) -> Request {
    Request { origin, len, device: context.device, context: context.handle, pool: 0, flags }
}

/// # Safety
/// `dptr` is null or valid for a write.
unsafe fn allocate_from(dptr: *mut CUdeviceptr, len: usize, pool: &Pool, stream: &Arc<Stream>) -> Answer {
    required(dptr)?;
    if pool.is_imported() {
        return Err(INVALID_VALUE);
    }
    if len == 0 {
        // SAFETY: not null, and so valid by the caller's promise.
        return unsafe { put(dptr, 0) };
    }
    if capture::is_captured(stream)? {
        if pool.origin() == Origin::Pinned {
            return Err(NOT_SUPPORTED);
        }
        let is_managed = pool.origin() == Origin::Managed;
        let wanted = NewMemory { len, device: pool.device, max: 0, is_managed };
        // Another thread may have ended the capture; then this is an ordinary allocation.
        let made = capture::add_where_captured(stream, |graphs, graph, after| {
            let node = memory_node::add_alloc(graphs, graph, after, wanted)?;
            // SAFETY: as above.
            unsafe { put(dptr, memory_node::address_of(graphs, node)?)? };
            Ok(node)
        })?;
        if made.is_some() {
            return Ok(());
        }
    }
    open_captures::check_call()?;
    let (origin, device, pool_handle) = (pool.origin(), pool.device, pool.handle);
    let wanted = Request { origin, len, device, context: 0, pool: pool_handle, flags: 0 };
    let allocation = pool.take(len as u64, || match pool.file() {
        Some(file) => memory::allocate_in(file, wanted),
        None => memory::allocate(wanted),
    })?;
    // SAFETY: as above.
    unsafe { put(dptr, allocation.start)? };
    stream.push(move || {
        allocation.reach();
        Ok(())
    });
    Ok(())
}

/// Whether free calls apply to the allocation. Imported memory without a pool is closed instead,
/// arrays are destroyed, and variables end with their module.
fn is_freed_by_calls(allocation: &Allocation) -> bool {
    match allocation.origin {
        Origin::Imported | Origin::Array | Origin::Variable | Origin::ManagedVariable => allocation.pool != 0,
        origin => allocation.pool != 0 || origin.is_on_device(),
    }
}

/// A free in the order of a stream. Dropped before the stream executes it, which is where the
/// device is lost, it leaves the memory as it was.
struct QueuedFree {
    memory: Arc<Allocation>,
    pool: Option<Arc<Pool>>,
}

impl QueuedFree {
    /// Marks the allocation as freed. Nothing changes if that is refused.
    fn of(memory: Arc<Allocation>) -> Answer<Self> {
        let pool = pool::of_memory(memory.pool);
        // First, since it may end the call.
        pool.iter().for_each(|pool| pool.begin_free());
        if !memory.queue_free() {
            pool.iter().for_each(|pool| pool.end_free());
            return Err(INVALID_VALUE);
        }
        Ok(Self { memory, pool })
    }

    fn carry_out(self) {
        release(&self.memory, "cuMemFreeAsync");
    }
}

impl Drop for QueuedFree {
    fn drop(&mut self) {
        self.pool.iter().for_each(|pool| pool.end_free());
        self.memory.unqueue_free();
    }
}

/// Ends an allocation and updates its pool.
pub(super) fn release(allocation: &Arc<Allocation>, how: &'static str) {
    memory::remove(allocation, how);
    if let Some(pool) = pool::of_memory(allocation.pool) {
        let is_imported = allocation.origin == Origin::Imported;
        pool.give_back(if is_imported { 0 } else { allocation.len as u64 });
    }
}

/// # Safety
/// `pp` is null or valid for a write.
unsafe fn allocate_host(pp: *mut *mut c_void, len: usize, flags: c_uint) -> Answer {
    required(pp)?;
    if flags > 7 {
        return Err(INVALID_VALUE);
    }
    if len == 0 {
        current()?;
        // SAFETY: as below.
        return unsafe { put(pp, core::ptr::null_mut()) };
    }
    let allocation = memory::allocate(request(Origin::Pinned, len, &*current()?, flags))?;
    // SAFETY: not null, and so valid by the caller's promise.
    unsafe { put(pp, allocation.host().cast()) }
}

/// # Safety
/// `data` is valid for a write of the attribute's type.
unsafe fn write_attribute(data: *mut c_void, attribute: CUpointer_attribute, pointer: CUdeviceptr) -> Answer {
    let found = memory::find(pointer).filter(|found| found.is_visible()).ok_or(INVALID_VALUE)?;
    // SAFETY: the caller's promise about the attribute's type.
    let int = |value: i32| unsafe { put(data.cast::<c_int>(), value) };
    // SAFETY: as above.
    let word = |value: u64| unsafe { put(data.cast::<c_ulonglong>(), value) };
    match attribute {
        // SAFETY: as above.
        Attribute::CU_POINTER_ATTRIBUTE_CONTEXT => unsafe {
            let context = if has_context(pointer) { found.context } else { 0 };
            put(data.cast::<CUcontext>(), to_raw(context))
        },
        Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE => {
            let on_device = found.origin.is_on_device();
            let kind =
                if on_device { CUmemorytype::CU_MEMORYTYPE_DEVICE } else { CUmemorytype::CU_MEMORYTYPE_HOST };
            // SAFETY: as above.
            unsafe { put(data.cast::<CUmemorytype>(), kind) }
        }
        Attribute::CU_POINTER_ATTRIBUTE_DEVICE_POINTER => word(pointer),
        Attribute::CU_POINTER_ATTRIBUTE_HOST_POINTER if found.origin.is_host() => word(pointer),
        Attribute::CU_POINTER_ATTRIBUTE_BUFFER_ID => word(found.id),
        Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED => int(found.origin.is_managed().into()),
        Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => int(found.device),
        Attribute::CU_POINTER_ATTRIBUTE_RANGE_START_ADDR => word(found.start),
        Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE => word(found.len as u64),
        Attribute::CU_POINTER_ATTRIBUTE_MAPPED => int(1),
        Attribute::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS
        | Attribute::CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE => int(0),
        Attribute::CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES => {
            word((found.pool != 0 && found.shared_at().is_some()).into())
        }
        Attribute::CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE => {
            int((found.origin == Origin::Plain && found.shared_at().is_some()).into())
        }
        Attribute::CU_POINTER_ATTRIBUTE_ACCESS_FLAGS => int(3),
        // SAFETY: as above.
        Attribute::CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE => unsafe {
            put(data.cast::<CUmemoryPool>(), to_raw(found.pool))
        },
        Attribute(1..=22) => Err(NOT_SUPPORTED),
        _ => Err(INVALID_VALUE),
    }
}

entries! {
    guarded fn cuMemAlloc(dptr: *mut CUdeviceptr, len: usize) {
        required(dptr)?;
        put(dptr, memory::allocate_plain(request(Origin::Plain, len, &*current()?, 0))?.start)
    }

    guarded fn cuMemAllocPitch(dptr: *mut CUdeviceptr, pitch: *mut usize, width: usize, height: usize, element: c_uint) {
        required(dptr)?;
        required(pitch)?;
        if !matches!(element, 4 | 8 | 16) {
            return Err(INVALID_VALUE);
        }
        let row = width.checked_next_multiple_of(512).ok_or(INVALID_VALUE)?;
        let len = row.checked_mul(height).ok_or(INVALID_VALUE)?;
        put(dptr, memory::allocate_plain(request(Origin::Plain, len, &*current()?, 0))?.start)?;
        put(pitch, row)
    }

    guarded fn cuMemAllocManaged(dptr: *mut CUdeviceptr, len: usize, flags: c_uint) {
        required(dptr)?;
        if !matches!(flags, 1 | 2) {
            return Err(INVALID_VALUE);
        }
        put(dptr, memory::allocate(request(Origin::Managed, len, &*current()?, flags))?.start)
    }

    guarded fn cuMemFree(dptr: CUdeviceptr) {
        if dptr == 0 {
            return Ok(());
        }
        let found = memory::find_start(dptr).filter(|found| is_freed_by_calls(found)).ok_or(INVALID_VALUE)?;
        loss::check_device(found.device)?;
        if found.origin == Origin::GraphNode {
            let freeing = lifetimes::announce_free(dptr, 0).ok_or(INVALID_VALUE)?;
            stream::while_idle(|| freeing.carry_out(0, "cuMemFree"));
            return Ok(());
        }
        if !found.queue_free() {
            return Err(INVALID_VALUE);
        }
        stream::while_idle(|| release(&found, "cuMemFree"));
        Ok(())
    }

    owned fn cuMemAllocAsync(dptr: *mut CUdeviceptr, len: usize, h_stream: CUstream) {
        let stream = stream::get(number(h_stream))?;
        let pool = pool::get(pool::current_of(Place::device(stream.context.device))?)?;
        allocate_from(dptr, len, &pool, &stream)
    }

    owned fn cuMemAllocFromPoolAsync(dptr: *mut CUdeviceptr, len: usize, pool: CUmemoryPool, h_stream: CUstream) {
        let stream = stream::get(number(h_stream))?;
        allocate_from(dptr, len, &*pool::get(number(pool))?, &stream)
    }

    owned fn cuMemFreeAsync(dptr: CUdeviceptr, h_stream: CUstream) {
        let stream = stream::get(number(h_stream))?;
        if dptr == 0 {
            return Ok(());
        }
        if capture::is_captured(&stream)? {
            // Another thread may have ended the capture; then this is an ordinary free.
            let free = capture::add_where_captured(&stream, |graphs, graph, after| memory_node::add_free(graphs, graph, after, dptr))?;
            if free.is_some() {
                return Ok(());
            }
        }
        open_captures::check_call()?;
        let found = memory::find_start(dptr).filter(|found| is_freed_by_calls(found)).ok_or(INVALID_VALUE)?;
        if found.origin == Origin::GraphNode {
            let freeing = lifetimes::announce_free(dptr, stream.id).ok_or(INVALID_VALUE)?;
            stream.push(move || {
                freeing.carry_out(0, "cuMemFreeAsync");
                Ok(())
            });
            return Ok(());
        }
        if found.origin == Origin::Managed && found.pool == 0 {
            return Err(NOT_SUPPORTED);
        }
        let free = QueuedFree::of(found)?;
        stream.push(move || {
            free.carry_out();
            Ok(())
        });
        Ok(())
    }

    guarded fn cuMemAllocHost(pp: *mut *mut c_void, len: usize) {
        allocate_host(pp, len, 0)
    }

    guarded fn cuMemHostAlloc(pp: *mut *mut c_void, len: usize, flags: c_uint) {
        allocate_host(pp, len, flags)
    }

    guarded_in_callbacks fn cuMemFreeHost(p: *mut c_void) {
        if p.is_null() {
            return Ok(());
        }
        let found = memory::find_start(number(p)).filter(|found| found.origin == Origin::Pinned && found.pool == 0).ok_or(INVALID_VALUE)?;
        loss::check_device(found.device)?;
        stream::while_idle(|| memory::remove(&found, "cuMemFreeHost"));
        Ok(())
    }

    guarded fn cuMemHostRegister(p: *mut c_void, len: usize, flags: c_uint) {
        let context = current()?;
        const READ_ONLY: c_uint = 8;
        // Bit 2 is for I/O memory, which does not exist here.
        const LAYOUTS: c_uint = 1 | 2 | READ_ONLY;
        if p.is_null() || len == 0 || flags & !LAYOUTS != 0 {
            return Err(INVALID_VALUE);
        }
        match memory::overlapped(number(p), len) {
            Some(Origin::Registered) => return Err(HOST_MEMORY_ALREADY_REGISTERED),
            Some(_) => return Err(INVALID_VALUE),
            None => memory::host_pages::ensure(p, len)?,
        }
        memory::register(request(Origin::Registered, len, &context, flags), p.cast(), flags & READ_ONLY == 0);
        Ok(())
    }

    guarded fn cuMemHostUnregister(p: *mut c_void) {
        let found = match memory::find(number(p)) {
            Some(found) if found.origin == Origin::Registered && found.start == number(p) => found,
            None if !p.is_null() => return Err(HOST_MEMORY_NOT_REGISTERED),
            // Inside a registered range, or other memory.
            _ => return Err(INVALID_VALUE),
        };
        stream::while_idle(|| memory::remove(&found, "cuMemHostUnregister"));
        Ok(())
    }

    live fn cuMemHostGetDevicePointer(pdptr: *mut CUdeviceptr, p: *mut c_void, flags: c_uint) {
        let found = memory::find(number(p)).filter(|found| found.origin.is_host());
        if flags != 0 || found.is_none() {
            return Err(INVALID_VALUE);
        }
        put(pdptr, number(p))
    }

    live fn cuMemHostGetFlags(flags: *mut c_uint, p: *mut c_void) {
        let found = memory::find(number(p)).filter(|found| !found.origin.is_on_device()).ok_or(INVALID_VALUE)?;
        put(flags, found.flags)
    }

    live fn cuMemGetInfo(free: *mut usize, total: *mut usize) {
        let device = current()?.device;
        let all = driver::config().memory;
        put_if(free, usize::try_from(memory::free(device)).unwrap_or(usize::MAX));
        put_if(total, usize::try_from(all).unwrap_or(usize::MAX));
        Ok(())
    }

    live fn cuMemGetAddressRange(base: *mut CUdeviceptr, size: *mut usize, dptr: CUdeviceptr) {
        let found = memory::find(dptr).filter(|found| found.is_visible());
        let found = found.ok_or(cuda_sys::CUresult::CUDA_ERROR_NOT_FOUND)?;
        put_if(base, found.start);
        put_if(size, found.len);
        Ok(())
    }

    live fn cuPointerGetAttribute(data: *mut c_void, attribute: CUpointer_attribute, pointer: CUdeviceptr) {
        required(data)?;
        write_attribute(data, attribute, pointer)
    }

    live fn cuPointerSetAttribute(value: *const c_void, attribute: CUpointer_attribute, pointer: CUdeviceptr) {
        required(value)?;
        // The only attribute that can be set. Copies here are always as synchronous as it requests.
        if attribute != Attribute::CU_POINTER_ATTRIBUTE_SYNC_MEMOPS {
            return Err(INVALID_VALUE);
        }
        memory::find(pointer).filter(|found| found.origin.is_on_device()).map(drop).ok_or(INVALID_VALUE)
    }

    live fn cuPointerGetAttributes(
        count: c_uint,
        attributes: *mut CUpointer_attribute,
        data: *mut *mut c_void,
        pointer: CUdeviceptr,
    ) {
        required(attributes)?;
        required(data)?;
        // Unknown memory is not an error: the attributes report it.
        let known = MemoryKind::of(pointer).is_some_and(|place| place != MemoryKind::Pageable);
        // All are checked before any is written.
        (0..count as usize).try_for_each(|index| required(data.add(index).read_unaligned()))?;
        for index in 0..count as usize {
            let (attribute, out) = (attributes.add(index).read_unaligned(), data.add(index).read_unaligned());
            let written = if known { write_attribute(out, attribute, pointer) } else { Err(INVALID_VALUE) };
            if written.is_err() {
                match attribute {
                    Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE
                    | Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED
                    | Attribute::CU_POINTER_ATTRIBUTE_MAPPED => out.cast::<c_int>().write_unaligned(0),
                    Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL => out.cast::<c_int>().write_unaligned(-2),
                    // The real driver does not write this one.
                    Attribute::CU_POINTER_ATTRIBUTE_RANGE_SIZE => {}
                    _ => out.cast::<c_longlong>().write_unaligned(0),
                }
            }
        }
        Ok(())
    }
}
