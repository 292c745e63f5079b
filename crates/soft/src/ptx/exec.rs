//! Running grids of blocks.
//!
//! A block runs on one host thread: its threads are coroutines that run one after the other until
//! each waits at a barrier or for the lanes of its warp. Blocks of a large grid are spread over
//! several host threads.

mod access;
mod atomic;
mod barrier;
mod block;
mod call;
mod check;
mod deadlock;
mod early;
mod grid;
mod grid_state;
mod interpret;
mod matrix;
mod mbarrier;
mod native;
mod polls;
mod position;
mod print;
mod print_float;
mod special;
mod tensor;
mod texture;
mod thread;
mod thread_fault;
mod transfer;
mod warp;
mod wgmma;
mod worker;

use crate::sync::{into_inner, lock};
use std::collections::VecDeque;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::error::Fault;
use super::image::Launch;
use super::memory::DeviceMemory;
use block::{Block, Progress};
pub(crate) use early::{BegunGrid, begin};
pub(crate) use tensor::{MAP_OF_COLUMNS, MAP_OF_TILES};
use worker::Worker;

/// The instructions that a block runs before other blocks run: blocks may wait for each other.
const BLOCK_SLICE: u64 = 1 << 22;
/// The instructions after which a grid with blocks left gets more host threads.
const WORTH_SPREADING: u64 = 1 << 21;
/// The most unfinished blocks of a host thread.
const MOST_ACTIVE: usize = 1024;
/// The longest rest of a host thread whose blocks all sleep: others may wake them.
const LONGEST_REST: Duration = Duration::from_micros(100);
/// So many turns of each block without progress are a long wait.
const LONG_STALL: usize = 1000;
/// The most host threads of a grid.
const MOST_WORKERS: usize = 16;

/// The blocks that have not begun, and whether to stop.
struct Queue {
    next: AtomicU64,
    total: u64,
    stop: AtomicBool,
    fault: Mutex<Option<Fault>>,
}

/// Runs a grid to completion.
#[cfg(test)]
pub(crate) fn run(launch: &Launch<'_>, memory: &dyn DeviceMemory) -> Result<(), Fault> {
    finish(launch, memory, BegunGrid::default())
}

/// Runs the rest of a grid that has begun, after the grids in front have ended.
///
/// # Errors
/// Returns the first fault of any thread. The grid has stopped, and its effects so far stay in
/// memory.
pub(crate) fn finish(launch: &Launch<'_>, memory: &dyn DeviceMemory, begun: BegunGrid) -> Result<(), Fault> {
    let BegunGrid { next, blocks: mut active, state, checks, .. } = begun;
    let (grid, total) = grid::prepare(launch, memory, &state)?;
    active.iter_mut().for_each(Block::release_grid_waits);
    let queue =
        Queue { next: AtomicU64::new(next), total, stop: AtomicBool::new(false), fault: Mutex::new(None) };
    let mut worker = Worker::new(&grid);
    worker.checks = checks.or(worker.checks);
    let mut spare = None;
    work(&mut worker, &queue, &mut active, &mut spare, WORTH_SPREADING);
    let left = total.saturating_sub(queue.next.load(Ordering::Relaxed));
    let hosts = std::thread::available_parallelism().map_or(1, usize::from).min(MOST_WORKERS);
    // One host thread checks the races between blocks: it sees every access in order.
    let most = if grid.checks.global_races { 0 } else { hosts - 1 };
    let helpers = usize::try_from(left).unwrap_or(usize::MAX).min(most);
    if helpers == 0 || queue.stop.load(Ordering::Relaxed) {
        work(&mut worker, &queue, &mut active, &mut spare, u64::MAX);
    } else {
        std::thread::scope(|scope| {
            for _ in 0..helpers {
                // Without more threads the grid takes longer.
                let _ = std::thread::Builder::new().name("cuda-soft grid".into()).spawn_scoped(scope, || {
                    let mut worker = Worker::new(&grid);
                    work(&mut worker, &queue, &mut VecDeque::new(), &mut None, u64::MAX);
                });
            }
            work(&mut worker, &queue, &mut active, &mut spare, u64::MAX);
        });
    }
    let fault = into_inner(queue.fault);
    fault.map_or(Ok(()), Err)
}

/// Runs blocks until none is left or this host thread has executed `limit` instructions.
fn work(
    worker: &mut Worker<'_>,
    queue: &Queue,
    active: &mut VecDeque<Block>,
    spare: &mut Option<Block>,
    limit: u64,
) {
    let mut prefers_new = active.is_empty();
    // Blocks in a row of which no thread could go on.
    let mut stalled = 0;
    worker.count_native();
    while !queue.stop.load(Ordering::Relaxed) && worker.steps < limit {
        // Blocks that all wait may wait for one that has not begun.
        let has_room = active.len() < MOST_ACTIVE || stalled >= active.len();
        let fresh = if (prefers_new && has_room) || active.is_empty() {
            next_block(worker, queue, spare)
        } else {
            None
        };
        let Some(mut block) = fresh.or_else(|| active.pop_front()) else { return };
        let result = block.run(worker, BLOCK_SLICE);
        // Behind the block: a grid of one short block counts, too.
        worker.count_native();
        let result = result.and_then(|progress| {
            if worker.grid.memory.cancelled() { Err(block.cancelled(worker)) } else { Ok(progress) }
        });
        match result {
            Ok(Progress::Finished) => {
                stalled = 0;
                *spare = Some(block);
                prefers_new = active.is_empty();
            }
            Ok(Progress::Paused) => {
                stalled = 0;
                active.push_back(block);
                prefers_new = true;
            }
            Ok(Progress::Stalled(until)) => {
                stalled += 1;
                active.push_back(block);
                prefers_new = true;
                if stalled > active.len() {
                    rest(until, stalled > LONG_STALL * active.len());
                }
            }
            Err(fault) => {
                let mut first = lock(&queue.fault);
                first.get_or_insert(*fault);
                queue.stop.store(true, Ordering::Relaxed);
            }
        }
    }
}

/// Leaves the processor to others for a moment, while all blocks of a host thread wait.
fn rest(until: Option<Instant>, is_long: bool) {
    match until.map(|until| until.saturating_duration_since(Instant::now())) {
        Some(left) if !left.is_zero() => std::thread::sleep(left.min(LONGEST_REST)),
        // What they wait for may be the host's.
        _ if is_long => std::thread::sleep(LONGEST_REST),
        _ => std::thread::yield_now(),
    }
}

/// The next block of the grid. It reuses the storage of a finished one.
fn next_block(worker: &Worker<'_>, queue: &Queue, spare: &mut Option<Block>) -> Option<Block> {
    let number = queue.next.load(Ordering::Relaxed);
    if number >= queue.total {
        return None;
    }
    let number = queue.next.fetch_add(1, Ordering::Relaxed);
    if number >= queue.total {
        return None;
    }
    let mut block = spare.take().unwrap_or_default();
    block.reset(worker.grid, grid::block_index(worker.grid.launch, number));
    Some(block)
}
