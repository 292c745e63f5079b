//! When an executable drops what it keeps alive.

use std::sync::atomic::{AtomicBool, Ordering};

use cuda_handles::internal::{FormerStream, HeldStream, Retired, UnlessLostInPart, WeakStream, drop_behind};
use cuda_handles::{Context, Owner, Stream, is_forked};

use crate::error::wrong_context::Spans;
use crate::exec::exec_params::ExecParams;
use crate::exec::last_run::LastRun;
use crate::exec::since::{Brought, Since};
use crate::state::ids::NodeId;
use crate::state::last_runs::LastRuns;
use crate::state::owners::Owners;

/// An executable's share of what its nodes use, which outlives the executable until its last run is
/// over.
///
/// A user object of the driver would do that, too, but each launch of an executable with one takes
/// twice as long. See [`destroy`](super::destroy) for when the share ends.
pub(crate) struct ExecResources {
    context: Context,
    /// The other contexts that its nodes may be of.
    others: Box<[Context]>,
    /// Everything that the graph kept alive when the executable was made, or updated as a whole.
    base: Vec<Owner>,
    /// Everything that other updates have brought since.
    pub(crate) since: Since,
    /// Whether retired owners may be left.
    has_retired: bool,
    ran: LastRun,
    /// Whether other code, or a kernel, may launch the executable.
    has_other_launchers: AtomicBool,
    /// The last runs of all executables of the graph, if it can have one at a time.
    last: Option<LastRuns>,
}

impl ExecResources {
    pub(crate) fn new(
        graph: &impl Spans,
        base: Vec<Owner>,
        params: Option<Box<ExecParams>>,
        last: Option<LastRuns>,
    ) -> Self {
        Self {
            context: graph.home().clone(),
            others: graph.others().into(),
            base,
            since: Since { params, ..Since::default() },
            has_retired: false,
            ran: LastRun::default(),
            has_other_launchers: AtomicBool::new(false),
            last,
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
        if self.ran.is_none() {
            // No run has used them.
            replaced.clear();
        } else {
            let new = || Retired::new(several(&self.context, &self.others));
            let retired = retired.get_or_insert_with(new);
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
        self.ran = LastRun::default();
    }

    /// Keeps what an update of a node has brought; retires what earlier ones have brought to the
    /// node and to nodes inside of it. Returns what is to be dropped without locks.
    pub(crate) fn bring(&mut self, id: NodeId, brought: Brought, inside: &[NodeId]) -> Replaced {
        match self.since.bring(id, brought, inside) {
            Some(before) => self.retire(before),
            None => Replaced::default(),
        }
    }

    fn retire<O: IntoIterator<Item = Owner>>(&mut self, owners: O) -> Replaced {
        if self.ran.is_none() {
            return Replaced { _unused: owners.into_iter().collect(), _stream: None };
        }
        self.has_retired = true;
        let new = || Retired::new(several(&self.context, &self.others));
        let retired = self.since.retired.get_or_insert_with(new);
        Replaced { _unused: Owners::new(), _stream: retired.push(owners, self.ran.only_stream()) }
    }

    /// Takes the owners of a whole update, and the new graph's parameters. Returns the share
    /// before, which runs up to now may use, to be dropped without locks.
    pub(crate) fn replace(&mut self, base: Vec<Owner>, params: Option<Box<ExecParams>>) -> FormerShare {
        let former = self.end();
        (self.base, self.since.params) = (base, params);
        former
    }

    /// Ends the share: the executable is given up.
    pub(crate) fn give_up(&mut self) {
        drop(self.end());
    }

    fn end(&mut self) -> FormerShare {
        self.has_retired = false;
        let (base, since) = (core::mem::take(&mut self.base), core::mem::take(&mut self.since));
        let (context, others) = (self.context.clone(), self.others.clone());
        FormerShare { context, others, base, since, runs: self.runs() }
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
    pub(crate) fn retire_replaced(&mut self) {
        let replaced = core::mem::take(&mut self.since.replaced);
        if !replaced.is_empty() {
            drop(self.retire(replaced));
        }
    }

    /// Notes that the executable was enqueued on a stream.
    #[inline]
    pub(crate) fn note(&mut self, stream: &Stream) {
        self.ran.note(stream);
    }

    /// Notes that the executable may have been enqueued on a stream. Returns whether the end of the
    /// work there is the end of all runs: the stream waits for the run before, if it can.
    pub(crate) fn note_possible(&mut self, stream: &Stream) -> bool {
        let follows = self.ran.is_none()
            || self.ran.only_stream().is_some_and(|last| last.order_before(stream).is_ok());
        match follows {
            true => self.ran.note(stream),
            false => self.ran.add(stream),
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
        match self.ran.only_handle() {
            _ if self.is_lent() => RanOn::Unknown,
            _ if self.ran.is_none() => RanOn::None,
            Some((id, stream)) => RanOn::Stream(id, stream.clone()),
            None => RanOn::Unknown,
        }
    }

    /// The streams on which its own launches may still run.
    pub(crate) fn ran_streams(&self) -> &[HeldStream] {
        self.ran.streams()
    }

    /// The streams whose work may be runs of the executable. Other code may launch it on all that
    /// this library knows.
    fn runs(&self) -> Vec<HeldStream> {
        // The locks of the lists may be held for ever, and nothing is dropped there.
        if is_forked() {
            return Vec::new();
        }
        let contexts = core::iter::once(&self.context).chain(&self.others).filter(|_| self.is_lent());
        let others = contexts.flat_map(HeldStream::all_of);
        let own = match &self.last {
            Some(last) => last.streams().iter().map(HeldStream::of).collect(),
            None => self.ran.streams().to_vec(),
        };
        others.chain(own).collect()
    }
}

impl Spans for ExecResources {
    #[inline]
    fn home(&self) -> &Context {
        &self.context
    }

    #[inline]
    fn others(&self) -> &[Context] {
        &self.others
    }
}

/// What an update has replaced and no run uses, to be dropped without locks.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Replaced {
    _unused: Owners,
    _stream: Option<FormerStream>,
}

impl Drop for ExecResources {
    fn drop(&mut self) {
        drop(self.end());
    }
}

/// A share that an executable had. Dropping it drops the owners once the runs are over.
pub(crate) struct FormerShare {
    context: Context,
    others: Box<[Context]>,
    base: Vec<Owner>,
    since: Since,
    /// The streams of the runs that may use it: an executable does not overlap itself, so all runs
    /// have ended where the last one has.
    runs: Vec<HeldStream>,
}

impl Drop for FormerShare {
    fn drop(&mut self) {
        if !self.base.is_empty() || !self.since.is_empty() {
            let share = (core::mem::take(&mut self.base), core::mem::take(&mut self.since));
            let share = UnlessLostInPart::new(several(&self.context, &self.others), share);
            drop_behind(&self.context, share, &self.runs);
        }
    }
}

/// All contexts of nodes, if there are several.
fn several(home: &Context, others: &[Context]) -> Box<[Context]> {
    if others.is_empty() { [].into() } else { core::iter::once(home).chain(others).cloned().collect() }
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
