//! Options of captures.

use super::mode::CaptureMode;
use super::scratch::Scratch;

/// How to capture; for [`Stream::begin_capture_with`](crate::Stream::begin_capture_with).
///
/// ```no_run
/// # fn example(stream: &cuda_handles::Stream) -> cuda_handles::Result<()> {
/// use cuda_handles::capture::{CaptureMode, CaptureOptions, Scratch};
///
/// let scratch = Scratch::new(stream.context());
/// let options = CaptureOptions::new().mode(CaptureMode::Global).scratch(&scratch);
/// let capture = stream.begin_capture_with(&options)?;
/// # drop(capture);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct CaptureOptions {
    mode: CaptureMode,
    scratch: Option<Scratch>,
}

impl CaptureOptions {
    /// The default mode, and memory of the capture's own.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whose unrelated calls the capture forbids.
    #[must_use]
    pub fn mode(self, mode: CaptureMode) -> Self {
        Self { mode, ..self }
    }

    /// Takes the memory that is allocated in the capture from memory that several captures share.
    #[must_use]
    pub fn scratch(self, scratch: &Scratch) -> Self {
        Self { scratch: Some(scratch.clone()), ..self }
    }

    /// The mode that is set.
    #[must_use]
    pub fn capture_mode(&self) -> CaptureMode {
        self.mode
    }

    pub(super) fn raw_mode(&self) -> cuda_sys::CUstreamCaptureMode {
        self.mode.raw()
    }

    /// The memory that the capture shares with others, if it is set.
    #[must_use]
    pub fn shared_scratch(&self) -> Option<&Scratch> {
        self.scratch.as_ref()
    }
}

impl From<CaptureMode> for CaptureOptions {
    fn from(mode: CaptureMode) -> Self {
        Self::new().mode(mode)
    }
}
