//! The log of the capture that a stream is in, found without a search.

use core::any::Any;
use core::cell::UnsafeCell;
use core::fmt;
use std::sync::Arc;

/// Whatever a capture notes about its calls. The room `capture` knows the type.
pub(crate) type CaptureLog = Arc<dyn Any + Send + Sync>;

/// The place for the log of the capture that a stream is in.
#[derive(Default)]
pub(super) struct LogSlot(UnsafeCell<Option<CaptureLog>>);

// SAFETY: it is written with exclusive access of the stream and read with read access, which
// exclude each other; the value can be shared and sent.
unsafe impl Sync for LogSlot {}

impl LogSlot {
    /// Puts a log there, or takes it away.
    ///
    /// # Safety
    /// The caller has exclusive access of the stream.
    pub(super) unsafe fn set(&self, log: Option<CaptureLog>) {
        // SAFETY: nobody reads it now, by the caller's promise.
        let before = unsafe { core::mem::replace(&mut *self.0.get(), log) };
        // The list of open captures has another reference.
        drop(before);
    }

    /// The log, if there is one.
    ///
    /// # Safety
    /// The caller has read access of the stream as long as the result is used.
    #[inline]
    pub(super) unsafe fn get(&self) -> Option<&(dyn Any + Send + Sync)> {
        // SAFETY: nobody writes it meanwhile, by the caller's promise.
        unsafe { (*self.0.get()).as_deref() }
    }
}

impl fmt::Debug for LogSlot {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("LogSlot")
    }
}
