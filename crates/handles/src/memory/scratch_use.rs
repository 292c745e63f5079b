//! Where memory that was allocated in a capture is used, so that it is known when other memory of
//! the capture may take its place.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A number that no capture has.
const NO_CAPTURE: u64 = 0;
/// In place of a stream's number: several streams.
const SEVERAL: u64 = u64::MAX;

/// The captures and streams that use memory which was allocated in a capture. While a capture has
/// the memory, each use is noted before its call is made.
#[derive(Debug)]
pub(crate) struct ScratchUse {
    /// The capture that has it, by its number.
    capture: AtomicU64,
    /// The only stream of that capture that uses it, by its number.
    stream: AtomicU64,
    /// Whether it was used otherwise: outside of a capture, or in another one.
    outside: AtomicBool,
}

impl ScratchUse {
    /// For memory that a stream allocates in a capture.
    pub(crate) fn new(capture: u64, stream: u64) -> Self {
        let (capture, stream) = (AtomicU64::new(capture), AtomicU64::new(stream));
        Self { capture, stream, outside: AtomicBool::new(false) }
    }

    /// Gives the memory, which nobody uses, to a stream in a capture.
    pub(crate) fn give(&self, capture: u64, stream: u64) {
        self.stream.store(stream, Ordering::Release);
        self.capture.store(capture, Ordering::Release);
    }

    /// The capture is over.
    pub(crate) fn take_back(&self) {
        self.capture.store(NO_CAPTURE, Ordering::Release);
    }

    /// Whether it was used only by captured calls of the capture that had it.
    pub(crate) fn is_inside(&self) -> bool {
        !self.outside.load(Ordering::Acquire)
    }

    /// Whether a stream in a capture may have it, if nobody holds it any more: no capture has it,
    /// or this one has, and no other stream has used it there.
    pub(crate) fn is_for(&self, capture: u64, stream: u64) -> bool {
        let had_by = self.capture.load(Ordering::Acquire);
        let same = had_by == capture && self.stream.load(Ordering::Acquire) == stream;
        self.is_inside() && (had_by == NO_CAPTURE || same)
    }

    pub(super) fn note_outside(&self) {
        self.outside.store(true, Ordering::Release);
    }

    pub(super) fn note_captured(&self, capture: u64, stream: u64) {
        if self.capture.load(Ordering::Acquire) != capture {
            self.note_outside();
        } else if self.stream.load(Ordering::Acquire) != stream {
            self.stream.store(SEVERAL, Ordering::Release);
        }
    }
}
