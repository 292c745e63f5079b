//! Functions as machine code, made by Cranelift once they have run for a while.
//!
//! The interpreter keeps the last word: native code stops in front of every instruction that has no
//! translation here, the interpreter executes that one, and native code resumes behind it. Memory
//! accesses off the fast path, and so all faults, are the interpreter's, too. Native code can be
//! left wherever a thread can wait, with its registers in their array.
//!
//! ```text
//! code ── flow ──► lines, alive registers ── translate ──► Cranelift ──► machine
//! ```
//!
//! - `context`: the data that native code shares with the interpreter.
//! - `machine`: executable memory, freed with the image.
//! - `compile`: from a function to machine code. In it:
//!   - `flow`, `operands`: straight lines, and the registers alive at their starts;
//!   - `translate`: registers, lines and exits; `arithmetic`, `special` and `access`: instructions;
//!   - `known`: the functions of `math` that are translated and not called.
//!
//! Without the feature `jit`, on other processors, under Miri and in sanitised builds nothing is
//! compiled.

#[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux", not(any(miri, interpreted))))]
mod compile;
#[allow(dead_code, reason = "partly unused where nothing is compiled")]
mod context;
#[allow(dead_code, reason = "unused where nothing is compiled")]
mod machine;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

pub(super) use context::{Context, Helpers, Slot, Status, unpack};
use machine::Machine;

use super::code::{Program, Target};

/// Nothing is compiled in this build.
#[cfg(not(all(feature = "jit", target_arch = "x86_64", target_os = "linux", not(any(miri, interpreted)))))]
mod compile {
    pub(super) fn compile(_: &super::Program, _: u32, _: super::Helpers) -> Option<super::Native> {
        None
    }
}

/// The instructions of a function after which it is compiled.
const WORTH_COMPILING: u64 = 1 << 20;

/// The most slots of all functions of an image: each host thread has them all.
const MOST_SLOTS: u32 = 1 << 20;

/// The environment variable that turns native code off (`off`), or on from the start (`always`).
const VARIABLE: &str = "CUDA_SOFT_JIT";

/// The native code of an image.
#[derive(Debug)]
pub(super) struct Cache {
    /// Instructions after which a function is compiled, or `u64::MAX`.
    threshold: AtomicU64,
    functions: Vec<Cached>,
    /// The slots that the functions use so far. One that is refused takes none.
    slots: AtomicU32,
}

#[derive(Debug, Default)]
struct Cached {
    /// Instructions that were interpreted.
    steps: AtomicU64,
    /// `None` inside if it cannot be compiled.
    native: OnceLock<Option<Native>>,
}

impl Cache {
    /// No native code yet, for a program of so many functions.
    pub(super) fn new(functions: usize) -> Cache {
        static THRESHOLD: OnceLock<u64> = OnceLock::new();
        let threshold = *THRESHOLD.get_or_init(|| match std::env::var(VARIABLE).as_deref() {
            Ok("off" | "0") => u64::MAX,
            Ok("always") => 0,
            _ => WORTH_COMPILING,
        });
        let functions = (0..functions).map(|_| Cached::default()).collect();
        Cache { threshold: AtomicU64::new(threshold), functions, slots: AtomicU32::new(0) }
    }

    /// Compiles functions after so many instructions from now on, or none.
    #[cfg(test)]
    pub(super) fn compile_after(&self, instructions: Option<u64>) {
        self.threshold.store(instructions.unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The native code of a function, if it is compiled.
    #[inline]
    pub(super) fn get(&self, function: u32) -> Option<&Native> {
        self.functions.get(function as usize)?.native.get()?.as_ref()
    }

    /// The slots that all functions compiled so far use.
    pub(super) fn slots(&self) -> usize {
        self.slots.load(Ordering::Acquire) as usize
    }

    /// Takes slots for a function; the first one. `None` if there are too many.
    fn take_slots(&self, count: u32) -> Option<u32> {
        let after = |used: u32| used.checked_add(count).filter(|&end| end <= MOST_SLOTS);
        self.slots.fetch_update(Ordering::AcqRel, Ordering::Acquire, after).ok()
    }

    /// Counts instructions of a kernel. Compiles it, with the functions that it calls, when it is
    /// worth it.
    pub(super) fn count(&self, program: &Program, kernel: u32, steps: u64, helpers: Helpers) {
        let Some(cached) = self.functions.get(kernel as usize) else { return };
        let threshold = self.threshold.load(Ordering::Relaxed);
        if cached.native.get().is_some() || threshold == u64::MAX {
            return;
        }
        if cached.steps.fetch_add(steps, Ordering::Relaxed) + steps < threshold {
            return;
        }
        let mut todo = vec![kernel];
        while let Some(index) = todo.pop() {
            let found = program.functions.get(index as usize).zip(self.functions.get(index as usize));
            let Some((function, cached)) = found else { continue };
            if cached.native.get().is_some() {
                continue;
            }
            let compiled = || {
                let native = compile::compile(program, index, helpers)?;
                let first_slot = self.take_slots(native.slots)?;
                Some(Native { first_slot, ..native })
            };
            // A function that the generator cannot take stays interpreted: a panic would end the
            // thread of a stream.
            cached.native.get_or_init(|| catch_unwind(AssertUnwindSafe(compiled)).ok().flatten());
            todo.extend(function.calls.iter().filter_map(|call| match call.target {
                Target::Function(callee) => Some(callee),
                Target::Indirect(_) | Target::Intrinsic(_) => None,
            }));
        }
    }
}

/// Whether native code of a function calls no function of `math`.
#[cfg(all(test, feature = "jit", target_arch = "x86_64", target_os = "linux", not(interpreted)))]
pub(super) fn is_translated(function: &super::code::Function) -> bool {
    compile::is_translated(function)
}

/// A function as machine code.
#[derive(Debug)]
pub(super) struct Native {
    machine: Machine,
    /// The number of the entry at each instruction, or `u32::MAX`.
    entries: Vec<u32>,
    /// The number of registers.
    registers: usize,
    /// The bytes of parameters that it reads.
    params: usize,
    /// The number of its slots. The code counts them from 0.
    slots: u32,
    /// The first of them among those of the image.
    first_slot: u32,
}

impl Native {
    /// The entry at an instruction: threads can resume there.
    #[inline]
    pub(super) fn entry(&self, pc: usize) -> Option<u32> {
        self.entries.get(pc).copied().filter(|&entry| entry != u32::MAX)
    }

    /// Whether the parameters of a launch and the slots suffice.
    #[inline]
    pub(super) fn fits(&self, params: usize, slots: usize) -> bool {
        self.params <= params && self.first_slot as usize + self.slots as usize <= slots
    }

    /// The first of its slots.
    #[inline]
    pub(super) fn first_slot(&self) -> usize {
        self.first_slot as usize
    }

    /// Runs a thread. `None` if there are not enough registers.
    ///
    /// # Safety
    /// `entry` is one of this code, which [fits](Self::fits). The pointers in the context are
    /// valid: `shared`, `local` and `params` for their lengths, `local` for the frame of the
    /// function behind `local_base`, `globals` and `shared_offsets` for the variables of the
    /// program, `slots` for the function's slots. Each slot that is not empty, while its epoch
    /// lasts, holds mapped memory that is only accessed atomically; a store's is writable. The
    /// helpers can be called with the context.
    #[inline]
    pub(super) unsafe fn run(
        &self,
        context: *mut Context,
        registers: &mut [u64],
        entry: u32,
    ) -> Option<Status> {
        if registers.len() < self.registers {
            return None;
        }
        // SAFETY: the code has this signature, and only uses registers below `self.registers`; the
        // rest is the caller's promise.
        let status = unsafe { self.machine.call(context, registers.as_mut_ptr(), entry) };
        Some(match status {
            0 => Status::Exited,
            1 => Status::Returned,
            2 => Status::Yielded,
            3 => Status::Stopped,
            _ => Status::Faulted,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_have_an_end() {
        let cache = Cache::new(0);
        assert_eq!(cache.take_slots(10), Some(0));
        assert_eq!(cache.take_slots(MOST_SLOTS - 12), Some(10));
        assert_eq!((cache.take_slots(3), cache.take_slots(u32::MAX)), (None, None));
        assert_eq!(cache.take_slots(2), Some(MOST_SLOTS - 2));
        assert_eq!(cache.slots(), MOST_SLOTS as usize);
    }

    /// A function that is refused takes no slots.
    #[cfg(all(feature = "jit", target_arch = "x86_64", target_os = "linux", not(any(miri, interpreted))))]
    #[test]
    fn functions_that_are_refused_take_no_slots() {
        use crate::ptx::code::{Access, Cell, Function, Inst, Space};

        unsafe extern "C" fn none(_: *mut Context, _: u64, _: u64, _: u64) -> u64 {
            0
        }
        unsafe extern "C" fn nothing(_: *mut Context, _: u64, _: u64, _: u64, _: u64) -> u64 {
            0
        }
        let helpers = Helpers { access: none, atomic: nothing };
        let access = Access { space: Space::Global, cell: Cell::U32, count: 1 };
        let load = |count| vec![Inst::Load { d: 0, base: 1, offset: 0, access }; count];
        let function = |count, last: &[Inst]| Function {
            code: [&load(count), last].concat(),
            template: vec![0; 2],
            ..Function::default()
        };
        let functions = vec![function(1 << 15, &[Inst::Exit]), function(3, &[Inst::Exit]), function(5, &[])];
        let program = Program { functions, ..Program::default() };
        let cache = Cache::new(3);
        cache.compile_after(Some(0));
        (0..3).for_each(|kernel| cache.count(&program, kernel, 1, helpers));
        assert!(cache.get(0).is_none() && cache.get(1).is_some() && cache.get(2).is_some());
        assert_eq!(cache.slots(), 8);
    }
}
