//! Creating allocations: on the heap, in shared files, or over memory of the user.

use std::alloc::Layout;
use std::sync::{Arc, OnceLock};

use super::accounting::{is_exhausted, release, try_reserve};
use super::address_map::publish;
use super::addresses::{GRAIN, new_address};
use super::allocation::{Allocation, Backing, LIVE, Origin, PENDING, Request, UNWRITTEN};
use super::graph_mapping;
use super::shared_file::{Purpose, SharedFile};
use crate::driver::result_code::{Answer, INVALID_VALUE, OUT_OF_MEMORY};

/// Allocates memory on the heap. Pool memory starts before its allocation point.
pub(crate) fn allocate(request: Request) -> Answer<Arc<Allocation>> {
    let allocation = make(None, request)?;
    publish(&allocation);
    Ok(allocation)
}

/// Allocates memory of a graph for an address. It is not published there yet.
pub(crate) fn make_at(address: u64, request: Request) -> Answer<Arc<Allocation>> {
    make(Some(address), request)
}

/// The memory of the host in bytes. More than that is not requested: the system might grant it and
/// then kill the process.
fn host_memory() -> usize {
    static ROOM: OnceLock<usize> = OnceLock::new();
    *ROOM.get_or_init(|| {
        // SAFETY: both calls take a number.
        let [pages, size] =
            [libc::_SC_PHYS_PAGES, libc::_SC_PAGESIZE].map(|name| unsafe { libc::sysconf(name) });
        match (usize::try_from(pages), usize::try_from(size)) {
            (Ok(pages @ 1..), Ok(size)) => pages.saturating_mul(size),
            _ => usize::MAX,
        }
    })
}

/// Fails if the host has not as many bytes at all.
fn check_host_memory(len: usize) -> Answer {
    if len > host_memory() { Err(OUT_OF_MEMORY) } else { Ok(()) }
}

/// Allocates memory at a reserved address or at a new one.
fn make(reserved: Option<u64>, request: Request) -> Answer<Arc<Allocation>> {
    let Request { origin, len, device, .. } = request;
    if len == 0 {
        return Err(INVALID_VALUE);
    }
    check_host_memory(len)?;
    let layout = Layout::from_size_align(len, GRAIN as usize).map_err(|_| OUT_OF_MEMORY)?;
    let counted = origin.is_counted();
    if counted && !take(device, len as u64) {
        return Err(OUT_OF_MEMORY);
    }
    // SAFETY: the layout has a size above zero.
    let host = unsafe { std::alloc::alloc(layout) };
    if host.is_null() {
        release(device, if counted { len as u64 } else { 0 });
        return Err(OUT_OF_MEMORY);
    }
    // SAFETY: `host` points to `len` bytes just allocated.
    unsafe { host.write_bytes(UNWRITTEN, len) };
    let start = match reserved {
        Some(address) => Ok(address),
        None if origin.is_host() => Ok(host.expose_provenance() as u64),
        None => new_address(len),
    };
    let start = start.inspect_err(|_| {
        release(device, if counted { len as u64 } else { 0 });
        // SAFETY: allocated above with this layout, and nobody else knows of it.
        unsafe { std::alloc::dealloc(host, layout) };
    })?;
    let pending = matches!(origin, Origin::Pool | Origin::GraphNode);
    Ok(Allocation::new(request, start, host, Backing::Heap(layout), if pending { PENDING } else { LIVE }))
}

/// Allocates memory in a shared file.
pub(crate) fn allocate_in(file: &Arc<SharedFile>, request: Request) -> Answer<Arc<Allocation>> {
    check_host_memory(request.len)?;
    if !take(request.device, request.len as u64) {
        return Err(OUT_OF_MEMORY);
    }
    let Ok((offset, mapping)) = file.add(request.len) else {
        release(request.device, request.len as u64);
        return Err(OUT_OF_MEMORY);
    };
    let address = new_address(request.len).inspect_err(|_| {
        release(request.device, request.len as u64);
        file.discard(offset, request.len);
    })?;
    let host = mapping.host();
    // SAFETY: `host` points to `len` bytes just mapped, of which no other process knows yet.
    unsafe { host.write_bytes(UNWRITTEN, request.len) };
    let backing = Backing::InFile { file: Arc::clone(file), offset, _mapping: mapping, is_own: true };
    Ok(insert(request, address, host, backing, PENDING))
}

/// Allocates memory for `cuMemAlloc`: in a shared file, so that other processes can map it, or on
/// the heap if there are no shared files.
pub(crate) fn allocate_plain(request: Request) -> Answer<Arc<Allocation>> {
    static FILE: OnceLock<Option<Arc<SharedFile>>> = OnceLock::new();
    let file = FILE.get_or_init(|| SharedFile::create(Purpose::Plain, 0).ok().map(Arc::new));
    let Some(file) = file.as_ref().filter(|_| request.len > 0) else { return allocate(request) };
    let allocation = allocate_in(file, request)?;
    allocation.reach();
    Ok(allocation)
}

/// Maps memory that another process allocated in a shared file.
pub(crate) fn import(file: &Arc<SharedFile>, offset: u64, request: Request) -> Answer<Arc<Allocation>> {
    let mapping = file.map_piece(offset, request.len).map_err(|_| INVALID_VALUE)?;
    let address = new_address(request.len)?;
    let host = mapping.host();
    let backing = Backing::InFile { file: Arc::clone(file), offset, _mapping: mapping, is_own: false };
    Ok(insert(request, address, host, backing, LIVE))
}

/// Registers memory of the user.
///
/// # Safety
/// `host` points to `request.len` bytes that stay valid until they are removed.
pub(crate) unsafe fn register(request: Request, host: *mut u8, writable: bool) -> Arc<Allocation> {
    let allocation = insert(request, host.expose_provenance() as u64, host, Backing::User, LIVE);
    if !writable {
        allocation.protect();
    }
    allocation
}

fn insert(request: Request, start: u64, host: *mut u8, backing: Backing, state: u8) -> Arc<Allocation> {
    let allocation = Allocation::new(request, start, host, backing, state);
    publish(&allocation);
    allocation
}

/// Reserves bytes for an allocation. Memory that graphs have mapped and do not use makes room.
fn take(device: i32, bytes: u64) -> bool {
    let take = || !is_exhausted(device) && try_reserve(device, bytes);
    take() || (graph_mapping::trim(device) && take())
}
