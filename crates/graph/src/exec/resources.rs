//! An executable's share of what its nodes use, and when it is released.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use cuda_handles::internal::WeakStream;
use cuda_handles::{Context, Stream, UserObject};

use crate::exec::share::ExecShare;
use crate::state::ids::NodeId;
use crate::state::last_runs::LastRuns;
use crate::state::owners::Owners;

/// An executable's share of the owners of its graph.
///
/// The driver holds references of its own, by the user object. This one is held beside them, so
/// that a drop can release the owners itself if the runs are over: the driver takes a while for
/// that, and destroys nothing any more once the context is lost. See [`destroy`](super::destroy)
/// for when each goes.
pub(crate) struct ExecResources {
    owners: Option<UserObject>,
    /// The value of the user object, which alone keeps it.
    share: Weak<ExecShare>,
    /// Whether owners were retired since a batch was last handed over.
    has_retired: bool,
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
    pub(crate) fn new(
        owners: UserObject,
        share: &Arc<ExecShare>,
        last: Option<LastRuns>,
        is_deferred: bool,
    ) -> Self {
        Self {
            owners: Some(owners),
            share: Arc::downgrade(share),
            has_retired: false,
            ran: RecentStreams::new(),
            has_other_launchers: AtomicBool::new(false),
            last,
            is_deferred,
        }
    }

    /// Notes a launch that was just enqueued on a stream.
    #[inline]
    pub(crate) fn launched(&mut self, stream: &Stream) {
        self.note(stream);
        if self.has_retired {
            self.has_retired = self.share.upgrade().is_some_and(|share| share.launched(stream));
        }
    }

    /// Keeps what an update of a node has brought; retires what the one before has brought, or
    /// returns it if there was no run.
    pub(crate) fn bring(&mut self, context: &Context, id: NodeId, owners: Owners) -> Option<Owners> {
        let share = self.share.upgrade()?;
        let before = share.bring(id, owners)?;
        if self.ran.last == 0 {
            return Some(before);
        }
        share.retire(context, before, self.ran.last_stream().as_ref());
        self.has_retired = true;
        None
    }

    /// Hands everything to the reaper that node updates have retired.
    pub(crate) fn hand_over_retired(&mut self) {
        if core::mem::take(&mut self.has_retired)
            && let Some(share) = self.share.upgrade()
        {
            share.hand_over();
        }
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

    /// Whether other code or a kernel may launch the executable.
    pub(crate) fn is_lent(&self) -> bool {
        self.has_other_launchers.load(Ordering::Relaxed)
    }

    /// The stream of the last run.
    pub(crate) fn last_run(&self) -> LastRun {
        match self.ran.last {
            _ if self.is_lent() => LastRun::Unknown,
            0 => LastRun::None,
            last => {
                let known = self.ran.streams.iter().find(|(id, _)| *id == last);
                known.map_or(LastRun::Unknown, |(_, stream)| LastRun::On(last, stream.clone()))
            }
        }
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

/// The stream of an executable's last run.
#[derive(Clone, Debug)]
pub(crate) enum LastRun {
    /// There was no run, or it has ended.
    None,
    /// The stream with this number.
    On(u64, WeakStream),
    /// Other code or kernels may launch the executable.
    Unknown,
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
        if self.last == 0 { Some(Vec::new()) } else { self.last_stream().map(|stream| vec![stream]) }
    }

    /// The stream of the last run, if there was one and the stream is not gone.
    fn last_stream(&self) -> Option<Stream> {
        self.streams.iter().find(|(id, _)| *id == self.last)?.1.upgrade()
    }
}
