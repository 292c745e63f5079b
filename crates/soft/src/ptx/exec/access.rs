//! Memory accesses of threads: from addresses to bytes.

use std::sync::atomic::{AtomicU8, AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::grid::Grid;
use super::thread_fault::{Checked, ThreadFault};
use crate::ptx::code::{Cell, Space};
use crate::ptx::error::FaultKind;
use crate::ptx::memory::{AccessKind, DeviceMemory, MemoryFault, Span};
use crate::ptx::windows::{
    FIRST_WINDOW, LOCAL_WINDOW, PARAM_WINDOW, SHARED_WINDOW, WINDOW, shared_from_generic,
};

/// The slots of the span cache. Each instruction uses the slot of its own number, so that
/// instructions on different allocations do not evict each other.
const SLOTS: usize = 16;

/// A cache of the allocations accessed last.
pub(super) struct Spans {
    pub(super) epoch: u64,
    slots: [Span; SLOTS],
    /// Whether the access that is being looked up is atomic.
    pub(super) is_atomic: bool,
}

const EMPTY: Span = Span { device_start: 0, len: 0, host: std::ptr::null_mut(), writable: false };

impl Spans {
    pub(super) fn new() -> Self {
        Spans { epoch: 0, slots: [EMPTY; SLOTS], is_atomic: false }
    }

    /// The host pointer of an access to global memory, if the cache has it.
    #[inline(always)]
    pub(super) fn cached(
        &self,
        memory: &dyn DeviceMemory,
        pc: usize,
        address: u64,
        bytes: u32,
        write: bool,
    ) -> Option<*mut u8> {
        if memory.epoch() != self.epoch {
            return None;
        }
        inside(&self.slots[pc % SLOTS], address, bytes, write)
    }

    /// The allocation that the last access by that instruction found, if it is still known.
    pub(super) fn last(&self, pc: usize) -> Span {
        self.slots[pc % SLOTS]
    }

    /// The host pointer of an access to global memory, which must lie in one live allocation. It is
    /// cached unless every access has to be seen: by a watch, or because `is_checked`.
    #[cold]
    pub(super) fn miss(
        &mut self,
        grid: &Grid<'_>,
        pc: usize,
        address: u64,
        bytes: u32,
        write: bool,
        is_checked: bool,
    ) -> Checked<*mut u8> {
        let memory = grid.memory;
        let epoch = memory.epoch();
        if epoch != self.epoch {
            self.slots = [EMPTY; SLOTS];
            self.epoch = epoch;
        }
        if address.checked_add(u64::from(bytes)).is_none() {
            return Err(ThreadFault::illegal(
                address,
                bytes,
                write,
                "beyond the end of the address space".into(),
            ));
        }
        if address > FIRST_WINDOW
            && let Some(found) = window(grid, address, bytes)
        {
            let span = found.map_err(|fault| ThreadFault::at(address, bytes, write, fault))?;
            return inside(&span, address, bytes, write).ok_or_else(|| {
                ThreadFault::illegal(address, bytes, write, "beyond the end of the workspace".into())
            });
        }
        let span = memory
            .translate(address, bytes as usize, write)
            .map_err(|fault| ThreadFault::at(address, bytes, write, fault))?;
        let Some(host) = inside(&span, address, bytes, write) else {
            let message = "the memory gave an allocation that does not hold the access".into();
            let fault = MemoryFault { kind: FaultKind::IllegalAddress, message };
            return Err(ThreadFault::at(address, bytes, write, fault));
        };
        if memory.is_watched() {
            let kind = match (write, self.is_atomic) {
                (_, true) => AccessKind::Atomic,
                (true, false) => AccessKind::Write,
                (false, false) => AccessKind::Read,
            };
            memory
                .note(address, bytes as usize, kind)
                .map_err(|fault| ThreadFault::at(address, bytes, write, fault))?;
        } else if !is_checked {
            self.slots[pc % SLOTS] = span;
        }
        Ok(host)
    }
}

/// The memory of the grid or of the heap that holds an access, if it lies there.
fn window(grid: &Grid<'_>, address: u64, bytes: u32) -> Option<Result<Span, MemoryFault>> {
    grid.state.span(address).map(Ok).or_else(|| grid.heap().block(address, bytes.into()))
}

/// The host pointer of an access, if it lies in the span.
#[inline(always)]
pub(super) fn inside(span: &Span, address: u64, bytes: u32, write: bool) -> Option<*mut u8> {
    let offset = address.wrapping_sub(span.device_start);
    if offset < span.len && span.len - offset >= u64::from(bytes) && (!write || span.writable) {
        // The offset lies inside the span.
        return Some(span.host.wrapping_add(offset as usize));
    }
    None
}

/// The target of an access.
#[derive(Clone, Copy)]
pub(super) enum Location {
    Host(*mut u8),
    Shared(usize),
    Local(usize),
    /// The kernel's parameters.
    Entry(usize),
}

/// The memory of a thread that is not global.
pub(super) struct ThreadMemory<'a> {
    pub(super) shared: &'a mut [u8],
    /// How much of it threads access without further checks: all, or nothing.
    pub(super) unchecked_shared: usize,
    pub(super) local: &'a mut [u8],
    pub(super) local_base: usize,
    pub(super) params: &'a [u8],
}

impl<'a> ThreadMemory<'a> {
    /// The memory that the threads of a block share.
    pub(super) fn of_block(shared: &'a mut [u8]) -> Self {
        ThreadMemory { shared, unchecked_shared: 0, local: &mut [], local_base: 0, params: &[] }
    }

    /// The memory of no thread, for accesses that are in no check.
    pub(super) fn unchecked(shared: &'a mut [u8], params: &'a [u8]) -> Self {
        ThreadMemory { unchecked_shared: shared.len(), shared, local: &mut [], local_base: 0, params }
    }
}

impl ThreadMemory<'_> {
    /// Locates an access outside of global memory; `None` if it is global.
    pub(super) fn location(
        &self,
        space: Space,
        address: u64,
        bytes: u32,
        write: bool,
    ) -> Checked<Option<Location>> {
        let (location, offset, len, name) = match space {
            Space::Shared => {
                let at = narrow(shared_from_generic(address));
                (Location::Shared(at as usize), at, self.unchecked_shared, "shared memory")
            }
            Space::Local => {
                let at = narrow(address);
                (Location::Local(at as usize), at, self.local.len(), "local memory")
            }
            Space::Frame => {
                let at = self.local_base + address as u32 as usize;
                (Location::Local(at), at as u64, self.local.len(), "the frame")
            }
            Space::Entry => (Location::Entry(address as usize), address, self.params.len(), "the parameters"),
            Space::Param => {
                return self.location(Space::Generic, address.wrapping_add(PARAM_WINDOW), bytes, write);
            }
            Space::Global => return Ok(None),
            Space::Generic => {
                if address.wrapping_sub(SHARED_WINDOW) < WINDOW {
                    return self.location(Space::Shared, address - SHARED_WINDOW, bytes, write);
                }
                if address.wrapping_sub(LOCAL_WINDOW) < WINDOW {
                    return self.location(Space::Local, address - LOCAL_WINDOW, bytes, write);
                }
                let at = address.wrapping_sub(PARAM_WINDOW);
                if at < WINDOW {
                    (Location::Entry(at as usize), at, self.params.len(), "the parameters")
                } else {
                    return Ok(None);
                }
            }
        };
        let end = offset.saturating_add(u64::from(bytes));
        if end > len as u64 || (write && matches!(location, Location::Entry(_))) {
            if matches!(location, Location::Shared(_)) && end <= self.shared.len() as u64 {
                return Err(ThreadFault::unchecked(offset));
            }
            let why = if end > len as u64 {
                format!("outside of {name}, which has {} bytes", self.size_of(location))
            } else {
                "the parameters of a kernel cannot be written".into()
            };
            let mut fault = ThreadFault::illegal(address, bytes, write, why);
            if let Location::Shared(_) = location {
                fault.shared = Some(offset);
            }
            return Err(fault);
        }
        Ok(Some(location))
    }

    /// The size of the memory that a location lies in.
    fn size_of(&self, location: Location) -> usize {
        self.bytes(location).0.len()
    }

    fn bytes(&self, location: Location) -> (&[u8], usize) {
        match location {
            Location::Shared(at) => (self.shared, at),
            Location::Local(at) => (self.local, at),
            Location::Entry(at) => (self.params, at),
            Location::Host(_) => (&[], 0),
        }
    }

    /// Reads `N` bytes of a checked location.
    pub(super) fn read<const N: usize>(&self, location: Location) -> [u8; N] {
        let (memory, at) = self.bytes(location);
        memory.get(at..).and_then(|rest| rest.first_chunk::<N>()).copied().unwrap_or([0; N])
    }

    /// Writes `N` bytes to a checked location.
    pub(super) fn write<const N: usize>(&mut self, location: Location, value: [u8; N]) {
        let (memory, at): (&mut [u8], usize) = match location {
            Location::Shared(at) => (self.shared, at),
            Location::Local(at) => (self.local, at),
            Location::Entry(_) | Location::Host(_) => return,
        };
        if let Some(slot) = memory.get_mut(at..).and_then(|rest| rest.first_chunk_mut::<N>()) {
            *slot = value;
        }
    }

    /// Reads one element of a location that was checked for the whole access.
    #[inline(always)]
    pub(super) fn load(&self, location: Location, cell: Cell, index: usize) -> u64 {
        let location = step(location, index * cell.bytes() as usize);
        if let Location::Host(host) = location {
            // SAFETY: `place` was made by `Spans::host` for an access that covers this element.
            return unsafe { load_host(host, cell) };
        }
        let raw = match cell.bytes() {
            1 => u64::from(u8::from_le_bytes(self.read(location))),
            2 => u64::from(u16::from_le_bytes(self.read(location))),
            4 => u64::from(u32::from_le_bytes(self.read(location))),
            _ => u64::from_le_bytes(self.read(location)),
        };
        extend(raw, cell)
    }

    /// Writes one element of a location that was checked for the whole access.
    #[inline(always)]
    pub(super) fn store(&mut self, location: Location, cell: Cell, index: usize, value: u64) {
        let location = step(location, index * cell.bytes() as usize);
        match (location, cell.bytes()) {
            // SAFETY: `place` was made by `Spans::host` for a write that covers this element.
            (Location::Host(host), bytes) => unsafe { store_host(host, bytes, value) },
            (_, 1) => self.write(location, (value as u8).to_le_bytes()),
            (_, 2) => self.write(location, (value as u16).to_le_bytes()),
            (_, 4) => self.write(location, (value as u32).to_le_bytes()),
            _ => self.write(location, value.to_le_bytes()),
        }
    }
}

/// Narrows an address of shared or local memory to 32 bits: adding an offset to a 32-bit register
/// may carry once. GPUs ignore the upper half; here addresses of other spaces are out of bounds.
#[inline(always)]
fn narrow(address: u64) -> u64 {
    if address >> 32 == 1 { address & u64::from(u32::MAX) } else { address }
}

/// Whether a pointer is a multiple of a power of two.
#[inline(always)]
pub(super) fn is_aligned(host: *mut u8, bytes: usize) -> bool {
    host.addr() & (bytes - 1) == 0
}

/// The location that many bytes behind.
#[inline(always)]
pub(super) fn step(location: Location, bytes: usize) -> Location {
    match location {
        Location::Host(host) => Location::Host(host.wrapping_add(bytes)),
        Location::Shared(at) => Location::Shared(at + bytes),
        Location::Local(at) => Location::Local(at + bytes),
        Location::Entry(at) => Location::Entry(at + bytes),
    }
}

#[inline(always)]
fn extend(raw: u64, cell: Cell) -> u64 {
    match cell {
        Cell::S8 => raw as i8 as u64,
        Cell::S16 => raw as i16 as u64,
        Cell::S32 => raw as i32 as u64,
        _ => raw,
    }
}

/// Reads an element of global memory. Kernels may race with each other and with copies, so every
/// access is atomic.
///
/// # Safety
/// `host` points to as many mapped bytes as the cell has, which are only accessed atomically.
#[inline(always)]
unsafe fn load_host(host: *mut u8, cell: Cell) -> u64 {
    let bytes = cell.bytes() as usize;
    let raw = if is_aligned(host, bytes) {
        // SAFETY: mapped by the contract, aligned by the check.
        unsafe {
            match bytes {
                1 => u64::from(AtomicU8::from_ptr(host).load(Ordering::Relaxed)),
                2 => u64::from(AtomicU16::from_ptr(host.cast()).load(Ordering::Relaxed)),
                4 => u64::from(AtomicU32::from_ptr(host.cast()).load(Ordering::Relaxed)),
                _ => AtomicU64::from_ptr(host.cast()).load(Ordering::Relaxed),
            }
        }
    } else {
        (0..bytes).fold(0, |raw, index| {
            // SAFETY: mapped by the contract; bytes are always aligned.
            let byte = unsafe { AtomicU8::from_ptr(host.wrapping_add(index)).load(Ordering::Relaxed) };
            raw | (u64::from(byte) << (8 * index))
        })
    };
    extend(raw, cell)
}

/// Writes an element of global memory, see [`load_host`].
///
/// # Safety
/// `host` points to as many mapped, writable bytes as are written, which are only accessed
/// atomically.
#[inline(always)]
unsafe fn store_host(host: *mut u8, bytes: u32, value: u64) {
    if is_aligned(host, bytes as usize) {
        // SAFETY: mapped by the contract, aligned by the check.
        unsafe {
            match bytes {
                1 => AtomicU8::from_ptr(host).store(value as u8, Ordering::Relaxed),
                2 => AtomicU16::from_ptr(host.cast()).store(value as u16, Ordering::Relaxed),
                4 => AtomicU32::from_ptr(host.cast()).store(value as u32, Ordering::Relaxed),
                _ => AtomicU64::from_ptr(host.cast()).store(value, Ordering::Relaxed),
            }
        }
        return;
    }
    for index in 0..bytes as usize {
        // SAFETY: mapped by the contract; bytes are always aligned.
        let cell = unsafe { AtomicU8::from_ptr(host.wrapping_add(index)) };
        cell.store((value >> (8 * index)) as u8, Ordering::Relaxed);
    }
}
