//! The default streams, for work together with code that uses them.

use core::fmt;
use core::marker::PhantomData;

use cuda_sys::{CUresult, CUstream, CUstreamCaptureStatus, Call};

use super::event::{Event, EventOptions};
use super::handle::Stream;
use super::recorded::Recorded;
use crate::context::{Context, capture_mode};
use crate::error::{Error, Result};
use crate::raw_stream;

/// A default stream of a context, as other code may use it: the legacy one, which waits for the
/// context's blocking streams and they for it, or the calling thread's own one.
///
/// Which stream the driver means by these depends on the thread and on its current context. So this
/// handle stays on its thread, enters its context for every call, and is there to put work in
/// order: events are recorded here and waited for, and other streams wait for it and it for them.
/// Work itself goes on streams of one's own, and memory never has its home here.
pub struct DefaultStream {
    context: Context,
    kind: Kind,
    _thread: PhantomData<*mut ()>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Legacy,
    PerThread,
}

impl Context {
    /// The context's legacy default stream. No driver call.
    #[doc(alias = "CU_STREAM_LEGACY")]
    #[doc(alias = "cudaStreamLegacy")]
    #[must_use]
    pub fn legacy_stream(&self) -> DefaultStream {
        DefaultStream { context: self.clone(), kind: Kind::Legacy, _thread: PhantomData }
    }

    /// The calling thread's default stream of the context. No driver call.
    #[doc(alias = "CU_STREAM_PER_THREAD")]
    #[doc(alias = "cudaStreamPerThread")]
    #[must_use]
    pub fn per_thread_stream(&self) -> DefaultStream {
        DefaultStream { context: self.clone(), kind: Kind::PerThread, _thread: PhantomData }
    }
}

impl DefaultStream {
    /// The driver's value for it: not a handle, but a name that means another stream on another
    /// thread or in another context.
    #[must_use]
    pub fn as_raw(&self) -> CUstream {
        core::ptr::without_provenance_mut(match self.kind {
            Kind::Legacy => 1,
            Kind::PerThread => 2,
        })
    }

    /// The context.
    #[must_use]
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Waits until all work enqueued so far is done; on the legacy stream also the work of the
    /// context's blocking streams.
    ///
    /// Calls `cuStreamSynchronize` (CUDA 2.0); for the legacy stream on an event that is recorded
    /// there and waited for.
    ///
    /// # Errors
    /// The stream is capturing ([`Capturing`](crate::Error::Capturing)), or a blocking one that it
    /// would wait for is; or the driver refuses the call ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuStreamSynchronize")]
    #[doc(alias = "cudaStreamSynchronize")]
    pub fn synchronize_blocking(&self) -> Result<()> {
        const WHAT: &str = "waiting for a default stream";
        if self.kind == Kind::Legacy {
            // Not in one call: no blocking stream could begin a capture while it lasts.
            let event = passing_event(&self.context)?;
            self.record_as(WHAT, &event)?;
            return event.synchronize_blocking();
        }
        self.call(WHAT, Call::cuStreamSynchronize, || {
            // SAFETY: the context is current, in which the stream always is.
            unsafe { self.context.driver().cuStreamSynchronize(self.as_raw()) }
        })
    }

    /// Whether all work enqueued so far is done.
    ///
    /// Calls `cuStreamQuery` (CUDA 2.0).
    ///
    /// # Errors
    /// As [`synchronize_blocking`](Self::synchronize_blocking).
    #[doc(alias = "cuStreamQuery")]
    #[doc(alias = "cudaStreamQuery")]
    pub fn query(&self) -> Result<bool> {
        let mut ready = true;
        self.call("querying a default stream", Call::cuStreamQuery, || {
            // SAFETY: the context is current, in which the stream always is.
            match unsafe { self.context.driver().cuStreamQuery(self.as_raw()) } {
                CUresult::CUDA_ERROR_NOT_READY => {
                    ready = false;
                    CUresult::CUDA_SUCCESS
                }
                code => code,
            }
        })?;
        Ok(ready)
    }

    /// Records `event` here: it is reached when the work enqueued so far is done.
    ///
    /// Calls `cuEventRecord` (CUDA 2.0).
    ///
    /// # Errors
    /// The event is of another context ([`WrongContext`](crate::Error::WrongContext)); as
    /// [`synchronize_blocking`](Self::synchronize_blocking).
    #[doc(alias = "cuEventRecord")]
    #[doc(alias = "cudaEventRecord")]
    pub fn record(&self, event: &Event) -> Result<()> {
        self.record_as("recording an event in a default stream", event)
    }

    fn record_as(&self, what: &'static str, event: &Event) -> Result<()> {
        // First: in a forked child the event may be locked forever.
        self.context.ensure_usable()?;
        self.context.ensure_same(event.context(), "the event")?;
        let mut recorded = event.recorded()?;
        self.call(what, Call::cuEventRecord, || {
            // SAFETY: the context is current and the event alive.
            unsafe { self.context.driver().cuEventRecord(event.as_raw(), self.as_raw()) }
        })?;
        recorded.set(Recorded::Plain);
        Ok(())
    }

    /// Makes work enqueued from now on wait until `event`, as recorded last, is reached.
    ///
    /// Calls `cuStreamWaitEvent` (CUDA 3.2).
    ///
    /// # Errors
    /// The event was last recorded in a capture; as
    /// [`synchronize_blocking`](Self::synchronize_blocking).
    #[doc(alias = "cuStreamWaitEvent")]
    #[doc(alias = "cudaStreamWaitEvent")]
    pub fn wait(&self, event: &Event) -> Result<()> {
        self.context.ensure_usable()?;
        let recorded = event.recorded()?;
        if matches!(recorded.place(), Recorded::Captured(_) | Recorded::Foreign) {
            return Err(Error::CapturedEvent);
        }
        self.call("making a default stream wait", Call::cuStreamWaitEvent, || {
            // SAFETY: the context is current and the event alive.
            unsafe { self.context.driver().cuStreamWaitEvent(self.as_raw(), event.as_raw(), 0) }
        })
    }

    /// Makes work enqueued here from now on wait for all that is enqueued on `stream` so far.
    ///
    /// # Errors
    /// One of the two is capturing ([`Capturing`](crate::Error::Capturing)); or the driver refuses
    /// the call ([`Driver`](crate::Error::Driver)).
    pub fn wait_for(&self, stream: &Stream) -> Result<()> {
        stream.refuse_capture("being waited for by a default stream")?;
        let event = passing_event(stream.context())?;
        stream.record(&event)?;
        self.wait(&event)
    }

    /// Makes a call with the context current, unless something captures that it would harm. On the
    /// legacy stream it is one that waits for nothing.
    fn call(&self, what: &'static str, call: Call, work: impl FnOnce() -> CUresult) -> Result<()> {
        let _current = self.context.enter()?;
        let is_legacy = self.kind == Kind::Legacy;
        let _access = is_legacy.then(|| raw_stream::share_legacy(&self.context)).transpose()?;
        let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
        // SAFETY: the context is current and the out pointer valid.
        let code = unsafe { self.context.driver().cuStreamIsCapturing(self.as_raw(), &raw mut status) };
        match code {
            // Other code captures a blocking stream: the question does no harm, the call would.
            CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT => return Err(Error::Capturing { what }),
            code => self.context.check(Call::cuStreamIsCapturing, code)?,
        }
        if status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE {
            return Err(Error::Capturing { what });
        }
        let _mode = capture_mode::relaxed(self.context.driver());
        self.context.check(call, work())
    }
}

impl Stream {
    /// Makes work enqueued here from now on wait for all that is enqueued on a default stream so
    /// far.
    ///
    /// # Errors
    /// One of the two is capturing ([`Capturing`](crate::Error::Capturing)); or the driver refuses
    /// the call ([`Driver`](crate::Error::Driver)).
    pub fn wait_for_default(&self, other: &DefaultStream) -> Result<()> {
        self.refuse_capture("waiting for a default stream")?;
        let event = passing_event(other.context())?;
        other.record(&event)?;
        self.wait(&event)
    }
}

/// An event for one wait; destroying it afterwards does no harm.
fn passing_event(context: &Context) -> Result<Event> {
    context.event_with(EventOptions { timing: false, ..EventOptions::default() })
}

impl fmt::Debug for DefaultStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("DefaultStream").field("kind", &self.kind).finish_non_exhaustive()
    }
}
