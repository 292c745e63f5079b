//! The book of a capture: a record for each captured call, in flat tables.

use std::sync::Arc;

use crate::graph::Owner;
use crate::memory::Allocation;
use crate::module::Kernel;
use crate::stream::Work;

/// The slots in which an owner that was kept lately is found again; a power of two.
const RECENT: usize = 64;

/// The header of an argument whose bytes are not known. No argument is as long.
pub(super) const UNKNOWN: u32 = u32::MAX;

/// The records of a capture, and everything they share. An owner that calls use again and again is
/// kept once, as long as no other one takes its slot.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) entries: Vec<Entry>,
    /// For each argument of a kernel, its length in four bytes and then the bytes, unless they are
    /// unknown.
    pub(super) bytes: Vec<u8>,
    /// Indices of owners.
    pub(super) uses: Vec<u32>,
    pub(super) owners: Vec<Owner>,
    /// The handles of conditions.
    pub(super) handles: Vec<u64>,
    /// The records that have handles, with the end of their handles.
    pub(super) handle_ends: Vec<(usize, usize)>,
    /// Owners of the capture as a whole.
    pub(super) kept: Vec<Owner>,
    recent: [u32; RECENT],
}

/// A record. What it has of a table starts where the record before it ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) work: Work,
    pub(super) bytes_end: usize,
    pub(super) uses_end: usize,
}

/// The lengths of a book's tables.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    entries: usize,
    bytes: usize,
    uses: usize,
    owners: usize,
    handles: usize,
    handle_ends: usize,
}

impl Default for Book {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            bytes: Vec::new(),
            uses: Vec::new(),
            owners: Vec::new(),
            handles: Vec::new(),
            handle_ends: Vec::new(),
            kept: Vec::new(),
            recent: [0; RECENT],
        }
    }
}

impl Book {
    #[inline]
    pub(super) fn mark(&self) -> Mark {
        Mark {
            entries: self.entries.len(),
            bytes: self.bytes.len(),
            uses: self.uses.len(),
            owners: self.owners.len(),
            handles: self.handles.len(),
            handle_ends: self.handle_ends.len(),
        }
    }

    /// Removes all that was written since a mark; returns the owners, to be dropped without the
    /// book's lock.
    #[cold]
    pub(super) fn back_to(&mut self, mark: Mark) -> Vec<Owner> {
        self.entries.truncate(mark.entries);
        self.bytes.truncate(mark.bytes);
        self.uses.truncate(mark.uses);
        self.handles.truncate(mark.handles);
        self.handle_ends.truncate(mark.handle_ends);
        self.owners.split_off(mark.owners.min(self.owners.len()))
    }

    /// Ends a record with what was written since the last one.
    #[inline]
    pub(super) fn end_record(&mut self, work: Work) {
        self.entries.push(Entry { work, bytes_end: self.bytes.len(), uses_end: self.uses.len() });
    }

    /// Writes an owner of the next record: the one in the table that `is_it`, or a new one.
    #[inline]
    fn owner(&mut self, address: usize, is_it: impl Fn(&Owner) -> bool, make: impl FnOnce() -> Owner) {
        // Multiplication mixes the address into the highest bits.
        let slot = address.wrapping_mul(0x9e37_79b9_7f4a_7c15_u64 as usize) >> (usize::BITS - RECENT.ilog2());
        let recent = &mut self.recent[slot % RECENT];
        if !self.owners.get(*recent as usize).is_some_and(is_it) {
            let Ok(index) = u32::try_from(self.owners.len()) else { return self.kept.push(make()) };
            *recent = index;
            self.owners.push(make());
        }
        self.uses.push(*recent);
    }
}

/// Writes the record of a captured call; see `Enqueue::captured_call`.
#[derive(Debug)]
pub struct Recorder<'b> {
    pub(super) book: &'b mut Book,
}

impl Recorder<'_> {
    /// The kernel, as an owner.
    #[inline]
    pub fn kernel(&mut self, kernel: &Kernel) {
        let is_it = |owner: &Owner| matches!(owner, Owner::Kernel(kept) if kept == kernel);
        self.book.owner(kernel.as_raw().addr(), is_it, || Owner::Kernel(kernel.clone()));
    }

    /// Memory, as an owner, unless the capture keeps it anyway.
    #[inline]
    pub fn allocation(&mut self, allocation: &Arc<Allocation>) {
        if allocation.is_scratch() {
            return;
        }
        let is_it = |owner: &Owner| matches!(owner, Owner::Allocation(kept) if Arc::ptr_eq(kept, allocation));
        let address = Arc::as_ptr(allocation).addr();
        self.book.owner(address, is_it, || Owner::Allocation(Arc::clone(allocation)));
    }

    /// Any owner.
    pub fn owner(&mut self, owner: Owner) {
        self.book.owner(0, |kept| *kept == owner, || owner.clone());
    }

    /// The next argument of a kernel; `None` if some of its bytes may not be initialised.
    #[inline]
    pub fn argument(&mut self, bytes: Option<&[u8]>) {
        let len = bytes.and_then(|bytes| u32::try_from(bytes.len()).ok()).unwrap_or(UNKNOWN);
        let to = &mut self.book.bytes;
        to.extend_from_slice(&len.to_ne_bytes());
        if let Some(bytes) = bytes
            && len != UNKNOWN
        {
            match *bytes {
                // The most frequent lengths, without a call.
                [a, b, c, d] => to.extend_from_slice(&[a, b, c, d]),
                [a, b, c, d, e, f, g, h] => to.extend_from_slice(&[a, b, c, d, e, f, g, h]),
                _ => to.extend_from_slice(bytes),
            }
        }
    }

    /// The handles of conditions among the arguments.
    #[cold]
    pub fn handles(&mut self, handles: impl IntoIterator<Item = u64>) {
        self.book.handles.extend(handles);
        let end = (self.book.entries.len(), self.book.handles.len());
        self.book.handle_ends.push(end);
    }
}
