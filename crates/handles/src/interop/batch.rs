//! Batches of memory operations: numbers in memory written and waited for by a stream or a graph,
//! without a kernel.

use std::sync::Arc;

use cuda_sys::{CUdevice_attribute as Attribute, CUdeviceptr, CUstreamBatchMemOpParams, Call};
use smallvec::SmallVec;

use super::batch_operation::{BarrierScope, BatchOperation, BatchWord, Compare};
use crate::context::Context;
use crate::error::{Error, MemoryKind, Result};
use crate::memory::{Allocation, Slice};
use crate::stream::{Stream, Work};

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
/// stream.batch(&batch)?; // waits until other work writes 1 to the first number
/// # Ok(()) }
/// ```
///
/// A wait holds up the work behind it on the stream, or after the node, until the number is
/// written.
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
    /// There is no such element ([`Bounds`](crate::Error::Bounds)).
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
    /// There is no such element ([`Bounds`](crate::Error::Bounds)).
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

    /// As [`wait`](Self::wait), and then makes the writes of other devices before the number
    /// visible. Not supported on every device.
    ///
    /// # Errors
    /// There is no such element ([`Bounds`](crate::Error::Bounds)).
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

    /// Makes all earlier writes visible to the work that follows.
    #[doc(alias = "CU_STREAM_MEM_OP_BARRIER")]
    pub fn barrier(&mut self, scope: BarrierScope) -> &mut Self {
        self.operations.push(BatchOperation::Barrier { scope });
        self
    }

    /// Makes the writes of other devices visible. Not supported on every device.
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
    /// Calls `cuDeviceGetAttribute` (CUDA 2.0) for optional features.
    ///
    /// # Errors
    /// Memory of another context ([`WrongContext`](crate::Error::WrongContext)), or neither plain
    /// nor pinned; more than [`LIMIT`](Self::LIMIT) operations; the device lacks something.
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
                kind @ (MemoryKind::Pooled
                | MemoryKind::Managed
                | MemoryKind::Imported
                | MemoryKind::Graph) => Err(Error::BatchMemory { kind }),
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

/// Features that not every device supports.
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

impl Stream {
    /// Enqueues the operations of a batch, one after the other. Waits for nothing on the host. One
    /// driver call, and one more for each thing that not every device can.
    ///
    /// Calls `cuStreamBatchMemOp` (CUDA 11.7).
    ///
    /// # Errors
    /// As [`Batch::check`], or the driver refuses the call ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuStreamBatchMemOp")]
    pub fn batch(&self, batch: &Batch) -> Result<()> {
        let context = self.context();
        context.ensure_usable()?;
        batch.check(context)?;
        if batch.is_empty() {
            return Ok(());
        }
        let mut params = batch.params();
        let count = params.len() as u32;
        let memory: SmallVec<[&Arc<Allocation>; 2]> = batch.memory.iter().collect();
        let access = self.enqueue_ready(&memory)?;
        let mut call = || {
            // SAFETY: there are so many operations, at most 255, on memory that lives until after
            // this point of the stream, or as long as the graph they are captured into.
            let code =
                unsafe { context.driver().cuStreamBatchMemOp(self.as_raw(), count, params.as_mut_ptr(), 0) };
            (Call::cuStreamBatchMemOp, code)
        };
        if access.is_captured()? {
            let first = batch.operations.first().map_or(0, BatchOperation::address);
            return access.captured_call(
                Work::Batch { first, count },
                |record| {
                    batch.memory.iter().for_each(|memory| record.allocation(memory));
                    let addresses = batch.operations.iter().map(BatchOperation::address);
                    addresses.for_each(|address| record.argument(Some(&address.to_ne_bytes())));
                },
                call,
            );
        }
        let (call, code) = call();
        context.check(call, code)
    }
}
