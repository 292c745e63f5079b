//! An executable's share of what its nodes use, and when it is released.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cuda_handles::internal::{FormerStream, Retired, WeakStream};
use cuda_handles::{Context, Owner, Stream, UserObject};

use crate::exec::exec_params::ExecParams;
use crate::exec::share::{Brought, ExecShare, Since};
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
    /// The value of the user object; `None` once the share has ended.
    share: Option<Arc<ExecShare>>,
    /// What updates have brought. It goes into the share when that ends.
    pub(crate) since: Since,
    /// Whether retired owners may be left.
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
        share: Arc<ExecShare>,
        params: Option<Box<ExecParams>>,
        last: Option<LastRuns>,
        is_deferred: bool,
    ) -> Self {
        Self {
            owners: Some(owners),
            share: Some(share),
            since: Since { params, ..Since::default() },
            has_retired: false,
            ran: RecentStreams::new(),
            has_other_launchers: AtomicBool::new(false),
            last,
            is_deferred,
        }
    }

    /// Notes a launch that was just enqueued on a stream, and retires the values of graph
    /// parameters that it no longer uses.
    #[inline]
    pub(crate) fn launched(&mut self, stream: &Stream) {
        if self.has_retired || !self.since.replaced.is_empty() {
            self.retire_behind(stream);
        }
        self.note(stream);
    }

    fn retire_behind(&mut self, stream: &Stream) {
        let Since { replaced, retired, .. } = &mut self.since;
        if self.ran.last == 0 {
            // No run has used them.
            replaced.clear();
        } else {
            let retired = retired.get_or_insert_with(|| Retired::new(stream.context()));
            let former;
            (self.has_retired, former) = retired.launched(stream, replaced.drain(..));
            drop(former);
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
        match self.since.bring(id, brought, inside) {
            Some(before) => self.retire(context, before),
            None => Replaced::default(),
        }
    }

    fn retire<O: IntoIterator<Item = Owner>>(&mut self, context: &Context, owners: O) -> Replaced {
        let stream = match self.ran.last_run() {
            LastRun::None => return Replaced { _unused: owners.into_iter().collect(), _stream: None },
            LastRun::On(stream) => Some(stream),
            LastRun::Unknown => None,
        };
        self.has_retired = true;
        let retired = self.since.retired.get_or_insert_with(|| Retired::new(context));
        Replaced { _unused: Owners::new(), _stream: retired.push(owners, stream.as_ref()) }
    }

    /// Takes the share of a whole update, and the new graph's parameters. Returns the share before,
    /// which runs up to now may use, to be dropped without locks.
    pub(crate) fn replace(
        &mut self,
        owners: UserObject,
        share: Arc<ExecShare>,
        params: Option<Box<ExecParams>>,
    ) -> FormerShare {
        self.finish();
        let owners = self.owners.replace(owners);
        (self.share, self.since.params) = (Some(share), params);
        FormerShare { owners, runs: self.runs_unless(self.is_lent()), is_deferred: false }
    }

    /// Puts everything that updates have brought into the share, which ends.
    fn finish(&mut self) {
        let since = core::mem::take(&mut self.since);
        self.has_retired = false;
        if let Some(share) = self.share.take() {
            share.finish(since);
        }
    }

    /// Ends the share: the executable is given up.
    pub(crate) fn give_up(&mut self) {
        drop(self.end());
    }

    fn end(&mut self) -> FormerShare {
        self.finish();
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

    /// Lets the reaper take everything that updates have retired.
    pub(crate) fn hand_over_retired(&mut self) {
        if let Some(retired) = self.since.retired.as_ref().filter(|_| self.has_retired) {
            retired.hand_over();
        }
    }

    /// Retires the values of graph parameters that updates have replaced since the last launch, as
    /// no launch follows now.
    #[cold]
    pub(crate) fn retire_replaced(&mut self, context: &Context) {
        let replaced = core::mem::take(&mut self.since.replaced);
        if !replaced.is_empty() {
            drop(self.retire(context, replaced));
        }
    }

    /// Notes that the executable was enqueued on a stream.
    #[inline]
    pub(crate) fn note(&mut self, stream: &Stream) {
        if self.ran.last != stream.id() {
            self.ran.change(stream);
        }
    }

    /// Notes that the executable may have been enqueued on a stream. Returns whether the end of the
    /// work there is the end of all runs: the stream waits for the run before, if that is known.
    pub(crate) fn note_possible(&mut self, stream: &Stream) -> bool {
        let follows = match self.ran.last_run() {
            LastRun::None => true,
            LastRun::On(last) => stream.wait_for_uncaptured(&last).is_ok(),
            LastRun::Unknown => false,
        };
        match follows {
            true => self.note(stream),
            false => self.ran.last = RecentStreams::UNKNOWN,
        }
        follows
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
        match (self.ran.last, self.ran.last_stream()) {
            _ if self.is_lent() => RanOn::Unknown,
            (0, _) => RanOn::None,
            (last, Some(stream)) => RanOn::Stream(last, stream.clone()),
            (_, None) => RanOn::Unknown,
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
    _unused: Owners,
    _stream: Option<FormerStream>,
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
    /// The number of no stream: runs may be on several.
    const UNKNOWN: u64 = u64::MAX;

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

    /// The stream of the last run, which may be gone.
    fn last_stream(&self) -> Option<&WeakStream> {
        self.streams.iter().find(|(id, _)| *id == self.last).map(|(_, stream)| stream)
    }

    fn last_run(&self) -> LastRun {
        match self.last {
            0 => LastRun::None,
            _ => self.last_stream().and_then(WeakStream::upgrade).map_or(LastRun::Unknown, LastRun::On),
        }
    }
}
