//! Buffers over memory of another owner.

use core::any::Any;

use cuda_sys::CUdeviceptr;

use super::allocation::Allocation;
use super::buffer::Buffer;
use super::element::Element;
use super::range::bytes_of;
use crate::context::Context;
use crate::destroy::Kept;
use crate::error::{Error, Result};

impl<T: Element> Buffer<T> {
    /// A buffer over memory of another owner. The owner is dropped when the buffer, its clones and
    /// parts, every graph with it and all work enqueued with it are done: on the thread of the last
    /// drop if no work has used the memory, otherwise by the [reaper](crate::reaper). A panic in
    /// its destructor is caught; see [`Kept`](crate::Kept).
    ///
    /// # Safety
    /// - Until `owner` is dropped, `address` points to `len` elements that the device of `context`
    ///   may read and write.
    /// - Work enqueued on the memory elsewhere before this call is done, or ordered before the work
    ///   that is enqueued with the buffer.
    /// - There are no Rust references into the memory while the buffer exists.
    ///
    /// # Errors
    /// [`Error::Cast`](crate::Error::Cast) if the address is 0 and the length is not, or the
    /// address is not aligned for the elements, or the range leaves the address space.
    pub unsafe fn from_foreign(
        context: &Context,
        address: CUdeviceptr,
        len: usize,
        owner: impl Any + Send + Sync,
    ) -> Result<Self> {
        context.ensure_usable()?;
        let (bytes, size, align) = (bytes_of::<T>(len)?, size_of::<T>(), align_of::<T>());
        let null = address == 0 && bytes > 0;
        if null || !address.is_multiple_of(align as u64) || address.checked_add(bytes as u64).is_none() {
            return Err(Error::Cast { bytes, address, size, align });
        }
        Ok(Self::whole(Allocation::foreign(context, address, bytes, Kept::new(owner)), len))
    }
}
