//! The instruction loop, which runs one thread until it ends, waits, or has used its share.

use std::time::{Duration, Instant};

use super::access::{Location, ThreadMemory};
use super::atomic::{self, AtomicChange};
use super::barrier::BarrierWait;
use super::special::{is_space, special};
use super::texture::TextureThread;
use super::thread::Thread;
use super::thread_fault::{Checked, ThreadFault};
use super::transfer::AsyncThread;
use super::warp::WarpWait;
use super::worker::{BlockContext, Stop, Worker};
use crate::ptx::code::{Access, CarryHow, Inst, NONE, Op128, Reg, Space};
use crate::ptx::error::FaultKind;
use crate::ptx::math::convert::convert;
use crate::ptx::math::integer::carrying_add;
use crate::ptx::math::value::Value;

/// The longest `nanosleep`: a millisecond.
const LONGEST_SLEEP: u64 = 1_000_000;

impl Worker<'_> {
    /// Runs a thread for about `share` instructions at most.
    pub(super) fn run(
        &mut self,
        thread: &mut Thread,
        context: &mut BlockContext<'_>,
        share: u64,
    ) -> Checked<Stop> {
        let end = self.steps.saturating_add(share);
        loop {
            if let Some(stop) = self.resume(thread, context, end)? {
                return Ok(stop);
            }
            if self.steps >= end {
                return Ok(Stop::Yielded);
            }
        }
    }

    /// Runs the thread in its current frame; `None` if the frame has changed, or with `ONE` behind
    /// an instruction. One function, since registers, program counter and step count must stay in
    /// local variables.
    pub(super) fn frame<const ONE: bool>(
        &mut self,
        thread: &mut Thread,
        context: &mut BlockContext<'_>,
        end: u64,
    ) -> Checked<Option<Stop>> {
        let grid = self.grid;
        let Some(function) = grid.program.functions.get(thread.function as usize) else {
            return Err(ThreadFault::new(FaultKind::InvalidProgramCounter, "no such function"));
        };
        let code = function.code.as_slice();
        let mut pc = thread.pc;
        // Instructions are counted at the end of the straight line that begins here.
        let mut line_start = pc;
        let mut is_first = true;
        thread.is_pristine = false;
        let Some(registers) = thread.registers.get_mut(thread.register_base..) else {
            return Err(ThreadFault::new(FaultKind::InvalidProgramCounter, "the frame is gone"));
        };
        let unchecked_shared = self.begin_frame(thread.function, thread.linear, context.shared.len());
        let mut thread_memory = ThreadMemory {
            shared: context.shared,
            unchecked_shared,
            local: &mut thread.local,
            local_base: thread.local_base,
            params: grid.launch.params,
        };

        macro_rules! reg {
            ($r:expr) => {
                registers[$r as usize]
            };
        }
        // A missing register reads as zero.
        macro_rules! maybe {
            ($r:expr) => {
                if $r == NONE { 0 } else { registers[$r as usize] }
            };
        }
        // Leaves the loop. The thread resumes at the next instruction.
        macro_rules! stop {
            ($value:expr) => {{
                self.steps += (pc - line_start) as u64;
                thread.pc = pc;
                return Ok($value);
            }};
        }
        macro_rules! jump {
            ($to:expr) => {{
                self.steps += (pc - line_start) as u64;
                pc = $to as usize;
                line_start = pc;
                if self.steps >= end {
                    thread.pc = pc;
                    return Ok(Some(Stop::Yielded));
                }
            }};
        }
        // Faults need the program counter.
        macro_rules! check {
            ($step:expr) => {
                match $step {
                    Ok(value) => value,
                    Err(thread_fault) => {
                        thread.pc = pc;
                        return Err(thread_fault);
                    }
                }
            };
        }

        loop {
            if ONE && !std::mem::replace(&mut is_first, false) {
                stop!(None);
            }
            let Some(inst) = code.get(pc) else {
                thread.pc = pc;
                return Err(ThreadFault::new(
                    FaultKind::InvalidProgramCounter,
                    "the end of the function was passed",
                ));
            };
            pc += 1;
            match *inst {
                Inst::Unary { f, d, a } => reg!(d) = f(reg!(a)),
                Inst::Binary { f, d, a, b } => reg!(d) = f(reg!(a), reg!(b)),
                Inst::Ternary { f, d, a, b, c } => reg!(d) = f(reg!(a), reg!(b), reg!(c)),
                Inst::Quaternary { f, d, a, b, c, e } => reg!(d) = f(reg!(a), reg!(b), reg!(c), reg!(e)),
                Inst::Convert { d, a, how } => reg!(d) = convert(how, reg!(a)),
                Inst::Move { d, a } => reg!(d) = reg!(a),
                Inst::Add32 { d, a, b } => {
                    reg!(d) = u64::from((reg!(a) as u32).wrapping_add(reg!(b) as u32));
                }
                Inst::Add64 { d, a, b } => reg!(d) = reg!(a).wrapping_add(reg!(b)),
                Inst::Mul32 { d, a, b } => {
                    reg!(d) = u64::from((reg!(a) as u32).wrapping_mul(reg!(b) as u32));
                }
                Inst::Mad32 { d, a, b, c } => {
                    let product = (reg!(a) as u32).wrapping_mul(reg!(b) as u32);
                    reg!(d) = u64::from(product.wrapping_add(reg!(c) as u32));
                }
                Inst::And { d, a, b } => reg!(d) = reg!(a) & reg!(b),
                Inst::AddF32 { d, a, b } => reg!(d) = (f32::get(reg!(a)) + f32::get(reg!(b))).put(),
                Inst::MulF32 { d, a, b } => reg!(d) = (f32::get(reg!(a)) * f32::get(reg!(b))).put(),
                Inst::Select { d, a, b, c } => reg!(d) = if reg!(c) & 1 == 1 { reg!(a) } else { reg!(b) },
                Inst::Carry { d, a, b, how } => {
                    let (value, carry) = carry(reg!(a), reg!(b), thread.carry, how);
                    reg!(d) = value;
                    if how.carry_out {
                        thread.carry = carry;
                    }
                }
                Inst::Special { d, which } => {
                    let clock = self.steps + (pc - line_start) as u64;
                    reg!(d) = special(grid, which, thread.linear, thread.index, context.block, clock);
                }
                Inst::GlobalAddress { d, index, addend } => {
                    let base = grid.launch.globals.get(index as usize).copied().unwrap_or(0);
                    reg!(d) = base.wrapping_add_signed(addend);
                }
                Inst::SharedAddress { d, index, addend } => {
                    let base = grid.launch.kernel.shared_offsets.get(index as usize).copied().unwrap_or(0);
                    reg!(d) = u64::from(base).wrapping_add_signed(addend);
                }
                Inst::FrameAddress { d, offset, bias } => {
                    reg!(d) = (thread_memory.local_base as u64 + u64::from(offset)).wrapping_add(bias);
                }
                Inst::IsSpace { d, a, which } => reg!(d) = u64::from(is_space(grid, reg!(a), which)),
                Inst::Jump { to } => jump!(to),
                Inst::JumpIf { p, to } => {
                    if reg!(p) & 1 == 1 {
                        jump!(to);
                    }
                }
                Inst::JumpUnless { p, to } => {
                    if reg!(p) & 1 == 0 {
                        jump!(to);
                    }
                }
                Inst::Switch { index, list, len } => {
                    let index = reg!(index) as u32;
                    let target = function.lists.get(list as usize + index as usize).filter(|_| index < len);
                    let Some(&to) = target else {
                        thread.pc = pc;
                        let detail = format!("branch target {index} of {len}");
                        return Err(ThreadFault::new(FaultKind::InvalidProgramCounter, detail));
                    };
                    jump!(to);
                }
                Inst::Call { site } => {
                    self.steps += (pc - line_start) as u64;
                    thread.pc = pc;
                    self.call(thread, context, site)?;
                    return Ok(None);
                }
                Inst::Return => {
                    self.steps += (pc - line_start) as u64;
                    thread.pc = pc;
                    return Ok(if thread.leave(grid) { None } else { Some(Stop::Ended) });
                }
                Inst::Exit => stop!(Some(Stop::Ended)),
                Inst::Trap => {
                    thread.pc = pc;
                    return Err(ThreadFault::new(FaultKind::Trap, ""));
                }
                Inst::Sleep { nanoseconds } => {
                    let time =
                        Duration::from_nanos((reg!(nanoseconds) & u64::from(u32::MAX)).min(LONGEST_SLEEP));
                    thread.wakes_at = Some(Instant::now() + time);
                    stop!(Some(Stop::Sleeping));
                }
                Inst::Poll { a } => {
                    if thread.polls.is_waiting(pc, reg!(a)) {
                        stop!(Some(Stop::Spinning));
                    }
                }
                Inst::StackAllocate { d, size, align } => {
                    let size = reg!(size);
                    thread.pc = pc;
                    let at = thread.allocate(size, align)?;
                    thread.set(d, at);
                    stop!(None);
                }
                Inst::StackSave { d } => reg!(d) = thread_memory.local.len() as u64,
                Inst::StackRestore { a } => {
                    let end = reg!(a);
                    thread.pc = pc;
                    thread.restore(grid, end)?;
                    stop!(None);
                }
                Inst::GridWait => {
                    if self.is_early {
                        stop!(Some(Stop::Grid));
                    }
                }
                Inst::Fence => {
                    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
                    self.note_fence();
                }
                Inst::Load { d, base, offset, access } => {
                    let address = maybe!(base).wrapping_add_signed(i64::from(offset));
                    let location = check!(self.resolve(&thread_memory, pc, address, access, false));
                    if access.count == 1 {
                        reg!(d) = thread_memory.load(location, access.cell, 0);
                    } else {
                        let list = function.lists.get(d as usize..d as usize + usize::from(access.count));
                        for (index, &d) in list.unwrap_or(&[]).iter().enumerate() {
                            reg!(d) = thread_memory.load(location, access.cell, index);
                        }
                    }
                }
                Inst::Store { a, base, offset, access } => {
                    let address = maybe!(base).wrapping_add_signed(i64::from(offset));
                    let location = check!(self.resolve(&thread_memory, pc, address, access, true));
                    if access.count == 1 {
                        thread_memory.store(location, access.cell, 0, reg!(a));
                    } else {
                        let list = function.lists.get(a as usize..a as usize + usize::from(access.count));
                        for (index, &a) in list.unwrap_or(&[]).iter().enumerate() {
                            thread_memory.store(location, access.cell, index, reg!(a));
                        }
                    }
                }
                Inst::Atomic { op, ty, space, d, base, offset, b, c } => {
                    let address = maybe!(base).wrapping_add_signed(i64::from(offset));
                    let change = AtomicChange::new(op, ty, reg!(b), maybe!(c));
                    let old = check!(self.change(&mut thread_memory, pc, space, address, change));
                    if d != NONE {
                        reg!(d) = old;
                    }
                }
                Inst::Async { index } => {
                    let Some(inst) = function.asyncs.get(index as usize) else { continue };
                    let mut async_thread = AsyncThread {
                        worker: self,
                        memory: &mut thread_memory,
                        transfers: context.transfers,
                        registers,
                        lists: &function.lists,
                        linear: thread.linear,
                        pc,
                    };
                    if check!(async_thread.execute(inst)) {
                        stop!(Some(Stop::Spinning));
                    }
                }
                Inst::Texture { index } => {
                    let Some(inst) = function.textures.get(index as usize) else { continue };
                    let mut texture_thread = TextureThread {
                        worker: self,
                        memory: &mut thread_memory,
                        registers,
                        lists: &function.lists,
                        pc,
                    };
                    check!(texture_thread.execute(inst));
                }
                Inst::Atomic128 { op, space, d, base, offset, b, c } => {
                    let address = maybe!(base).wrapping_add_signed(i64::from(offset));
                    let write = op != Op128::Load;
                    self.spans.is_atomic = true;
                    let found = self.find(&thread_memory, pc, space, address, 16, 16, write);
                    self.spans.is_atomic = false;
                    let location = check!(found);
                    let pair = |first: Reg, registers: &[u64]| {
                        let pair = registers.get(first as usize..first as usize + 2);
                        pair.and_then(|pair| pair.try_into().ok()).unwrap_or([0; 2])
                    };
                    let (b, c) = if write {
                        (pair(b, registers), if c == NONE { [0; 2] } else { pair(c, registers) })
                    } else {
                        ([0; 2], [0; 2])
                    };
                    let old = atomic::perform128(op, &mut thread_memory, location, b, c);
                    if d != NONE {
                        reg!(d) = old[0];
                        reg!(d + 1) = old[1];
                        if thread.polls.is_waiting(pc, old[0] ^ old[1].rotate_left(1)) {
                            stop!(Some(Stop::Spinning));
                        }
                    }
                }
                Inst::CheckAligned { base, offset, align } => {
                    let address = maybe!(base).wrapping_add_signed(i64::from(offset));
                    if address & u64::from(align - 1) != 0 {
                        check!(Err(ThreadFault::misaligned(address, align, true)));
                    }
                }
                Inst::Barrier { op, d, id, count, a } => {
                    let wait = check!(BarrierWait::new(op, [id, count, a], d, registers));
                    if wait.is_over(grid.threads) {
                        continue;
                    }
                    thread.barrier = Some(wait);
                    stop!(Some(Stop::Barrier));
                }
                Inst::Warp { op, d, p, a, b, c, mask } => {
                    let place = (thread.function, pc);
                    let wait = WarpWait::new(op, thread.linear, [a, b, c, mask], [d, p], registers, place);
                    thread.lanes = Some(check!(wait));
                    stop!(Some(Stop::Warp));
                }
            }
        }
    }

    /// Performs an atomic operation; returns the old value.
    #[inline(always)]
    pub(super) fn change(
        &mut self,
        thread_memory: &mut ThreadMemory<'_>,
        pc: usize,
        space: Space,
        address: u64,
        change: AtomicChange,
    ) -> Checked<u64> {
        let bytes = change.ty.bytes();
        self.spans.is_atomic = true;
        let found = self.find(thread_memory, pc, space, address, bytes, bytes, true);
        self.spans.is_atomic = false;
        Ok(change.perform(thread_memory, found?))
    }

    #[inline(always)]
    pub(super) fn resolve(
        &mut self,
        thread_memory: &ThreadMemory<'_>,
        pc: usize,
        address: u64,
        access: Access,
        write: bool,
    ) -> Checked<Location> {
        // Accesses to kernel parameters are checked at load.
        if access.space == Space::Entry {
            return Ok(Location::Entry(address as usize));
        }
        self.find(thread_memory, pc, access.space, address, access.bytes(), access.bytes(), write)
    }
}

/// Sum or difference with the carry flag. A difference is the sum with the complement and a carry,
/// so that both share the flag, as on GPUs.
#[inline(always)]
fn carry(a: u64, b: u64, flag: bool, how: CarryHow) -> (u64, bool) {
    let b = if how.subtract { !b } else { b };
    let flag = if how.carry_in { flag } else { how.subtract };
    carrying_add(a, b, flag, how.wide)
}
