//! The book of a capture: a record for each captured call, in flat tables.

use core::any::Any;
use std::sync::Arc;

use crate::graph::Owner;
use crate::memory::Allocation;
use crate::module::Kernel;
use crate::stream::Work;

/// The slots in which an owner that was kept lately is found again; a power of two.
const RECENT: usize = 64;

/// The header of an argument whose bytes are not known. No argument is as long.
pub(super) const UNKNOWN: u16 = u16::MAX;

/// The declaration of a kernel, and one more number about a launch of it, for the crate above.
pub(super) type Declared = (&'static (dyn Any + Send + Sync), u64);

/// A value that goes with the record of a call, for the crate above: it meets the call's node.
pub type Tag = Arc<dyn Any + Send + Sync>;

/// The records of a capture, and everything they share. An owner that calls use again and again is
/// kept once, as long as no other one takes its slot.
#[derive(Debug)]
pub(super) struct Book {
    pub(super) entries: Vec<Entry>,
    /// For each argument of a kernel, its length in two bytes, the lower one first, and then the
    /// bytes, unless they are unknown.
    pub(super) bytes: Vec<u8>,
    /// Indices of owners.
    pub(super) uses: Vec<u32>,
    pub(super) owners: Vec<Owner>,
    /// The handles of conditions.
    pub(super) handles: Vec<u64>,
    /// The records that have handles, with the end of their handles.
    pub(super) handle_ends: Vec<(usize, usize)>,
    /// The records whose kernels are declared, in their order.
    pub(super) declared: Vec<(usize, Declared)>,
    /// The records that have a tag, in their order.
    pub(super) tags: Vec<(usize, Tag)>,
    /// Owners of the capture as a whole.
    pub(super) kept: Vec<Owner>,
    /// How many owners there were when the last record began.
    settled: usize,
    recent: [u32; RECENT],
}

/// A record. What it has of a table starts where the record before it ends.
#[derive(Clone, Copy, Debug)]
pub(super) struct Entry {
    pub(super) work: Work,
    pub(super) bytes_end: usize,
    pub(super) uses_end: usize,
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
            declared: Vec::new(),
            tags: Vec::new(),
            kept: Vec::new(),
            settled: 0,
            recent: [0; RECENT],
        }
    }
}

impl Book {
    /// Begins a record; returns the number of those before it.
    #[inline(always)]
    pub(super) fn begin_record(&mut self) -> usize {
        if self.entries.capacity() == 0 {
            self.reserve();
        }
        self.settled = self.owners.len();
        self.entries.len()
    }

    /// Makes room for the records of a small capture at once.
    #[cold]
    fn reserve(&mut self) {
        self.entries.reserve(64);
        self.bytes.reserve(2048);
        self.uses.reserve(256);
        self.owners.reserve(64);
    }

    /// Ends a record with what was written since it began. Before the driver call: the work need
    /// not be kept elsewhere meanwhile.
    #[inline(always)]
    pub(super) fn end_record(&mut self, work: Work) {
        self.entries.push(Entry { work, bytes_end: self.bytes.len(), uses_end: self.uses.len() });
    }

    /// Removes the record that began last, of which there were `before` before; returns its owners
    /// and its tag, to be dropped without the book's lock.
    #[cold]
    pub(super) fn take_back(&mut self, before: usize) -> Vec<Owner> {
        self.entries.truncate(before);
        let (bytes, uses) = self.entries.last().map_or((0, 0), |last| (last.bytes_end, last.uses_end));
        self.bytes.truncate(bytes);
        self.uses.truncate(uses);
        self.handle_ends.retain(|(of, _)| *of < before);
        self.declared.truncate(self.declared.partition_point(|(of, _)| *of < before));
        self.handles.truncate(self.handle_ends.last().map_or(0, |(_, end)| *end));
        let tags = self.tags.split_off(self.tags.partition_point(|(of, _)| *of < before));
        let mut owners = self.owners.split_off(self.settled.min(self.owners.len()));
        owners.extend(tags.into_iter().map(|(_, tag)| Owner::from(tag)));
        owners
    }

    /// Writes an owner of the next record: the one in the table that `is_it`, or a new one.
    #[inline(always)]
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
    // The inlining of these is worth half of the record's time.
    #[inline(always)]
    pub fn kernel(&mut self, kernel: &Kernel) {
        let is_it = |owner: &Owner| matches!(owner, Owner::Kernel(kept) if kept == kernel);
        self.book.owner(kernel.as_raw().addr(), is_it, || Owner::Kernel(kernel.clone()));
    }

    /// Memory, as an owner, unless the capture keeps it anyway.
    #[inline(always)]
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

    /// The next argument of a kernel, or address of a batch; `None` if some of its bytes may not be
    /// initialised.
    #[inline(always)]
    pub fn argument(&mut self, bytes: Option<&[u8]>) {
        let to = &mut self.book.bytes;
        // The most frequent lengths are put together with their header in a register: memory would
        // be waited for, and two writes would ask twice for room.
        match bytes.map(|bytes| (<[u8; 4]>::try_from(bytes), <[u8; 8]>::try_from(bytes))) {
            Some((Ok(four), _)) => {
                let [all @ .., _, _] = (u64::from(u32::from_le_bytes(four)) << 16 | 4).to_le_bytes();
                to.extend_from_slice(&all);
            }
            Some((_, Ok(eight))) => {
                let word = u128::from(u64::from_le_bytes(eight)) << 16 | 8;
                let [all @ .., _, _, _, _, _, _] = word.to_le_bytes();
                to.extend_from_slice(&all);
            }
            Some((Err(_), Err(_))) | None => self.long_argument(bytes),
        }
    }

    #[cold]
    fn long_argument(&mut self, bytes: Option<&[u8]>) {
        // All arguments of a kernel together have less than 32 KiB.
        let known = bytes.and_then(|bytes| Some((u16::try_from(bytes.len()).ok()?, bytes)));
        let (len, bytes) = known.unwrap_or((UNKNOWN, &[]));
        self.book.bytes.extend_from_slice(&len.to_le_bytes());
        self.book.bytes.extend_from_slice(bytes);
    }

    /// The declaration of the kernel.
    #[inline(always)]
    pub fn declared(&mut self, declared: Declared) {
        self.book.declared.push((self.book.entries.len(), declared));
    }

    /// A value that goes with the record.
    #[cold]
    pub fn tag(&mut self, tag: Tag) {
        self.book.tags.push((self.book.entries.len(), tag));
    }

    /// The handles of conditions among the arguments.
    #[cold]
    pub fn handles(&mut self, handles: impl IntoIterator<Item = u64>) {
        self.book.handles.extend(handles);
        let end = (self.book.entries.len(), self.book.handles.len());
        self.book.handle_ends.push(end);
    }
}
