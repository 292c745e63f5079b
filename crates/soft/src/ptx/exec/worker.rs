//! A host thread that runs blocks.

use std::time::Instant;

use super::access::{Location, Spans, ThreadMemory};
use super::barrier::BarrierWait;
use super::grid::Grid;
use super::texture::Objects;
use super::thread_fault::{Checked, ThreadFault};
use super::transfer::Transfers;
use super::warp::WarpWait;
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
}

/// Why a thread stopped.
pub(super) enum Stop {
    Ended,
    Yielded,
    /// Only waits for other threads, in a loop.
    Spinning,
    Sleeping(Instant),
    Barrier(BarrierWait),
    Warp(WarpWait),
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
        Worker { grid, spans: Spans::new(), objects: Objects::default(), steps: 0, is_early: false }
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
        self.spans.host(self.grid, pc, address, bytes, write).map(Location::Host)
    }
}
