//! The right to enqueue on a stream by a driver call of one's own.

use core::fmt;

use super::info;
use super::log::Log;
use crate::access::{CAPTURED, Launching, ReadGuard};
use crate::error::Result;
use crate::graph::{GraphHandle, Owner, UserObject};
use crate::stream::Stream;

impl Stream {
    /// The right to enqueue on this stream by a driver call of one's own, to be held over the call:
    /// no capture of this library begins or ends here meanwhile. Hold one at a time on a thread,
    /// and while it is held, make no other call of this library than [`Enqueue::is_captured`] and
    /// [`Enqueue::keep`], since other threads may wait for exclusive access. They wait as long as
    /// calls are [patient](crate::patience) and then fail with [`Error::Busy`](crate::Error::Busy);
    /// if the guard is forgotten, all of them do.
    ///
    /// # Errors
    /// The context is lost, or the process is a forked child; or this is a host function, and
    /// another thread lets the stream enter or leave a capture (`NOT_PERMITTED`): the driver may
    /// have that thread wait for the function. Elsewhere, [`Error::Busy`](crate::Error::Busy) if
    /// the driver keeps that thread for too long.
    // Always inlined: otherwise the result would be written to memory and read back, which takes
    // longer than the rest of the function.
    #[inline(always)]
    pub fn enqueue(&self) -> Result<Enqueue<'_>> {
        self.context().ensure_usable()?;
        Ok(Enqueue { stream: self, access: self.raw_stream().enqueue()? })
    }

    /// Makes this a stream for captures only: outside of them, work on it is refused. For a stream
    /// that only the caller has, so that captured work does not run because another thread has just
    /// ended the capture.
    #[doc(hidden)]
    pub fn only_capture(&self) {
        self.raw_stream().set_only_captures();
    }

    /// The number of the capture that the stream is in, if it is one that this library began.
    /// Numbers are never used again. One load.
    #[must_use]
    #[inline]
    pub fn capture_id(&self) -> Option<u64> {
        Some(self.raw_stream().capture()).filter(|&word| word != 0)
    }
}

/// The right to enqueue on a stream; see [`Stream::enqueue`].
pub struct Enqueue<'s> {
    stream: &'s Stream,
    access: ReadGuard<'s>,
}

impl<'s> Enqueue<'s> {
    /// The stream.
    #[must_use]
    #[inline]
    pub fn stream(&self) -> &'s Stream {
        self.stream
    }

    /// Begins the launch of a graph here. Until the returned value is dropped, no thread asks the
    /// driver whether the stream is idle: a driver may answer the launch with `UNKNOWN` then.
    #[doc(hidden)]
    #[inline]
    pub fn launching(&self) -> Launching<'s> {
        self.stream.raw_stream().launch_gate().launch()
    }

    /// Whether a call made now is captured. Makes no driver call unless the stream is adopted or
    /// was reached by a capture of other code.
    ///
    /// Calls `cuStreamIsCapturing` (CUDA 10.0) for such streams.
    ///
    /// # Errors
    /// [`Error::CaptureOver`](crate::Error::CaptureOver): the stream belongs to a builder whose
    /// capture is over. [`Error::Driver`](crate::Error::Driver): the driver refuses the call.
    #[doc(alias = "cuStreamIsCapturing")]
    #[doc(alias = "cudaStreamIsCapturing")]
    #[inline]
    pub fn is_captured(&self) -> Result<bool> {
        match self.access.flags() {
            0 => Ok(false),
            flags if flags & CAPTURED != 0 => Ok(true),
            _ => self.is_captured_by_others(),
        }
    }

    #[cold]
    fn is_captured_by_others(&self) -> Result<bool> {
        self.stream.raw_stream().refuse_outside_capture()?;
        self.stream.raw_stream().is_capturing()
    }

    /// Gives the capture an owner of something that the call uses. The owner lives as long as the
    /// captured graph and whatever is made from it ([`Records::kept`](super::Records::kept)). Does
    /// nothing on a stream that is not capturing. Call this **before** the driver call.
    ///
    /// For a capture that other code began, creates a user object: calls `cuStreamGetCaptureInfo`
    /// and `cuGraphRetainUserObject` (CUDA 11.3).
    ///
    /// # Errors
    /// [`Error::Driver`](crate::Error::Driver) if other code began the capture and the driver
    /// refuses a call. Inside a host function, another thread is making a call of the capture
    /// (`NOT_PERMITTED`), and elsewhere it makes one all the time
    /// ([`Busy`](crate::Error::Busy)).
    #[doc(alias = "cuStreamGetCaptureInfo")]
    #[doc(alias = "cudaStreamGetCaptureInfo")]
    pub fn keep(&self, owner: impl Into<Owner>) -> Result<()> {
        let owner = owner.into();
        match self.log() {
            Some(log) => log.keep(self.stream.context(), owner),
            None if self.is_captured()? => self.keep_foreign(owner),
            None => Ok(()),
        }
    }

    /// The log of the capture of this library that the stream is in.
    #[inline]
    pub(super) fn log(&self) -> Option<&Log> {
        // SAFETY: `access` is read access of the stream, held at least as long as the result.
        let log = unsafe { self.stream.raw_stream().capture_log() }?;
        debug_assert!(log.is::<Log>(), "captures begin with such a log");
        // SAFETY: `begin_capture` alone makes logs of captures, of this type. The question for the
        // type would take as long as all the rest of this function.
        Some(unsafe { &*core::ptr::from_ref(log).cast::<Log>() })
    }

    pub(super) fn keep_foreign(&self, owner: Owner) -> Result<()> {
        let context = self.stream.context();
        let Some(graph) = info::graph(self.stream)? else { return Ok(()) };
        // SAFETY: the graph of an open capture, which cannot end while the caller has read access.
        let graph = unsafe { GraphHandle::from_raw(context, graph) }?;
        UserObject::new(context, Box::new(owner))?.retain_on(&graph)
    }
}

impl fmt::Debug for Enqueue<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Enqueue")
            .field("stream", self.stream)
            .field("capture", &self.stream.capture_id())
            .finish()
    }
}
