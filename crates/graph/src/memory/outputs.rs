//! Outputs: graph memory that a launch left, for the caller to use.

use core::fmt;
use core::marker::PhantomData;
use core::ops::RangeBounds;
use std::sync::Arc;

use cuda_handles::{Allocation, Buffer, Element, GraphBuffer, Slice, Stream};
use cuda_launch::{Argument, FixedArgument, In, InOut, KernelArg, Out, Params, PlainArgument};
use cuda_sys::CUdeviceptr;

use crate::error::{Error, MemoryError, Result};
use crate::memory::output_memory::OutputMemory;

/// The graph memory that a launch left: what its allocation nodes allocated and no free node freed.
///
/// Returned by [`GraphExec::launch_with_outputs`](crate::GraphExec::launch_with_outputs). Memory
/// that is not [taken](Self::take) is freed when this is dropped. Until all of it is dropped, the
/// executable cannot be launched again:
///
/// ```compile_fail,E0499
/// # fn example(
/// #     exec: &mut cuda_graph::GraphExec, stream: &cuda_handles::Stream,
/// #     memory: &cuda_handles::GraphBuffer<u32>
/// # ) -> cuda_graph::Result<()> {
/// let output = exec.launch_with_outputs(stream)?.take(memory)?;
/// exec.launch(stream)?;
/// drop(output);
/// # Ok(())
/// # }
/// ```
///
/// nor dropped:
///
/// ```compile_fail,E0505
/// # fn example(
/// #     mut exec: cuda_graph::GraphExec, stream: &cuda_handles::Stream,
/// #     memory: &cuda_handles::GraphBuffer<u32>
/// # ) -> cuda_graph::Result<()> {
/// let output = exec.launch_with_outputs(stream)?.take(memory)?;
/// drop(exec);
/// drop(output);
/// # Ok(())
/// # }
/// ```
#[must_use = "what is not taken is freed at once, as GraphExec::launch does"]
pub struct Outputs<'e> {
    outputs: Vec<(Arc<Allocation>, Option<Buffer<u8>>)>,
    _exec: PhantomData<&'e ()>,
}

impl<'e> Outputs<'e> {
    pub(crate) fn new(memory: Option<&'e OutputMemory>, buffers: Vec<Buffer<u8>>) -> Self {
        let memory = memory.into_iter().flat_map(|memory| memory.allocations().iter().cloned());
        Self { outputs: memory.zip(buffers.into_iter().map(Some)).collect(), _exec: PhantomData }
    }

    /// Takes the memory of an allocation node.
    ///
    /// # Errors
    /// - [`MemoryError::NoOutput`]: the launch left no such memory. The graph frees it, or it is of
    ///   another graph.
    /// - [`MemoryError::OutputTaken`]: it was taken already.
    pub fn take<T: Element>(&mut self, memory: &GraphBuffer<T>) -> Result<OutputBuffer<'e, T>> {
        let is_it = |output: &&mut (Arc<Allocation>, _)| Arc::ptr_eq(&output.0, memory.allocation());
        let address = memory.address();
        let (_, output) =
            self.outputs.iter_mut().find(is_it).ok_or(Error::Memory(MemoryError::NoOutput { address }))?;
        let buffer = output.as_ref().ok_or(Error::Memory(MemoryError::OutputTaken { address }))?.cast()?;
        *output = None;
        Ok(OutputBuffer { buffer, _exec: PhantomData })
    }

    /// The number of outputs that were not taken.
    #[must_use]
    pub fn len(&self) -> usize {
        self.outputs.iter().filter(|(_, output)| output.is_some()).count()
    }

    /// Whether there are no outputs, or all were taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Keeps the executable borrowed to the end of the scope.
impl Drop for Outputs<'_> {
    fn drop(&mut self) {}
}

impl fmt::Debug for Outputs<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_list().entries(self.outputs.iter().filter_map(|(_, output)| output.as_ref())).finish()
    }
}

/// Graph memory that a launch left, from [`Outputs::take`].
///
/// It is used like a [`Buffer`]: on the stream of the launch at once, on other streams after that
/// one. When it is dropped, it is freed in the order of its stream, once other uses are over. Then
/// the executable can be launched again.
///
/// A node of another graph, or a parameter holder, may keep the memory longer. The next launch is
/// an error then ([`MemoryError::OutputInUse`]).
pub struct OutputBuffer<'e, T> {
    buffer: Buffer<T>,
    _exec: PhantomData<&'e ()>,
}

impl<T> OutputBuffer<'_, T> {
    /// The number of elements.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether it has no elements; graph memory always has some.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The address of the first element.
    #[must_use]
    pub fn address(&self) -> CUdeviceptr {
        self.buffer.address()
    }

    /// The stream of the launch, in whose order it is freed.
    #[must_use]
    pub fn home(&self) -> Option<&Stream> {
        self.buffer.home()
    }

    /// All of it, borrowed.
    #[must_use]
    pub fn as_slice(&self) -> Slice<'_, T> {
        self.buffer.as_slice()
    }

    /// A part of it, borrowed, as a range of elements.
    ///
    /// # Errors
    /// The range is out of bounds.
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Slice<'_, T>> {
        Ok(self.buffer.slice(range)?)
    }
}

impl<T: Element> OutputBuffer<'_, T> {
    /// Copies it to the host, and **waits** for that; see [`Buffer::read_blocking`].
    ///
    /// # Errors
    /// As [`Buffer::read_blocking`].
    pub fn read_blocking(&self, stream: &Stream) -> Result<Vec<T>> {
        Ok(self.buffer.read_blocking(stream)?)
    }
}

/// Keeps the executable borrowed to the end of the scope.
impl<T> Drop for OutputBuffer<'_, T> {
    fn drop(&mut self) {}
}

impl<'a, T> From<&'a OutputBuffer<'_, T>> for Slice<'a, T> {
    fn from(output: &'a OutputBuffer<'_, T>) -> Self {
        output.as_slice()
    }
}

// SAFETY: one address, of an allocation that the holder borrows.
unsafe impl<'a, T: Element> KernelArg<'a> for &'a OutputBuffer<'_, T> {
    fn add_to(self, params: &mut Params<'a>) {
        self.as_slice().add_to(params);
    }
}

macro_rules! arguments {
    ($($access:ident),*) => {$(
        impl<'a, T: Element> Argument<'a, $access<T>> for &'a OutputBuffer<'_, T> {
            fn value(self) -> Slice<'a, T> {
                self.as_slice()
            }
        }

        impl<'a, T: Element> FixedArgument<'a, $access<T>> for &'a OutputBuffer<'_, T> {}

        impl<'a, T: Element> PlainArgument<'a, $access<T>> for &'a OutputBuffer<'_, T> {}
    )*};
}

arguments!(In, Out, InOut);

impl<T> fmt::Debug for OutputBuffer<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "OutputBuffer({:?})", self.buffer)
    }
}
