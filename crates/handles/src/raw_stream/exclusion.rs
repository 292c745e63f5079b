//! Having a stream alone, to let it enter or leave a capture: nobody enqueues on it meanwhile.
//!
//! Many hold a turn only for moments, but who waits for the stream holds one as long as that takes.
//! So nobody waits for a stream to be alone with while he holds anything that others need, nor
//! inside a host function, for which the one who waits may be waiting.

use core::time::Duration;
use std::sync::Arc;

use super::legacy;
use super::owner::RawStream;
use crate::access::{Alone, BLOCKS, holders};
use crate::context::{Busy, host_code, unless_inside};
use crate::error::Result;
use crate::sync::for_at_most;

/// How long a wait steps aside at the most. What it lets pass is mostly held up by other waits, for
/// work that is in front of its own; so it is seldom longer for that.
const STEPPING_ASIDE: Duration = Duration::from_secs(1);

/// A stream is let into a capture as long as this is held.
#[derive(Debug)]
#[must_use]
pub(crate) struct Entering<'s> {
    _stream: Alone<'s>,
    _legacy: Option<Alone<'static>>,
}

impl RawStream {
    /// The stream alone, to let it enter a capture, if nobody is there.
    pub(crate) fn try_enter(&self) -> Option<Entering<'_>> {
        let stream = self.turn().try_alone(&BLOCKS)?;
        let legacy = match self.exclusion().meets_legacy() {
            true => Some(legacy::try_alone()?),
            false => None,
        };
        Some(Entering { _stream: stream, _legacy: legacy })
    }

    /// Several streams alone, to let them leave a capture: all at once or none, so that nobody
    /// waits for one while holding another. Who is there is soon gone: nobody waits for a stream
    /// that captures.
    pub(crate) fn try_leave(streams: &[Arc<Self>]) -> Option<Vec<Alone<'_>>> {
        streams.iter().map(|stream| stream.turn().try_alone(&BLOCKS)).collect()
    }

    /// Attempts something that needs the stream alone until it works. Waits for the stream that
    /// would begin meanwhile step aside. Each attempt lets go of all it holds.
    ///
    /// # Errors
    /// It does not work at once and this is a host function; or others have used the stream all the
    /// time ([`Error::Busy`](crate::Error::Busy)).
    #[inline]
    pub(crate) fn insist<R>(&self, mut attempt: impl FnMut() -> Option<R>) -> Result<R> {
        match attempt() {
            Some(result) => Ok(result),
            None => self.insist_longer(attempt),
        }
    }

    #[cold]
    fn insist_longer<R>(&self, attempt: impl FnMut() -> Option<R>) -> Result<R> {
        let _wanted = self.exclusion().want();
        unless_inside(self.context(), || self.used(), attempt)
    }

    /// Who uses it.
    pub(crate) fn used(&self) -> Busy {
        holders::used(self.name(), self.turn())
    }

    /// For a wait that will hold a turn all the time, before it takes the turn, and with nothing
    /// else held: whoever wants the stream alone goes first. Waits that overlap each other would
    /// keep him off for ever.
    #[inline]
    pub(crate) fn step_aside(&self) {
        if self.is_wanted() {
            self.let_pass();
        }
    }

    #[cold]
    fn let_pass(&self) {
        // There the wait will be refused.
        if !host_code::is_inside() {
            let _ = for_at_most(STEPPING_ASIDE, || (!self.is_wanted()).then_some(()));
        }
    }

    #[inline]
    fn is_wanted(&self) -> bool {
        self.exclusion().is_wanted()
    }
}
