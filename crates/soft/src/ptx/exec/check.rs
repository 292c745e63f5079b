//! Checks of launches beyond the validity of their accesses: reads of shared memory that nothing
//! has written, and races.
//!
//! While a launch is checked, no access takes the fast path. [`Worker::find`] believes that shared
//! memory is empty and that no allocation is cached, and comes here. So an instruction is checked
//! if it looks its memory up there, and is atomic if it sets `Spans::is_atomic` meanwhile. Barriers
//! of the block, `bar.warp.sync` and fences order threads ([`clock`]). Every eight bytes of memory
//! remember who accessed them ([`shadow`]).

mod clock;
mod race;
mod shadow;

use super::access::{Location, ThreadMemory};
use super::grid::{Grid, block_number};
use super::thread_fault::{Checked, ThreadFault};
use super::worker::Worker;
use crate::ptx::code::Cell;
use crate::ptx::error::FaultKind;
use clock::BlockClocks;
use race::Guess;
use shadow::Shadow;

/// What the checks know of a grid.
#[derive(Default)]
pub(super) struct GridChecks {
    /// The accesses to global memory.
    global: Shadow,
    guesses: Vec<Guess>,
}

impl GridChecks {
    /// A thread comes to a barrier or ends: its guesses were none.
    pub(super) fn end_guesses(&mut self, checks: &BlockChecks, thread: usize) -> Checked<()> {
        let of = |guess: &Guess| (guess.block, guess.thread as usize) == (checks.number, thread);
        match self.guesses.iter().position(of) {
            Some(index) => Err(self.guesses.swap_remove(index).fault),
            None => Ok(()),
        }
    }
}

/// What the checks know of a block.
pub(super) struct BlockChecks {
    number: u64,
    /// The running function and thread.
    running: (u32, u32),
    /// Whether each byte of shared memory has been written, if that is checked.
    written: Option<Vec<bool>>,
    /// The accesses to shared memory, if its races are checked.
    shared: Option<Shadow>,
    /// The order of the threads, if races are checked.
    clocks: Option<BlockClocks>,
    unsettled: Option<Unsettled>,
}

/// A write that races with another one. It is a fault if it changes the memory: threads that write
/// the same value do no harm in practice.
struct Unsettled {
    fault: Box<ThreadFault>,
    location: Location,
    before: Vec<u8>,
}

impl BlockChecks {
    /// The checks of a block that begins; `None` without any.
    pub(super) fn new(grid: &Grid<'_>, index: [u32; 3]) -> Option<Box<BlockChecks>> {
        let checks = grid.checks;
        let number = block_number(grid.launch, index);
        let has_clocks = checks.shared_races || checks.global_races;
        checks.any().then(|| {
            Box::new(BlockChecks {
                number,
                running: (0, 0),
                written: checks.unwritten_shared.then(|| vec![false; grid.shared_bytes]),
                shared: checks.shared_races.then(Shadow::default),
                clocks: has_clocks.then(|| BlockClocks::new(number, grid.threads as usize)),
                unsettled: None,
            })
        })
    }

    /// The threads meet at a barrier, with those that arrived at it before.
    pub(super) fn meet(&mut self, barrier: u32, threads: impl Iterator<Item = usize> + Clone) {
        if let Some(clocks) = &mut self.clocks {
            clocks.meet(Some(barrier), threads);
        }
    }

    /// Lanes of a warp meet.
    pub(super) fn meet_lanes(&mut self, threads: impl Iterator<Item = usize> + Clone) {
        if let Some(clocks) = &mut self.clocks {
            clocks.meet(None, threads);
        }
    }

    /// A thread arrives at a barrier and does not wait.
    pub(super) fn arrive(&mut self, barrier: u32, thread: usize) {
        if let Some(clocks) = &mut self.clocks {
            clocks.arrive(barrier, thread);
        }
    }

    /// A thread ends. It counts as one that arrives at every barrier from now on.
    pub(super) fn end(&mut self, thread: usize) {
        if let Some(clocks) = &mut self.clocks {
            clocks.end(thread);
        }
    }

    /// Decides about the last write, now that it is made.
    pub(super) fn settle(&mut self, memory: &ThreadMemory<'_>) -> Checked<()> {
        let Some(last) = self.unsettled.take() else { return Ok(()) };
        let now = content(memory, last.location, last.before.len());
        if now == last.before { Ok(()) } else { Err(last.fault) }
    }

    /// The first byte of a read that no thread has written.
    fn first_unwritten(&mut self, offset: u64, bytes: u32, reads: bool, write: bool) -> Option<u64> {
        let range = offset as usize..offset as usize + bytes as usize;
        let bytes = self.written.as_mut()?.get_mut(range)?;
        let missing = bytes.iter().position(|is_written| !is_written).filter(|_| reads);
        if write && missing.is_none() {
            bytes.fill(true);
        }
        missing.map(|index| offset + index as u64)
    }
}

fn content(memory: &ThreadMemory<'_>, location: Location, len: usize) -> Vec<u8> {
    (0..len).map(|index| memory.load(location, Cell::U8, index) as u8).collect()
}

/// An access that is being checked.
#[derive(Clone, Copy)]
struct Access {
    /// The program counter behind the instruction.
    pc: usize,
    /// As the program wrote it, for messages.
    address: u64,
    /// Where the access is in the shadow.
    place: u64,
    bytes: u32,
    write: bool,
    is_atomic: bool,
    location: Location,
}

impl Access {
    fn is_shared(&self) -> bool {
        matches!(self.location, Location::Shared(_))
    }
}

impl Worker<'_> {
    /// Notes which function of which thread runs. Returns how much of `shared` bytes of shared
    /// memory is accessed without checks.
    #[inline]
    pub(super) fn begin_frame(&mut self, function: u32, thread: u32, shared: usize) -> usize {
        let Some(checks) = &mut self.block_checks else { return shared };
        checks.running = (function, thread);
        if checks.written.is_some() || checks.shared.is_some() { 0 } else { shared }
    }

    /// Notes a fence of the running thread.
    pub(super) fn note_fence(&mut self) {
        if let Some(checks) = &mut self.block_checks
            && let Some(clocks) = &mut checks.clocks
        {
            clocks.fence(checks.running.1 as usize);
        }
    }

    /// Checks an access to shared memory. `found` is why it was not done at once, perhaps a fault.
    #[cold]
    pub(super) fn check_shared(
        &mut self,
        memory: &ThreadMemory<'_>,
        pc: usize,
        address: u64,
        bytes: u32,
        write: bool,
        found: Box<ThreadFault>,
    ) -> Checked<Location> {
        let Some(place) = found.shared.filter(|_| found.is_unchecked()) else { return Err(found) };
        let location = Location::Shared(place as usize);
        let Some(mut checks) = self.block_checks.take() else { return Ok(location) };
        let is_atomic = self.spans.is_atomic;
        let access = Access { pc, address, place, bytes, write, is_atomic, location };
        let result = self.checked_shared(&mut checks, memory, access);
        self.block_checks = Some(checks);
        result.map(|()| location)
    }

    fn checked_shared(
        &mut self,
        checks: &mut BlockChecks,
        memory: &ThreadMemory<'_>,
        access: Access,
    ) -> Checked<()> {
        checks.settle(memory)?;
        let Access { address, place, bytes, write, is_atomic, .. } = access;
        if let Some(missing) = checks.first_unwritten(place, bytes, !write || is_atomic, write) {
            let behind = missing - place;
            let detail = match behind {
                0 => "no thread of the block has written there".to_owned(),
                _ => format!("no thread of the block has written its byte {behind}"),
            };
            let mut fault = ThreadFault::illegal(address, bytes, write, detail);
            (fault.kind, fault.shared) = (FaultKind::UnwrittenShared, Some(missing));
            return Err(fault);
        }
        let (Some(mut shadow), Some(mut grid)) = (checks.shared.take(), self.checks.take()) else {
            return Ok(());
        };
        let result = self.check_races(checks, &mut shadow, &mut grid.guesses, memory, access);
        (checks.shared, self.checks) = (Some(shadow), Some(grid));
        result
    }

    /// Checks an access to global memory for races.
    pub(super) fn check_global(
        &mut self,
        memory: &ThreadMemory<'_>,
        pc: usize,
        address: u64,
        bytes: u32,
        write: bool,
        host: *mut u8,
    ) -> Checked<()> {
        let (Some(mut checks), Some(mut grid)) = (self.block_checks.take(), self.checks.take()) else {
            return Ok(());
        };
        let (is_atomic, location) = (self.spans.is_atomic, Location::Host(host));
        let access = Access { pc, address, place: address, bytes, write, is_atomic, location };
        let GridChecks { global, guesses } = &mut *grid;
        let result = checks
            .settle(memory)
            .and_then(|()| self.check_races(&mut checks, global, guesses, memory, access));
        (self.block_checks, self.checks) = (Some(checks), Some(grid));
        result
    }
}
