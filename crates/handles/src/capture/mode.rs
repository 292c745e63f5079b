//! Capture modes.

use cuda_sys::CUstreamCaptureMode;

/// Whose unrelated calls a capture forbids, since they might be meant to be captured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CaptureMode {
    /// Unrelated calls of every thread. This library makes its own calls in a way that does no
    /// harm; other code may not.
    Global,
    /// Unrelated calls of the thread that began the capture.
    #[default]
    ThreadLocal,
    /// No calls.
    Relaxed,
}

impl CaptureMode {
    pub(super) fn raw(self) -> CUstreamCaptureMode {
        match self {
            Self::Global => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL,
            Self::ThreadLocal => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
            Self::Relaxed => CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED,
        }
    }
}
