//! One block: runs its threads in turn and releases barriers.

use super::barrier::{self, BarrierWait};
use super::grid::Grid;
use super::thread::Thread;
use super::thread_fault::ThreadFault;
use super::warp::{self, Lanes, WarpWait};
use super::worker::{BlockContext, Stop, Worker};
use crate::ptx::code::{BarrierOp, CLUSTER_BARRIER};
use crate::ptx::error::{Fault, FaultKind};

/// The instructions that a thread runs before others run: threads may wait for each other in loops.
const THREAD_SLICE: u64 = 1 << 16;

/// The instructions that a warp runs before others run, as long as its lanes release each other.
const WARP_SLICE: u64 = 1 << 18;

/// The progress of a block.
pub(super) enum Progress {
    Finished,
    /// Its share is used up, or it waits for the grids in front.
    Paused,
}

/// The state of a thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Not begun, without storage yet.
    NotBegun,
    Ready,
    /// Waits at [`Thread::barrier`].
    Barrier,
    /// Waits for [`Thread::lanes`].
    Warp,
    /// Waits for the grids in front.
    Grid,
    Ended,
}

/// The state of a block.
#[derive(Default)]
pub(super) struct Block {
    index: [u32; 3],
    shared: Vec<u8>,
    states: Vec<State>,
    threads: Vec<Option<Box<Thread>>>,
    /// Storage of threads that have ended.
    #[allow(clippy::vec_box, reason = "threads move between the lists")]
    spare: Vec<Box<Thread>>,
    /// Threads that arrived at a barrier without waiting: barrier, count, thread.
    arrived: Vec<(u32, Option<u32>, usize)>,
    live: u32,
}

type Result<T> = std::result::Result<T, Box<Fault>>;

impl Block {
    /// Resets it to the block `index`, not begun.
    pub(super) fn reset(&mut self, grid: &Grid<'_>, index: [u32; 3]) {
        self.index = index;
        self.shared.clear();
        self.shared.resize(grid.shared_bytes, 0);
        self.states.clear();
        self.states.resize(grid.threads as usize, State::NotBegun);
        self.spare.extend(self.threads.drain(..).flatten());
        self.threads.resize_with(grid.threads as usize, || None);
        self.arrived.clear();
        self.live = grid.threads;
    }

    /// Runs the block for about `share` instructions at most.
    pub(super) fn run(&mut self, worker: &mut Worker<'_>, share: u64) -> Result<Progress> {
        let end = worker.steps.saturating_add(share);
        loop {
            let mut is_idle = true;
            for first in (0..self.states.len()).step_by(32) {
                is_idle &= self.run_warp(worker, first, end)?;
            }
            if self.live == 0 {
                return Ok(Progress::Finished);
            }
            if is_idle && !self.release_barriers() {
                if self.states.iter().any(|state| matches!(state, State::Grid)) {
                    return Ok(Progress::Paused);
                }
                return Err(self.deadlock(worker));
            }
            if worker.steps >= end {
                return Ok(Progress::Paused);
            }
        }
    }

    /// Ends the waits for the grids in front.
    pub(super) fn release_grid_waits(&mut self) {
        for state in &mut self.states {
            if matches!(state, State::Grid) {
                *state = State::Ready;
            }
        }
    }

    /// Runs every lane of the warp, repeatedly as long as lanes release each other, but not for
    /// ever: lanes may wait for other warps in a loop, and the grid may be stopped. True if no lane
    /// can run.
    fn run_warp(&mut self, worker: &mut Worker<'_>, first: usize, end: u64) -> Result<bool> {
        let last = (first + 32).min(self.states.len());
        let end = worker.steps.saturating_add(WARP_SLICE).min(end);
        loop {
            let mut is_idle = true;
            for number in first..last {
                while matches!(self.states.get(number), Some(State::NotBegun | State::Ready)) {
                    if self.run_thread(worker, number)? {
                        is_idle = false;
                        break;
                    }
                }
            }
            if !self.release_lanes(first, last, is_idle) {
                return Ok(is_idle);
            }
            if worker.steps >= end {
                return Ok(false);
            }
        }
    }

    /// True if the thread could still run.
    fn run_thread(&mut self, worker: &mut Worker<'_>, number: usize) -> Result<bool> {
        let grid = worker.grid;
        let Some(slot) = self.threads.get_mut(number) else { return Ok(false) };
        let thread = slot.get_or_insert_with(|| {
            let mut thread = self.spare.pop().unwrap_or_default();
            thread.reset(grid, number as u32);
            thread
        });
        let mut context = BlockContext { shared: &mut self.shared, block: self.index };
        let stop = match worker.run(thread, &mut context, THREAD_SLICE) {
            Ok(stop) => stop,
            Err(thread_fault) => return Err(self.fault(worker, number, *thread_fault)),
        };
        let mut can_run = false;
        let state = match stop {
            Stop::Ended => {
                self.live -= 1;
                self.spare.extend(slot.take());
                State::Ended
            }
            Stop::Yielded => {
                can_run = true;
                State::Ready
            }
            Stop::Barrier => match thread.barrier {
                Some(wait) if wait.op == BarrierOp::Arrive => {
                    self.arrived.push((wait.id, wait.count, number));
                    State::Ready
                }
                _ => State::Barrier,
            },
            Stop::Warp => State::Warp,
            Stop::Grid => State::Grid,
        };
        if let Some(slot) = self.states.get_mut(number) {
            *slot = state;
        }
        Ok(can_run)
    }

    /// Releases a complete group of lanes, if there is one.
    fn release_lanes(&mut self, first: usize, last: usize, is_idle: bool) -> bool {
        let states = self.states.get(first..last).unwrap_or(&[]);
        if !states.contains(&State::Warp) {
            return false;
        }
        let mut lanes: Lanes = [None; 32];
        let mut live = 0_u32;
        for (lane, state) in states.iter().enumerate() {
            if *state != State::Ended {
                live |= 1 << lane;
            }
            if *state == State::Warp
                && let Some(Some(thread)) = self.threads.get(first + lane)
            {
                lanes[lane] = thread.lanes;
            }
        }
        let Some(group) = warp::complete_group(&lanes, live, is_idle) else { return false };
        for (lane, wait) in lanes.iter().enumerate() {
            let Some(wait) = wait.as_ref().filter(|_| (group >> lane) & 1 == 1) else { continue };
            let writes = warp::outcome(&lanes, group, lane as u32, wait);
            if let Some(Some(thread)) = self.threads.get_mut(first + lane) {
                for (register, value) in writes {
                    thread.set(register, value);
                }
            }
            if let Some(state) = self.states.get_mut(first + lane) {
                *state = State::Ready;
            }
        }
        true
    }

    /// The barrier where a thread waits.
    fn barrier(&self, number: usize) -> Option<BarrierWait> {
        let thread = self.threads.get(number)?.as_ref()?;
        thread.barrier.filter(|_| self.states.get(number) == Some(&State::Barrier))
    }

    /// Releases every barrier that enough threads have reached. False if there is none.
    fn release_barriers(&mut self) -> bool {
        let waits = (0..self.states.len()).filter_map(|number| Some((number, self.barrier(number)?)));
        let all: Vec<(usize, BarrierWait)> = waits.collect();
        let ids = all.iter().fold(0_u32, |ids, (_, wait)| ids | (1 << wait.id));
        let mut any = false;
        for id in (0..=CLUSTER_BARRIER).filter(|id| (ids >> id) & 1 == 1) {
            let waiting: Vec<(usize, BarrierWait)> =
                all.iter().filter(|(_, wait)| wait.id == id).copied().collect();
            let Some(&(_, first)) = waiting.first() else { continue };
            if !self.is_full(&waiting, first) {
                continue;
            }
            any = true;
            let truths = waiting.iter().map(|(_, wait)| wait.is_true);
            let values = [BarrierOp::RedPopc, BarrierOp::RedAnd, BarrierOp::RedOr]
                .map(|op| (op, barrier::result(op, truths.clone())));
            for &(number, wait) in &waiting {
                let value = values.iter().find(|(op, _)| *op == wait.op).map_or(0, |(_, value)| *value);
                if let Some(Some(thread)) = self.threads.get_mut(number) {
                    thread.set(wait.d, value);
                }
                if let Some(state) = self.states.get_mut(number) {
                    *state = State::Ready;
                }
            }
            self.arrived.retain(|&(at, _, _)| at != id);
        }
        any
    }

    /// Whether enough threads have reached a barrier. Threads count by warps: lanes that have ended
    /// or do not exist count with the rest of their warp.
    fn is_full(&self, waiting: &[(usize, BarrierWait)], first: BarrierWait) -> bool {
        let arrived = self.arrived.iter().filter(|(id, _, _)| *id == first.id);
        let Some(count) = first.count else {
            return waiting.len() + arrived.count() >= self.live as usize;
        };
        let mut missing = [0_u32; 32];
        let mut present = [false; 32];
        for (number, state) in self.states.iter().enumerate() {
            if !matches!(state, State::Ended) {
                missing[number / 32 % 32] += 1;
            }
        }
        for number in waiting.iter().map(|(number, _)| *number).chain(arrived.map(|&(_, _, number)| number)) {
            present[number / 32 % 32] = true;
            missing[number / 32 % 32] = missing[number / 32 % 32].saturating_sub(1);
        }
        let there: u32 = present
            .iter()
            .zip(missing)
            .filter(|(present, _)| **present)
            .map(|(_, missing)| 32 - missing.min(32))
            .sum();
        there >= count
    }

    /// The fault of a deadlock, which says what the threads wait for.
    #[cold]
    fn deadlock(&self, worker: &Worker<'_>) -> Box<Fault> {
        let mut at_barrier = None;
        let mut at_warp = None;
        let mut counts = (0, 0);
        for (number, state) in self.states.iter().enumerate() {
            let thread = self.threads.get(number).and_then(Option::as_deref);
            match state {
                State::Barrier => {
                    let id = thread.and_then(|thread| thread.barrier).map_or(0, |wait| wait.id);
                    at_barrier.get_or_insert((number, id));
                    counts.0 += 1;
                }
                State::Warp => {
                    let wait = thread.and_then(|thread| thread.lanes.as_ref());
                    at_warp.get_or_insert((number, wait.map_or_else(String::new, WarpWait::describe)));
                    counts.1 += 1;
                }
                _ => {}
            }
        }
        let ended = self.states.len() - self.live as usize;
        let mut detail = format!("no thread can go on: {} wait at barriers", counts.0);
        if let Some((_, id)) = at_barrier {
            detail.push_str(&format!(" (first at barrier {id})"));
        }
        detail.push_str(&format!(", {} for lanes of their warp", counts.1));
        if let Some((number, what)) = &at_warp {
            detail.push_str(&format!(" (thread {number} {what})"));
        }
        detail.push_str(&format!(", {ended} have ended"));
        let number = at_warp.map(|(number, _)| number).or(at_barrier.map(|(number, _)| number)).unwrap_or(0);
        self.fault(worker, number, *ThreadFault::new(FaultKind::BarrierDivergence, detail))
    }

    /// The fault of a cancelled grid.
    #[cold]
    pub(super) fn cancelled(&self, worker: &Worker<'_>) -> Box<Fault> {
        self.fault(worker, 0, *ThreadFault::new(FaultKind::Cancelled, ""))
    }

    /// Adds the position to a fault.
    #[cold]
    fn fault(&self, worker: &Worker<'_>, number: usize, thread_fault: ThreadFault) -> Box<Fault> {
        let grid = worker.grid;
        let thread = self.threads.get(number).and_then(Option::as_deref);
        let line = thread.and_then(|thread| {
            let function = grid.program.functions.get(thread.function as usize)?;
            function.lines.get(thread.pc.checked_sub(1)?).copied()
        });
        let [x, y, _] = grid.launch.block.map(|dim| dim as usize);
        Box::new(Fault {
            kind: thread_fault.kind,
            kernel: grid.launch.kernel.name.clone(),
            line: line.unwrap_or(0),
            block: self.index,
            thread: [number % x, number / x % y, number / (x * y)].map(|index| index as u32),
            address: thread_fault.access.map(|(address, _, _)| address),
            size: thread_fault.access.map(|(_, size, _)| size),
            write: thread_fault.access.is_some_and(|(_, _, write)| write),
            detail: thread_fault.detail,
        })
    }
}
