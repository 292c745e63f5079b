//! Asynchronous copies.
//!
//! A copy takes place when a thread waits for it, as late as a GPU may do it: a kernel that reads
//! the destination before it waits sees the old data. Copies to shared memory that nothing waits
//! for never take place; those to global memory do when the block ends.

use std::collections::{HashMap, VecDeque};

use super::access::{Location, ThreadMemory, step};
use super::atomic::AtomicChange;
use super::tensor::{TENSOR_ALIGNMENT, TensorBox};
use super::thread_fault::{Checked, ThreadFault};
use super::worker::Worker;
use crate::ptx::code::transfer::{AsyncInst, AsyncOp, Pointer, Reduction};
use crate::ptx::code::{AtomicOp, Cell, NONE, Space};
use crate::ptx::error::FaultKind;

/// The alignment of bulk copies, and the unit of their sizes.
const BULK_UNIT: u32 = 16;

/// The copies of a block that have begun and not taken place.
#[derive(Debug, Default)]
pub(super) struct Transfers {
    threads: HashMap<u32, ThreadTransfers>,
    /// The events that each barrier waits for, by its address.
    events: HashMap<usize, Vec<Event>>,
}

#[derive(Debug, Default)]
struct ThreadTransfers {
    copies: VecDeque<Copy>,
    /// The number of groups of copies that are closed.
    groups: u64,
    /// The number of copies so far.
    count: u64,
    stores: VecDeque<BulkStore>,
    store_groups: u64,
}

/// A copy by `cp.async`.
#[derive(Debug, Clone, Copy)]
struct Copy {
    number: u64,
    group: u64,
    to: usize,
    from: u64,
    bytes: u32,
    /// The rest of the destination becomes zero.
    from_source: u32,
}

/// A bulk copy to global memory.
#[derive(Debug)]
struct BulkStore {
    group: u64,
    to: StoreTarget,
    from: usize,
    bytes: u32,
    reduction: Option<Reduction>,
    /// The content of the source, once it was read.
    data: Option<Vec<u8>>,
}

/// Where a bulk copy to global memory writes.
#[derive(Debug)]
enum StoreTarget {
    Address(u64),
    Tensor(Box<TensorBox>),
}

/// What a barrier hears of.
#[derive(Debug)]
enum Event {
    /// The copies of a thread before this number have ended.
    Copies {
        thread: u32,
        before: u64,
    },
    Bulk(BulkLoad),
    Tensor {
        to: usize,
        from: Box<TensorBox>,
    },
    Values {
        to: usize,
        data: Vec<u8>,
        reduction: Option<Reduction>,
    },
}

/// A bulk copy to shared memory.
#[derive(Debug, Clone, Copy)]
struct BulkLoad {
    to: usize,
    space: Space,
    from: u64,
    bytes: u32,
    reduction: Option<Reduction>,
}

impl Transfers {
    pub(super) fn clear(&mut self) {
        self.threads.clear();
        self.events.clear();
    }

    fn thread(&mut self, thread: u32) -> &mut ThreadTransfers {
        self.threads.entry(thread).or_default()
    }
}

/// A thread that executes an asynchronous instruction.
pub(super) struct AsyncThread<'a, 'g, 'm> {
    pub(super) worker: &'a mut Worker<'g>,
    pub(super) memory: &'a mut ThreadMemory<'m>,
    pub(super) transfers: &'a mut Transfers,
    pub(super) registers: &'a mut [u64],
    pub(super) lists: &'a [u32],
    pub(super) linear: u32,
    pub(super) pc: usize,
}

impl AsyncThread<'_, '_, '_> {
    /// Executes the instruction. True if the thread should let others run.
    pub(super) fn execute(&mut self, inst: &AsyncInst) -> Checked<bool> {
        let linear = self.linear;
        match inst.op {
            AsyncOp::Copy { bytes } => self.copy(inst, bytes)?,
            AsyncOp::CommitCopies => self.transfers.thread(linear).groups += 1,
            AsyncOp::WaitCopies { most } => {
                let groups = self.transfers.thread(linear).groups;
                self.end_copies(linear, |copy| copy.group.saturating_add(most) < groups)?;
            }
            AsyncOp::WaitAllCopies => self.end_copies(linear, |_| true)?,
            AsyncOp::ArriveAfterCopies { expects_more } => {
                let at = self.barrier(inst.barrier)?;
                if expects_more {
                    self.expect_arrival(at)?;
                }
                let before = self.transfers.thread(linear).count;
                self.add_event(at, Event::Copies { thread: linear, before });
            }
            AsyncOp::Mbarrier(op) => return self.mbarrier(inst, op),
            AsyncOp::BulkLoad(reduction) => self.bulk_load(inst, reduction)?,
            AsyncOp::BulkStore(reduction) => self.bulk_store(inst, reduction)?,
            AsyncOp::TensorLoad { rank, list } => {
                let box_at = self.tensor_box(inst.from, rank, list)?;
                self.tensor_load(inst, box_at)?;
            }
            AsyncOp::TensorStore { rank, list, reduction } => {
                let box_at = self.tensor_box(inst.to, rank, list)?;
                self.tensor_store(inst, box_at, reduction)?;
            }
            AsyncOp::Send { list, count, bytes, reduction } => {
                self.send(inst, list, (count, bytes), reduction)?;
            }
            AsyncOp::ReplaceField(field) => self.replace_field(inst, field)?,
            AsyncOp::CopyMap => self.copy_map(inst)?,
            AsyncOp::CommitBulk => self.transfers.thread(linear).store_groups += 1,
            AsyncOp::WaitBulk { most, reads } => {
                let groups = self.transfers.thread(linear).store_groups;
                self.read_stores(linear, |store| store.group.saturating_add(most) < groups);
                if !reads {
                    self.end_stores(linear, |store| store.group.saturating_add(most) < groups)?;
                }
            }
        }
        Ok(false)
    }

    /// A missing register reads as zero.
    pub(super) fn get(&self, register: u32) -> u64 {
        self.registers.get(register as usize).copied().unwrap_or(0)
    }

    /// Writes to a missing register have no effect.
    pub(super) fn set(&mut self, register: u32, value: u64) {
        if let Some(place) = self.registers.get_mut(register as usize) {
            *place = value;
        }
    }

    pub(super) fn address(&self, pointer: Pointer) -> u64 {
        self.get(pointer.base).wrapping_add_signed(i64::from(pointer.offset))
    }

    pub(super) fn find(
        &mut self,
        space: Space,
        address: u64,
        bytes: u32,
        align: u32,
        write: bool,
    ) -> Checked<Location> {
        self.worker.find(self.memory, self.pc, space, address, bytes, align, write)
    }

    /// The offset in shared memory of an access there.
    pub(super) fn shared(&mut self, pointer: Pointer, bytes: u32, align: u32, write: bool) -> Checked<usize> {
        let address = self.address(pointer);
        match self.find(pointer.space, address, bytes, align, write)? {
            Location::Shared(at) => Ok(at),
            _ => {
                let detail = "this lies outside of shared memory".into();
                Err(ThreadFault::illegal(address, bytes, write, detail))
            }
        }
    }

    /// `cp.async`.
    fn copy(&mut self, inst: &AsyncInst, bytes: u32) -> Checked<()> {
        let to = self.shared(inst.to, bytes, bytes, true)?;
        let from = self.address(inst.from);
        let ignores = inst.ignores != NONE && self.get(inst.ignores) & 1 == 1;
        let size = self.get(inst.size) as u32;
        if size > bytes {
            let detail = format!("{size} bytes of a copy of {bytes} cannot come from the source");
            return Err(ThreadFault::new(FaultKind::IllegalInstruction, detail));
        }
        let from_source = if ignores { 0 } else { size };
        if from_source > 0 {
            self.find(Space::Global, from, from_source, bytes, false)?;
        }
        let thread = self.transfers.thread(self.linear);
        let (number, group) = (thread.count, thread.groups);
        thread.copies.push_back(Copy { number, group, to, from, bytes, from_source });
        thread.count += 1;
        Ok(())
    }

    /// Lets the first copies of a thread take place, as long as `ends` says so.
    fn end_copies(&mut self, thread: u32, ends: impl Fn(&Copy) -> bool) -> Checked<()> {
        while let Some(copy) = self.transfers.thread(thread).copies.pop_front_if(|copy| ends(copy)) {
            let to = Location::Shared(copy.to);
            if copy.from_source > 0 {
                let from = self.find(Space::Global, copy.from, copy.from_source, 1, false)?;
                copy_bytes(self.memory, from, to, copy.from_source);
            }
            for index in copy.from_source..copy.bytes {
                self.memory.store(to, Cell::U8, index as usize, 0);
            }
        }
        Ok(())
    }

    fn add_event(&mut self, barrier: usize, event: Event) {
        self.transfers.events.entry(barrier).or_default().push(event);
    }

    /// Lets everything happen that a barrier waits for.
    pub(super) fn settle(&mut self, barrier: usize) -> Checked<()> {
        for event in self.transfers.events.remove(&barrier).unwrap_or_default() {
            match event {
                Event::Copies { thread, before } => {
                    self.end_copies(thread, |copy| copy.number < before)?;
                    self.arrive_once(barrier)?;
                }
                Event::Bulk(load) => {
                    let from = self.find(load.space, load.from, load.bytes, BULK_UNIT, false)?;
                    let to = Location::Shared(load.to);
                    match load.reduction {
                        None => copy_bytes(self.memory, from, to, load.bytes),
                        Some(reduction) => {
                            let data = bytes_at(self.memory, from, load.bytes);
                            reduce(self.memory, &data, to, reduction);
                        }
                    }
                    self.complete_bytes(barrier, load.bytes)?;
                }
                Event::Values { to, data, reduction } => {
                    put_or_reduce(self.memory, &data, Location::Shared(to), reduction);
                    self.complete_bytes(barrier, data.len() as u32)?;
                }
                Event::Tensor { to, from } => {
                    self.load_box(&from, to)?;
                    self.complete_bytes(barrier, from.bytes())?;
                }
            }
        }
        Ok(())
    }

    /// The number of bytes of a bulk copy.
    fn bulk_size(&self, inst: &AsyncInst) -> Checked<u32> {
        let bytes = self.get(inst.size) as u32;
        if bytes.is_multiple_of(BULK_UNIT) {
            return Ok(bytes);
        }
        let detail = format!("a bulk copy of {bytes} bytes: expected a multiple of {BULK_UNIT}");
        Err(ThreadFault::new(FaultKind::IllegalInstruction, detail))
    }

    fn bulk_load(&mut self, inst: &AsyncInst, reduction: Option<Reduction>) -> Checked<()> {
        let bytes = self.bulk_size(inst)?;
        let barrier = self.barrier(inst.barrier)?;
        let to = self.shared(inst.to, bytes, BULK_UNIT, true)?;
        let (space, from) = (inst.from.space, self.address(inst.from));
        self.find(space, from, bytes, BULK_UNIT, false)?;
        self.add_event(barrier, Event::Bulk(BulkLoad { to, space, from, bytes, reduction }));
        Ok(())
    }

    fn bulk_store(&mut self, inst: &AsyncInst, reduction: Option<Reduction>) -> Checked<()> {
        let bytes = self.bulk_size(inst)?;
        let from = self.shared(inst.from, bytes, BULK_UNIT, false)?;
        let to = self.address(inst.to);
        self.find(Space::Global, to, bytes, BULK_UNIT, true)?;
        self.add_store(StoreTarget::Address(to), from, bytes, reduction);
        Ok(())
    }

    fn add_store(&mut self, to: StoreTarget, from: usize, bytes: u32, reduction: Option<Reduction>) {
        let thread = self.transfers.thread(self.linear);
        let group = thread.store_groups;
        thread.stores.push_back(BulkStore { group, to, from, bytes, reduction, data: None });
    }

    /// `st.async` and `red.async`.
    fn send(
        &mut self,
        inst: &AsyncInst,
        list: u32,
        (count, bytes): (u8, u8),
        reduction: Option<Reduction>,
    ) -> Checked<()> {
        let barrier = self.barrier(inst.barrier)?;
        let size = u32::from(count) * u32::from(bytes);
        let to = self.shared(inst.to, size, size, true)?;
        let list = list as usize;
        let registers = self.lists.get(list..list + usize::from(count)).unwrap_or(&[]);
        let mut data = Vec::with_capacity(size as usize);
        for &register in registers {
            data.extend_from_slice(&self.get(register).to_le_bytes()[..usize::from(bytes)]);
        }
        self.add_event(barrier, Event::Values { to, data, reduction });
        Ok(())
    }

    fn tensor_load(&mut self, inst: &AsyncInst, from: TensorBox) -> Checked<()> {
        let barrier = self.barrier(inst.barrier)?;
        let to = self.shared(inst.to, from.bytes(), TENSOR_ALIGNMENT, true)?;
        self.check_box(&from, false)?;
        self.add_event(barrier, Event::Tensor { to, from: Box::new(from) });
        Ok(())
    }

    fn tensor_store(&mut self, inst: &AsyncInst, to: TensorBox, op: Option<AtomicOp>) -> Checked<()> {
        let bytes = to.bytes();
        let from = self.shared(inst.from, bytes, TENSOR_ALIGNMENT, false)?;
        self.check_box(&to, true)?;
        let reduction = match op {
            Some(op) => Some(Reduction { op, ty: to.atomic_type()? }),
            None => None,
        };
        self.add_store(StoreTarget::Tensor(Box::new(to)), from, bytes, reduction);
        Ok(())
    }

    /// Lets bulk copies of a thread read their sources.
    fn read_stores(&mut self, thread: u32, reads: impl Fn(&BulkStore) -> bool) {
        for store in &mut self.transfers.thread(thread).stores {
            if store.data.is_none() && reads(store) {
                store.data = Some(bytes_at(self.memory, Location::Shared(store.from), store.bytes));
            }
        }
    }

    /// Lets the first bulk copies of a thread, which have read their sources, write.
    fn end_stores(&mut self, thread: u32, ends: impl Fn(&BulkStore) -> bool) -> Checked<()> {
        while let Some(store) = self.transfers.thread(thread).stores.pop_front_if(|store| ends(store)) {
            let data = store.data.unwrap_or_default();
            match store.to {
                StoreTarget::Address(to) => {
                    let to = self.find(Space::Global, to, store.bytes, BULK_UNIT, true)?;
                    put_or_reduce(self.memory, &data, to, store.reduction);
                }
                StoreTarget::Tensor(to) => self.store_box(&to, store.from, &data, store.reduction)?,
            }
        }
        Ok(())
    }

    /// Lets all bulk copies to global memory take place, of all threads.
    pub(super) fn end_all_stores(&mut self) -> Checked<()> {
        let mut threads: Vec<u32> = self.transfers.threads.keys().copied().collect();
        threads.sort_unstable();
        for thread in threads {
            self.read_stores(thread, |_| true);
            self.end_stores(thread, |_| true)?;
        }
        Ok(())
    }
}

/// Copies between checked locations.
pub(super) fn copy_bytes(memory: &mut ThreadMemory<'_>, from: Location, to: Location, bytes: u32) {
    let mut at = 0;
    while at < bytes as usize {
        let left = bytes as usize - at;
        let cell = match left {
            8.. => Cell::U64,
            4..8 => Cell::U32,
            _ => Cell::U8,
        };
        let value = memory.load(step(from, at), cell, 0);
        memory.store(step(to, at), cell, 0, value);
        at += cell.bytes() as usize;
    }
}

/// The content of a checked location.
pub(super) fn bytes_at(memory: &ThreadMemory<'_>, from: Location, bytes: u32) -> Vec<u8> {
    (0..bytes as usize).map(|index| memory.load(from, Cell::U8, index) as u8).collect()
}

/// Writes to a checked location, or combines with what is there.
pub(super) fn put_or_reduce(
    memory: &mut ThreadMemory<'_>,
    data: &[u8],
    to: Location,
    reduction: Option<Reduction>,
) {
    if let Some(reduction) = reduction {
        return reduce(memory, data, to, reduction);
    }
    let (words, rest) = data.as_chunks::<8>();
    for (index, word) in words.iter().enumerate() {
        memory.store(to, Cell::U64, index, u64::from_le_bytes(*word));
    }
    for (index, &byte) in rest.iter().enumerate() {
        memory.store(to, Cell::U8, words.len() * 8 + index, byte.into());
    }
}

/// Combines each element at a checked location with one of `data`.
fn reduce(memory: &mut ThreadMemory<'_>, data: &[u8], to: Location, Reduction { op, ty }: Reduction) {
    let size = ty.bytes() as usize;
    for (index, bytes) in data.chunks_exact(size).enumerate() {
        let b = bytes.iter().rev().fold(0, |word, &byte| word << 8 | u64::from(byte));
        AtomicChange::new(op, ty, b, 0).perform(memory, step(to, index * size));
    }
}
