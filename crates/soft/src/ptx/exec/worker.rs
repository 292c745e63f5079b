//! A host thread that runs blocks.

use super::access::{Location, Spans, ThreadMemory};
use super::grid::Grid;
use super::native::NativeState;
use super::thread_fault::{Checked, ThreadFault};
use crate::ptx::code::Space;

/// A host thread that runs blocks of a grid.
pub(super) struct Worker<'a> {
    pub(super) grid: &'a Grid<'a>,
    pub(super) spans: Spans,
    /// Instructions executed so far.
    pub(super) steps: u64,
    /// Whether grids in front have not ended.
    pub(super) is_early: bool,
    pub(super) native: NativeState<'a>,
}

/// Why a thread stopped. Small, since each thread returns one; the waits are in the thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stop {
    Ended,
    Yielded,
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
    pub(super) block: [u32; 3],
}

impl<'a> Worker<'a> {
    pub(super) fn new(grid: &'a Grid<'a>) -> Self {
        Worker { grid, spans: Spans::new(), steps: 0, is_early: false, native: NativeState::new(grid) }
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
        if space != Space::Global
            && let Some(location) = thread_memory.location(space, address, bytes, write)?
        {
            return Ok(location);
        }
        self.spans.host(self.grid.memory, pc, address, bytes, write).map(Location::Host)
    }
}
