//! A context and a stream of other code.

use core::ptr;

use cuda_handles::Context;
use cuda_sys::{CUcontext, CUstream, CUstreamCaptureMode, CUstreamCaptureStatus};

use super::Things;
use crate::driver::raw::{self, driver, ok};

/// A context of other code on the same device.
pub(super) struct AnotherContext(pub(super) CUcontext);

impl AnotherContext {
    pub(super) fn new(things: &Things) -> Self {
        let (mut context, mut popped) = (ptr::null_mut(), ptr::null_mut());
        let device = things.context.device().as_raw();
        // SAFETY: the out pointers are valid; what creating made current is popped.
        unsafe {
            ok(driver().cuCtxCreate(&raw mut context, ptr::null_mut(), 0, 0, device));
            ok(driver().cuCtxPopCurrent(&raw mut popped));
        }
        Self(context)
    }
}

impl Drop for AnotherContext {
    fn drop(&mut self) {
        // SAFETY: the context is ours and current nowhere.
        ok(unsafe { driver().cuCtxDestroy(self.0) });
    }
}

/// A non-blocking stream that the library does not know. Its drop destroys it, if the driver
/// permits that.
#[derive(Debug)]
pub struct Foreign(CUstream);

// SAFETY: a handle; the driver takes it on every thread.
unsafe impl Send for Foreign {}
// SAFETY: as above.
unsafe impl Sync for Foreign {}

impl Foreign {
    /// Creates the stream.
    ///
    /// # Panics
    /// The driver refuses.
    #[must_use]
    pub fn new(context: &Context) -> Self {
        let mut stream = ptr::null_mut();
        let create = || {
            // SAFETY: the out pointer is valid and a context current.
            ok(unsafe { driver().cuStreamCreate(&raw mut stream, 1) });
        };
        context.with_current(create).unwrap_or_else(|error| panic!("{error}"));
        Self(stream)
    }

    /// The driver's handle.
    #[must_use]
    pub fn as_raw(&self) -> CUstream {
        self.0
    }

    /// Begins a capture.
    ///
    /// # Panics
    /// The driver refuses.
    pub fn begin(&self, mode: CUstreamCaptureMode) {
        // SAFETY: the stream lives.
        ok(unsafe { driver().cuStreamBeginCapture(self.0, mode) });
    }

    /// Ends the capture, which must be valid and empty.
    ///
    /// # Errors
    /// The capture is invalid or has nodes.
    ///
    /// # Panics
    /// The driver does not answer.
    pub fn end(&self) -> Result<(), String> {
        let (mut status, mut graph) = (CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE, ptr::null_mut());
        // SAFETY: the stream lives and the out pointers are valid.
        let ended = unsafe {
            ok(driver().cuStreamIsCapturing(self.0, &raw mut status));
            driver().cuStreamEndCapture(self.0, &raw mut graph)
        };
        if status != CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE || !ended.is_success() {
            return Err(format!("the capture has status {} and its end answers {ended}", status.0));
        }
        let nodes = raw::nodes(graph).len();
        // SAFETY: the graph is ours.
        ok(unsafe { driver().cuGraphDestroy(graph) });
        if nodes == 0 { Ok(()) } else { Err(format!("the capture has caught {nodes} nodes")) }
    }
}

impl Drop for Foreign {
    fn drop(&mut self) {
        // SAFETY: the stream is ours. What became of its capture was looked at before.
        let _ = unsafe { driver().cuStreamDestroy(self.0) };
    }
}
