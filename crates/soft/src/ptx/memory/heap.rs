//! The heap of the device's `malloc` and `free`.

use std::alloc::{Layout, alloc_zeroed};
use std::collections::BTreeMap;
use std::ptr::slice_from_raw_parts_mut;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};

use super::{MemoryFault, Span};
use crate::ptx::error::FaultKind;
use crate::ptx::windows::HEAP_WINDOW;
use crate::sync::lock;

/// Addresses of blocks are multiples of this.
const ALIGN: u64 = 16;
/// The bytes behind each block that belong to none, so that an access past the end is found.
const GAP: u64 = 16;

/// A heap that kernels allocate from. Its blocks live until `free`, beyond the grid.
#[derive(Debug)]
pub(crate) struct Heap {
    /// Its size in bytes, which stays the same once the heap is in use.
    capacity: AtomicU64,
    state: Mutex<State>,
}

impl Default for Heap {
    fn default() -> Self {
        Heap::new(Heap::DEFAULT_BYTES)
    }
}

#[derive(Debug, Default)]
struct State {
    /// Whether a kernel has called `malloc` or `free`.
    is_used: bool,
    /// The memory, allocated at the first `malloc` and never moved.
    words: Box<[AtomicU64]>,
    /// Live blocks: offset and size.
    live: BTreeMap<u64, u64>,
    /// Blocks that `free` gave back and nobody has taken since, for messages.
    freed: BTreeMap<u64, u64>,
}

impl Heap {
    /// The bytes of a heap by default, as CUDA has it.
    pub(crate) const DEFAULT_BYTES: u64 = 8 << 20;

    /// The largest heap, which ends before the next window.
    pub(crate) const MOST_BYTES: u64 = 1 << 36;

    /// An empty heap of that size.
    pub(crate) fn new(bytes: u64) -> Heap {
        Heap { capacity: AtomicU64::new(capacity_of(bytes)), state: Mutex::default() }
    }

    /// Changes the size, unless a kernel has called `malloc` or `free`. Returns whether it did.
    pub(crate) fn resize(&self, bytes: u64) -> bool {
        let state = lock(&self.state);
        if !state.is_used {
            self.capacity.store(capacity_of(bytes), Ordering::Relaxed);
        }
        !state.is_used
    }

    /// The offset of an address in the heap.
    fn offset(&self, address: u64) -> Option<u64> {
        let offset = address.wrapping_sub(HEAP_WINDOW);
        (offset < self.capacity.load(Ordering::Relaxed)).then_some(offset)
    }

    /// Allocates `size` bytes; 0 if there is no room.
    pub(in crate::ptx) fn allocate(&self, size: u64) -> u64 {
        let mut state = lock(&self.state);
        state.is_used = true;
        if state.words.is_empty() {
            state.words = zeroed((self.capacity.load(Ordering::Relaxed) / 8) as usize);
        }
        let bytes = 8 * state.words.len() as u64;
        let Some(offset) = state.room(size, bytes) else { return 0 };
        // The new block covers what was freed here.
        let end = offset.saturating_add(size.max(1));
        while let Some((&start, &len)) = state.freed.range(..end).next_back()
            && start.saturating_add(len.max(1)) > offset
        {
            state.freed.remove(&start);
        }
        state.live.insert(offset, size);
        HEAP_WINDOW + offset
    }

    /// Frees a block. The null pointer has no effect.
    ///
    /// # Errors
    /// No live block begins at the address.
    pub(in crate::ptx) fn free(&self, address: u64) -> Result<(), MemoryFault> {
        let mut state = lock(&self.state);
        state.is_used = true;
        if address == 0 {
            return Ok(());
        }
        let Some(offset) = self.offset(address).filter(|offset| state.live.contains_key(offset)) else {
            let what = self
                .offset(address)
                .map_or("it is not on the heap of `malloc`".to_owned(), |offset| state.describe(offset));
            return Err(illegal(format!(
                "`free` of {address:#x}, where no block of `malloc` begins: {what}"
            )));
        };
        if let Some(size) = state.live.remove(&offset) {
            state.freed.insert(offset, size);
        }
        Ok(())
    }

    /// The block that holds all of an access; `None` if the address is not one of the heap. A block
    /// may be freed by another thread meanwhile, so callers do not keep it.
    pub(in crate::ptx) fn block(&self, address: u64, len: u64) -> Option<Result<Span, MemoryFault>> {
        let at = self.offset(address)?;
        let state = lock(&self.state);
        let found = state.live.range(..=at).next_back();
        Some(match found {
            Some((&start, &size)) if at - start < size && size - (at - start) >= len => Ok(Span {
                device_start: HEAP_WINDOW + start,
                len: size,
                host: state.words.as_ptr().cast::<u8>().cast_mut().wrapping_add(start as usize),
                writable: true,
            }),
            _ => Err(illegal(state.describe(at))),
        })
    }
}

/// The bytes that a heap of so many bytes can give.
fn capacity_of(bytes: u64) -> u64 {
    bytes.min(Heap::MOST_BYTES) & !(ALIGN - 1)
}

/// So many words of 0. The system provides their pages when they are used. None if there is not
/// enough memory.
fn zeroed(words: usize) -> Box<[AtomicU64]> {
    let Ok(layout) = Layout::array::<AtomicU64>(words) else { return Box::default() };
    if words == 0 {
        return Box::default();
    }
    // SAFETY: the layout has a size above 0.
    let start = unsafe { alloc_zeroed(layout) }.cast::<AtomicU64>();
    if start.is_null() {
        return Box::default();
    }
    // SAFETY: the global allocator gave the memory with the layout of this slice, and words of 0
    // are valid.
    unsafe { Box::from_raw(slice_from_raw_parts_mut(start, words)) }
}

fn illegal(message: String) -> MemoryFault {
    MemoryFault { kind: FaultKind::IllegalAddress, message }
}

impl State {
    /// A place that has room for so many bytes.
    fn room(&self, size: u64, capacity: u64) -> Option<u64> {
        let wanted = size.max(1).checked_add(GAP)?;
        let after = |start: u64, len: u64| (start + len.max(1) + GAP).next_multiple_of(ALIGN);
        let fits = |from: u64| capacity.checked_sub(from).is_some_and(|room| room >= wanted);
        // Behind the last block first, so that what is freed stays untouched for long.
        let end = self.live.last_key_value().map_or(0, |(&start, &len)| after(start, len));
        if fits(end) {
            return Some(end);
        }
        let mut from = 0_u64;
        for (&start, &len) in &self.live {
            if start.saturating_sub(from) >= wanted {
                return Some(from);
            }
            from = after(start, len);
        }
        None
    }

    /// The blocks around an offset, for messages.
    fn describe(&self, at: u64) -> String {
        let before =
            |blocks: &BTreeMap<u64, u64>| blocks.range(..=at).next_back().map(|(&start, &len)| (start, len));
        if let Some((start, len)) = before(&self.freed).filter(|(start, len)| at - start < (*len).max(1)) {
            let into = at - start;
            return format!("{into} bytes into a block of {len} bytes of `malloc` that `free` gave back");
        }
        match before(&self.live) {
            Some((start, len)) if at - start < len => {
                format!("{} bytes into a block of {len} bytes of `malloc`", at - start)
            }
            Some((start, len)) => {
                format!("{} bytes behind a block of {len} bytes of `malloc`", at - start - len)
            }
            None => "on the heap of `malloc`, in none of its blocks".to_owned(),
        }
    }
}
