//! Grids that begin before the grids in front of them have ended.

use std::collections::VecDeque;
use std::sync::Arc;

use super::block::{Block, Progress};
use super::check::GridChecks;
use super::grid;
use super::grid_state::GridState;
use super::worker::Worker;
use crate::ptx::error::Fault;
use crate::ptx::image::Launch;
use crate::ptx::memory::DeviceMemory;

/// The instructions of a grid before the grids in front have ended.
const EARLY_STEPS: u64 = 1 << 22;

/// A grid of which some blocks may have begun while the grids in front had not ended.
#[derive(Default)]
pub(crate) struct BegunGrid {
    /// How many blocks have begun.
    pub(super) next: u64,
    total: u64,
    /// The blocks that have begun and not finished.
    pub(super) blocks: VecDeque<Block>,
    /// The threads of these blocks.
    threads: u64,
    pub(super) state: Arc<GridState>,
    pub(super) checks: Option<Box<GridChecks>>,
}

impl BegunGrid {
    /// Whether every block has finished.
    pub(crate) fn has_ended(&self) -> bool {
        self.total > 0 && self.next >= self.total && self.blocks.is_empty()
    }

    /// The number of threads that it holds.
    pub(crate) fn threads(&self) -> u64 {
        self.threads
    }
}

/// Begins a grid while the grids in front have not ended: runs its blocks one by one, each until
/// its threads wait for them. Stops when `most_threads` wait, or after [`EARLY_STEPS`]
/// instructions: threads may wait for the grids in front in loops.
///
/// # Errors
/// Returns the first fault of any thread, where its effects so far stay in memory.
pub(crate) fn begin(
    launch: &Launch<'_>,
    memory: &dyn DeviceMemory,
    most_threads: u64,
) -> Result<BegunGrid, Fault> {
    let state = Arc::<GridState>::default();
    let (grid, total) = grid::prepare(launch, memory, &state)?;
    let mut begun = BegunGrid { total, state: Arc::clone(&state), ..BegunGrid::default() };
    let mut worker = Worker::early(&grid);
    let mut spare: Option<Block> = None;
    worker.count_native();
    while begun.next < total && begun.threads < most_threads && worker.steps < EARLY_STEPS {
        let mut block = spare.take().unwrap_or_default();
        block.reset(&grid, grid::block_index(launch, begun.next));
        begun.next += 1;
        let progress = block.run(&mut worker, EARLY_STEPS).map_err(|fault| *fault)?;
        worker.count_native();
        if memory.cancelled() {
            return Err(*block.cancelled(&worker));
        }
        match progress {
            Progress::Finished => spare = Some(block),
            Progress::Paused | Progress::Stalled(_) => {
                begun.threads += u64::from(grid.threads);
                begun.blocks.push_back(block);
            }
        }
    }
    begun.checks = worker.checks;
    Ok(begun)
}
