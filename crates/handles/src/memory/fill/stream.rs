//! Filling memory in the order of a stream.

use cuda_sys::Call;

use super::bits::Bits;
use super::layout::FillLayout;
use super::size::assert_value;
use crate::capture::Tag;
use crate::error::Result;
use crate::memory::{Element, Slice};
use crate::stream::{Stream, Work};

impl Stream {
    /// Fills memory with one value of 1, 2 or 4 bytes. Waits for nothing.
    ///
    /// The device repeats no larger values, and a value of another size does not compile.
    /// [`Slice::cast`] gives the same memory in smaller elements:
    /// ```
    /// # use cuda_handles::{Buffer, Result, Stream};
    /// # fn example(stream: &Stream, wide: &Buffer<f64>) -> Result<()> {
    /// stream.fill(wide.as_slice().cast::<u32>()?, 0)
    /// # }
    /// ```
    /// ```compile_fail,E0080
    /// # use cuda_handles::{Buffer, Result, Stream};
    /// # fn example(stream: &Stream, wide: &Buffer<f64>) -> Result<()> {
    /// stream.fill(wide, 0.0)
    /// # }
    /// # fn main() {
    /// #     let _: fn(&Stream, &Buffer<f64>) -> Result<()> = example;
    /// # }
    /// ```
    ///
    /// Calls `cuMemsetD8Async`, `cuMemsetD16Async` and `cuMemsetD32Async` (CUDA 3.2).
    ///
    /// # Errors
    /// The memory is not aligned to the size of the value ([`Unaligned`](crate::Error::Unaligned))
    /// or of another context ([`WrongContext`](crate::Error::WrongContext)), or the driver refuses
    /// the call ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuMemsetD8Async")]
    #[doc(alias = "cuMemsetD16Async")]
    #[doc(alias = "cuMemsetD32Async")]
    #[doc(alias = "memset")]
    #[doc(alias = "cudaMemsetAsync")]
    #[doc(alias = "cudaMemset")]
    pub fn fill<'a, T: Element>(&self, memory: impl Into<Slice<'a, T>>, value: T) -> Result<()> {
        self.fill_tagged(memory.into(), value, None)
    }

    /// As [`fill`](Self::fill), with a tag for the record of a captured call.
    // Inlined, so that a call without a tag has none to pass on.
    #[doc(hidden)]
    #[inline(always)]
    pub fn fill_tagged<T: Element>(&self, memory: Slice<'_, T>, value: T, tag: Option<Tag>) -> Result<()> {
        const { assert_value::<T>() };
        let bits = Bits::of(&value).at(memory.address())?;
        if memory.is_empty() {
            return Ok(());
        }
        let (address, len) = (memory.address(), memory.len());
        let work = Work::Fill { destination: address, bytes: memory.size_bytes() as u64 };
        self.enqueue_use(memory.allocation(), work, tag, |driver, stream| {
            // SAFETY: the range lies in memory that lives until after this point of the stream, and
            // is aligned to its elements.
            unsafe {
                match bits {
                    Bits::One(bits) => {
                        (Call::cuMemsetD8Async, driver.cuMemsetD8Async(address, bits, len, stream))
                    }
                    Bits::Two(bits) => {
                        (Call::cuMemsetD16Async, driver.cuMemsetD16Async(address, bits, len, stream))
                    }
                    Bits::Four(bits) => {
                        (Call::cuMemsetD32Async, driver.cuMemsetD32Async(address, bits, len, stream))
                    }
                }
            }
        })
    }

    /// Fills a rectangle with one value of 1, 2 or 4 bytes: `height` rows of `width` elements, one
    /// `pitch` elements behind the other, from the start of `memory` on. Waits for nothing.
    ///
    /// Calls `cuMemsetD2D8Async`, `cuMemsetD2D16Async` and `cuMemsetD2D32Async` (CUDA 3.2).
    ///
    /// # Errors
    /// Memory that is not aligned to the size of the value
    /// ([`Unaligned`](crate::Error::Unaligned)), a pitch below the width
    /// ([`Pitch`](crate::Error::Pitch)), a rectangle that leaves the slice, memory of another
    /// context ([`WrongContext`](crate::Error::WrongContext)), or the driver refuses the call
    /// ([`Driver`](crate::Error::Driver)). A value of another size does not compile.
    #[doc(alias = "cuMemsetD2D8Async")]
    #[doc(alias = "cuMemsetD2D16Async")]
    #[doc(alias = "cuMemsetD2D32Async")]
    #[doc(alias = "memset")]
    #[doc(alias = "cudaMemset2DAsync")]
    pub fn fill_2d<'a, T: Element>(
        &self,
        memory: impl Into<Slice<'a, T>>,
        pitch: usize,
        [width, height]: [usize; 2],
        value: T,
    ) -> Result<()> {
        const { assert_value::<T>() };
        let memory = memory.into();
        let Some(layout) = FillLayout::rectangle(memory, pitch, [width, height], value)? else {
            return Ok(());
        };
        let FillLayout { address, value, pitch, width, height, element, .. } = layout;
        let work = Work::Fill { destination: address, bytes: layout.bytes() as u64 };
        self.enqueue_use(memory.allocation(), work, None, |driver, stream| {
            // SAFETY: the rectangle lies in memory that lives until after this point of the stream,
            // or as long as the graph it is captured into, and is aligned to its elements.
            unsafe {
                match element {
                    1 => (
                        Call::cuMemsetD2D8Async,
                        driver.cuMemsetD2D8Async(address, pitch, value as u8, width, height, stream),
                    ),
                    2 => (
                        Call::cuMemsetD2D16Async,
                        driver.cuMemsetD2D16Async(address, pitch, value as u16, width, height, stream),
                    ),
                    _ => (
                        Call::cuMemsetD2D32Async,
                        driver.cuMemsetD2D32Async(address, pitch, value, width, height, stream),
                    ),
                }
            }
        })
    }
}
