//! Which streams use host memory, and up to where.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::error::Result;
use crate::raw_stream::RawStream;

/// The streams that were made ready for it since it was last unique.
#[derive(Debug, Default)]
pub(super) struct Users(SmallVec<[User; 2]>);

/// A stream and its uses of the memory.
#[derive(Debug)]
struct User {
    stream: Arc<RawStream>,
    /// Uses of one call each that are being enqueued.
    open: u32,
    /// These uses lie before the point with this ticket of the stream.
    ticket: u64,
    /// Whether it may use the memory without saying so each time. Then it has to be idle.
    at_will: bool,
}

impl User {
    fn new(stream: &Arc<RawStream>) -> Self {
        Self { stream: Arc::clone(stream), open: 0, ticket: 0, at_will: false }
    }

    fn is_over(&self) -> bool {
        self.has_passed() || self.stream.is_idle_soon()
    }

    /// Whether that was seen already. No driver call.
    fn has_passed(&self) -> bool {
        !self.at_will && self.open == 0 && self.stream.has_done(self.ticket)
    }
}

impl Users {
    /// A stream that may use the memory from now on, without saying so again. The others, if it is
    /// a new one.
    pub(super) fn add(&mut self, stream: &Arc<RawStream>) -> Option<Vec<Arc<RawStream>>> {
        self.change(stream, |user| user.at_will = true)
    }

    /// A stream on which one call that uses the memory is about to be made. The others, if it is a
    /// new one.
    pub(super) fn begin(&mut self, stream: &Arc<RawStream>) -> Option<Vec<Arc<RawStream>>> {
        self.change(stream, |user| user.open += 1)
    }

    fn change(
        &mut self,
        stream: &Arc<RawStream>,
        change: impl FnOnce(&mut User),
    ) -> Option<Vec<Arc<RawStream>>> {
        if let Some(user) = self.0.iter_mut().find(|user| user.stream.id() == stream.id()) {
            change(user);
            return None;
        }
        let others = self.0.iter().map(|user| Arc::clone(&user.stream)).collect();
        let mut user = User::new(stream);
        change(&mut user);
        self.0.push(user);
        Some(others)
    }

    /// The call was made, before the point with this ticket.
    pub(super) fn end(&mut self, id: u64, ticket: u64) {
        if let Some(user) = self.0.iter_mut().find(|user| user.stream.id() == id) {
            user.open = user.open.saturating_sub(1);
            user.ticket = user.ticket.max(ticket);
        }
    }

    /// Takes out these streams; they are for the caller to drop.
    pub(super) fn forget(&mut self, streams: &[Arc<RawStream>]) -> Vec<Arc<RawStream>> {
        let is_one = |user: &User| streams.iter().any(|stream| stream.id() == user.stream.id());
        let (gone, kept) = core::mem::take(&mut self.0).into_iter().partition(is_one);
        self.0 = kept;
        let gone: SmallVec<[User; 2]> = gone;
        gone.into_iter().map(|user| user.stream).collect()
    }

    /// Whether nothing uses the memory. Asks the driver of streams of which that was not seen.
    pub(super) fn are_over(&self) -> bool {
        self.0.iter().all(User::is_over)
    }

    /// Waits for the streams of which that was not seen; for no more of them once a wait fails.
    pub(super) fn wait(&self) -> Result<()> {
        self.0.iter().filter(|user| !user.has_passed()).try_for_each(|user| user.stream.wait_for_all())
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}
