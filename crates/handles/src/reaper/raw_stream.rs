//! A driver stream, for as long as a handle or the reaper needs it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use cuda_sys::{CUevent_flags, CUevent_st, CUresult, CUstream, CUstream_st, CUstreamCaptureStatus, Call};

use super::queue::{self, Object};
use crate::context::{Context, is_sticky};
use crate::error::{Error, Result};
use crate::raw::Raw;

/// The driver's stream behind a handle. It outlives the handle while the reaper has yet to wait for its work.
#[derive(Debug)]
pub(crate) struct RawStream {
    raw: Raw<CUstream_st>,
    id: u64,
    owned: bool,
    context: Context,
    /// Recorded to let other streams wait for this one; made when first needed.
    marker: OnceLock<Raw<CUevent_st>>,
    /// Held from recording the marker to waiting for it, so that nobody records it anew in between.
    gate: Mutex<Gate>,
    /// Whether memory whose home is elsewhere was used here, so that fences have to include it.
    in_fence: AtomicBool,
}

#[derive(Debug, Default)]
pub(crate) struct Gate {
    /// No handle is left. The marker of a stream that is not ours was recorded then, and the stream may be gone.
    pub(crate) closed: bool,
}

impl RawStream {
    pub(crate) fn new(context: &Context, raw: CUstream, owned: bool) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(1);
        Self {
            raw: Raw::new(raw),
            id: NEXT.fetch_add(1, Ordering::Relaxed),
            owned,
            context: context.clone(),
            marker: OnceLock::new(),
            gate: Mutex::new(Gate::default()),
            in_fence: AtomicBool::new(false),
        }
    }

    #[inline]
    pub(crate) fn raw(&self) -> CUstream {
        self.raw.get()
    }

    #[inline]
    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    pub(crate) fn is_owned(&self) -> bool {
        self.owned
    }

    #[inline]
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    #[inline]
    pub(crate) fn is_in_fence(&self) -> bool {
        self.in_fence.load(Ordering::Acquire)
    }

    /// Only under the lock of the fence's members.
    pub(crate) fn set_in_fence(&self) {
        self.in_fence.store(true, Ordering::Release);
    }

    pub(crate) fn gate(&self) -> MutexGuard<'_, Gate> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn capture_status(&self) -> (CUresult, bool) {
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the stream is alive and the out pointer valid.
        let code = unsafe { self.context.driver().cuStreamIsCapturing(self.raw(), &raw mut status) };
        (code, status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    /// Whether the stream is capturing now.
    pub(crate) fn is_capturing(&self) -> Result<bool> {
        let (code, capturing) = self.capture_status();
        self.context.check(Call::cuStreamIsCapturing, code).map(|()| capturing)
    }

    /// An error if the stream is capturing: `what` cannot be captured. The fault that lost the context is left for the call that follows to
    /// report: that call is the one that was asked for.
    pub(crate) fn refuse_capture(&self, what: &'static str) -> Result<()> {
        match self.capture_status() {
            (CUresult::CUDA_SUCCESS, true) => Err(Error::Capturing { what }),
            (code, _) if is_sticky(code) => Ok(()),
            (code, _) => self.context.check(Call::cuStreamIsCapturing, code),
        }
    }

    /// Makes `waiter` wait for all that is enqueued here now. Two calls, the marker's creation aside.
    pub(crate) fn order_before(&self, waiter: CUstream) -> Result<()> {
        let _gate = self.gate();
        let marker = self.record_marker()?;
        self.let_wait(waiter, marker)
    }

    /// As [`order_before`](Self::order_before), but refuses while this stream is capturing: the wait would draw `waiter` into the capture.
    pub(crate) fn order_before_uncaptured(&self, waiter: CUstream, what: &'static str) -> Result<()> {
        let gate = self.gate();
        if gate.closed && !self.owned {
            return self.wait_for_last(waiter);
        }
        // Before the record, to leave a capture alone; and after it, as one that begins later cannot have caught it.
        self.refuse_capture(what)?;
        let marker = self.record_marker()?;
        self.refuse_capture(what)?;
        self.let_wait(waiter, marker)
    }

    /// Says that no handle is left. A stream that is not ours may be destroyed from now on: its last point is recorded first.
    pub(crate) fn close(&self) {
        let mut gate = self.gate();
        let last = !self.owned && self.is_in_fence() && queue::may_call(&self.context);
        if last && let Err(error) = self.record_marker() {
            queue::report("recording the last work of an adopted stream", error);
        }
        gate.closed = true;
    }

    fn wait_for_last(&self, waiter: CUstream) -> Result<()> {
        match self.marker.get() {
            Some(&marker) => self.let_wait(waiter, marker),
            None => Ok(()),
        }
    }

    fn record_marker(&self) -> Result<Raw<CUevent_st>> {
        let marker = self.marker()?;
        // SAFETY: event and stream are alive.
        let code = unsafe { self.context.driver().cuEventRecord(marker.get(), self.raw()) };
        self.context.check(Call::cuEventRecord, code)?;
        Ok(marker)
    }

    fn let_wait(&self, waiter: CUstream, marker: Raw<CUevent_st>) -> Result<()> {
        // SAFETY: the caller's stream is alive, and so is the event.
        let code = unsafe { self.context.driver().cuStreamWaitEvent(waiter, marker.get(), 0) };
        self.context.check(Call::cuStreamWaitEvent, code)
    }

    /// Only under the gate, so that it is made once.
    fn marker(&self) -> Result<Raw<CUevent_st>> {
        if let Some(&marker) = self.marker.get() {
            return Ok(marker);
        }
        let made = create_event(&self.context, CUevent_flags::CU_EVENT_DISABLE_TIMING.0)?;
        Ok(*self.marker.get_or_init(|| made))
    }
}

/// Creates an event in a context.
pub(crate) fn create_event(context: &Context, flags: u32) -> Result<Raw<CUevent_st>> {
    let _current = context.enter()?;
    let mut raw = core::ptr::null_mut();
    // SAFETY: the context is current and the out pointer valid.
    let code = unsafe { context.driver().cuEventCreate(&raw mut raw, flags) };
    context.check(Call::cuEventCreate, code)?;
    Ok(Raw::new(raw))
}

impl Drop for RawStream {
    fn drop(&mut self) {
        if let Some(&marker) = self.marker.get() {
            queue::destroy(&self.context, Object::Event(marker));
        }
        if self.owned {
            queue::destroy(&self.context, Object::Stream(self.raw));
        }
    }
}
