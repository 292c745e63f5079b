//! The line of graphs that share scratch memory: each launch waits for the last one.

use core::fmt;

use super::scratch::Scratch;
use crate::context::lock_unless_inside;
use crate::error::Result;
use crate::stream::Stream;
use crate::sync::LockGuard;

/// The last launch of the graphs that share scratch memory.
pub(super) struct LastLaunch {
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

impl Scratch {
    /// The right to launch a graph that uses this memory. Several are taken in the order of
    /// [`sort`](Self::sort).
    ///
    /// # Errors
    /// Another thread is launching such a graph: inside a host function (`NOT_PERMITTED`), or all
    /// the time ([`Busy`](crate::Error::Busy)).
    #[doc(hidden)]
    pub fn turn(&self) -> Result<ScratchTurn<'_>> {
        const WHAT: &str = "the last launch of graphs that share scratch memory";
        let last = lock_unless_inside(self.context(), WHAT, &self.0.last)?;
        Ok(ScratchTurn { last, before: None })
    }

    /// Puts scratch memory into the order in which threads take their turns, each once.
    #[doc(hidden)]
    pub fn sort(all: &mut Vec<Self>) {
        all.sort_unstable_by_key(|scratch| std::sync::Arc::as_ptr(&scratch.0).addr());
        all.dedup();
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

    /// Notes that the launch was waited for.
    #[doc(hidden)]
    pub fn ended(&mut self) {
        self.before = self.last.take();
    }
}

impl fmt::Debug for ScratchTurn<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ScratchTurn")
    }
}
