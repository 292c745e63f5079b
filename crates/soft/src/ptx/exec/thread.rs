//! The state of one thread, from which it resumes.

use std::time::Instant;

use super::barrier::BarrierWait;
use super::grid::Grid;
use super::polls::Polls;
use super::thread_fault::{Checked, ThreadFault};
use super::warp::WarpWait;
use crate::ptx::code::{Formal, Function, Place};
use crate::ptx::error::FaultKind;

/// Deeper calls overflow the stack.
const MOST_FRAMES: usize = 1 << 14;
/// Registers of all frames of a thread.
const MOST_REGISTERS: usize = 1 << 21;
/// Local memory of all frames of a thread.
const MOST_LOCAL: usize = 1 << 21;

/// Where to resume after a return.
#[derive(Debug, Clone, Copy)]
struct Frame {
    function: u32,
    pc: usize,
    register_base: usize,
    local_base: usize,
    /// The site of the call, for the results.
    site: u32,
}

#[derive(Debug, Default)]
pub(super) struct Thread {
    /// The linear index in the block.
    pub(super) linear: u32,
    pub(super) index: [u32; 3],
    pub(super) function: u32,
    pub(super) pc: usize,
    /// Registers of all frames; those of the running one from `register_base` on.
    pub(super) registers: Vec<u64>,
    pub(super) register_base: usize,
    /// Local memory of all frames.
    pub(super) local: Vec<u8>,
    pub(super) local_base: usize,
    pub(super) carry: bool,
    pub(super) polls: Polls,
    frames: Vec<Frame>,
    /// The barrier where it waits.
    pub(super) barrier: Option<BarrierWait>,
    /// Its wait for lanes of its warp.
    pub(super) lanes: Option<WarpWait>,
    /// When its sleep ends.
    pub(super) wakes_at: Option<Instant>,
    /// Whether the registers are those at the start of the kernel.
    pub(super) is_pristine: bool,
}

impl Thread {
    /// Resets the thread to the start of the kernel.
    pub(super) fn reset(&mut self, grid: &Grid<'_>, linear: u32) {
        let [x, y, _] = grid.launch.block;
        self.linear = linear;
        self.index = if linear < x { [linear, 0, 0] } else { [linear % x, linear / x % y, linear / (x * y)] };
        // Native code often ends a thread without a change of its registers.
        if self.is_pristine {
            self.pc = 0;
            if !self.local.is_empty() {
                self.local.fill(0);
            }
            return;
        }
        self.carry = false;
        self.polls = Polls::default();
        self.frames.clear();
        self.registers.clear();
        self.local.clear();
        self.function = grid.launch.kernel.function;
        if let Some(function) = grid.program.functions.get(self.function as usize) {
            self.enter(function);
            self.is_pristine = true;
        }
    }

    fn enter(&mut self, function: &Function) {
        self.pc = 0;
        self.register_base = self.registers.len();
        self.registers.extend_from_slice(&function.template);
        self.local_base = self.local.len().next_multiple_of(16);
        self.local.resize(self.local_base + function.frame_bytes as usize, 0);
    }

    /// Adds memory to the frame, until the function returns; its address in local memory.
    pub(super) fn allocate(&mut self, size: u64, align: u32) -> Checked<u64> {
        let start = self.local.len().next_multiple_of(align.max(1) as usize);
        let end = usize::try_from(size).ok().and_then(|size| start.checked_add(size));
        match end.filter(|end| *end <= MOST_LOCAL) {
            Some(end) => {
                self.local.resize(end, 0);
                Ok(start as u64)
            }
            None => {
                let detail = format!("`alloca` of {size} bytes, after {start} bytes of local memory");
                Err(ThreadFault::new(FaultKind::StackOverflow, detail))
            }
        }
    }

    /// Frees what was allocated in the frame after the stack ended at `end`.
    pub(super) fn restore(&mut self, grid: &Grid<'_>, end: u64) -> Checked<()> {
        let function = grid.program.functions.get(self.function as usize);
        let least = self.local_base + function.map_or(0, |function| function.frame_bytes as usize);
        match usize::try_from(end).ok().filter(|end| (least..=self.local.len()).contains(end)) {
            Some(end) => {
                self.local.truncate(end);
                Ok(())
            }
            None => {
                let detail = format!("`stackrestore` to {end:#x}, which `stacksave` did not give here");
                Err(ThreadFault::new(FaultKind::IllegalInstruction, detail))
            }
        }
    }

    /// Calls `callee` from the call site `site`, with its arguments.
    pub(super) fn call(&mut self, grid: &Grid<'_>, site: u32, callee: u32) -> Checked<()> {
        let functions = &grid.program.functions;
        let caller = functions.get(self.function as usize).and_then(|caller| caller.calls.get(site as usize));
        let (Some(call), Some(function)) = (caller, functions.get(callee as usize)) else {
            return Err(ThreadFault::new(FaultKind::InvalidProgramCounter, "no such function"));
        };
        if !same_sizes(&call.args, &function.params) || !same_sizes(&call.returns, &function.returns) {
            let detail = format!("`{}` is called with arguments or results of other sizes", function.name);
            return Err(ThreadFault::new(FaultKind::InvalidProgramCounter, detail));
        }
        if self.frames.len() >= MOST_FRAMES
            || self.registers.len() + function.template.len() > MOST_REGISTERS
            || self.local.len() + function.frame_bytes as usize + 16 > MOST_LOCAL
        {
            let detail = format!("calls are nested {} deep", self.frames.len());
            return Err(ThreadFault::new(FaultKind::StackOverflow, detail));
        }
        let frame = Frame {
            function: self.function,
            pc: self.pc,
            register_base: self.register_base,
            local_base: self.local_base,
            site,
        };
        self.frames.push(frame);
        self.function = callee;
        self.enter(function);
        let bases = (frame.register_base, frame.local_base);
        for (from, to) in call.args.iter().zip(&function.params) {
            self.copy(*from, bases, *to, (self.register_base, self.local_base));
        }
        Ok(())
    }

    /// Returns from a function with its results; false at the end of the kernel.
    pub(super) fn leave(&mut self, grid: &Grid<'_>) -> bool {
        let Some(frame) = self.frames.pop() else { return false };
        let functions = &grid.program.functions;
        let caller =
            functions.get(frame.function as usize).and_then(|caller| caller.calls.get(frame.site as usize));
        if let (Some(call), Some(function)) = (caller, functions.get(self.function as usize)) {
            let bases = (self.register_base, self.local_base);
            for (from, to) in function.returns.iter().zip(&call.returns) {
                self.copy(*from, bases, *to, (frame.register_base, frame.local_base));
            }
        }
        self.registers.truncate(self.register_base);
        self.local.truncate(self.local_base);
        self.function = frame.function;
        self.pc = frame.pc;
        self.register_base = frame.register_base;
        self.local_base = frame.local_base;
        true
    }

    fn copy(&mut self, from: Formal, from_bases: (usize, usize), to: Formal, to_bases: (usize, usize)) {
        let size = from.size.min(to.size) as usize;
        match (from.place, to.place) {
            (Place::Frame(from), Place::Frame(to)) => {
                let (from, to) = (from_bases.1 + from as usize, to_bases.1 + to as usize);
                if from + size <= self.local.len() && to + size <= self.local.len() {
                    self.local.copy_within(from..from + size, to);
                }
            }
            (_, Place::Register(to)) => {
                let value = self.value(from, from_bases);
                if let Some(slot) = self.registers.get_mut(to_bases.0 + to as usize) {
                    *slot = value;
                }
            }
            (Place::Register(_), Place::Frame(to)) => {
                let value = self.value(from, from_bases).to_le_bytes();
                let at = to_bases.1 + to as usize;
                let size = size.min(8);
                if let Some(place) = self.local.get_mut(at..at + size) {
                    place.copy_from_slice(&value[..size]);
                }
            }
        }
    }

    /// An argument of at most eight bytes.
    pub(super) fn value(&self, from: Formal, (register_base, local_base): (usize, usize)) -> u64 {
        match from.place {
            Place::Register(slot) => self.registers.get(register_base + slot as usize).copied().unwrap_or(0),
            Place::Frame(offset) => {
                let at = local_base + offset as usize;
                let size = (from.size as usize).min(8);
                let mut bytes = [0; 8];
                if let Some(place) = self.local.get(at..at + size) {
                    bytes[..size].copy_from_slice(place);
                }
                u64::from_le_bytes(bytes)
            }
        }
    }

    /// Stores a result of at most eight bytes at the place that a call site names.
    pub(super) fn put_value(&mut self, to: Formal, value: u64) {
        let base = self.register_base;
        match to.place {
            Place::Register(slot) => self.put(slot, value, base),
            Place::Frame(offset) => {
                let at = self.local_base + offset as usize;
                let size = (to.size as usize).min(8);
                if let Some(place) = self.local.get_mut(at..at + size) {
                    place.copy_from_slice(&value.to_le_bytes()[..size]);
                }
            }
        }
    }

    /// Reads a register of the running frame. A missing register reads as zero.
    pub(super) fn get(&self, register: u32) -> u64 {
        self.registers.get(self.register_base.saturating_add(register as usize)).copied().unwrap_or(0)
    }

    /// Writes a register of the running frame.
    pub(super) fn set(&mut self, register: u32, value: u64) {
        self.put(register, value, self.register_base);
    }

    /// Writes to a missing register have no effect.
    fn put(&mut self, register: u32, value: u64, base: usize) {
        if let Some(slot) = self.registers.get_mut(base.saturating_add(register as usize)) {
            *slot = value;
        }
    }
}

fn same_sizes(given: &[Formal], wanted: &[Formal]) -> bool {
    given.len() == wanted.len() && given.iter().zip(wanted).all(|(given, wanted)| given.size == wanted.size)
}
