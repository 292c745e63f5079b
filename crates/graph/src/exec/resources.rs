//! An executable's share of what its nodes use, and when it is released.

use std::sync::atomic::{AtomicBool, Ordering};

use cuda_handles::internal::WeakStream;
use cuda_handles::{Stream, UserObject};

use crate::state::last_runs::LastRuns;

/// An executable's share of the owners of its graph.
///
/// The driver holds references of its own, by the user object. This one is held beside them, so
/// that a drop can release the owners itself if the runs are over: the driver takes a while for
/// that, and destroys nothing any more once the context is lost. See [`destroy`](super::destroy)
/// for when each goes.
pub(crate) struct ExecResources {
    owners: Option<UserObject>,
    ran: RecentStreams,
    /// Whether other code, or a kernel, may launch the executable.
    has_other_launchers: AtomicBool,
    /// The last runs of all executables of the graph, if it can have one at a time.
    last: Option<LastRuns>,
    /// Whether the driver's own references outlast the last run, as the executable's destruction is
    /// deferred.
    is_deferred: bool,
}

impl ExecResources {
    pub(crate) fn new(owners: UserObject, last: Option<LastRuns>, is_deferred: bool) -> Self {
        let (ran, has_other_launchers) = (RecentStreams::new(), AtomicBool::new(false));
        Self { owners: Some(owners), ran, has_other_launchers, last, is_deferred }
    }

    /// Notes that the executable was enqueued on a stream.
    #[inline]
    pub(crate) fn note(&mut self, stream: &Stream) {
        if self.ran.last != stream.id() {
            self.ran.change(stream);
        }
    }

    /// Notes that other code or a kernel may launch the executable. From now on it is unknown where
    /// it runs.
    pub(crate) fn lend(&self) {
        self.has_other_launchers.store(true, Ordering::Relaxed);
    }

    /// The streams whose work may be runs of the executable; `None` if that is unknown. Other code
    /// that launches an executable whose destruction is deferred promises that its runs are over.
    fn runs(&self) -> Option<Vec<Stream>> {
        if self.has_other_launchers.load(Ordering::Relaxed) && !self.is_deferred {
            return None;
        }
        self.last.as_ref().map_or_else(|| self.ran.last_run(), |last| Some(last.streams()))
    }
}

impl Drop for ExecResources {
    fn drop(&mut self) {
        if let Some(owners) = self.owners.take() {
            // SAFETY: an executable does not overlap itself, so all runs have ended where the last
            // one has. If other code may launch it, the runs are given as unknown.
            unsafe { owners.end(self.runs().as_deref(), self.is_deferred) };
        }
    }
}

/// The streams on which an executable ran recently.
struct RecentStreams {
    /// The stream of the last run, by its number; 0 for none.
    last: u64,
    /// That stream and some before it, so that alternating launches count no references.
    streams: Vec<(u64, WeakStream)>,
}

impl RecentStreams {
    const MOST: usize = 4;

    /// Reserves room for all streams: a launch allocates nothing.
    fn new() -> Self {
        Self { last: 0, streams: Vec::with_capacity(Self::MOST) }
    }

    #[cold]
    fn change(&mut self, stream: &Stream) {
        self.last = stream.id();
        if self.streams.iter().any(|(id, _)| *id == stream.id()) {
            return;
        }
        if self.streams.len() == Self::MOST {
            self.streams.remove(0);
        }
        self.streams.push((stream.id(), stream.downgrade()));
    }

    /// The stream of the last run, or no stream if there was no run; `None` if the stream is gone.
    fn last_run(&self) -> Option<Vec<Stream>> {
        if self.last == 0 {
            return Some(Vec::new());
        }
        let found = self.streams.iter().find(|(id, _)| *id == self.last);
        found.and_then(|(_, stream)| stream.upgrade()).map(|stream| vec![stream])
    }
}
