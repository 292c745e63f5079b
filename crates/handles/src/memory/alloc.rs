//! Pooled memory as the driver gives it.

use std::sync::Arc;

use cuda_sys::Call;

use super::allocation::Allocation;
use super::buffer::Buffer;
use super::element::Element;
use super::pool::MemPool;
use super::range::bytes_of;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::stream::{Stream, Work};

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
    /// In a capture of this library the fill becomes a node, and the memory [is of the
    /// capture](crate::capture#memory-in-a-capture).
    ///
    /// Calls `cuMemAllocAsync` (CUDA 11.2), and `cuMemsetD8Async` (CUDA 3.2).
    ///
    /// # Errors
    /// The device has not enough memory ([`OutOfMemory`](crate::Error::OutOfMemory)), other code
    /// captures the stream ([`Capturing`](crate::Error::Capturing)), or the driver refuses the call
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
    /// device has not enough memory ([`OutOfMemory`](crate::Error::OutOfMemory)), other code
    /// captures the stream ([`Capturing`](crate::Error::Capturing)), or the driver refuses the call
    /// ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuMemAllocFromPoolAsync")]
    #[doc(alias = "cudaMallocFromPoolAsync")]
    pub fn zeros_from<T: Element>(&self, pool: &MemPool, len: usize) -> Result<Buffer<T>> {
        self.context().ensure_same(pool.context(), "the pool")?;
        self.zeroed(Some(pool), len)
    }

    fn zeroed<T: Element>(&self, pool: Option<&MemPool>, len: usize) -> Result<Buffer<T>> {
        let bytes = bytes_of::<T>(len)?;
        let plain = || {
            let mut allocation = Allocation::pooled(self, pool, bytes)?;
            if bytes > 0 {
                let access = self.raw_stream().enqueue()?;
                self.refuse_capture("allocating a buffer")?;
                // SAFETY: the memory was allocated on this stream and has that size.
                let code = unsafe {
                    let driver = self.context().driver();
                    driver.cuMemsetD8Async(allocation.address(), 0, bytes, self.as_raw())
                };
                drop(access);
                self.context().check(Call::cuMemsetD8Async, code)?;
                allocation.stamp();
            }
            Ok(allocation)
        };
        let captured = |memory: &Arc<Allocation>| {
            let work = Work::Fill { destination: memory.address(), bytes: bytes as u64 };
            self.enqueue_use(memory, work, None, |driver, raw| {
                // SAFETY: the memory has at least that size, and lives as long as the capture and
                // its graph; or until this point of the stream, if that has left the capture.
                let code = unsafe { driver.cuMemsetD8Async(memory.address(), 0, bytes, raw) };
                (Call::cuMemsetD8Async, code)
            })
        };
        self.allocated(pool, bytes, len, plain, captured)
    }

    /// A buffer of what `plain` allocates; in a capture of this library, of memory of the capture,
    /// which `fill` is for.
    pub(super) fn allocated<T>(
        &self,
        pool: Option<&MemPool>,
        bytes: usize,
        len: usize,
        plain: impl Fn() -> Result<Allocation>,
        fill: impl Fn(&Arc<Allocation>) -> Result<()>,
    ) -> Result<Buffer<T>> {
        loop {
            if bytes > 0
                && let Some(memory) = self.memory_of_capture(pool, bytes)?
            {
                fill(&memory)?;
                return Ok(Buffer::part(&memory, memory.address(), len));
            }
            self.raw_stream().refuse_outside_capture()?;
            match plain() {
                // A capture of this library has begun meanwhile, and may be over again.
                Err(Error::Capturing { .. }) if self.capture_id().is_some() || !self.is_capturing() => {}
                allocation => return Ok(Buffer::whole(allocation?, len)),
            }
        }
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
        const WHAT: &str = "uploading from host memory that the graph would not own (`Stream::upload` \
                            gives it a copy of its own)";
        self.refuse_capture(WHAT)?;
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
        let bytes = bytes_of::<T>(len)?;
        self.allocated(pool, bytes, len, || Allocation::pooled(self, pool, bytes), |_| Ok(()))
    }
}
