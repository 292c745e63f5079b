//! Exclusive access of streams, to let them enter or leave a capture.
//!
//! Most readers hold their access for moments, but a thread that waits for the stream holds it as
//! long as that takes. So no thread waits for exclusive access while it holds anything that others
//! need, nor inside a host function, which a reader may be waiting for.

use core::time::Duration;
use std::sync::Arc;

use super::legacy;
use super::owner::RawStream;
use crate::access::{ALL_SLOTS, ExclusiveGuard, holders};
use crate::context::{Busy, in_host_function, unless_inside};
use crate::error::Result;
use crate::sync::{Rank, for_at_most};

/// How long a wait steps aside at most. Writers are mostly held up by other waits, for work that is
/// in front of this one's, so stepping aside rarely makes the wait longer.
const STEPPING_ASIDE: Duration = Duration::from_secs(1);

/// Exclusive access for a stream that is about to enter a capture.
#[derive(Debug)]
#[must_use]
pub(crate) struct Entering<'s> {
    _stream: ExclusiveGuard<'s>,
    _legacy: Option<ExclusiveGuard<'static>>,
}

impl RawStream {
    /// Exclusive access, to let the stream enter a capture, if there are no readers.
    pub(crate) fn try_enter(&self) -> Option<Entering<'_>> {
        let stream = self.access().try_exclusive(&ALL_SLOTS)?;
        let legacy = match self.writers().meets_legacy() {
            true => Some(legacy::try_exclusive()?),
            false => None,
        };
        Some(Entering { _stream: stream, _legacy: legacy })
    }

    /// Exclusive access of several streams, to let them leave a capture: of all or of none, so that
    /// no thread waits for one while it holds another. Readers leave soon: no thread waits on the
    /// host for a stream that captures.
    pub(crate) fn try_leave(streams: &[Arc<Self>]) -> Option<Vec<ExclusiveGuard<'_>>> {
        streams.iter().map(|stream| stream.access().try_exclusive(&ALL_SLOTS)).collect()
    }

    /// Repeats an attempt that needs exclusive access until it works. Waits on the host for the
    /// stream that would begin meanwhile step aside. Each attempt releases everything it took.
    ///
    /// # Errors
    /// `NOT_PERMITTED` if the first attempt fails inside a host function;
    /// [`Error::Busy`](crate::Error::Busy) if others used the stream all the time.
    #[inline]
    pub(crate) fn insist<R>(&self, mut attempt: impl FnMut() -> Option<R>) -> Result<R> {
        match attempt() {
            Some(result) => Ok(result),
            None => self.insist_longer(attempt),
        }
    }

    #[cold]
    fn insist_longer<R>(&self, attempt: impl FnMut() -> Option<R>) -> Result<R> {
        Rank::ExclusiveAccess.check();
        let _waiting = self.writers().count();
        unless_inside(self.context(), || self.used(), attempt)
    }

    /// The threads that use the stream, for errors.
    pub(crate) fn used(&self) -> Busy {
        holders::used(self.name(), self.access())
    }

    /// Lets waiting writers pass. A wait on the host calls this before it takes read access, with
    /// nothing else held: overlapping waits would keep writers out forever.
    #[inline]
    pub(crate) fn step_aside(&self) {
        if self.writers().are_waiting() {
            self.let_pass();
        }
    }

    #[cold]
    fn let_pass(&self) {
        // Inside one, the wait will be refused.
        if !in_host_function::is_inside() {
            let _ = for_at_most(STEPPING_ASIDE, || (!self.writers().are_waiting()).then_some(()));
        }
    }
}
