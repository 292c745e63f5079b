//! Making, filling and copying device memory.

use core::ffi::c_void;

use cuda_sys::{CUdeviceptr, CUresult, Call};

use crate::context::{Context, capture_mode};
use crate::error::{Error, MemoryKind, Result};
use crate::memory::fill::{Bits, assert_value};
use crate::memory::{Allocation, Buffer, Element, MemPool, SharedHostBuffer, Slice, bytes_of, same_length};
use crate::stream::{Event, EventOptions, Stream};

impl Context {
    /// A plain buffer of `len` elements, whose contents are whatever was there. Every stream may
    /// use it at once. May **wait** for the device, as allocations of this kind do in the driver.
    ///
    /// Stands on `cuMemAlloc`, CUDA 3.2. It is freed by `cuMemFreeAsync`, which does not wait.
    ///
    /// # Errors
    /// The device has not enough memory, or what the driver answers.
    #[doc(alias = "cuMemAlloc")]
    pub fn alloc_blocking<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        Ok(Buffer::whole(Allocation::plain(self, bytes_of::<T>(len)?)?, len))
    }
}

impl Stream {
    /// A buffer of `len` elements, all bytes zero. This stream is its home. Waits for nothing; if
    /// memory is short, the stream is made to wait for what the [reaper](crate::reaper) is freeing.
    ///
    /// Stands on `cuMemAllocAsync`, CUDA 11.2, and `cuMemsetD8Async`, CUDA 3.2.
    ///
    /// # Errors
    /// The device has not enough memory, the stream is capturing, or what the driver answers.
    #[doc(alias = "cuMemAllocAsync")]
    pub fn zeros<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        self.zeroed(None, len)
    }

    /// As [`zeros`](Self::zeros), with memory of a pool.
    ///
    /// Stands on `cuMemAllocFromPoolAsync`, CUDA 11.2, and `cuMemsetD8Async`, CUDA 3.2.
    ///
    /// # Errors
    /// The pool is of another context, it or the device has not enough memory, the stream is
    /// capturing, or what the driver answers.
    #[doc(alias = "cuMemAllocFromPoolAsync")]
    pub fn zeros_from<T: Element>(&self, pool: &MemPool, len: usize) -> Result<Buffer<T>> {
        self.context().ensure_same(pool.context(), "the pool")?;
        self.zeroed(Some(pool), len)
    }

    fn zeroed<T: Element>(&self, pool: Option<&MemPool>, len: usize) -> Result<Buffer<T>> {
        let mut allocation = Allocation::pooled(self, pool, bytes_of::<T>(len)?)?;
        if allocation.bytes() > 0 {
            let turn = self.raw_stream().enqueue()?;
            self.refuse_capture("allocating a buffer")?;
            // SAFETY: the memory was allocated on this stream and has that size.
            let code = unsafe {
                let driver = self.context().driver();
                driver.cuMemsetD8Async(allocation.address(), 0, allocation.bytes(), self.as_raw())
            };
            drop(turn);
            self.context().check(Call::cuMemsetD8Async, code)?;
            allocation.stamp();
        }
        Ok(Buffer::whole(allocation, len))
    }

    /// A buffer with a copy of `elements`. This stream is its home. **Waits** for the stream until
    /// the elements have been read; so other streams need not wait for it. [`upload`](Self::upload)
    /// does not wait.
    ///
    /// Stands on `cuMemAllocAsync`, CUDA 11.2, `cuMemcpyHtoDAsync`, CUDA 3.2, and
    /// `cuStreamSynchronize`.
    ///
    /// # Errors
    /// The device has not enough memory, the stream is capturing, or what the driver answers.
    #[doc(alias = "cuMemcpyHtoDAsync")]
    pub fn upload_blocking<T: Element>(&self, elements: &[T]) -> Result<Buffer<T>> {
        let allocation = Allocation::pooled(self, None, size_of_val(elements))?;
        let buffer = Buffer::whole(allocation, elements.len());
        buffer.write_blocking(self, elements)?;
        Ok(buffer)
    }

    /// Fills memory with one value of 1, 2 or 4 bytes. Waits for nothing.
    ///
    /// The device repeats no larger values, and a value of another size does not compile.
    /// [`Slice::cast`] gives the same memory in smaller elements:
    /// ```
    /// # fn example(stream: &cuda_handles::Stream, wide: &cuda_handles::Buffer<f64>) -> cuda_handles::Result<()> {
    /// stream.fill(wide.as_slice().cast::<u32>()?, 0)
    /// # }
    /// ```
    /// ```compile_fail,E0080
    /// # fn example(stream: &cuda_handles::Stream, wide: &cuda_handles::Buffer<f64>) -> cuda_handles::Result<()> {
    /// stream.fill(wide, 0.0)
    /// # }
    /// # fn main() {
    /// #     let _: fn(&cuda_handles::Stream, &cuda_handles::Buffer<f64>) -> cuda_handles::Result<()> = example;
    /// # }
    /// ```
    ///
    /// Stands on `cuMemsetD8Async`, `cuMemsetD16Async` and `cuMemsetD32Async`, CUDA 3.2.
    ///
    /// # Errors
    /// The memory is not aligned to the size of the value or of another context, or what the driver
    /// answers.
    #[doc(alias = "cuMemsetD8Async")]
    #[doc(alias = "cuMemsetD16Async")]
    #[doc(alias = "cuMemsetD32Async")]
    pub fn fill<'a, T: Element>(&self, memory: impl Into<Slice<'a, T>>, value: T) -> Result<()> {
        const { assert_value::<T>() };
        let memory = memory.into();
        let bits = Bits::of(&value).at(memory.address())?;
        if memory.is_empty() {
            return Ok(());
        }
        let _use = memory.allocation().ready_once(self)?;
        let turn = self.enqueue()?;
        if turn.is_captured()? {
            turn.keep(memory.allocation())?;
        }
        let (driver, stream) = (self.context().driver(), self.as_raw());
        let (address, len) = (memory.address(), memory.len());
        // SAFETY: the range lies in memory that lives until after this point of the stream, and is
        // aligned to its elements.
        let (call, code) = unsafe {
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
        };
        self.context().check(call, code)
    }

    /// Copies memory to memory of the same length, of whatever [kinds](crate::MemoryKind). Waits
    /// for nothing.
    ///
    /// Stands on `cuMemcpyDtoDAsync`, `cuMemcpyDtoHAsync` and `cuMemcpyHtoDAsync`, CUDA 3.2, and
    /// for other kinds than device memory and pinned memory on `cuMemcpyAsync`, CUDA 4.0.
    ///
    /// # Errors
    /// The lengths differ, the ranges overlap, one is of another context, or what the driver
    /// answers.
    #[doc(alias = "cuMemcpyAsync")]
    #[doc(alias = "cuMemcpyDtoDAsync")]
    pub fn copy<'a, 'b, T: Element>(
        &self,
        source: impl Into<Slice<'a, T>>,
        destination: impl Into<Slice<'b, T>>,
    ) -> Result<()> {
        let (source, destination) = (source.into(), destination.into());
        same_length("the destination of a copy", source.len(), destination.len())?;
        apart(source.address(), destination.address(), source.size_bytes())?;
        if source.size_bytes() == 0 {
            return Ok(());
        }
        let _read = source.allocation().ready_once(self)?;
        let _written = destination.allocation().ready_once(self)?;
        let turn = self.enqueue()?;
        if turn.is_captured()? {
            turn.keep(source.allocation())?;
            turn.keep(destination.allocation())?;
        }
        // SAFETY: both ranges lie in memory that lives until after this point of the stream, or as
        // long as the graph it is captured into.
        let (call, code) = unsafe { copy_call(self, &source, &destination) };
        self.context().check(call, code)
    }

    /// Copies device memory to pinned or managed memory of the same length. Waits for nothing: see
    /// [`SharedHostBuffer::try_unique`] for when the host may look.
    ///
    /// Stands on `cuMemcpyDtoHAsync`, CUDA 3.2, for pinned memory.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    #[doc(alias = "cuMemcpyDtoHAsync")]
    pub fn copy_to_host<'a, T: Element>(
        &self,
        source: impl Into<Slice<'a, T>>,
        destination: &SharedHostBuffer<T>,
    ) -> Result<()> {
        self.copy(source, destination)
    }

    /// Copies pinned or managed memory to device memory of the same length. Waits for nothing.
    ///
    /// Stands on `cuMemcpyHtoDAsync`, CUDA 3.2, for pinned memory.
    ///
    /// # Errors
    /// As [`copy`](Self::copy).
    #[doc(alias = "cuMemcpyHtoDAsync")]
    pub fn copy_from_host<'a, T: Element>(
        &self,
        source: &SharedHostBuffer<T>,
        destination: impl Into<Slice<'a, T>>,
    ) -> Result<()> {
        self.copy(source, destination)
    }
}

/// Enqueues a copy of the source's size by the call for the kinds of memory.
///
/// # Safety
/// The destination is as large; the memory stays as long as the copy may run.
unsafe fn copy_call<T>(
    stream: &Stream,
    source: &Slice<'_, T>,
    destination: &Slice<'_, T>,
) -> (Call, CUresult) {
    let (from, to, bytes) = (source.address(), destination.address(), source.size_bytes());
    let (driver, raw) = (stream.context().driver(), stream.as_raw());
    let kinds = (source.allocation().kind(), destination.allocation().kind());
    // SAFETY: the caller's promise.
    unsafe {
        match kinds {
            (from_kind, to_kind) if from_kind.is_of_device() && to_kind.is_of_device() => {
                (Call::cuMemcpyDtoDAsync, driver.cuMemcpyDtoDAsync(to, from, bytes, raw))
            }
            (kind, MemoryKind::Pinned | MemoryKind::Registered) if kind.is_of_device() => {
                (Call::cuMemcpyDtoHAsync, driver.cuMemcpyDtoHAsync(host(to), from, bytes, raw))
            }
            (MemoryKind::Pinned | MemoryKind::Registered, kind) if kind.is_of_device() => {
                (Call::cuMemcpyHtoDAsync, driver.cuMemcpyHtoDAsync(to, host(from), bytes, raw))
            }
            _ => (Call::cuMemcpyAsync, driver.cuMemcpyAsync(to, from, bytes, raw)),
        }
    }
}

/// The host's pointer for an address that both have.
fn host(address: CUdeviceptr) -> *mut c_void {
    core::ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or(0))
}

impl<T: Element> Slice<'_, T> {
    /// The elements, read in the order of `stream`. **Waits** for the stream.
    ///
    /// Stands on `cuMemcpyDtoHAsync`, CUDA 3.2, and `cuStreamSynchronize`.
    ///
    /// # Errors
    /// The stream is of another context or capturing, the host has not enough memory, or what the
    /// driver answers.
    #[doc(alias = "cuMemcpyDtoHAsync")]
    pub fn read_blocking(self, stream: &Stream) -> Result<Vec<T>> {
        let mut elements = Vec::new();
        let room = elements.try_reserve_exact(self.len());
        room.map_err(|_| Error::HostVector { bytes: self.size_bytes() })?;
        // SAFETY: the vector has room for as many elements.
        unsafe { self.read_to(stream, elements.as_mut_ptr()) }?;
        // SAFETY: the read has written them all, and every bit pattern is a value.
        unsafe { elements.set_len(self.len()) };
        Ok(elements)
    }

    /// The elements, read into `elements` in the order of `stream`. **Waits** for the stream.
    ///
    /// # Errors
    /// The lengths differ, the stream is of another context or capturing, or what the driver
    /// answers.
    pub fn read_into_blocking(self, stream: &Stream, elements: &mut [T]) -> Result<()> {
        same_length("the slice to read into", self.len(), elements.len())?;
        // SAFETY: the slice has that length and is borrowed until the copy is over.
        unsafe { self.read_to(stream, elements.as_mut_ptr()) }
    }

    /// Overwrites the elements in the order of `stream`. **Waits** for the stream until `elements`
    /// have been read.
    ///
    /// Stands on `cuMemcpyHtoDAsync`, CUDA 3.2, and `cuStreamSynchronize`.
    ///
    /// # Errors
    /// The lengths differ, the stream is of another context or capturing, or what the driver
    /// answers.
    #[doc(alias = "cuMemcpyHtoDAsync")]
    pub fn write_blocking(self, stream: &Stream, elements: &[T]) -> Result<()> {
        same_length("the slice to write", self.len(), elements.len())?;
        if self.size_bytes() == 0 {
            return Ok(());
        }
        let _use = self.allocation().ready_once(stream).map_err(never_captured(WRITING))?;
        // SAFETY: both ranges have that size; the host's is borrowed until the wait is over.
        unsafe { self.move_blocking(stream, WRITING, elements.as_ptr().cast_mut().cast(), true) }
    }

    /// # Safety
    /// `elements` points to room for `len` elements.
    unsafe fn read_to(self, stream: &Stream, elements: *mut T) -> Result<()> {
        if self.size_bytes() == 0 {
            return Ok(());
        }
        let _use = self.allocation().ready_once(stream).map_err(never_captured(READING))?;
        // SAFETY: the host's room is the caller's promise.
        unsafe { self.move_blocking(stream, READING, elements.cast(), false) }
    }

    /// Copies between the memory and the host's, and waits.
    ///
    /// # Safety
    /// `elements` points to as many bytes, initialised if they are written to the memory.
    unsafe fn move_blocking(
        self,
        stream: &Stream,
        what: &'static str,
        elements: *mut c_void,
        write: bool,
    ) -> Result<()> {
        stream.context().ensure_usable()?;
        let (driver, raw) = (stream.context().driver(), stream.as_raw());
        let (address, bytes, other) =
            (self.address(), self.size_bytes(), elements.expose_provenance() as u64);
        let of_device = self.allocation().kind().is_of_device();
        let behind = match stream.raw_stream().is_foreign() {
            true => {
                Some(stream.context().event_with(EventOptions { timing: false, ..EventOptions::default() })?)
            }
            false => None,
        };
        stream.raw_stream().step_aside();
        let turn = stream.raw_stream().enqueue()?;
        stream.refuse_capture(what)?;
        // Behind the copy there is no way back.
        stream.context().refuse_in_callback()?;
        // The copy itself would wait for the stream, too, but some calls in a host function that it
        // waits for then never return.
        if !write && behind.is_none() {
            stream.wait_until_done()?;
        }
        // SAFETY: the range lies in memory that lives until the wait below is over; the host's
        // range is the caller's promise.
        let (call, code) = unsafe {
            match (of_device, write) {
                (true, true) => {
                    (Call::cuMemcpyHtoDAsync, driver.cuMemcpyHtoDAsync(address, elements, bytes, raw))
                }
                (true, false) => {
                    (Call::cuMemcpyDtoHAsync, driver.cuMemcpyDtoHAsync(elements, address, bytes, raw))
                }
                (false, true) => (Call::cuMemcpyAsync, driver.cuMemcpyAsync(address, other, bytes, raw)),
                (false, false) => (Call::cuMemcpyAsync, driver.cuMemcpyAsync(other, address, bytes, raw)),
            }
        };
        stream.context().check(call, code)?;
        // With the turn: a capture that began now would make the wait fail while the copy is still
        // running.
        let waited = match &behind {
            None => stream.wait_until_done().or_else(|error| wait_otherwise(stream, error)),
            Some(event) => wait_behind(stream, what, event),
        };
        drop(turn);
        waited
    }
}

const READING: &str = "reading into host memory";
const WRITING: &str = "writing from host memory";

/// That the memory's home was not waited for is no matter where the operation cannot be captured at
/// all.
fn never_captured(what: &'static str) -> impl Fn(Error) -> Error {
    move |error| match error {
        Error::CapturedFirstUse => Error::Capturing { what },
        other => other,
    }
}

/// Waits for a copy by another call than the one that failed: the host's memory is not given back
/// while the copy may be running.
#[cold]
fn wait_otherwise(stream: &Stream, error: Error) -> Result<()> {
    if matches!(error, Error::ContextLost(_)) {
        return Err(error);
    }
    let options = EventOptions { timing: false, ..EventOptions::default() };
    let Ok(event) = stream.context().event_with(options) else { return Err(error) };
    let _mode = capture_mode::relaxed(stream.context().driver());
    // SAFETY: stream and event are alive.
    let code = unsafe { stream.context().driver().cuEventRecord(event.as_raw(), stream.as_raw()) };
    let recorded = stream.context().check(Call::cuEventRecord, code);
    let _ = recorded.and_then(|()| event.synchronize_blocking());
    Err(error)
}

/// Waits for a copy on a stream that others may let enter a capture, and so make the wait fail: the
/// host's memory is not given back while the copy may be running. `event` is recorded behind the
/// copy and waited for then. Should it have been captured, and the copy with it, the driver refuses
/// that wait by invalidating the capture: the copy never runs.
fn wait_behind(stream: &Stream, what: &'static str, event: &Event) -> Result<()> {
    let context = stream.context();
    // SAFETY: stream and event are alive.
    let code = unsafe { context.driver().cuEventRecord(event.as_raw(), stream.as_raw()) };
    if context.check(Call::cuEventRecord, code).is_err() {
        return stream.wait_until_done();
    }
    match stream.refuse_capture(what).and_then(|()| stream.wait_until_done()) {
        Err(error) if !matches!(error, Error::ContextLost(_)) => {
            event.synchronize_blocking().map_err(|_captured| error)
        }
        waited => waited,
    }
}

impl<T: Element> Buffer<T> {
    /// The elements; see [`Slice::read_blocking`]. **Waits** for the stream.
    ///
    /// # Errors
    /// As [`Slice::read_blocking`].
    pub fn read_blocking(&self, stream: &Stream) -> Result<Vec<T>> {
        self.as_slice().read_blocking(stream)
    }

    /// The elements, read into `elements`; see [`Slice::read_into_blocking`]. **Waits** for the
    /// stream.
    ///
    /// # Errors
    /// As [`Slice::read_into_blocking`].
    pub fn read_into_blocking(&self, stream: &Stream, elements: &mut [T]) -> Result<()> {
        self.as_slice().read_into_blocking(stream, elements)
    }

    /// Overwrites the elements; see [`Slice::write_blocking`]. **Waits** for the stream.
    ///
    /// # Errors
    /// As [`Slice::write_blocking`].
    pub fn write_blocking(&self, stream: &Stream, elements: &[T]) -> Result<()> {
        self.as_slice().write_blocking(stream, elements)
    }
}

/// An error if two ranges of `bytes` overlap.
fn apart(one: CUdeviceptr, other: CUdeviceptr, bytes: usize) -> Result<()> {
    let bytes = bytes as CUdeviceptr;
    match bytes.saturating_sub(one.abs_diff(other)) {
        0 => Ok(()),
        overlap => Err(Error::Overlap { bytes: usize::try_from(overlap).unwrap_or(usize::MAX) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn overlap_is_measured() {
        assert_eq!(apart(0, 8, 8), Ok(()));
        assert_eq!(apart(8, 0, 8), Ok(()));
        assert_eq!(apart(0, 4, 8), Err(Error::Overlap { bytes: 4 }));
        assert_eq!(apart(4, 0, 8), Err(Error::Overlap { bytes: 4 }));
        assert_eq!(apart(0, 0, 0), Ok(()));
    }
}
