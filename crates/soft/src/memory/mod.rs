//! The memory of the devices and all memory of the host that they can reach.
//!
//! Device addresses are made up and never mapped in the process, so that code which follows one
//! crashes as it would on a GPU machine. Memory that both sides reach has its host address on both.

pub(crate) mod allocation;
pub(crate) mod copy;
pub(crate) mod graph_mapping;
pub(crate) mod graph_va;
pub(crate) mod host_pages;
pub(crate) mod pool;
pub(crate) mod range;
pub(crate) mod shared_file;

use std::alloc::Layout;
use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError, RwLock};

use crate::driver;
use crate::driver::result_code::{Answer, INVALID_VALUE, OUT_OF_MEMORY};
use crate::memory::shared_file::{Purpose, SharedFile};
use crate::ptx::FIRST_WINDOW;

pub(crate) use allocation::{Allocation, Origin};
use allocation::{Backing, GONE, LIVE, PENDING, RETIRED};
use graph_va::describe_promised;
pub(crate) use graph_va::{is_promised, newest_promise, promise, promise_to, unpromise};
pub(crate) use range::{STEP, Stretch};

/// The first device address. Bit 48 alone makes no canonical address with four-level page tables.
const FIRST_ADDRESS: u64 = 1 << 48;
/// All device addresses lie below this.
const END_OF_ADDRESSES: u64 = FIRST_ADDRESS << 1;
const _: () = assert!(END_OF_ADDRESSES <= FIRST_WINDOW, "kernels tell spaces apart by the address");
/// Allocations start at multiples of this and lie at least as far apart, so that a step past the
/// end hits nothing.
const GRAIN: u64 = 512;
/// What every allocation is aligned to.
pub(crate) const ALIGNMENT: u64 = GRAIN;
/// What memory holds that nobody has written.
pub(crate) const UNWRITTEN: u8 = 0xCD;
/// How many freed allocations are remembered for messages.
const REMEMBERED: usize = 4096;

/// A freed allocation, for messages.
#[derive(Debug)]
struct Freed {
    start: u64,
    len: usize,
    origin: Origin,
    how: Cow<'static, str>,
}

#[derive(Debug)]
struct Addresses {
    next: u64,
    /// Freed ranges by size, for reuse where the configuration asks for it.
    free: Option<HashMap<u64, Vec<u64>>>,
}

#[derive(Debug)]
struct Shared {
    freed: VecDeque<Freed>,
    addresses: Addresses,
    /// Bytes in use by device.
    used: HashMap<i32, u64>,
    /// Devices of which graphs have all memory for good.
    exhausted: HashSet<i32>,
}

/// What to allocate.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Request {
    pub(crate) origin: Origin,
    pub(crate) len: usize,
    pub(crate) device: i32,
    pub(crate) context: u64,
    pub(crate) pool: u64,
    pub(crate) flags: u32,
}

static MAP: RwLock<BTreeMap<u64, Arc<Allocation>>> = RwLock::new(BTreeMap::new());
static SHARED: Mutex<Option<Shared>> = Mutex::new(None);
static EPOCH: AtomicU64 = AtomicU64::new(1);
static NEXT_ID: AtomicU64 = AtomicU64::new(1);

fn with_shared<R>(act: impl FnOnce(&mut Shared) -> R) -> R {
    let mut guard: MutexGuard<'_, Option<Shared>> = SHARED.lock().unwrap_or_else(PoisonError::into_inner);
    act(guard.get_or_insert_with(|| Shared {
        freed: VecDeque::new(),
        addresses: Addresses {
            next: FIRST_ADDRESS,
            free: driver::config().reuse_addresses.then(HashMap::new),
        },
        used: HashMap::new(),
        exhausted: HashSet::new(),
    }))
}

/// How far the next allocation is from one of `len` bytes.
fn span(len: usize) -> Option<u64> {
    (len as u64).checked_next_multiple_of(GRAIN)?.checked_add(GRAIN)
}

/// Makes an allocation; pool memory starts before its allocation point.
pub(crate) fn allocate(request: Request) -> Answer<Arc<Allocation>> {
    let allocation = make(None, request)?;
    show(&allocation);
    Ok(allocation)
}

/// Makes memory of a graph at an address of its own, which it is not put to yet.
pub(crate) fn make_at(address: u64, request: Request) -> Answer<Arc<Allocation>> {
    make(Some(address), request)
}

/// The memory of the machine, in bytes: more than that is not asked of the system, which might give
/// it and then end the process.
fn room_of_host() -> usize {
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

/// Makes an allocation at an address that was promised, or at a new one.
fn make(promised: Option<u64>, request: Request) -> Answer<Arc<Allocation>> {
    let Request { origin, len, device, .. } = request;
    if len == 0 {
        return Err(INVALID_VALUE);
    }
    if len > room_of_host() {
        return Err(OUT_OF_MEMORY);
    }
    let layout = Layout::from_size_align(len, GRAIN as usize).map_err(|_| OUT_OF_MEMORY)?;
    let counted = origin.takes_room();
    if counted && !take(device, len as u64) {
        return Err(OUT_OF_MEMORY);
    }
    // SAFETY: the layout has a size above zero.
    let host = unsafe { std::alloc::alloc(layout) };
    if host.is_null() {
        give_back(device, if counted { len as u64 } else { 0 });
        return Err(OUT_OF_MEMORY);
    }
    // SAFETY: `host` points to `len` bytes just allocated.
    unsafe { host.write_bytes(UNWRITTEN, len) };
    let start = match promised {
        Some(address) => Ok(address),
        None if origin.is_host() => Ok(host.expose_provenance() as u64),
        None => new_address(len),
    };
    let start = start.inspect_err(|_| {
        give_back(device, if counted { len as u64 } else { 0 });
        // SAFETY: allocated above with this layout, and nobody else knows of it.
        unsafe { std::alloc::dealloc(host, layout) };
    })?;
    let pending = matches!(origin, Origin::Pool | Origin::GraphNode);
    Ok(new(request, start, host, Backing::Heap(layout), if pending { PENDING } else { LIVE }))
}

/// Makes an allocation in a pool's file.
pub(crate) fn allocate_in(file: &Arc<SharedFile>, request: Request) -> Answer<Arc<Allocation>> {
    if !take(request.device, request.len as u64) {
        return Err(OUT_OF_MEMORY);
    }
    let Ok((offset, mapping)) = file.add(request.len) else {
        give_back(request.device, request.len as u64);
        return Err(OUT_OF_MEMORY);
    };
    let address = new_address(request.len).inspect_err(|_| {
        give_back(request.device, request.len as u64);
        file.discard(offset, request.len);
    })?;
    let host = mapping.host();
    // SAFETY: `host` points to `len` bytes just mapped, of which no other process knows yet.
    unsafe { host.write_bytes(UNWRITTEN, request.len) };
    let backing = Backing::Shared { file: Arc::clone(file), offset, _mapping: mapping, is_own: true };
    Ok(insert(request, address, host, backing, PENDING))
}

/// Makes an allocation of `cuMemAlloc`, in a file of the process so that others can map it; in
/// plain memory where there are no such files.
pub(crate) fn allocate_plain(request: Request) -> Answer<Arc<Allocation>> {
    static FILE: OnceLock<Option<Arc<SharedFile>>> = OnceLock::new();
    let file = FILE.get_or_init(|| SharedFile::create(Purpose::Plain, 0).ok().map(Arc::new));
    let Some(file) = file.as_ref().filter(|_| request.len > 0) else { return allocate(request) };
    let allocation = allocate_in(file, request)?;
    allocation.reach();
    Ok(allocation)
}

/// Maps an allocation of a file that another process made.
pub(crate) fn import(file: &Arc<SharedFile>, offset: u64, request: Request) -> Answer<Arc<Allocation>> {
    let mapping = file.map_piece(offset, request.len).map_err(|_| INVALID_VALUE)?;
    let address = new_address(request.len)?;
    let host = mapping.host();
    let backing = Backing::Shared { file: Arc::clone(file), offset, _mapping: mapping, is_own: false };
    Ok(insert(request, address, host, backing, LIVE))
}

/// Registers memory of the user.
///
/// # Safety
/// `host` points to `request.len` bytes that stay valid until they are removed.
pub(crate) unsafe fn register(request: Request, host: *mut u8, writable: bool) -> Arc<Allocation> {
    let allocation = insert(request, host.expose_provenance() as u64, host, Backing::User, LIVE);
    allocation.writable.store(writable, Ordering::Relaxed);
    allocation
}

fn new(request: Request, start: u64, host: *mut u8, backing: Backing, state: u8) -> Arc<Allocation> {
    Arc::new(Allocation {
        start,
        len: request.len,
        origin: request.origin,
        device: request.device,
        context: request.context,
        pool: request.pool,
        flags: request.flags,
        id: NEXT_ID.fetch_add(1, Ordering::Relaxed),
        host,
        backing,
        writable: AtomicBool::new(true),
        state: AtomicU8::new(state),
        free_queued: AtomicBool::new(false),
        allocated_by: AtomicU64::new(0),
        freed_by: AtomicU64::new(0),
    })
}

fn insert(request: Request, start: u64, host: *mut u8, backing: Backing, state: u8) -> Arc<Allocation> {
    let allocation = new(request, start, host, backing, state);
    show(&allocation);
    allocation
}

/// Puts an allocation to its address, where another one ends.
fn show(allocation: &Arc<Allocation>) {
    let displaced = {
        let mut map = MAP.write().unwrap_or_else(PoisonError::into_inner);
        map.insert(allocation.start, Arc::clone(allocation))
    };
    if let Some(displaced) = displaced.filter(|other| other.id != allocation.id) {
        finish(&displaced, "a later allocation at its address".into());
    }
}

/// Puts memory of a graph to its address, now that its node is reached. What lies there and waits
/// for its own node is hidden: it may be shown again.
pub(crate) fn show_reached(allocation: &Arc<Allocation>) {
    {
        let mut map = MAP.write().unwrap_or_else(PoisonError::into_inner);
        let hides = |other: &Allocation| other.id != allocation.id && other.is_awaited();
        let there = map.range(allocation.start..allocation.end());
        let hidden: Vec<u64> = there.filter(|(_, other)| hides(other)).map(|(start, _)| *start).collect();
        hidden.iter().for_each(|start| drop(map.remove(start)));
    }
    show(allocation);
}

/// Puts memory of a graph to its address, unless other memory lies there.
pub(crate) fn show_awaited(allocation: &Arc<Allocation>) {
    let mut map = MAP.write().unwrap_or_else(PoisonError::into_inner);
    map.entry(allocation.start).or_insert_with(|| Arc::clone(allocation));
}

/// An address for so many bytes, unless there are no addresses left.
fn new_address(len: usize) -> Answer<u64> {
    let span = span(len).ok_or(OUT_OF_MEMORY)?;
    with_shared(|shared| {
        let addresses = &mut shared.addresses;
        if let Some(start) = addresses.free.as_mut().and_then(|free| free.get_mut(&span)?.pop()) {
            return Ok(start);
        }
        let start = addresses.next;
        let end = start.checked_add(span).filter(|end| *end <= END_OF_ADDRESSES);
        addresses.next = end.ok_or(OUT_OF_MEMORY)?;
        Ok(start)
    })
}

/// Takes room for an allocation; what graphs have mapped and do not use makes way.
fn take(device: i32, bytes: u64) -> bool {
    let is_exhausted = || with_shared(|shared| shared.exhausted.contains(&device));
    let take = || !is_exhausted() && take_room(device, bytes);
    take() || (graph_mapping::trim(device) && take())
}

/// Takes room of a device, where it has as much.
fn take_room(device: i32, bytes: u64) -> bool {
    let total = driver::config().memory;
    with_shared(|shared| {
        let used = shared.used.entry(device).or_default();
        let fits = used.checked_add(bytes).is_some_and(|sum| sum <= total);
        if fits {
            *used += bytes;
        }
        fits
    })
}

fn give_back(device: i32, bytes: u64) {
    with_shared(|shared| {
        if let Some(used) = shared.used.get_mut(&device) {
            *used = used.saturating_sub(bytes);
        }
    });
}

/// Leaves no memory of the device to anything but graphs, for good.
pub(crate) fn exhaust(device: i32) {
    with_shared(|shared| shared.exhausted.insert(device));
}

/// Bytes of the device that are free for calls.
pub(crate) fn free(device: i32) -> u64 {
    if with_shared(|shared| shared.exhausted.contains(&device)) {
        return 0;
    }
    driver::config().memory.saturating_sub(used(device))
}

/// Bytes of the device in use.
pub(crate) fn used(device: i32) -> u64 {
    with_shared(|shared| shared.used.get(&device).copied().unwrap_or(0))
}

/// Ends an allocation; `how` names the call for messages. The bytes go when the last holder lets
/// go.
pub(crate) fn remove(allocation: &Arc<Allocation>, how: impl Into<Cow<'static, str>>) {
    {
        let mut map = MAP.write().unwrap_or_else(PoisonError::into_inner);
        if map.get(&allocation.start).is_some_and(|found| found.id == allocation.id) {
            map.remove(&allocation.start);
        }
    }
    finish(allocation, how.into());
}

/// What follows from the end of an allocation.
fn finish(removed: &Allocation, how: Cow<'static, str>) {
    if removed.state.swap(GONE, Ordering::AcqRel) == GONE {
        return;
    }
    EPOCH.fetch_add(1, Ordering::AcqRel);
    let Allocation { start, len, origin, device, .. } = *removed;
    if origin.takes_room() {
        give_back(device, len as u64);
    }
    with_shared(|shared| {
        if shared.freed.len() == REMEMBERED {
            shared.freed.pop_front();
        }
        shared.freed.push_back(Freed { start, len, origin, how });
        let reusable = !origin.is_host() && origin != Origin::GraphNode;
        if let (Some(free), Some(span), true) = (shared.addresses.free.as_mut(), span(len), reusable) {
            free.entry(span).or_default().push(start);
        }
    });
}

/// Grows when anything is freed.
pub(crate) fn epoch() -> u64 {
    EPOCH.load(Ordering::Acquire)
}

/// The allocation that holds the byte at `address`.
pub(crate) fn find(address: u64) -> Option<Arc<Allocation>> {
    let map = MAP.read().unwrap_or_else(PoisonError::into_inner);
    let (_, allocation) = map.range(..=address).next_back()?;
    (address < allocation.end()).then(|| Arc::clone(allocation))
}

/// Whether the device may only read what is at `address`.
pub(crate) fn is_read_only(address: u64) -> bool {
    find(address).is_some_and(|found| !found.is_writable())
}

/// The allocation that starts at `address`.
pub(crate) fn find_start(address: u64) -> Option<Arc<Allocation>> {
    MAP.read().unwrap_or_else(PoisonError::into_inner).get(&address).cloned()
}

/// The allocation that holds the whole range, for the check at a call.
pub(crate) fn find_range(address: u64, len: usize) -> Option<Arc<Allocation>> {
    find(address).filter(|found| address.checked_add(len as u64).is_some_and(|end| end <= found.end()))
}

/// Where memory comes from that overlaps the range, if any does.
pub(crate) fn overlapped(address: u64, len: usize) -> Option<Origin> {
    let map = MAP.read().unwrap_or_else(PoisonError::into_inner);
    let (_, last) = map.range(..address.saturating_add(len as u64)).next_back()?;
    (last.end() > address).then_some(last.origin)
}

/// All allocations that `wanted` selects.
pub(crate) fn all(wanted: impl Fn(&Allocation) -> bool) -> Vec<Arc<Allocation>> {
    let map = MAP.read().unwrap_or_else(PoisonError::into_inner);
    map.values().filter(|allocation| wanted(allocation)).cloned().collect()
}

/// Whether the address is of the kind made up for devices, mapped or not.
pub(crate) fn is_device_address(address: u64) -> bool {
    (FIRST_ADDRESS..END_OF_ADDRESSES).contains(&address)
}

/// The live allocation behind an access that happens now.
///
/// # Errors
/// The sentence that says what is wrong.
pub(crate) fn access(address: u64, len: usize, write: bool) -> Result<Arc<Allocation>, String> {
    let Some(found) = find_range(address, len) else { return Err(describe(address, len)) };
    match found.state.load(Ordering::Acquire) {
        LIVE if write && !found.is_writable() => Err(format!("{} may not be written", found.sentence())),
        LIVE => Ok(found),
        state @ (PENDING | RETIRED) => Err(found.trouble(state)),
        _ => Err(format!("{} has been freed", found.sentence())),
    }
}

/// What is at or near an address that nothing live holds.
pub(crate) fn describe(address: u64, len: usize) -> String {
    if let Some(found) = find(address) {
        let over = address.saturating_add(len as u64).saturating_sub(found.end());
        return format!("it goes {over} bytes past the end of {}", found.sentence());
    }
    let freed = with_shared(|shared| {
        let inside = |gone: &&Freed| (gone.start..gone.start + gone.len as u64).contains(&address);
        shared.freed.iter().rev().find(inside).map(|gone| {
            format!(
                "it lies in the {}-byte {} at {:#x} that {} freed",
                gone.len,
                gone.origin.words(),
                gone.start,
                gone.how
            )
        })
    });
    match (freed, describe_promised(address)) {
        (Some(freed), None) => return freed,
        (None, Some(promised)) => return promised,
        // Which of the two it is depends on what else the launch does.
        (Some(freed), Some(promised)) => return format!("{freed}; or {promised}"),
        (None, None) => {}
    }
    let map = MAP.read().unwrap_or_else(PoisonError::into_inner);
    let below = map.range(..=address).next_back().map(|(_, found)| (address - found.end(), found));
    let above = map.range(address..).next().map(|(start, found)| (start - address, found));
    let mut sentence = "no allocation holds it".to_owned();
    match (below, above) {
        (Some((gap, found)), other) if other.is_none_or(|(next, _)| gap <= next) => {
            let _ = write!(sentence, "; the nearest is {}, which ends {gap} bytes before", found.sentence());
        }
        (_, Some((gap, found))) => {
            let _ = write!(sentence, "; the nearest is {}, which starts {gap} bytes after", found.sentence());
        }
        _ => sentence.push_str("; nothing is allocated"),
    }
    sentence
}
