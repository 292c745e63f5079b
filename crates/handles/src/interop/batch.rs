//! Batches of memory operations: numbers in memory written and waited for by a stream or a graph,
//! without a kernel.

use core::fmt;
use std::sync::Arc;

use cuda_sys::{
    CUdevice_attribute as Attribute, CUdeviceptr, CUstreamBatchMemOpParams, CUstreamBatchMemOpType as Kind,
    CUstreamMemoryBarrier_flags, CUstreamWaitValue_flags, Call,
};
use smallvec::SmallVec;

use crate::context::Context;
use crate::error::{Error, MemoryKind, Result};
use crate::memory::{Allocation, Element, Slice};
use crate::stream::Stream;

/// What a wait compares the number in memory with the number given for.
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

/// For whom a barrier puts the writes before it in front of what follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum BarrierScope {
    /// For all: the host and other devices, too.
    #[default]
    #[doc(alias = "CU_STREAM_MEMORY_BARRIER_TYPE_SYS")]
    System,
    /// For this device.
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
        /// Where.
        address: CUdeviceptr,
        /// The number.
        value: u64,
        /// Whether it has 64 bits, not 32.
        wide: bool,
    },
    /// Waits for a number.
    Wait {
        /// Where.
        address: CUdeviceptr,
        /// The number to compare with.
        value: u64,
        /// Whether it has 64 bits, not 32.
        wide: bool,
        /// What it is compared for.
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

/// A list of memory operations, done one after the other: for [`Stream::batch`] and for batch nodes
/// of graphs. It keeps the memory, which has to be plain or pinned: pooled and managed memory the
/// driver does not take.
///
/// ```no_run
/// # fn main() -> cuda_handles::Result<()> {
/// # let context = cuda_handles::Device::new(0)?.context()?;
/// # let (stream, other) = (context.stream()?, context.stream()?);
/// use cuda_handles::{Batch, Compare};
///
/// let flags = context.alloc_blocking::<u32>(2)?;
/// stream.fill(&flags, 0)?;
/// let mut batch = Batch::new();
/// batch.wait(&flags, 0, Compare::AtLeast, 1)?.write(&flags, 1, 7)?;
/// stream.batch(&batch)?; // goes on once somebody writes 1 to the first number
/// # Ok(()) }
/// ```
///
/// A wait holds up what follows on the stream, or after the node, for as long as nobody writes the
/// number.
#[derive(Clone, Debug, Default)]
pub struct Batch {
    operations: Vec<BatchOperation>,
    memory: SmallVec<[Arc<Allocation>; 2]>,
}

impl Batch {
    /// The most operations of one batch; the driver has no more.
    pub const LIMIT: usize = 255;

    /// A batch without operations.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Writes `value` to the element at `index`, once everybody can see all that was written
    /// before.
    ///
    /// # Errors
    /// There is no such element.
    #[doc(alias = "cuStreamWriteValue32")]
    #[doc(alias = "cuStreamWriteValue64")]
    pub fn write<'a, W: BatchWord>(
        &mut self,
        memory: impl Into<Slice<'a, W>>,
        index: usize,
        value: W,
    ) -> Result<&mut Self> {
        let (address, value) = (self.keep(memory.into(), index)?, value.into());
        self.operations.push(BatchOperation::Write { address, value, wide: W::WIDE });
        Ok(self)
    }

    /// Waits until the element at `index` compares with `value`.
    ///
    /// # Errors
    /// There is no such element.
    #[doc(alias = "cuStreamWaitValue32")]
    #[doc(alias = "cuStreamWaitValue64")]
    pub fn wait<'a, W: BatchWord>(
        &mut self,
        memory: impl Into<Slice<'a, W>>,
        index: usize,
        compare: Compare,
        value: W,
    ) -> Result<&mut Self> {
        self.push_wait(memory.into(), index, compare, value, false)
    }

    /// As [`wait`](Self::wait), and then sees what other devices wrote before they wrote the
    /// number. Not every device can.
    ///
    /// # Errors
    /// There is no such element.
    #[doc(alias = "CU_STREAM_WAIT_VALUE_FLUSH")]
    pub fn wait_and_flush<'a, W: BatchWord>(
        &mut self,
        memory: impl Into<Slice<'a, W>>,
        index: usize,
        compare: Compare,
        value: W,
    ) -> Result<&mut Self> {
        self.push_wait(memory.into(), index, compare, value, true)
    }

    /// Makes the writes before visible to what follows.
    #[doc(alias = "CU_STREAM_MEM_OP_BARRIER")]
    pub fn barrier(&mut self, scope: BarrierScope) -> &mut Self {
        self.operations.push(BatchOperation::Barrier { scope });
        self
    }

    /// Makes what other devices wrote visible. Not every device can.
    #[doc(alias = "CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES")]
    pub fn flush(&mut self) -> &mut Self {
        self.operations.push(BatchOperation::Flush);
        self
    }

    fn push_wait<W: BatchWord>(
        &mut self,
        memory: Slice<'_, W>,
        index: usize,
        compare: Compare,
        value: W,
        flush: bool,
    ) -> Result<&mut Self> {
        let (address, value) = (self.keep(memory, index)?, value.into());
        self.operations.push(BatchOperation::Wait { address, value, wide: W::WIDE, compare, flush });
        Ok(self)
    }

    /// The address of an element, whose memory is kept from now on.
    fn keep<W: BatchWord>(&mut self, memory: Slice<'_, W>, index: usize) -> Result<CUdeviceptr> {
        let element = memory.slice(index..=index)?;
        let allocation = element.allocation();
        if !self.memory.iter().any(|known| Arc::ptr_eq(known, allocation)) {
            self.memory.push(Arc::clone(allocation));
        }
        Ok(element.address())
    }

    /// The operations, in their order.
    #[must_use]
    pub fn operations(&self) -> &[BatchOperation] {
        &self.operations
    }

    /// The memory of the operations, each once.
    #[must_use]
    pub fn memory(&self) -> &[Arc<Allocation>] {
        &self.memory
    }

    /// The number of operations.
    #[must_use]
    pub fn len(&self) -> usize {
        self.operations.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// Whether work in `context` can be done by the batch.
    ///
    /// Stands on `cuDeviceGetAttribute`, CUDA 2.0, for what not every device can.
    ///
    /// # Errors
    /// Memory of another context, or neither plain nor pinned; more than [`LIMIT`](Self::LIMIT)
    /// operations; the device lacks something.
    pub fn check(&self, context: &Context) -> Result<()> {
        let (asked, limit) = (self.len() as u64, Self::LIMIT as u64);
        if asked > limit {
            return Err(Error::Limit { what: "operations of a batch", asked, limit });
        }
        self.memory.iter().try_for_each(|memory| {
            context.ensure_same(memory.context(), "the memory of a batch")?;
            match memory.kind() {
                MemoryKind::Plain
                | MemoryKind::Global
                | MemoryKind::Pinned
                | MemoryKind::Registered
                | MemoryKind::Foreign => Ok(()),
                kind => Err(Error::BatchMemory { kind }),
            }
        })?;
        for (need, attribute, what) in NEEDS {
            if self.operations.iter().any(need) && context.device().attribute(attribute)? == 0 {
                return Err(Error::Unsupported { what });
            }
        }
        Ok(())
    }

    /// The driver's form.
    #[must_use]
    pub fn params(&self) -> Vec<CUstreamBatchMemOpParams> {
        self.operations.iter().map(BatchOperation::params).collect()
    }
}

type Need = (fn(&BatchOperation) -> bool, Attribute, &'static str);

/// What not every device can.
const NEEDS: [Need; 3] = [
    (
        |operation| {
            matches!(
                operation,
                BatchOperation::Write { wide: true, .. } | BatchOperation::Wait { wide: true, .. }
            )
        },
        Attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS,
        "a batch with numbers of 64 bits (CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS)",
    ),
    (
        |operation| matches!(operation, BatchOperation::Wait { compare: Compare::Nor, .. }),
        Attribute::CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR,
        "a wait for a bit that neither number has (CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR)",
    ),
    (
        |operation| matches!(operation, BatchOperation::Flush | BatchOperation::Wait { flush: true, .. }),
        Attribute::CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES,
        "a flush of writes of other devices (CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES)",
    ),
];

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
    fn params(&self) -> CUstreamBatchMemOpParams {
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

impl Stream {
    /// Enqueues the operations of a batch, one after the other. Waits for nothing on the host. One
    /// driver call, and one more for each thing that not every device can.
    ///
    /// Stands on `cuStreamBatchMemOp`, CUDA 11.7.
    ///
    /// # Errors
    /// As [`Batch::check`], or what the driver answers.
    #[doc(alias = "cuStreamBatchMemOp")]
    pub fn batch(&self, batch: &Batch) -> Result<()> {
        let context = self.context();
        context.ensure_usable()?;
        batch.check(context)?;
        if batch.is_empty() {
            return Ok(());
        }
        batch.memory.iter().try_for_each(|memory| memory.ready_on(self))?;
        let mut params = batch.params();
        let turn = self.enqueue()?;
        if turn.is_captured()? {
            batch.memory.iter().try_for_each(|memory| turn.keep(memory))?;
        }
        // SAFETY: there are so many operations, at most 255, on memory that lives until after this
        // point of the stream, or as long as the graph they are captured into.
        let code = unsafe {
            let count = params.len() as u32;
            context.driver().cuStreamBatchMemOp(self.as_raw(), count, params.as_mut_ptr(), 0)
        };
        context.check(Call::cuStreamBatchMemOp, code)
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
