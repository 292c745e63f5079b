//! Pooled memory as the driver gives it.

use super::allocation::Allocation;
use super::buffer::Buffer;
use super::element::Element;
use super::pool::MemPool;
use super::range::bytes_of;
use crate::error::Result;
use crate::stream::Stream;

impl Stream {
    /// A buffer of `len` elements **whose contents are unspecified**: whatever was in that memory,
    /// which may differ from one call to the next. Every bit pattern is a value of the elements, so
    /// reading it is no fault. This stream is its home. Waits for nothing. One driver call less
    /// than [`zeros`](Self::zeros), for memory that is written before it is read.
    ///
    /// Stands on `cuMemAllocAsync`, CUDA 11.2.
    ///
    /// # Errors
    /// As [`zeros`](Self::zeros).
    #[doc(alias = "cuMemAllocAsync")]
    #[doc(alias = "cudaMallocAsync")]
    #[doc(alias = "uninit")]
    pub fn alloc<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        self.unfilled(None, len)
    }

    /// As [`alloc`](Self::alloc), with memory of a pool.
    ///
    /// Stands on `cuMemAllocFromPoolAsync`, CUDA 11.2.
    ///
    /// # Errors
    /// As [`zeros_from`](Self::zeros_from).
    #[doc(alias = "cuMemAllocFromPoolAsync")]
    #[doc(alias = "cudaMallocFromPoolAsync")]
    pub fn alloc_from<T: Element>(&self, pool: &MemPool, len: usize) -> Result<Buffer<T>> {
        self.context().ensure_same(pool.context(), "the pool")?;
        self.unfilled(Some(pool), len)
    }

    fn unfilled<T: Element>(&self, pool: Option<&MemPool>, len: usize) -> Result<Buffer<T>> {
        Ok(Buffer::whole(Allocation::pooled(self, pool, bytes_of::<T>(len)?)?, len))
    }
}
