//! Reading and writing memory from the host, with a wait for the stream.

use core::ffi::c_void;

use cuda_sys::Call;

use crate::context::capture_mode;
use crate::error::{Error, Result};
use crate::memory::{Buffer, Element, Slice, same_length};
use crate::stream::{Event, EventOptions, Stream};

impl<T: Element> Slice<'_, T> {
    /// The elements, read in the order of `stream`. **Waits** for the stream.
    ///
    /// Calls `cuMemcpyDtoHAsync` (CUDA 3.2), and `cuStreamSynchronize`.
    ///
    /// # Errors
    /// The stream is of another context ([`WrongContext`](crate::Error::WrongContext)) or
    /// capturing, the host has not enough memory ([`HostVector`](crate::Error::HostVector)), or the
    /// driver refuses the call ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuMemcpyDtoHAsync")]
    #[doc(alias = "cudaMemcpy")]
    #[doc(alias = "cudaMemcpyDeviceToHost")]
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
    /// The lengths differ ([`Length`](crate::Error::Length)), the stream is of another context
    /// ([`WrongContext`](crate::Error::WrongContext)) or capturing, or the driver refuses the call
    /// ([`Driver`](crate::Error::Driver)).
    pub fn read_into_blocking(self, stream: &Stream, elements: &mut [T]) -> Result<()> {
        same_length("the slice to read into", self.len(), elements.len())?;
        // SAFETY: the slice has that length and is borrowed until the copy is over.
        unsafe { self.read_to(stream, elements.as_mut_ptr()) }
    }

    /// Overwrites the elements in the order of `stream`. **Waits** for the stream until `elements`
    /// have been read.
    ///
    /// Calls `cuMemcpyHtoDAsync` (CUDA 3.2), and `cuStreamSynchronize`.
    ///
    /// # Errors
    /// The lengths differ ([`Length`](crate::Error::Length)), the stream is of another context
    /// ([`WrongContext`](crate::Error::WrongContext)) or capturing, or the driver refuses the call
    /// ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuMemcpyHtoDAsync")]
    #[doc(alias = "cudaMemcpy")]
    #[doc(alias = "cudaMemcpyHostToDevice")]
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
        let kind = self.allocation().kind();
        let behind = match stream.raw_stream().is_foreign() {
            true => {
                Some(stream.context().event_with(EventOptions { timing: false, ..EventOptions::default() })?)
            }
            false => None,
        };
        stream.raw_stream().step_aside();
        let access = stream.raw_stream().enqueue()?;
        stream.refuse_capture(what)?;
        // Behind the copy there is no way back.
        stream.context().refuse_in_callback()?;
        // The copy itself would wait for the stream, too, but some calls in a host function that it
        // waits for then never return.
        if !write && behind.is_none() {
            stream.wait_until_done()?;
        }
        let current = stream.enter_for_reach([kind])?;
        // SAFETY: the range lies in memory that lives until the wait below is over; the host's
        // range is the caller's promise.
        let (call, code) = unsafe {
            match (kind.is_of_device(), write) {
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
        drop(current);
        stream.context().check(call, code)?;
        // With read access: a capture that began now would make the wait fail while the copy still
        // runs.
        let waited = match &behind {
            None => stream.wait_until_done().or_else(|error| wait_otherwise(stream, error)),
            Some(event) => wait_behind(stream, what, event),
        };
        drop(access);
        waited
    }
}

const READING: &str = "reading into host memory that the graph would not own (`Stream::copy` into pinned \
                       memory that is shared can be captured)";
const WRITING: &str =
    "writing from host memory that the graph would not own (`Stream::write` gives it a copy of its own)";

/// If the operation cannot be captured at all, it does not matter that the memory's home was not
/// waited for.
fn never_captured(what: &'static str) -> impl Fn(Error) -> Error {
    move |error| match error {
        Error::CapturedFirstUse => Error::Capturing { what },
        other => other,
    }
}

/// Waits for a copy by another call, after one failed: the host's memory is not given back while
/// the copy may be running.
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
