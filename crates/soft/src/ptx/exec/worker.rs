//! A host thread that runs blocks.

use super::access::{Location, Spans, ThreadMemory};
use super::check::{BlockChecks, GridChecks};
use super::grid::Grid;
use super::native::NativeState;
use super::texture::Objects;
use super::thread_fault::{Checked, ThreadFault};
use super::transfer::Transfers;
use crate::ptx::code::Space;

/// A host thread that runs blocks of a grid.
pub(super) struct Worker<'a> {
    pub(super) grid: &'a Grid<'a>,
    pub(super) spans: Spans,
    pub(super) objects: Objects,
    /// Instructions executed so far.
    pub(super) steps: u64,
    /// Whether grids in front have not ended.
    pub(super) is_early: bool,
    pub(super) native: NativeState<'a>,
    /// What the checks know of the grid, if there are any.
    pub(super) checks: Option<Box<GridChecks>>,
    /// What the checks know of the block that runs.
    pub(super) block_checks: Option<Box<BlockChecks>>,
}

/// Why a thread stopped. Small, since each thread returns one; the waits are in the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Ended,
    Yielded,
    /// Only waits for other threads, in a loop.
    Spinning,
    /// Sleeps until `Thread::wakes_at`.
    Sleeping,
    /// Waits at `Thread::barrier`.
    Barrier,
    /// Waits for `Thread::lanes`.
    Warp,
    /// Waits for the grids in front.
    Grid,
}

/// The parts of a block that a thread uses.
pub(super) struct BlockContext<'a> {
    pub(super) shared: &'a mut [u8],
    pub(super) transfers: &'a mut Transfers,
    pub(super) block: [u32; 3],
}

impl<'a> Worker<'a> {
    pub(super) fn new(grid: &'a Grid<'a>) -> Self {
        let checks = grid.checks.any().then(Box::default);
        let (spans, objects, native) = (Spans::new(), Objects::default(), NativeState::new(grid));
        Worker { grid, spans, objects, steps: 0, is_early: false, native, checks, block_checks: None }
    }

    /// A worker that runs before the grids in front have ended.
    pub(super) fn early(grid: &'a Grid<'a>) -> Self {
        Worker { is_early: true, ..Worker::new(grid) }
    }

    /// Checks alignment and bounds of an access.
    #[inline(always)]
    #[allow(clippy::too_many_arguments, reason = "hot path: a struct would be built for every access")]
    pub(super) fn find(
        &mut self,
        thread_memory: &ThreadMemory<'_>,
        pc: usize,
        space: Space,
        address: u64,
        bytes: u32,
        align: u32,
        write: bool,
    ) -> Checked<Location> {
        if address & u64::from(align - 1) != 0 {
            return Err(ThreadFault::misaligned(address, bytes, write));
        }
        if space != Space::Global {
            match thread_memory.location(space, address, bytes, write) {
                Ok(Some(location)) => return Ok(location),
                Ok(None) => {}
                Err(fault) => return self.check_shared(thread_memory, pc, address, bytes, write, fault),
            }
        }
        match self.spans.cached(self.grid.memory, pc, address, bytes, write) {
            Some(host) => Ok(Location::Host(host)),
            None => self.find_global(thread_memory, pc, address, bytes, write),
        }
    }

    /// Finds and checks an access to global memory that is not in the cache.
    #[cold]
    fn find_global(
        &mut self,
        thread_memory: &ThreadMemory<'_>,
        pc: usize,
        address: u64,
        bytes: u32,
        write: bool,
    ) -> Checked<Location> {
        let is_checked = self.grid.checks.global_races;
        let host = self.spans.miss(self.grid, pc, address, bytes, write, is_checked)?;
        if is_checked {
            self.check_global(thread_memory, pc, address, bytes, write, host)?;
        }
        Ok(Location::Host(host))
    }
}
