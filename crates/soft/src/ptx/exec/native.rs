//! Threads in native code, and the functions that it calls.

use std::ptr;

use super::access::{Location, ThreadMemory, inside};
use super::atomic::AtomicChange;
use super::barrier::BarrierWait;
use super::grid::{Grid, reserved_offset};
use super::thread::Thread;
use super::thread_fault::{Checked, ThreadFault};
use super::warp::WarpWait;
use super::worker::{BlockContext, Stop, Worker};
use crate::ptx::code::{Inst, NONE};
use crate::ptx::jit::{Context, Helpers, Native, Slot, Status, unpack};

/// The state of a host thread for native code.
pub(super) struct NativeState<'a> {
    context: Context,
    slots: Vec<Slot>,
    /// The kernel's own code, which fits.
    kernel: Option<&'a Native>,
    /// The steps that have been counted for the kernel.
    counted: u64,
    /// Whether this launch may run native code.
    is_possible: bool,
    fault: Option<Box<ThreadFault>>,
}

const HELPERS: Helpers = Helpers { access, atomic };

impl<'a> NativeState<'a> {
    pub(super) fn new(grid: &'a Grid<'a>) -> NativeState<'a> {
        let (launch, memory) = (grid.launch, grid.memory);
        let counter = memory.epoch_counter().filter(|_| !memory.is_watched() && !grid.checks.any());
        let context = Context {
            steps: 0,
            end: 0,
            pc: 0,
            linear: 0,
            index: [0; 3],
            block: [0; 3],
            block_size: launch.block,
            grid_size: launch.grid,
            shared: ptr::null_mut(),
            shared_len: 0,
            local: ptr::null_mut(),
            local_len: 0,
            local_base: 0,
            params: launch.params.as_ptr(),
            globals: launch.globals.as_ptr(),
            shared_offsets: launch.kernel.shared_offsets.as_ptr(),
            slots: ptr::null_mut(),
            first_slot: 0,
            epoch_now: counter.map_or(ptr::null(), ptr::from_ref),
            epoch: 0,
            warps: grid.threads.div_ceil(32).into(),
            dynamic_shared: launch.dynamic_shared.into(),
            total_shared: grid.shared_bytes as u64,
            reserved_shared: reserved_offset(grid.shared_bytes) as u64,
            grid_number: grid.state.number,
            values: [0; 8],
            worker: ptr::null_mut(),
        };
        let is_possible = counter.is_some()
            && launch.globals.len() == grid.program.globals.len()
            && launch.kernel.shared_offsets.len() == grid.program.shared.len();
        NativeState { context, slots: Vec::new(), kernel: None, counted: 0, is_possible, fault: None }
    }
}

impl<'a> Worker<'a> {
    /// Counts the instructions of the kernel, which is compiled when it has run for a while.
    pub(super) fn count_native(&mut self) {
        if !self.native.is_possible || self.native.kernel.is_some() {
            return;
        }
        let steps = self.steps - self.native.counted;
        self.native.counted = self.steps;
        let kernel = self.grid.launch.kernel;
        kernel.native.count(&kernel.program, kernel.function, steps, HELPERS);
        self.native.kernel = self.native_code(kernel.function);
    }

    /// The native code of a function, if there is some that can run now.
    fn native_code(&mut self, function: u32) -> Option<&'a Native> {
        let cache = &self.grid.launch.kernel.native;
        let native = cache.get(function).filter(|_| self.native.is_possible)?;
        if self.native.slots.len() < cache.slots() {
            self.native.slots.resize(cache.slots(), Slot::EMPTY);
        }
        Some(native).filter(|native| native.fits(self.grid.launch.params.len(), self.native.slots.len()))
    }

    /// Runs the thread in its current frame, natively if its function is compiled; `None` if it
    /// could go on.
    #[inline]
    pub(super) fn resume(
        &mut self,
        thread: &mut Thread,
        block: &mut BlockContext<'_>,
        end: u64,
    ) -> Checked<Option<Stop>> {
        let native = match self.native.kernel {
            Some(native) if thread.function == self.grid.launch.kernel.function => Some(native),
            _ => self.native_code(thread.function),
        };
        let Some(native) = native else {
            return self.frame::<false>(thread, block, end);
        };
        let Some(entry) = native.entry(thread.pc) else {
            // Up to the next jump: native code can only resume at some instructions.
            return self.frame::<false>(thread, block, self.steps);
        };
        self.prepare(native, thread, block, end);
        let worker: *mut Self = self;
        // SAFETY: the worker is exclusively borrowed, and not used by other names until the code
        // has returned.
        let context = unsafe { &raw mut (*worker).native.context };
        // SAFETY: as above.
        unsafe { (*context).worker = worker.cast() };
        let Some(registers) = thread.registers.get_mut(thread.register_base..) else {
            return self.frame::<false>(thread, block, end);
        };
        // SAFETY: `prepare` has set pointers that stay valid and unused elsewhere while the code
        // runs; those of the launch live as long as the worker. `fill` makes slots as promised.
        let Some(status) = (unsafe { native.run(context, registers, entry) }) else {
            return self.frame::<false>(thread, block, end);
        };
        if status == Status::Faulted {
            thread.pc = self.native.context.pc as usize;
            let unknown =
                || ThreadFault::new(crate::ptx::FaultKind::LaunchFailed, "a fault without a reason");
            return Err(self.native.fault.take().unwrap_or_else(unknown));
        }
        self.steps = self.native.context.steps;
        thread.pc = self.native.context.pc as usize;
        match status {
            Status::Exited => Ok(Some(Stop::Ended)),
            Status::Returned => {
                let is_over = !thread.leave(self.grid);
                thread.is_pristine &= is_over;
                Ok(is_over.then_some(Stop::Ended))
            }
            Status::Yielded => {
                thread.is_pristine = false;
                Ok(Some(Stop::Yielded))
            }
            Status::Stopped | Status::Faulted => match self.wait(thread) {
                None => self.frame::<true>(thread, block, end),
                stop => Ok(stop),
            },
        }
    }

    /// Executes the next instruction if the thread waits there for others. Most stops are such, and
    /// the interpreter's loop takes longer to begin.
    #[inline]
    fn wait(&mut self, thread: &mut Thread) -> Option<Stop> {
        let function = self.grid.program.functions.get(thread.function as usize);
        let inst = function.and_then(|function| function.code.get(thread.pc));
        let registers = thread.registers.get(thread.register_base..).unwrap_or(&[]);
        let stop = match inst {
            Some(&Inst::Warp { op, d, p, a, b, c, mask }) => {
                let place = (thread.function, thread.pc + 1);
                match WarpWait::new(op, thread.linear, [a, b, c, mask], [d, p], registers, place) {
                    Ok(wait) => thread.lanes = Some(wait),
                    // The interpreter finds the fault again.
                    Err(_) => return None,
                }
                Stop::Warp
            }
            Some(&Inst::Barrier { op, d, id, count, a }) => {
                match BarrierWait::new(op, [id, count, a], d, registers) {
                    Ok(wait) if !wait.is_over(self.grid.threads) => thread.barrier = Some(wait),
                    _ => return None,
                }
                Stop::Barrier
            }
            _ => return None,
        };
        thread.is_pristine = false;
        thread.pc += 1;
        self.steps += 1;
        Some(stop)
    }

    /// Sets the context for a thread.
    #[inline(always)]
    fn prepare(&mut self, native: &Native, thread: &mut Thread, block: &mut BlockContext<'_>, end: u64) {
        let context = &mut self.native.context;
        context.steps = self.steps;
        context.end = end;
        context.linear = thread.linear;
        context.index = thread.index;
        context.block = block.block;
        context.shared = block.shared.as_mut_ptr();
        context.shared_len = block.shared.len() as u64;
        context.local = thread.local.as_mut_ptr();
        context.local_len = thread.local.len() as u64;
        context.local_base = thread.local_base as u64;
        // The function fits, so its slots exist.
        context.slots = self.native.slots.as_mut_ptr().wrapping_add(native.first_slot());
        context.first_slot = native.first_slot() as u64;
    }

    /// The memory of the thread that runs natively.
    ///
    /// # Safety
    /// Native code runs, and nobody else uses this memory.
    unsafe fn running_memory<'m>(&self) -> ThreadMemory<'m>
    where
        'a: 'm,
    {
        let context = &self.native.context;
        let (shared, local) = (context.shared_len as usize, context.local_len as usize);
        ThreadMemory {
            // SAFETY: `prepare` took the pointer from a slice of this length that stays borrowed.
            shared: unsafe { std::slice::from_raw_parts_mut(context.shared, shared) },
            unchecked_shared: shared,
            // SAFETY: as above.
            local: unsafe { std::slice::from_raw_parts_mut(context.local, local) },
            local_base: context.local_base as usize,
            params: self.grid.launch.params,
        }
    }

    /// A load or store off the fast path, by the instruction at `at`.
    fn access_slowly(&mut self, address: u64, at: u64, slot: u64) -> Checked<()> {
        let (function, pc) = unpack(at);
        let inst =
            self.grid.program.functions.get(function as usize).and_then(|function| function.code.get(pc));
        let (access, is_store) = match inst {
            Some(Inst::Load { access, .. }) => (*access, false),
            Some(Inst::Store { access, .. }) => (*access, true),
            _ => return Ok(()),
        };
        // SAFETY: native code called this.
        let mut memory = unsafe { self.running_memory() };
        // As the interpreter, which has passed the instruction.
        let pc = pc + 1;
        let location = self.resolve(&memory, pc, address, access, is_store)?;
        for index in 0..usize::from(access.count).min(self.native.context.values.len()) {
            let value = &mut self.native.context.values[index];
            if is_store {
                memory.store(location, access.cell, index, *value);
            } else {
                *value = memory.load(location, access.cell, index);
            }
        }
        if let Location::Host(_) = location {
            self.fill(pc, slot, address, access.bytes(), is_store);
        }
        Ok(())
    }

    /// Notes the allocation that the access at `pc` has found in its slot, if that is the one which
    /// the interpreter has noted: it notes none in the grid's workspace and in the heap.
    fn fill(&mut self, pc: usize, slot: u64, address: u64, bytes: u32, is_store: bool) {
        if self.spans.epoch != self.native.context.epoch {
            self.native.slots.fill(Slot::EMPTY);
            self.native.context.epoch = self.spans.epoch;
        }
        let span = self.spans.last(pc);
        let index = slot.checked_add(self.native.context.first_slot).and_then(|at| usize::try_from(at).ok());
        let Some(slot) = index.and_then(|index| self.native.slots.get_mut(index)) else { return };
        if inside(&span, address, bytes, is_store).is_none() {
            return;
        }
        let bytes = u64::from(bytes);
        let is_aligned = span.device_start.is_multiple_of(bytes) && span.host.addr().is_multiple_of(8);
        if is_aligned {
            *slot = Slot { start: span.device_start, count: span.len / bytes, host: span.host };
        }
    }

    fn change_slowly(&mut self, address: u64, at: u64, b: u64, c: u64) -> Checked<()> {
        let (function, pc) = unpack(at);
        let inst =
            self.grid.program.functions.get(function as usize).and_then(|function| function.code.get(pc));
        let Some(Inst::Atomic { op, ty, space, c: third, .. }) = inst else { return Ok(()) };
        // SAFETY: native code called this.
        let mut memory = unsafe { self.running_memory() };
        let c = if *third == NONE { 0 } else { c };
        let change = AtomicChange::new(*op, *ty, b, c);
        self.native.context.values[0] = self.change(&mut memory, pc + 1, *space, address, change)?;
        Ok(())
    }

    fn finish(&mut self, result: Checked<()>) -> u64 {
        match result {
            Ok(()) => 0,
            Err(fault) => {
                self.native.fault = Some(fault);
                1
            }
        }
    }
}

/// # Safety
/// Native code calls this with its context.
unsafe extern "C" fn access(context: *mut Context, address: u64, at: u64, slot: u64) -> u64 {
    // SAFETY: `resume` has set the worker, and does not use it while the code runs.
    let worker = unsafe { &mut *(*context).worker.cast::<Worker<'_>>() };
    let result = worker.access_slowly(address, at, slot);
    worker.finish(result)
}

/// # Safety
/// As [`access`].
unsafe extern "C" fn atomic(context: *mut Context, address: u64, at: u64, b: u64, c: u64) -> u64 {
    // SAFETY: as above.
    let worker = unsafe { &mut *(*context).worker.cast::<Worker<'_>>() };
    let result = worker.change_slowly(address, at, b, c);
    worker.finish(result)
}
