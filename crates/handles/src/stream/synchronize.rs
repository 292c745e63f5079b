//! Waiting on the host until the work of streams is done.

use cuda_sys::{CUresult, Call};

use super::handle::{STREAMS, Stream};
use super::open_captures;
use crate::context::{Context, capture_mode};
use crate::error::{Error, Result};

impl Context {
    /// Waits until all work is done on the streams of this context that this library created and
    /// that have handles, one after the other as [`Stream::synchronize_blocking`]. Adopted streams
    /// and other code's are waited for with their own handles: the driver's wait for a whole
    /// context would invalidate open captures in it.
    ///
    /// Calls `cuStreamSynchronize` (CUDA 2.0).
    ///
    /// # Errors
    /// A stream of the context is capturing ([`Capturing`](crate::Error::Capturing)) (nothing is
    /// waited for then), or the driver refuses the call ([`Driver`](crate::Error::Driver)).
    #[doc(alias = "cuCtxSynchronize")]
    #[doc(alias = "cudaDeviceSynchronize")]
    pub fn synchronize_blocking(&self) -> Result<()> {
        self.ensure_usable()?;
        let of_context = |stream: &Stream| stream.context().as_raw() == self.as_raw();
        let streams: Vec<_> = STREAMS.all().into_iter().map(Stream).filter(of_context).collect();
        if open_captures::any_in(self) {
            return Err(Error::Capturing { what: "waiting for a context" });
        }
        streams.iter().try_for_each(|stream| stream.refuse_capture("waiting for a context"))?;
        streams.iter().try_for_each(Stream::synchronize_blocking)
    }
}

impl Stream {
    /// Waits until all work enqueued so far is done. A capture of this stream can begin only
    /// afterwards. If a thread already waits to begin one, or to draw this stream into one, it goes
    /// first, for which this waits a second at most.
    ///
    /// If another thread launches graphs on this stream meanwhile, wait for an
    /// [event](crate::Event::synchronize_blocking) instead: driver 580 may answer such a launch
    /// with `CUDA_ERROR_UNKNOWN`, although it enqueues it.
    ///
    /// Calls `cuStreamSynchronize` (CUDA 2.0).
    ///
    /// # Errors
    /// The stream is capturing ([`Capturing`](crate::Error::Capturing)), or the driver refuses the
    /// call ([`Driver`](crate::Error::Driver)); a fault of earlier work shows here.
    #[doc(alias = "cuStreamSynchronize")]
    #[doc(alias = "cudaStreamSynchronize")]
    pub fn synchronize_blocking(&self) -> Result<()> {
        self.context().ensure_usable()?;
        self.0.stream.step_aside();
        let _access = self.0.stream.enqueue()?;
        self.0.stream.refuse_capture("waiting for a stream")?;
        self.context().refuse_in_callback()?;
        self.wait_until_done()
    }

    /// The wait itself, with read access, outside of host functions, on a stream that is known not
    /// to capture: a capture that began now would make it fail.
    pub(crate) fn wait_until_done(&self) -> Result<()> {
        let issued = self.issued();
        let _mode = capture_mode::relaxed(self.context().driver());
        // SAFETY: the stream is alive.
        let code = unsafe { self.context().driver().cuStreamSynchronize(self.as_raw()) };
        self.context().check(Call::cuStreamSynchronize, code)?;
        self.set_synced(issued);
        Ok(())
    }

    /// Whether all work enqueued so far is done. It is not while another thread launches a graph
    /// here.
    ///
    /// Calls `cuStreamQuery` (CUDA 2.0).
    ///
    /// # Errors
    /// The stream is capturing ([`Capturing`](crate::Error::Capturing)), or the driver refuses the
    /// call ([`Driver`](crate::Error::Driver)); a fault of earlier work shows here.
    #[doc(alias = "cuStreamQuery")]
    #[doc(alias = "cudaStreamQuery")]
    pub fn query(&self) -> Result<bool> {
        self.context().ensure_usable()?;
        let _access = self.0.stream.enqueue()?;
        self.0.stream.refuse_capture("querying a stream")?;
        let Some(_asking) = self.0.stream.launch_gate().ask() else { return Ok(false) };
        let _mode = capture_mode::relaxed(self.context().driver());
        // SAFETY: the stream is alive.
        match unsafe { self.context().driver().cuStreamQuery(self.as_raw()) } {
            CUresult::CUDA_ERROR_NOT_READY => Ok(false),
            // Not noted as a wait: the driver has yet to process frees.
            code => self.context().check(Call::cuStreamQuery, code).map(|()| true),
        }
    }
}
