//! The operations of a batch, and the driver's form of them.

use core::fmt;
use cuda_sys::CUstreamBatchMemOpType as Kind;

use cuda_sys::{CUdeviceptr, CUstreamBatchMemOpParams, CUstreamMemoryBarrier_flags, CUstreamWaitValue_flags};

use crate::memory::Element;

/// The condition on which a wait ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Compare {
    /// Until it is at least as large; as numbers that wrap around: until their difference, taken as
    /// a signed number, is not negative.
    #[doc(alias = "CU_STREAM_WAIT_VALUE_GEQ")]
    AtLeast,
    /// Until both are equal.
    #[doc(alias = "CU_STREAM_WAIT_VALUE_EQ")]
    Equal,
    /// Until they have a bit in common.
    #[doc(alias = "CU_STREAM_WAIT_VALUE_AND")]
    And,
    /// Until there is a bit that neither has. Not every device can.
    #[doc(alias = "CU_STREAM_WAIT_VALUE_NOR")]
    Nor,
}

/// The observers for whom a barrier orders the writes before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BarrierScope {
    /// Everything: the host and other devices, too.
    #[default]
    #[doc(alias = "CU_STREAM_MEMORY_BARRIER_TYPE_SYS")]
    System,
    /// This device.
    #[doc(alias = "CU_STREAM_MEMORY_BARRIER_TYPE_GPU")]
    Device,
}

/// A number that batches can write and wait for: `u32` or `u64`.
///
/// ```compile_fail,E0277
/// # fn example(flags: &cuda_handles::Buffer<f32>) -> cuda_handles::Result<()> {
/// cuda_handles::Batch::new().write(flags, 0, 1.0)?;
/// # Ok(()) }
/// ```
pub trait BatchWord: Element + Into<u64> + sealed::Sealed {}

mod sealed {
    /// Only the numbers that the driver has.
    pub trait Sealed {
        /// Whether it has 64 bits.
        const WIDE: bool;
    }

    impl Sealed for u32 {
        const WIDE: bool = false;
    }

    impl Sealed for u64 {
        const WIDE: bool = true;
    }
}

impl BatchWord for u32 {}
impl BatchWord for u64 {}

/// One operation of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BatchOperation {
    /// Writes a number.
    Write {
        /// The address.
        address: CUdeviceptr,
        /// The number.
        value: u64,
        /// Whether it has 64 bits, not 32.
        wide: bool,
    },
    /// Waits for a number.
    Wait {
        /// The address.
        address: CUdeviceptr,
        /// The number to compare with.
        value: u64,
        /// Whether it has 64 bits, not 32.
        wide: bool,
        /// The condition.
        compare: Compare,
        /// Whether writes of other devices that came before the number are made visible afterwards.
        flush: bool,
    },
    /// Makes the writes before it visible.
    Barrier {
        /// To whom.
        scope: BarrierScope,
    },
    /// Makes writes of other devices visible.
    Flush,
}

impl Compare {
    fn flag(self) -> CUstreamWaitValue_flags {
        match self {
            Self::AtLeast => CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_GEQ,
            Self::Equal => CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_EQ,
            Self::And => CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_AND,
            Self::Nor => CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_NOR,
        }
    }
}

impl BatchOperation {
    /// The address of its number; 0 if it has none.
    pub(super) fn address(&self) -> CUdeviceptr {
        match *self {
            Self::Write { address, .. } | Self::Wait { address, .. } => address,
            Self::Barrier { .. } | Self::Flush => 0,
        }
    }

    /// The driver's form.
    #[doc(hidden)]
    #[must_use]
    pub fn params(&self) -> CUstreamBatchMemOpParams {
        let mut params = CUstreamBatchMemOpParams::default();
        match *self {
            Self::Write { address, value, wide } => {
                let kind = [Kind::CU_STREAM_MEM_OP_WRITE_VALUE_32, Kind::CU_STREAM_MEM_OP_WRITE_VALUE_64];
                params.writeValue.operation = kind[usize::from(wide)];
                params.writeValue.address = address;
                // The low half of it is the number of 32 bits.
                params.writeValue.__bindgen_anon_1.value64 = value;
            }
            Self::Wait { address, value, wide, compare, flush } => {
                let kind = [Kind::CU_STREAM_MEM_OP_WAIT_VALUE_32, Kind::CU_STREAM_MEM_OP_WAIT_VALUE_64];
                let flush = if flush { CUstreamWaitValue_flags::CU_STREAM_WAIT_VALUE_FLUSH.0 } else { 0 };
                params.waitValue.operation = kind[usize::from(wide)];
                params.waitValue.address = address;
                params.waitValue.__bindgen_anon_1.value64 = value;
                params.waitValue.flags = compare.flag().0 | flush;
            }
            Self::Barrier { scope } => {
                let scope = match scope {
                    BarrierScope::System => CUstreamMemoryBarrier_flags::CU_STREAM_MEMORY_BARRIER_TYPE_SYS,
                    BarrierScope::Device => CUstreamMemoryBarrier_flags::CU_STREAM_MEMORY_BARRIER_TYPE_GPU,
                };
                params.memoryBarrier.operation = Kind::CU_STREAM_MEM_OP_BARRIER;
                params.memoryBarrier.flags = scope.0;
            }
            Self::Flush => params.flushRemoteWrites.operation = Kind::CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES,
        }
        params
    }
}

impl fmt::Display for Compare {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::AtLeast => ">=",
            Self::Equal => "==",
            Self::And => "&",
            Self::Nor => "nor",
        })
    }
}

impl fmt::Display for BatchOperation {
    /// Such as `write 7` and `wait >= 1`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Write { value, .. } => write!(formatter, "write {value}"),
            Self::Wait { value, compare, .. } => write!(formatter, "wait {compare} {value}"),
            Self::Barrier { .. } => formatter.write_str("barrier"),
            Self::Flush => formatter.write_str("flush"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes(operation: BatchOperation) -> [u64; 6] {
        // SAFETY: the union was zeroed as a whole before the fields were set.
        unsafe { operation.params().pad }
    }

    #[test]
    fn bytes_without_meaning_are_zero() {
        let write = BatchOperation::Write { address: 0x1000, value: 7, wide: false };
        assert_eq!(bytes(write), [2, 0x1000, 7, 0, 0, 0]);
        let wait = BatchOperation::Wait {
            address: 8,
            value: u64::MAX,
            wide: true,
            compare: Compare::Nor,
            flush: true,
        };
        assert_eq!(bytes(wait), [4, 8, u64::MAX, 3 | 1 << 30, 0, 0]);
        assert_eq!(
            bytes(BatchOperation::Barrier { scope: BarrierScope::Device }),
            [6 | 1 << 32, 0, 0, 0, 0, 0]
        );
        assert_eq!(bytes(BatchOperation::Flush), [3, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn operations_read_as_text() {
        let wait =
            BatchOperation::Wait { address: 8, value: 3, wide: true, compare: Compare::AtLeast, flush: true };
        assert_eq!(wait.to_string(), "wait >= 3");
    }
}
