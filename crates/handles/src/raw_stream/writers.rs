//! Threads waiting for exclusive access to a stream.

use std::sync::atomic::{AtomicU32, Ordering};

/// The writers of a stream: the threads that let it enter or leave a capture.
#[derive(Debug)]
pub(crate) struct Writers {
    /// How many of them found readers and try again.
    writers_waiting: AtomicU32,
    /// Whether they need exclusive access to the legacy stream as well: this stream may be a
    /// blocking one.
    meets_legacy: bool,
}

impl Writers {
    pub(crate) fn new(meets_legacy: bool) -> Self {
        Self { writers_waiting: AtomicU32::new(0), meets_legacy }
    }

    /// Counts the calling thread as waiting until the result is dropped.
    pub(crate) fn count(&self) -> WaitingWriter<'_> {
        self.writers_waiting.fetch_add(1, Ordering::Relaxed);
        WaitingWriter(&self.writers_waiting)
    }

    /// Whether a writer waits.
    #[inline]
    pub(crate) fn are_waiting(&self) -> bool {
        self.writers_waiting.load(Ordering::Relaxed) != 0
    }

    pub(crate) fn meets_legacy(&self) -> bool {
        self.meets_legacy
    }
}

/// A writer that waits.
pub(crate) struct WaitingWriter<'w>(&'w AtomicU32);

impl Drop for WaitingWriter<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
