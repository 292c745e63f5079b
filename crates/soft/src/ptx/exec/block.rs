//! One block: runs its threads in turn and releases barriers.

use std::time::Instant;

use super::access::ThreadMemory;
use super::barrier::{self, BarrierWait};
use super::check::BlockChecks;
use super::deadlock::Waits;
use super::grid::Grid;
use super::matrix::{self, WarpLanes};
use super::position::{Position, shared_variable};
use super::thread::Thread;
use super::thread_fault::{Checked, ThreadFault};
use super::transfer::{AsyncThread, Transfers};
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
    /// No thread could go on: all wait for other blocks, or sleep until then.
    Stalled(Option<Instant>),
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
    /// Sleeps until [`Thread::wakes_at`].
    Sleeping,
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
    transfers: Transfers,
    /// Whether a thread has done more than to wait in a loop since this was reset.
    has_advanced: bool,
    /// Whether threads may sleep.
    has_sleepers: bool,
    checks: Option<Box<BlockChecks>>,
}

type Result<T> = std::result::Result<T, Box<Fault>>;

impl Block {
    /// Resets it to the block `index`, not begun.
    pub(super) fn reset(&mut self, grid: &Grid<'_>, index: [u32; 3]) {
        self.index = index;
        self.shared.clear();
        self.shared.resize(grid.whole_shared_bytes, 0);
        self.states.clear();
        self.states.resize(grid.threads as usize, State::NotBegun);
        self.spare.extend(self.threads.drain(..).flatten());
        self.threads.resize_with(grid.threads as usize, || None);
        self.arrived.clear();
        self.transfers.clear();
        self.live = grid.threads;
        self.has_sleepers = false;
        self.checks = BlockChecks::new(grid, index);
    }

    /// Runs the block for about `share` instructions at most.
    pub(super) fn run(&mut self, worker: &mut Worker<'_>, share: u64) -> Result<Progress> {
        let end = worker.steps.saturating_add(share);
        loop {
            let mut is_idle = true;
            self.has_advanced = false;
            let asleep = self.wake();
            for first in (0..self.states.len()).step_by(32) {
                is_idle &= self.run_warp(worker, first, end)?;
            }
            if self.live == 0 {
                self.end_transfers(worker)?;
                return Ok(Progress::Finished);
            }
            // Threads that wait in loops may wait for those at a barrier.
            if !self.has_advanced && !self.release_barriers() {
                if !is_idle {
                    return Ok(Progress::Stalled(None));
                }
                if asleep.is_some() {
                    return Ok(Progress::Stalled(asleep));
                }
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

    /// Lets the copies take place that nothing waited for.
    fn end_transfers(&mut self, worker: &mut Worker<'_>) -> Result<()> {
        let mut memory = ThreadMemory::unchecked(&mut self.shared, worker.grid.launch.params);
        let mut thread = AsyncThread {
            worker,
            memory: &mut memory,
            transfers: &mut self.transfers,
            registers: &mut [],
            lists: &[],
            linear: 0,
            pc: 0,
        };
        let result = thread.end_all_stores();
        result.map_err(|thread_fault| self.fault(worker, 0, *thread_fault))
    }

    /// Wakes the threads whose time has come; the time of the next one.
    fn wake(&mut self) -> Option<Instant> {
        if !self.has_sleepers {
            return None;
        }
        let now = Instant::now();
        let mut next = None;
        for (state, thread) in self.states.iter_mut().zip(&self.threads) {
            if *state != State::Sleeping {
                continue;
            }
            match thread.as_ref().and_then(|thread| thread.wakes_at).filter(|until| *until > now) {
                Some(until) => next = Some(next.map_or(until, |next| until.min(next))),
                None => *state = State::Ready,
            }
        }
        self.has_sleepers = next.is_some();
        next
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
            if !self.release_lanes(worker, first, last, is_idle)? {
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
        let mut context =
            BlockContext { shared: &mut self.shared, transfers: &mut self.transfers, block: self.index };
        let result = match &mut self.checks {
            None => worker.run(thread, &mut context, THREAD_SLICE),
            checks => run_checked(worker, checks, thread, &mut context),
        };
        let stop = match result {
            Ok(stop) => stop,
            Err(thread_fault) => return Err(self.fault(worker, number, *thread_fault)),
        };
        let mut can_run = false;
        self.has_advanced |= !matches!(stop, Stop::Spinning);
        let state = match stop {
            Stop::Ended => {
                self.live -= 1;
                if let Some(checks) = &mut self.checks {
                    checks.end(number);
                }
                self.spare.extend(slot.take());
                State::Ended
            }
            Stop::Yielded | Stop::Spinning => {
                can_run = true;
                State::Ready
            }
            Stop::Sleeping => {
                self.has_sleepers = true;
                State::Sleeping
            }
            Stop::Barrier => match thread.barrier {
                Some(wait) if wait.op == BarrierOp::Arrive => {
                    self.arrived.push((wait.id, wait.count, number));
                    if let Some(checks) = &mut self.checks {
                        checks.arrive(wait.id, number);
                    }
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
    fn release_lanes(
        &mut self,
        worker: &mut Worker<'_>,
        first: usize,
        last: usize,
        is_idle: bool,
    ) -> Result<bool> {
        let states = self.states.get(first..last).unwrap_or(&[]);
        if !states.contains(&State::Warp) {
            return Ok(false);
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
        let Some(group) = warp::complete_group(&lanes, live, is_idle) else { return Ok(false) };
        let leader = lanes.get(group.trailing_zeros() as usize).copied().flatten();
        if let Some((number, wait)) = leader.and_then(|wait| Some((wait.matrix()?, wait))) {
            self.matrix(worker, first, number, wait)?;
        }
        if let Some(checks) = &mut self.checks
            && warp::orders_memory(&lanes, group)
        {
            checks.meet_lanes((0..32).filter(|lane| (group >> lane) & 1 == 1).map(|lane| first + lane));
        }
        self.has_advanced = true;
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
        Ok(true)
    }

    /// Performs the matrix instruction that all lanes of a warp have reached.
    fn matrix(&mut self, worker: &mut Worker<'_>, first: usize, number: u32, wait: WarpWait) -> Result<()> {
        let (function, pc) = wait.place();
        let function = worker.grid.program.functions.get(function as usize);
        let inst = function.and_then(|function| function.matrices.get(number as usize));
        let (Some(inst), Some(threads)) = (inst, self.threads.get_mut(first..first + 32)) else {
            return Ok(());
        };
        let mut lanes = WarpLanes { threads, shared: &mut self.shared, pc, warp: first / 32 };
        let result = matrix::perform(worker, &mut lanes, inst);
        result.map_err(|(lane, thread_fault)| self.fault(worker, first + lane, *thread_fault))
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
            if let Some(checks) = &mut self.checks {
                checks.meet(id, waiting.iter().map(|(number, _)| *number));
            }
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

    /// The fault of a deadlock, which says where the threads wait and for what.
    #[cold]
    fn deadlock(&self, worker: &Worker<'_>) -> Box<Fault> {
        let mut waits = Waits::default();
        for (number, state) in self.states.iter().enumerate() {
            let Some(thread) = self.threads.get(number).and_then(Option::as_ref) else { continue };
            let what = match state {
                State::Barrier => thread.barrier.as_ref().map(BarrierWait::describe),
                State::Warp => thread.lanes.as_ref().map(WarpWait::describe),
                _ => None,
            };
            let Some(what) = what else { continue };
            let position = Position::before(worker.grid.program, thread.function, thread.pc);
            waits.add(number, *state == State::Warp, what, position.to_string());
        }
        let ended = self.states.len() - self.live as usize;
        let detail = waits.words(&self.arrived, ended);
        self.fault(worker, waits.first(), *ThreadFault::new(FaultKind::BarrierDivergence, detail))
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
        let thread = self.threads.get(number).and_then(Option::as_ref);
        let at = thread_fault.at.or(thread.map(|thread| (thread.function, thread.pc)));
        let position = at.map(|(function, pc)| Position::before(grid.program, function, pc));
        let Position { line, source } = position.unwrap_or(Position { line: 0, source: None });
        let mut detail = thread_fault.detail;
        if let Some(variable) = thread_fault.shared.and_then(|at| shared_variable(grid.launch, at)) {
            detail.push_str(&format!(", {variable}"));
        }
        let [x, y, _] = grid.launch.block.map(|dim| dim as usize);
        Box::new(Fault {
            kind: thread_fault.kind,
            kernel: grid.launch.kernel.name.clone(),
            line,
            source,
            block: self.index,
            thread: [number % x, number / x % y, number / (x * y)].map(|index| index as u32),
            address: thread_fault.access.map(|(address, _, _)| address),
            size: thread_fault.access.map(|(_, size, _)| size),
            write: thread_fault.access.is_some_and(|(_, _, write)| write),
            detail,
        })
    }
}

/// Runs a thread whose accesses are checked.
#[cold]
#[inline(never)]
fn run_checked(
    worker: &mut Worker<'_>,
    checks: &mut Option<Box<BlockChecks>>,
    thread: &mut Thread,
    context: &mut BlockContext<'_>,
) -> Checked<Stop> {
    worker.block_checks = checks.take();
    let result = worker.run(thread, context, THREAD_SLICE);
    *checks = worker.block_checks.take();
    let stop = result?;
    if let Some(checks) = checks {
        checks.settle(&ThreadMemory::of_block(context.shared))?;
        if let (Stop::Ended | Stop::Barrier, Some(grid)) = (&stop, &mut worker.checks) {
            grid.end_guesses(checks, thread.linear as usize)?;
        }
    }
    Ok(stop)
}
