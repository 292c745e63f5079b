//! The line of graphs that share scratch memory: each launch waits for the last one.

use core::fmt;

use crate::context::{Context, lock_unless_inside};
use crate::error::Result;
use crate::stream::Stream;
use crate::sync::{Lock, LockGuard, Rank};

/// The last launch of the graphs that share scratch memory, with its lock.
pub(super) struct Runs(Lock<Option<LastLaunch>>);

/// The last launch.
struct LastLaunch {
    stream: Stream,
    /// It lies before the point of the stream with this ticket.
    ticket: u64,
}

/// The right to launch a graph with scratch memory, from the wait for the last launch on.
#[doc(hidden)]
#[must_use]
pub struct ScratchTurn<'s> {
    last: LockGuard<'s, Option<LastLaunch>>,
    /// Declared below the lock, so that it is dropped after the lock is released.
    before: Option<LastLaunch>,
}

impl Runs {
    pub(super) fn new() -> Self {
        Self(Lock::new(Rank::ScratchRuns, None))
    }

    /// The right to launch the next one.
    pub(super) fn turn(&self, context: &Context) -> Result<ScratchTurn<'_>> {
        const WHAT: &str = "the last launch of graphs that share scratch memory";
        let last = lock_unless_inside(context, WHAT, &self.0)?;
        Ok(ScratchTurn { last, before: None })
    }
}

impl ScratchTurn<'_> {
    /// Makes a stream wait for the last launch. No driver call if that was on this stream, or was
    /// seen done.
    ///
    /// # Errors
    /// As [`Stream::wait_for_uncaptured`].
    #[doc(hidden)]
    pub fn wait_on(&self, stream: &Stream) -> Result<()> {
        match &*self.last {
            Some(last) if last.stream != *stream && !last.stream.has_synced(last.ticket) => {
                stream.wait_for_uncaptured(&last.stream)
            }
            Some(_) | None => Ok(()),
        }
    }

    /// Notes the launch that was just enqueued.
    #[doc(hidden)]
    pub fn launched(&mut self, stream: &Stream) {
        let ticket = stream.ticket();
        match &mut *self.last {
            Some(last) if last.stream == *stream => last.ticket = ticket,
            last => self.before = last.replace(LastLaunch { stream: stream.clone(), ticket }),
        }
    }
}

impl fmt::Debug for ScratchTurn<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ScratchTurn")
    }
}
