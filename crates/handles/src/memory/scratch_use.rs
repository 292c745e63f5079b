//! Where memory that was allocated in a capture is used, so that it is known when other memory of
//! the capture may take its place.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::allocation::Allocation;
use crate::error::{Error, Result};
use crate::stream::Stream;

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

    fn note_captured(&self, capture: u64, stream: u64) {
        if self.capture.load(Ordering::Acquire) != capture {
            self.note_outside();
        } else if self.stream.load(Ordering::Acquire) != stream {
            self.stream.store(SEVERAL, Ordering::Release);
        }
    }
}

impl Allocation {
    /// Where it is used, if it was allocated in a capture.
    pub(crate) fn scratch_use(&self) -> Option<&ScratchUse> {
        self.scratch.as_deref()
    }

    /// Whether it was allocated in a capture and is used only there so far. The capture keeps such
    /// memory as a whole, until its graph does: the records of its calls need not.
    #[doc(hidden)]
    #[must_use]
    #[inline]
    pub fn is_scratch(&self) -> bool {
        self.scratch_use().is_some_and(ScratchUse::is_inside)
    }

    /// Lets a call that is captured use the memory. It waits for nothing: the capture's graph does,
    /// before its first launch. The caller has read access of the stream, which is in this capture.
    pub(crate) fn use_captured(&self, stream: &Stream, capture: u64) -> Result<()> {
        if self.bytes == 0 {
            return Ok(());
        }
        if self.backing.graph().is_some() {
            return Err(Error::MemoryOfGraph);
        }
        self.ensure_on(stream)?;
        if let Some(scratch) = self.scratch_use() {
            scratch.note_captured(capture, stream.id());
        }
        self.note_shared();
        Ok(())
    }
}
