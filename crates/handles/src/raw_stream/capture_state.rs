//! Whether a stream is capturing, and enqueuing on it without missing the answer.

use core::any::Any;
use std::sync::atomic::Ordering;

use cuda_sys::{CUresult, CUstreamCaptureStatus, Call};

use super::capture_log::CaptureLog;
use super::owner::RawStream;
use crate::access::{CAPTURED, FOREIGN, ONLY_CAPTURES, ReadGuard, holders, own_slots};
use crate::context::{is_sticky, unless_inside};
use crate::error::{Error, Result};
use crate::sync::Rank;

impl RawStream {
    /// The number of the capture begun by this library that the stream is in; 0 for none.
    #[inline]
    pub(crate) fn capture(&self) -> u64 {
        self.capture.load(Ordering::Acquire)
    }

    /// While this is held the stream enters and leaves no capture of this library. Not twice on one
    /// thread.
    ///
    /// # Errors
    /// This is a host function, and the stream is entering or leaving a capture (`NOT_PERMITTED`):
    /// the driver call for that may be waiting for the function.
    #[inline]
    pub(crate) fn enqueue(&self) -> Result<ReadGuard<'_>> {
        match self.access.read(own_slots()) {
            Some(access) => Ok(access),
            None => self.enqueue_later(),
        }
    }

    /// [`enqueue`](Self::enqueue) without a wait, for drops.
    #[inline]
    pub(crate) fn try_enqueue(&self) -> Option<ReadGuard<'_>> {
        self.access.read(own_slots())
    }

    #[cold]
    fn enqueue_later(&self) -> Result<ReadGuard<'_>> {
        Rank::StreamAccess.check();
        let busy = || holders::changing(self.name());
        unless_inside(&self.context, busy, || self.access.read_again(own_slots()))
    }

    /// Lets the stream enter a capture of this library, with its number and its log.
    ///
    /// # Safety
    /// The caller has [exclusive access](super::exclusion).
    pub(crate) unsafe fn enter_capture(&self, word: u64, log: CaptureLog) {
        // SAFETY: the caller's promise.
        unsafe { self.log.set(Some(log)) };
        self.capture.store(word, Ordering::Release);
        self.access.set(CAPTURED);
    }

    /// Lets the stream leave the capture that it is in.
    ///
    /// # Safety
    /// The caller has [exclusive access](super::exclusion).
    pub(crate) unsafe fn leave_capture(&self) {
        self.capture.store(0, Ordering::Release);
        self.access.clear(CAPTURED);
        // SAFETY: the caller's promise.
        unsafe { self.log.set(None) };
    }

    /// The log of the capture of this library that the stream is in.
    ///
    /// # Safety
    /// The caller has read access of the stream as long as the result is used.
    #[inline]
    pub(crate) unsafe fn capture_log(&self) -> Option<&(dyn Any + Send + Sync)> {
        // SAFETY: the caller's promise.
        unsafe { self.log.get() }
    }

    /// From now on the driver is asked, since a capture of other code may reach this stream.
    pub(crate) fn set_foreign(&self) {
        // First, so that a thread that trusts the stream again meanwhile sees it.
        self.lent.store(true, Ordering::Release);
        self.access.set(FOREIGN);
    }

    /// The driver is asked until the stream is [trusted](Self::trust) again. Requires [exclusive
    /// access](super::exclusion).
    pub(crate) fn suspect(&self) {
        self.access.set(FOREIGN);
    }

    /// Reverts [`suspect`](Self::suspect), still with exclusive access.
    pub(crate) fn trust(&self) {
        self.access.clear(FOREIGN);
        if self.lent.load(Ordering::Acquire) {
            self.access.set(FOREIGN);
        }
    }

    /// Whether other code may have let the stream enter a capture.
    #[inline]
    pub(crate) fn is_foreign(&self) -> bool {
        self.access.flags() & FOREIGN != 0
    }

    /// From now on the stream takes work in captures only.
    pub(crate) fn set_only_captures(&self) {
        self.access.set(ONLY_CAPTURES);
    }

    /// Refuses work on a stream that takes it in captures only, and is in none.
    #[inline]
    pub(crate) fn refuse_outside_capture(&self) -> Result<()> {
        match self.access.flags() & (ONLY_CAPTURES | CAPTURED) {
            ONLY_CAPTURES => Err(Error::CaptureOver),
            _ => Ok(()),
        }
    }

    fn capture_status(&self) -> (CUresult, bool) {
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the stream is alive and the out pointer valid.
        let code = unsafe { self.context.driver().cuStreamIsCapturing(self.raw(), &raw mut status) };
        (code, status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    /// Whether the stream is capturing now. No driver call for a stream that only this library can
    /// capture.
    pub(crate) fn is_capturing(&self) -> Result<bool> {
        if self.capture() != 0 || !self.is_foreign() {
            return Ok(self.capture() != 0);
        }
        let (code, capturing) = self.capture_status();
        self.context.check(Call::cuStreamIsCapturing, code).map(|()| capturing)
    }

    /// Whether the stream is capturing by the driver's word, which costs a call.
    pub(crate) fn ask_capturing(&self) -> Result<bool> {
        let (code, capturing) = self.capture_status();
        self.context.check(Call::cuStreamIsCapturing, code).map(|()| capturing)
    }

    /// An error if the stream is capturing: `what` cannot be captured. If a fault has lost the
    /// context, the following call reports it: that is the call that was requested.
    #[inline]
    pub(crate) fn refuse_capture(&self, what: &'static str) -> Result<()> {
        if self.access.flags() == 0 { Ok(()) } else { self.refuse_flagged(what) }
    }

    #[cold]
    fn refuse_flagged(&self, what: &'static str) -> Result<()> {
        if self.capture() != 0 {
            return Err(Error::Capturing { what });
        }
        if !self.is_foreign() {
            return Ok(());
        }
        match self.capture_status() {
            (CUresult::CUDA_SUCCESS, true) => Err(Error::Capturing { what }),
            (code, _) if is_sticky(code) => Ok(()),
            (code, _) => self.context.check(Call::cuStreamIsCapturing, code),
        }
    }
}
