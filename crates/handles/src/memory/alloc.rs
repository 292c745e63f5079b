//! Pooled memory as the driver gives it.

use cuda_sys::Call;

use super::allocation::Allocation;
use super::buffer::Buffer;
use super::element::Element;
use super::pool::MemPool;
use super::range::bytes_of;
use crate::context::Context;
use crate::error::Result;
use crate::stream::Stream;

impl Context {
    /// A plain buffer of `len` elements with unspecified contents. Every stream may use it
    /// immediately. May **wait** for the device, as the driver does for allocations of this kind.
    ///
    /// Calls `cuMemAlloc` (CUDA 3.2). It is freed by `cuMemFreeAsync`, which does not wait.
    ///
    /// # Errors
    /// The device has not enough memory ([`OutOfMemory`](crate::Error::OutOfMemory)), or the driver
    /// refuses the call ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuMemAlloc")]
    #[doc(alias = "cudaMalloc")]
    pub fn alloc_blocking<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        Ok(Buffer::whole(Allocation::plain(self, bytes_of::<T>(len)?)?, len))
    }
}

impl Stream {
    /// A buffer of `len` elements, all bytes zero. This stream is its home. Does not wait; if
    /// memory is short, the stream waits for what the [reaper](crate::reaper) is freeing.
    ///
    /// Calls `cuMemAllocAsync` (CUDA 11.2), and `cuMemsetD8Async` (CUDA 3.2).
    ///
    /// # Errors
    /// The device has not enough memory ([`OutOfMemory`](crate::Error::OutOfMemory)), the stream is
    /// capturing ([`Capturing`](crate::Error::Capturing)), or the driver refuses the call
    /// ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuMemAllocAsync")]
    #[doc(alias = "cudaMallocAsync")]
    #[doc(alias = "calloc")]
    pub fn zeros<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        self.zeroed(None, len)
    }

    /// As [`zeros`](Self::zeros), with memory of a pool.
    ///
    /// Calls `cuMemAllocFromPoolAsync` (CUDA 11.2), and `cuMemsetD8Async` (CUDA 3.2).
    ///
    /// # Errors
    /// The pool is of another context ([`WrongContext`](crate::Error::WrongContext)), it or the
    /// device has not enough memory ([`OutOfMemory`](crate::Error::OutOfMemory)), the stream is
    /// capturing ([`Capturing`](crate::Error::Capturing)), or the driver refuses the call
    /// ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuMemAllocFromPoolAsync")]
    #[doc(alias = "cudaMallocFromPoolAsync")]
    pub fn zeros_from<T: Element>(&self, pool: &MemPool, len: usize) -> Result<Buffer<T>> {
        self.context().ensure_same(pool.context(), "the pool")?;
        self.zeroed(Some(pool), len)
    }

    fn zeroed<T: Element>(&self, pool: Option<&MemPool>, len: usize) -> Result<Buffer<T>> {
        let mut allocation = Allocation::pooled(self, pool, bytes_of::<T>(len)?)?;
        if allocation.bytes() > 0 {
            let access = self.raw_stream().enqueue()?;
            self.refuse_capture("allocating a buffer")?;
            // SAFETY: the memory was allocated on this stream and has that size.
            let code = unsafe {
                let driver = self.context().driver();
                driver.cuMemsetD8Async(allocation.address(), 0, allocation.bytes(), self.as_raw())
            };
            drop(access);
            self.context().check(Call::cuMemsetD8Async, code)?;
            allocation.stamp();
        }
        Ok(Buffer::whole(allocation, len))
    }

    /// A buffer with a copy of `elements`. This stream is its home. **Waits** for the stream until
    /// the elements have been read; so other streams need not wait for it. [`upload`](Self::upload)
    /// does not wait.
    ///
    /// Calls `cuMemAllocAsync` (CUDA 11.2), `cuMemcpyHtoDAsync` (CUDA 3.2), and
    /// `cuStreamSynchronize`.
    ///
    /// # Errors
    /// The device has not enough memory ([`OutOfMemory`](crate::Error::OutOfMemory)), the stream is
    /// capturing ([`Capturing`](crate::Error::Capturing)), or the driver refuses the call
    /// ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuMemcpyHtoDAsync")]
    #[doc(alias = "cudaMemcpy")]
    #[doc(alias = "cudaMemcpyHostToDevice")]
    pub fn upload_blocking<T: Element>(&self, elements: &[T]) -> Result<Buffer<T>> {
        let allocation = Allocation::pooled(self, None, size_of_val(elements))?;
        let buffer = Buffer::whole(allocation, elements.len());
        buffer.write_blocking(self, elements)?;
        Ok(buffer)
    }

    /// A buffer of `len` elements **whose contents are unspecified**: whatever was in that memory,
    /// which may differ from one call to the next. Every bit pattern is a value of the elements, so
    /// reading it is no fault. This stream is its home. Waits for nothing. One driver call less
    /// than [`zeros`](Self::zeros), for memory that is written before it is read.
    ///
    /// Calls `cuMemAllocAsync` (CUDA 11.2).
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
    /// Calls `cuMemAllocFromPoolAsync` (CUDA 11.2).
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
