//! Writing to memory of the device without waiting until the host's elements were read: they are
//! copied first.

use core::ffi::c_void;
use core::ptr::NonNull;
use std::sync::Arc;

use cuda_sys::{CUresult, Call};

use crate::error::{Error, MemoryKind, Result};
use crate::memory::ready::Use;
use crate::memory::same_length;
use crate::memory::{Allocation, Buffer, Element, HostBuffer, Slice, host};
use crate::reclaim::{HostKind, STAGED_MOST};
use crate::stream::{Stream, Work};

impl Stream {
    /// Overwrites memory with a copy of `elements`, in the order of this stream. Waits for nothing:
    /// the elements may change or go as soon as it returns.
    ///
    /// Up to 16 KiB go through pinned memory that the stream keeps: blocks of 64 KiB, filled one
    /// after the other and reused once the device has read them. While the device has read none,
    /// the stream takes one more block. More than 16 KiB get pinned memory of their own. All of it
    /// comes from the cache of [`pinned_zeros`](crate::Context::pinned_zeros) if that has some, and
    /// goes back there: memory of its own once it was read, blocks with the stream or when
    /// [`reaper::drain`](crate::reaper::drain) finds the stream idle. For large data that is in
    /// pinned memory already, use [`copy`](Self::copy);
    /// [`Slice::write_blocking`] needs no pinned memory.
    ///
    /// ```no_run
    /// # fn main() -> cuda_handles::Result<()> {
    /// # let context = cuda_handles::Device::new(0)?.context()?;
    /// # let stream = context.stream()?;
    /// let parameters = stream.zeros::<f32>(4)?;
    /// for step in 0..100 {
    ///     stream.write(&parameters, &[0.1, 0.2, 0.3, step as f32])?;
    ///     // Kernels that read them.
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// On a capturing stream the resulting node writes these elements at each launch: the capture
    /// keeps pinned memory for them.
    ///
    /// Calls `cuMemcpyHtoDAsync` (CUDA 3.2), one call; for each 64 KiB of small writes
    /// `cuEventRecord` and `cuEventQuery` once besides, unless the host has waited for the stream;
    /// on `cuMemHostAlloc` (CUDA 2.2), where there is no pinned memory yet.
    ///
    /// # Errors
    /// The lengths differ ([`Length`](crate::Error::Length)), the memory is of another context
    /// ([`WrongContext`](crate::Error::WrongContext)), the host has not enough memory to pin
    /// ([`OutOfHostMemory`](crate::Error::OutOfHostMemory)), or the driver refuses the call
    /// ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuMemcpyHtoDAsync")]
    #[doc(alias = "cudaMemcpyAsync")]
    pub fn write<'a, T: Element>(&self, memory: impl Into<Slice<'a, T>>, elements: &[T]) -> Result<()> {
        let memory = memory.into();
        same_length("the slice to write", memory.len(), elements.len())?;
        if memory.size_bytes() == 0 {
            return Ok(());
        }
        let allocation = memory.allocation();
        let kind = allocation.kind();
        let to = Target { address: memory.address(), kind, capture: Capture::Keeps(allocation) };
        to.write(self, Bytes::of(elements))
    }

    /// A buffer with a copy of `elements`. This stream is its home. Waits for nothing, and goes
    /// through pinned memory as [`write`](Self::write) does: of more than 16 KiB another copy is
    /// made on the way, for which [`upload_blocking`](Self::upload_blocking) has no need.
    ///
    /// In a capture of this library the copy becomes a node, as for [`write`](Self::write), and the
    /// memory [is of the capture](crate::capture#memory-in-a-capture).
    ///
    /// Calls `cuMemAllocAsync` (CUDA 11.2), and what [`write`](Self::write) calls.
    ///
    /// # Errors
    /// The device has not enough memory ([`OutOfMemory`](crate::Error::OutOfMemory)), the host has
    /// not enough memory to pin ([`OutOfHostMemory`](crate::Error::OutOfHostMemory)), other code
    /// captures the stream ([`Capturing`](crate::Error::Capturing)), or the driver refuses the call
    /// ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuMemcpyHtoDAsync")]
    #[doc(alias = "cudaMemcpyAsync")]
    pub fn upload<T: Element>(&self, elements: &[T]) -> Result<Buffer<T>> {
        let bytes = size_of_val(elements);
        let plain = || {
            let mut allocation = Allocation::pooled(self, None, bytes)?;
            if bytes > 0 {
                let capture = Capture::Refused("allocating a buffer");
                let to = Target { address: allocation.address(), kind: allocation.kind(), capture };
                to.write(self, Bytes::of(elements))?;
                allocation.stamp();
            }
            Ok(allocation)
        };
        let captured = |memory: &Arc<Allocation>| {
            let to =
                Target { address: memory.address(), kind: memory.kind(), capture: Capture::Keeps(memory) };
            to.write(self, Bytes::of(elements))
        };
        self.allocated(None, bytes, elements.len(), plain, captured)
    }
}

/// Initialised bytes, borrowed as long as this value is used.
#[derive(Clone, Copy)]
struct Bytes {
    start: *const u8,
    len: usize,
}

impl Bytes {
    fn of<T: Element>(elements: &[T]) -> Self {
        Self { start: elements.as_ptr().cast(), len: size_of_val(elements) }
    }

    /// # Safety
    /// `room` has space for them, and nothing else uses it.
    unsafe fn copy_to(self, room: NonNull<u8>) {
        // SAFETY: the caller's promise for the room; the source is borrowed.
        unsafe { core::ptr::copy_nonoverlapping(self.start, room.as_ptr(), self.len) };
    }
}

/// Memory that is written to.
struct Target<'a> {
    address: u64,
    kind: MemoryKind,
    capture: Capture<'a>,
}

/// The behaviour on a capturing stream.
enum Capture<'a> {
    /// The capture keeps the memory.
    Keeps(&'a Arc<Allocation>),
    /// This cannot be captured.
    Refused(&'static str),
}

impl Target<'_> {
    fn write(&self, stream: &Stream, bytes: Bytes) -> Result<()> {
        stream.context().ensure_usable()?;
        let raw = stream.raw_stream();
        let is_small = bytes.len <= STAGED_MOST;
        // Others may capture a foreign stream at any time: an event there may be theirs.
        if is_small && !raw.is_foreign() && raw.capture() == 0 {
            match self.ready(stream) {
                Ok(_use) if self.write_small(stream, bytes)? => return Ok(()),
                // It has begun to capture.
                Ok(_) | Err(Error::CapturedFirstUse) => {}
                Err(error) => return Err(error),
            }
        }
        self.write_by_itself(stream, bytes)
    }

    /// The memory, if others may know it.
    fn memory(&self) -> Option<&Arc<Allocation>> {
        match self.capture {
            Capture::Keeps(memory) => Some(memory),
            Capture::Refused(_) => None,
        }
    }

    fn ready<'s>(&'s self, stream: &'s Stream) -> Result<Option<Use<'s>>> {
        self.memory().map(|memory| memory.ready_once(stream)).transpose()
    }

    /// Through the blocks of the stream. False if it has begun to capture.
    fn write_small(&self, stream: &Stream, bytes: Bytes) -> Result<bool> {
        let (context, raw) = (stream.context(), stream.raw_stream());
        let mut ring = stream.staging().lock(raw)?;
        ring.prepare(bytes.len, |room| host::block_at_once(context, HostKind::Pinned, room))?;
        let access = stream.enqueue()?;
        if access.is_captured()? || raw.is_foreign() {
            return Ok(false);
        }
        let _current = stream.enter_for_reach([self.kind])?;
        let Some(room) = ring.place(bytes.len)? else { return Ok(false) };
        // SAFETY: the ring has that much room there, and the device has read what was in it.
        let (call, code) = unsafe {
            bytes.copy_to(room);
            self.enqueue(stream, room.as_ptr().cast(), bytes.len)
        };
        drop(access);
        // Whatever came of it: the room may be in use.
        ring.wrote(bytes.len, stream.ticket());
        context.check(call, code).map(|()| true)
    }

    /// Through memory that goes when it was read, or with the capture.
    fn write_by_itself(&self, stream: &Stream, bytes: Bytes) -> Result<()> {
        // SAFETY: all its bytes are written below, before anybody reads them.
        let own = unsafe { HostBuffer::<u8>::unfilled(stream.context(), HostKind::Pinned, bytes.len) }?;
        let room = NonNull::new(own.start()).ok_or(Error::TooLarge { len: bytes.len, size: 1 })?;
        // SAFETY: the buffer is as large, and has no other user.
        unsafe { bytes.copy_to(room) };
        let own = own.share();
        let kept = own.as_buffer().allocation();
        let _use = kept.ready_once(stream)?;
        let memory = self.memory();
        let (access, _written) = stream.enqueue_once_ready(memory.as_slice(), || self.ready(stream))?;
        if access.is_captured()? {
            match self.capture {
                Capture::Refused(what) => return Err(Error::Capturing { what }),
                Capture::Keeps(allocation) => {
                    let source = room.as_ptr().expose_provenance() as u64;
                    let work = Work::Copy { source, destination: self.address, bytes: bytes.len as u64 };
                    let keeps = [kept, allocation];
                    let _current = stream.enter_for_copy(keeps.map(|memory| memory.kind()))?;
                    return access.captured_call(
                        work,
                        |record| keeps.into_iter().for_each(|memory| record.allocation(memory)),
                        // SAFETY: the capture keeps the buffer.
                        || unsafe { self.enqueue(stream, room.as_ptr().cast(), bytes.len) },
                    );
                }
            }
        }
        let _current = stream.enter_for_reach([self.kind])?;
        // SAFETY: the buffer goes only when all that uses it is over.
        let (call, code) = unsafe { self.enqueue(stream, room.as_ptr().cast(), bytes.len) };
        drop(access);
        stream.context().check(call, code)
    }

    /// # Safety
    /// Pinned memory of that size, which stays as it is until the copy is over; the target is as
    /// large.
    unsafe fn enqueue(&self, stream: &Stream, from: *mut c_void, bytes: usize) -> (Call, CUresult) {
        let (driver, raw) = (stream.context().driver(), stream.as_raw());
        // SAFETY: the caller's promise.
        unsafe {
            match self.kind.is_of_device() {
                true => (Call::cuMemcpyHtoDAsync, driver.cuMemcpyHtoDAsync(self.address, from, bytes, raw)),
                false => {
                    let from = from.expose_provenance() as u64;
                    (Call::cuMemcpyAsync, driver.cuMemcpyAsync(self.address, from, bytes, raw))
                }
            }
        }
    }
}
