//! Memory operations of streams and batch nodes: write, wait for a value, atomic reduction,
//! barrier.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use cuda_sys::{
    CUresult, CUstreamAtomicReductionDataType, CUstreamAtomicReductionOpType, CUstreamBatchMemOpParams,
    CUstreamBatchMemOpType, CUstreamWaitValue_flags, Version,
};

use crate::device::loss::Loss;
use crate::driver;
use crate::driver::result_code::{Answer, INVALID_VALUE, NOT_SUPPORTED};
use crate::memory::{self, Origin};
use crate::stream::poll::poll;

/// The most operations of one batch.
pub(crate) const MOST: usize = 255;

const FLUSH: u32 = CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_FLUSH.0;

/// One operation as the user gave it. Its parameters have been checked.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct MemOp(CUstreamBatchMemOpParams);

impl std::fmt::Debug for MemOp {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_tuple("MemOp").field(&self.kind()).finish()
    }
}

/// An operation, parsed.
#[derive(Debug, Clone, Copy)]
enum ParsedOp {
    Wait { address: u64, value: u64, wide: bool, how: u32 },
    Write { address: u64, value: u64, wide: bool },
    Reduce { address: u64, value: u64, wide: bool, how: CUstreamAtomicReductionOpType },
    Barrier,
}

type T = CUstreamBatchMemOpType;

impl MemOp {
    pub(crate) fn new(raw: &CUstreamBatchMemOpParams) -> Answer<Self> {
        let own = Self(*raw);
        match own.parse()? {
            ParsedOp::Wait { address, wide, .. }
            | ParsedOp::Write { address, wide, .. }
            | ParsedOp::Reduce { address, wide, .. }
                if !address.is_multiple_of(if wide { 8 } else { 4 }) =>
            {
                Err(INVALID_VALUE)
            }
            _ => Ok(own),
        }
    }

    /// A wait for a value.
    pub(crate) fn wait(address: u64, value: u64, wide: bool, flags: u32) -> Answer<Self> {
        let mut raw = CUstreamBatchMemOpParams::default();
        raw.waitValue.operation =
            if wide { T::CU_STREAM_MEM_OP_WAIT_VALUE_64 } else { T::CU_STREAM_MEM_OP_WAIT_VALUE_32 };
        raw.waitValue.address = address;
        raw.waitValue.__bindgen_anon_1.value64 = value;
        raw.waitValue.flags = flags;
        Self::new(&raw)
    }

    /// A write of a value.
    pub(crate) fn write(address: u64, value: u64, wide: bool, flags: u32) -> Answer<Self> {
        let mut raw = CUstreamBatchMemOpParams::default();
        raw.writeValue.operation =
            if wide { T::CU_STREAM_MEM_OP_WRITE_VALUE_64 } else { T::CU_STREAM_MEM_OP_WRITE_VALUE_32 };
        raw.writeValue.address = address;
        raw.writeValue.__bindgen_anon_1.value64 = value;
        raw.writeValue.flags = flags;
        Self::new(&raw)
    }

    pub(crate) fn kind(&self) -> CUstreamBatchMemOpType {
        // SAFETY: every form begins with the operation.
        unsafe { self.0.operation }
    }

    /// Parses the parameters. Unknown operations and flags are invalid values.
    fn parse(&self) -> Answer<ParsedOp> {
        let raw = &self.0;
        // SAFETY (of all blocks): the operation says which form the parameters have, and all bytes
        // of them were given.
        match self.kind() {
            kind @ (T::CU_STREAM_MEM_OP_WAIT_VALUE_32 | T::CU_STREAM_MEM_OP_WAIT_VALUE_64) => {
                let wide = kind == T::CU_STREAM_MEM_OP_WAIT_VALUE_64;
                // SAFETY: as above.
                let (params, value) =
                    unsafe { (raw.waitValue, value(raw.waitValue.__bindgen_anon_1.value64, wide)) };
                if params.flags & !FLUSH > 3 {
                    return Err(INVALID_VALUE);
                }
                // No device here can flush remote writes.
                if params.flags & FLUSH != 0 {
                    return Err(NOT_SUPPORTED);
                }
                Ok(ParsedOp::Wait { address: params.address, value, wide, how: params.flags })
            }
            kind @ (T::CU_STREAM_MEM_OP_WRITE_VALUE_32 | T::CU_STREAM_MEM_OP_WRITE_VALUE_64) => {
                let wide = kind == T::CU_STREAM_MEM_OP_WRITE_VALUE_64;
                // SAFETY: as above.
                let (params, value) =
                    unsafe { (raw.writeValue, value(raw.writeValue.__bindgen_anon_1.value64, wide)) };
                // The header has a flag for writes without a barrier (1); the driver refuses it.
                if params.flags != 0 {
                    return Err(INVALID_VALUE);
                }
                Ok(ParsedOp::Write { address: params.address, value, wide })
            }
            T::CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES => Err(NOT_SUPPORTED),
            // SAFETY: as above.
            T::CU_STREAM_MEM_OP_BARRIER if unsafe { raw.memoryBarrier.flags } <= 1 => Ok(ParsedOp::Barrier),
            T::CU_STREAM_MEM_OP_ATOMIC_REDUCTION if driver::version() >= Version::new(13, 1) => {
                // SAFETY: as above.
                let params = unsafe { raw.atomicReduction };
                let wide = match params.dataType {
                    CUstreamAtomicReductionDataType::CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_32 => false,
                    CUstreamAtomicReductionDataType::CU_STREAM_ATOMIC_REDUCTION_UNSIGNED_64 => true,
                    _ => return Err(INVALID_VALUE),
                };
                let value = value(params.value, wide);
                match params.reductionOp {
                    CUstreamAtomicReductionOpType::CU_STREAM_ATOMIC_REDUCTION_OP_OR
                    | CUstreamAtomicReductionOpType::CU_STREAM_ATOMIC_REDUCTION_OP_AND
                    | CUstreamAtomicReductionOpType::CU_STREAM_ATOMIC_REDUCTION_OP_ADD => {}
                    _ => return Err(INVALID_VALUE),
                }
                Ok(ParsedOp::Reduce { address: params.address, value, wide, how: params.reductionOp })
            }
            _ => Err(INVALID_VALUE),
        }
    }

    /// Executes the operation; false for a wait whose value is not there yet.
    fn try_run(&self) -> Result<bool, Loss> {
        let (done, verb) = match self.parse() {
            Ok(ParsedOp::Wait { address, value, wide, how }) => {
                let found = with_word(address, wide, false, |word| word.load());
                (found.map(|found| is_met(found, value, wide, how)), "waits for")
            }
            Ok(ParsedOp::Write { address, value, wide }) => {
                (with_word(address, wide, true, |word| word.store(value)).map(|()| true), "writes")
            }
            Ok(ParsedOp::Reduce { address, value, wide, how }) => {
                (with_word(address, wide, true, |word| word.reduce(value, how)).map(|()| true), "changes")
            }
            Ok(ParsedOp::Barrier) => {
                fence(Ordering::SeqCst);
                (Ok(true), "")
            }
            // Checked by `new`.
            Err(_) => (Ok(true), ""),
        };
        done.map_err(|sentence| {
            let text = format!("a memory operation {verb} a value: {sentence}");
            Loss::new(CUresult::CUDA_ERROR_ILLEGAL_ADDRESS, text)
        })
    }

    pub(crate) fn waits(&self) -> bool {
        matches!(self.kind(), T::CU_STREAM_MEM_OP_WAIT_VALUE_32 | T::CU_STREAM_MEM_OP_WAIT_VALUE_64)
    }
}

/// The value, cut to its width.
fn value(given: u64, wide: bool) -> u64 {
    if wide { given } else { given & u64::from(u32::MAX) }
}

/// Refuses memory that is neither plain nor pinned, as the driver does. For nodes it does so only
/// at the launch.
pub(crate) fn ensure_reachable(ops: &[MemOp]) -> Answer {
    let refused = |op: &MemOp| {
        let (Ok(ParsedOp::Wait { address, .. })
        | Ok(ParsedOp::Write { address, .. })
        | Ok(ParsedOp::Reduce { address, .. })) = op.parse()
        else {
            return false;
        };
        memory::find(address).is_some_and(|found| {
            matches!(found.origin, Origin::Pool | Origin::Imported) || found.origin.is_managed()
        })
    };
    if ops.iter().any(refused) { Err(INVALID_VALUE) } else { Ok(()) }
}

/// Executes operations in order from number `next` on until one has to wait; true if all are done.
pub(crate) fn advance(ops: &[MemOp], next: &mut usize) -> Result<bool, Loss> {
    while let Some(op) = ops.get(*next) {
        if !op.try_run()? {
            return Ok(false);
        }
        *next += 1;
    }
    Ok(true)
}

/// Executes all operations in order, or until the device is lost.
pub(crate) fn run_all(ops: &[MemOp], device: i32) -> Result<(), Loss> {
    let mut next = 0;
    poll(device, || advance(ops, &mut next))
}

/// A word of memory.
enum Word<'a> {
    Narrow(&'a AtomicU32),
    Wide(&'a AtomicU64),
}

impl Word<'_> {
    fn load(&self) -> u64 {
        match self {
            Self::Narrow(word) => word.load(Ordering::SeqCst).into(),
            Self::Wide(word) => word.load(Ordering::SeqCst),
        }
    }

    fn store(&self, value: u64) {
        match self {
            Self::Narrow(word) => word.store(value as u32, Ordering::SeqCst),
            Self::Wide(word) => word.store(value, Ordering::SeqCst),
        }
    }

    fn reduce(&self, value: u64, how: CUstreamAtomicReductionOpType) {
        type R = CUstreamAtomicReductionOpType;
        match (self, how) {
            (Self::Narrow(word), R::CU_STREAM_ATOMIC_REDUCTION_OP_OR) => {
                word.fetch_or(value as u32, Ordering::SeqCst);
            }
            (Self::Narrow(word), R::CU_STREAM_ATOMIC_REDUCTION_OP_AND) => {
                word.fetch_and(value as u32, Ordering::SeqCst);
            }
            (Self::Narrow(word), _) => {
                word.fetch_add(value as u32, Ordering::SeqCst);
            }
            (Self::Wide(word), R::CU_STREAM_ATOMIC_REDUCTION_OP_OR) => {
                word.fetch_or(value, Ordering::SeqCst);
            }
            (Self::Wide(word), R::CU_STREAM_ATOMIC_REDUCTION_OP_AND) => {
                word.fetch_and(value, Ordering::SeqCst);
            }
            (Self::Wide(word), _) => {
                word.fetch_add(value, Ordering::SeqCst);
            }
        }
    }
}

/// Accesses the word at an address; the error says what is wrong with the address.
fn with_word<R>(
    address: u64,
    wide: bool,
    write: bool,
    act: impl FnOnce(&Word<'_>) -> R,
) -> Result<R, String> {
    let found = memory::access(address, if wide { 8 } else { 4 }, write)?;
    // SAFETY: the access found the word inside the allocation, which is held until `act` is done.
    let at = unsafe { found.host().add((address - found.start) as usize) };
    if !at.addr().is_multiple_of(if wide { 8 } else { 4 }) {
        return Err("it is not aligned".to_owned());
    }
    // SAFETY (of both): aligned and inside the allocation; all accesses to device memory are
    // atomic.
    let word = match wide {
        // SAFETY: as above.
        true => Word::Wide(unsafe { AtomicU64::from_ptr(at.cast()) }),
        // SAFETY: as above.
        false => Word::Narrow(unsafe { AtomicU32::from_ptr(at.cast()) }),
    };
    Ok(act(&word))
}

/// Whether the value in memory ends a wait.
fn is_met(found: u64, value: u64, wide: bool, how: u32) -> bool {
    match how {
        // Cyclic: the difference is a signed number.
        0 if wide => (found.wrapping_sub(value) as i64) >= 0,
        0 => ((found as u32).wrapping_sub(value as u32) as i32) >= 0,
        1 => found == value,
        2 => found & value != 0,
        _ if wide => !(found | value) != 0,
        _ => !(found as u32 | value as u32) != 0,
    }
}

#[cfg(test)]
mod tests {
    use super::is_met;

    #[test]
    fn comparisons_are_those_of_the_interface() {
        for (found, value, wide, how, expected) in [
            (5, 5, false, 0, true),
            (4, 5, false, 0, false),
            // More than half the range ahead is behind.
            (0, u64::from(u32::MAX), false, 0, true),
            (0, u64::from(u32::MAX), true, 0, false),
            (0, u64::MAX, true, 0, true),
            (1 << 63, 0, true, 0, false),
            (7, 7, true, 1, true),
            (7, 8, true, 1, false),
            (6, 2, false, 2, true),
            (4, 2, false, 2, false),
            (0xffff_fff0, 0xf, false, 3, false),
            (0xffff_fff0, 0x7, false, 3, true),
            (0xffff_fff0, 0xf, true, 3, true),
            (!0xf, 0xf, true, 3, false),
        ] {
            assert_eq!(is_met(found, value, wide, how), expected, "{found:#x} {value:#x} {wide} {how}");
        }
    }
}
