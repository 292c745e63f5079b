//! Setting all bytes of memory to zero.

use cuda_sys::Call;

use super::layout::FillLayout;
use crate::capture::Tag;
use crate::error::Result;
use crate::memory::{Element, Slice};
use crate::stream::{Stream, Work};

impl Stream {
    /// Sets all bytes of memory to zero, whatever the elements. Waits for nothing. For other values
    /// than zero see [`fill`](Self::fill).
    ///
    /// Calls `cuMemsetD8Async` (CUDA 3.2).
    ///
    /// # Errors
    /// The memory is of another context ([`WrongContext`](crate::Error::WrongContext)), or the
    /// driver refuses the call ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuMemsetD8Async")]
    #[doc(alias = "cudaMemsetAsync")]
    #[doc(alias = "memset")]
    #[doc(alias = "cudaMemset")]
    pub fn clear<'a, T: Element>(&self, memory: impl Into<Slice<'a, T>>) -> Result<()> {
        self.clear_tagged(memory.into(), None)
    }

    /// As [`clear`](Self::clear), with a tag for the record of a captured call.
    // Inlined, so that a call without a tag has none to pass on.
    #[doc(hidden)]
    #[inline(always)]
    pub fn clear_tagged<T: Element>(&self, memory: Slice<'_, T>, tag: Option<Tag>) -> Result<()> {
        if memory.size_bytes() == 0 {
            return Ok(());
        }
        let (address, bytes) = (memory.address(), memory.size_bytes());
        let work = Work::Fill { destination: address, bytes: bytes as u64 };
        self.enqueue_use(memory.allocation(), work, tag, |driver, stream| {
            // SAFETY: the range lies in memory that lives until after this point of the stream.
            (Call::cuMemsetD8Async, unsafe { driver.cuMemsetD8Async(address, 0, bytes, stream) })
        })
    }
}

impl FillLayout {
    /// The fill of all bytes of `memory` with zero; `None` if there are none.
    #[must_use]
    pub fn clear<T: Element>(memory: Slice<'_, T>) -> Option<Self> {
        let (address, bytes) = (memory.address(), memory.size_bytes());
        if bytes == 0 {
            return None;
        }
        // The driver gets the largest elements possible.
        let fits =
            |size: &u8| address.is_multiple_of(u64::from(*size)) && bytes.is_multiple_of(usize::from(*size));
        let element = [4, 2].into_iter().find(fits).unwrap_or(1);
        let (space, width) = (memory.allocation().space(), bytes / usize::from(element));
        Some(Self { address, space, element, value: 0, pitch: bytes, width, height: 1 })
    }
}
