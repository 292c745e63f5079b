//! Atomic read-modify-write operations.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::access::{Location, ThreadMemory, is_aligned};
use crate::ptx::code::{AtomicOp, AtomicType, Cell, Op128};
use crate::ptx::math::value::{Bf16, F16, Flushed, Value};
use crate::ptx::math::{F2, float, integer};
use crate::sync::lock;

/// Guards atomics of 16 bytes and on unaligned host memory, which the host cannot execute.
static UNALIGNED: Mutex<()> = Mutex::new(());

/// The change of an atomic operation.
#[derive(Debug, Clone, Copy)]
pub(super) struct AtomicChange {
    pub(super) op: AtomicOp,
    pub(super) ty: AtomicType,
    pub(super) b: u64,
    /// The new value of a compare-and-swap.
    pub(super) c: u64,
    /// Singles that are subnormal become zero.
    flushes: bool,
}

impl AtomicChange {
    pub(super) fn new(op: AtomicOp, ty: AtomicType, b: u64, c: u64) -> Self {
        AtomicChange { op, ty, b, c, flushes: false }
    }

    /// The new value for `old`.
    fn apply(self, old: u64) -> u64 {
        let b = self.b;
        match self.op {
            AtomicOp::And => old & b,
            AtomicOp::Or => old | b,
            AtomicOp::Xor => old ^ b,
            AtomicOp::Exchange => b,
            AtomicOp::CompareSwap => {
                let mask = u64::MAX >> (64 - 8 * self.ty.bytes());
                if old & mask == b & mask { self.c } else { old }
            }
            AtomicOp::Increment => {
                let (old, b) = (old as u32, b as u32);
                u64::from(if old >= b { 0 } else { old + 1 })
            }
            AtomicOp::Decrement => {
                let (old, b) = (old as u32, b as u32);
                u64::from(if old == 0 || old > b { b } else { old - 1 })
            }
            AtomicOp::Add | AtomicOp::Min | AtomicOp::Max => self.arithmetic(old),
        }
    }

    fn arithmetic(self, old: u64) -> u64 {
        fn of<T: integer::Int>(op: AtomicOp) -> F2 {
            match op {
                AtomicOp::Add => integer::add::<T>,
                AtomicOp::Min => integer::min::<T>,
                _ => integer::max::<T>,
            }
        }
        fn of_float<T: float::Float>(op: AtomicOp) -> F2 {
            match op {
                AtomicOp::Add => float::add::<T, 0>,
                AtomicOp::Min => float::min::<T>,
                _ => float::max::<T>,
            }
        }
        let f = match self.ty {
            AtomicType::U16 => of::<u16>(self.op),
            AtomicType::U32 => of::<u32>(self.op),
            AtomicType::S32 => of::<i32>(self.op),
            AtomicType::U64 => of::<u64>(self.op),
            AtomicType::S64 => of::<i64>(self.op),
            AtomicType::F32 if self.flushes => of_float::<Flushed>(self.op),
            AtomicType::F32 => of_float::<f32>(self.op),
            AtomicType::F64 => of_float::<f64>(self.op),
            AtomicType::F16 | AtomicType::F16x2 => of_float::<F16>(self.op),
            AtomicType::Bf16 | AtomicType::Bf16x2 => of_float::<Bf16>(self.op),
        };
        if matches!(self.ty, AtomicType::F16x2 | AtomicType::Bf16x2) {
            return (f(old, self.b) & 0xffff) | ((f(old >> 16, self.b >> 16) & 0xffff) << 16);
        }
        f(old, self.b)
    }

    /// Changes a checked location and returns the old value.
    pub(super) fn perform(self, thread_memory: &mut ThreadMemory<'_>, location: Location) -> u64 {
        let cell = match self.ty.bytes() {
            2 => Cell::U16,
            4 => Cell::U32,
            _ => Cell::U64,
        };
        match location {
            // As on GPUs: sums of singles in global memory lose subnormal numbers.
            Location::Host(_) if self.ty == AtomicType::F32 && !self.flushes => {
                AtomicChange { flushes: true, ..self }.perform(thread_memory, location)
            }
            Location::Host(host) if is_aligned(host, self.ty.bytes() as usize) => {
                // SAFETY: `place` was made by `Spans::host` for a write of this size, and it is
                // aligned.
                unsafe { self.perform_host(host) }
            }
            _ => {
                let guard = lock(&UNALIGNED);
                let old = thread_memory.load(location, cell, 0);
                thread_memory.store(location, cell, 0, self.apply(old));
                drop(guard);
                old
            }
        }
    }

    /// # Safety
    /// `host` points to a mapped, writable, aligned value of the type's size, which is only
    /// accessed atomically.
    unsafe fn perform_host(self, host: *mut u8) -> u64 {
        macro_rules! update {
            ($atomic:ty, $t:ty) => {{
                // SAFETY: the contract of this function.
                let cell = unsafe { <$atomic>::from_ptr(host.cast()) };
                let mut old = cell.load(Ordering::Relaxed);
                loop {
                    let new = self.apply(old.put()) as $t;
                    match cell.compare_exchange_weak(old, new, Ordering::AcqRel, Ordering::Acquire) {
                        Ok(_) => break old.put(),
                        Err(found) => old = found,
                    }
                }
            }};
        }
        match self.ty.bytes() {
            2 => update!(AtomicU16, u16),
            4 => update!(AtomicU32, u32),
            _ => update!(AtomicU64, u64),
        }
    }
}

/// An atomic access to 16 bytes at a checked location; returns the old value. `b` is what is stored
/// or compared, `c` the new value of a compare-and-swap.
pub(super) fn perform128(
    op: Op128,
    thread_memory: &mut ThreadMemory<'_>,
    location: Location,
    b: [u64; 2],
    c: [u64; 2],
) -> [u64; 2] {
    let guard = lock(&UNALIGNED);
    let old = [0, 1].map(|index| thread_memory.load(location, Cell::U64, index));
    let new = match op {
        Op128::Load => None,
        Op128::Store | Op128::Exchange => Some(b),
        Op128::CompareSwap => (old == b).then_some(c),
    };
    for (index, value) in new.iter().flatten().enumerate() {
        thread_memory.store(location, Cell::U64, index, *value);
    }
    drop(guard);
    old
}
