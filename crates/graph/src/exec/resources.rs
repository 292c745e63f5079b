//! An executable's share of what its nodes use, and when it is released.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use cuda_handles::internal::{FormerStream, WeakStream};
use cuda_handles::{Context, Stream, UserObject};

use crate::exec::share::{Brought, ExecShare};
use crate::state::ids::NodeId;
use crate::state::last_runs::LastRuns;

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
    /// Whether retired owners may be left in the share.
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

    /// Notes that all runs have ended, the last of them on a stream. The reaper takes what node
    /// updates have retired.
    pub(crate) fn ended(&mut self, stream: &Stream) {
        self.launched(stream);
        self.hand_over_retired();
        self.ran.last = 0;
    }

    /// Keeps what an update of a node has brought; retires what earlier ones have brought to the
    /// node and to nodes inside of it. Returns what is to be dropped without locks.
    pub(crate) fn bring(
        &mut self,
        context: &Context,
        id: NodeId,
        brought: Brought,
        inside: &[NodeId],
    ) -> Replaced {
        let Some(share) = self.share.upgrade() else {
            // The share goes with this value. Launches may use the owners, so they stay.
            core::mem::forget(brought);
            return Replaced::default();
        };
        let Some(before) = share.bring(id, brought, inside) else { return Replaced::default() };
        let stream = match self.ran.last_run() {
            LastRun::None => return Replaced { unused: Some(before), stream: None },
            LastRun::On(stream) => Some(stream),
            LastRun::Unknown => None,
        };
        self.has_retired = true;
        Replaced { unused: None, stream: share.retire(context, before, stream.as_ref()) }
    }

    /// Takes the share of a whole update. Returns the share before, which runs up to now may use,
    /// to be dropped without locks.
    pub(crate) fn replace(&mut self, owners: UserObject, share: &Arc<ExecShare>) -> FormerShare {
        let owners = self.owners.replace(owners);
        self.share = Arc::downgrade(share);
        self.has_retired = false;
        FormerShare { owners, runs: self.runs_unless(self.is_lent()), is_deferred: false }
    }

    /// Ends the share: the executable is given up.
    pub(crate) fn give_up(&mut self) {
        drop(self.end());
    }

    fn end(&mut self) -> FormerShare {
        // Other code that launches an executable whose destruction is deferred promises that its
        // runs are over.
        let runs = self.runs_unless(self.is_lent() && !self.is_deferred);
        FormerShare { owners: self.owners.take(), runs, is_deferred: self.is_deferred }
    }

    /// The streams of the runs that the next run follows, if the graph can have one executable at a
    /// time.
    pub(crate) fn followed(&self) -> Vec<Stream> {
        self.last.as_ref().map(LastRuns::streams).unwrap_or_default()
    }

    /// Lets the reaper take everything that node updates have retired.
    pub(crate) fn hand_over_retired(&self) {
        if self.has_retired
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

    /// The stream of the last run, for a choice among executables.
    pub(crate) fn ran_on(&self) -> RanOn {
        match self.ran.last {
            _ if self.is_lent() => RanOn::Unknown,
            0 => RanOn::None,
            last => {
                let known = self.ran.streams.iter().find(|(id, _)| *id == last);
                known.map_or(RanOn::Unknown, |(_, stream)| RanOn::Stream(last, stream.clone()))
            }
        }
    }

    /// The stream of the last run, if there was one and a handle of it is left.
    pub(crate) fn last_stream(&self) -> Option<Stream> {
        match self.ran.last_run() {
            LastRun::On(stream) => Some(stream),
            LastRun::None | LastRun::Unknown => None,
        }
    }

    /// The streams whose work may be runs of the executable; `None` if that is unknown.
    fn runs_unless(&self, is_unknown: bool) -> Option<Vec<Stream>> {
        if is_unknown {
            return None;
        }
        match (&self.last, self.ran.last_run()) {
            (Some(last), _) => Some(last.streams()),
            (None, LastRun::None) => Some(Vec::new()),
            (None, LastRun::On(stream)) => Some(vec![stream]),
            (None, LastRun::Unknown) => None,
        }
    }
}

/// What an update has replaced and no run uses, to be dropped without locks.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Replaced {
    unused: Option<Brought>,
    stream: Option<FormerStream>,
}

impl Replaced {
    pub(crate) fn is_empty(&self) -> bool {
        self.unused.is_none() && self.stream.is_none()
    }
}

/// Where an executable ran last.
enum LastRun {
    /// It never ran.
    None,
    On(Stream),
    /// No handle of the stream is left.
    Unknown,
}

impl Drop for ExecResources {
    fn drop(&mut self) {
        drop(self.end());
    }
}

/// A share that an executable had. Dropping it ends it.
pub(crate) struct FormerShare {
    owners: Option<UserObject>,
    /// The streams of the runs that may use it; `None` if they are unknown.
    runs: Option<Vec<Stream>>,
    /// Whether the driver's own references outlast the last run.
    is_deferred: bool,
}

impl Drop for FormerShare {
    fn drop(&mut self) {
        if let Some(owners) = self.owners.take() {
            // SAFETY: an executable does not overlap itself, so all runs have ended where the last
            // one has. If other code may launch it, the runs are given as unknown.
            unsafe { owners.end(self.runs.as_deref(), self.is_deferred) };
        }
    }
}

/// The stream of an executable's last run, which may be gone.
#[derive(Debug)]
pub(crate) enum RanOn {
    /// There was no run, or it has ended.
    None,
    /// The stream with this number.
    Stream(u64, WeakStream),
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

    fn last_run(&self) -> LastRun {
        if self.last == 0 {
            return LastRun::None;
        }
        let found = self.streams.iter().find(|(id, _)| *id == self.last);
        found.and_then(|(_, stream)| stream.upgrade()).map_or(LastRun::Unknown, LastRun::On)
    }
}
