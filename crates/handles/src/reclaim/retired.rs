//! Owners that an executable graph has given up, until the runs that may use them are over.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use super::{FreeKind, PendingFree, UnlessLostInPart};
use crate::context::Context;
use crate::destroy::{self, Kept};
use crate::graph::Owner;
use crate::raw_stream::RawStream;
use crate::stream::{HeldStream, Stream};
use crate::sync::{Lock, Rank, process};

/// The launches after which a batch is due.
const LAUNCHES: u32 = 64;
/// The bytes of memory that nothing else holds after which a batch is due.
const BYTES: u64 = 1 << 20;

/// Owners that an executable graph has given up, but that runs of it may still use.
///
/// The reaper takes them in batches, with the stream of the last run that may use them: an
/// executable does not overlap itself. It drops a batch once that stream has got so far.
///
/// A batch is due after 64 launches, or once it holds 1 MiB that nothing else holds. Callers that
/// want memory back make all batches due. The launching thread only says so: the thread that works
/// takes the batch out, so launches make no driver call for it. They allocate nothing either,
/// unless that thread is so late that a batch outgrows those before it.
#[derive(Debug)]
pub struct Retired(Arc<Lock<Batch>>);

/// A stream that a batch no longer waits for. To be dropped without locks: it may be the last
/// reference to the stream.
#[derive(Debug)]
#[must_use]
pub struct FormerStream {
    _stream: Arc<RawStream>,
}

#[derive(Debug)]
struct Batch {
    /// The contexts of the executable's nodes, if there are several.
    contexts: Box<[Context]>,
    owners: Vec<Owner>,
    bytes: u64,
    launches: u32,
    /// The stream of the last run that may use the owners; `None` if
    /// it may be on several.
    behind: Option<Arc<RawStream>>,
    /// Whether the thread that works is to take it, which counts as pending.
    is_due: bool,
}

static ALL: Lock<Vec<Weak<Lock<Batch>>>> = Lock::new(Rank::AllRetired, Vec::new());

/// Whether a batch is due.
static ANY_DUE: AtomicBool = AtomicBool::new(false);

impl Retired {
    /// Of an executable whose nodes are of these contexts; none if they are of one.
    #[must_use]
    pub fn new(contexts: Box<[Context]>) -> Self {
        // Now rather than in a launch: something will wait for the reaper.
        destroy::start();
        let owners = Vec::with_capacity(LAUNCHES as usize);
        let batch = Batch { contexts, owners, bytes: 0, launches: 0, behind: None, is_due: false };
        let batch = Arc::new(Lock::new(Rank::Retired, batch));
        let mut all = ALL.lock();
        all.retain(|known| known.strong_count() > 0);
        all.push(Arc::downgrade(&batch));
        drop(all);
        Self(batch)
    }

    /// Takes owners that runs up to now may use, the last of which is on this stream. `None` if
    /// they may be on several: then they stay until the next launch.
    pub fn push(
        &self,
        owners: impl IntoIterator<Item = Owner>,
        behind: Option<&HeldStream>,
    ) -> Option<FormerStream> {
        let behind = behind.map(|stream| Arc::clone(stream.raw_stream()));
        let mut batch = self.0.lock();
        batch.extend(owners);
        if behind.is_none() && core::mem::take(&mut batch.is_due) {
            destroy::one_done();
        }
        batch.wait_behind(behind)
    }

    /// Notes a launch, to be called once it is enqueued, and takes owners that it no longer uses,
    /// but launches before it may use. Returns whether owners are left here.
    pub fn launched(
        &self,
        stream: &Stream,
        owners: impl ExactSizeIterator<Item = Owner>,
    ) -> (bool, Option<FormerStream>) {
        let has_new = owners.len() > 0;
        let mut batch = self.0.lock();
        batch.extend(owners);
        if batch.owners.is_empty() {
            return (false, None);
        }
        let waits_here =
            batch.behind.as_ref().is_some_and(|behind| !has_new || Arc::ptr_eq(stream.raw_stream(), behind));
        let former = if waits_here {
            None
        } else {
            batch.wait_behind(Some(Arc::clone(HeldStream::of(stream).raw_stream())))
        };
        batch.launches += 1;
        if batch.launches >= LAUNCHES || batch.bytes >= BYTES {
            batch.become_due();
        }
        (true, former)
    }

    /// Lets the reaper take the batch.
    pub fn hand_over(&self) {
        self.0.lock().become_due();
    }
}

impl Drop for Retired {
    /// Nobody runs the executable any more. Another thread that looks at the batch now must not be
    /// the one that drops the owners.
    fn drop(&mut self) {
        // In a forked child the lock may be held for ever, and nothing is dropped.
        if !process::is_running() {
            return;
        }
        let mut batch = self.0.lock();
        let (owners, behind) = (core::mem::take(&mut batch.owners), batch.behind.take());
        let was_due = core::mem::take(&mut batch.is_due);
        drop(batch);
        drop((owners, behind));
        if was_due {
            destroy::one_done();
        }
    }
}

impl Batch {
    fn extend(&mut self, owners: impl IntoIterator<Item = Owner>) {
        for owner in owners {
            self.bytes += own_bytes(&owner);
            self.owners.push(owner);
        }
    }

    /// Waits for the work on another stream. Returns the one before, if it was another.
    fn wait_behind(&mut self, stream: Option<Arc<RawStream>>) -> Option<FormerStream> {
        let before = core::mem::replace(&mut self.behind, stream)?;
        // Of the same stream, this is not the last reference.
        let is_same = self.behind.as_ref().is_some_and(|behind| Arc::ptr_eq(behind, &before));
        (!is_same).then_some(FormerStream { _stream: before })
    }

    /// Lets the thread that works take the batch, unless it is empty, or the end of its last run is
    /// unknown.
    fn become_due(&mut self) {
        if self.is_due || self.owners.is_empty() || self.behind.is_none() {
            return;
        }
        self.is_due = true;
        destroy::expect_one();
        ANY_DUE.store(true, Ordering::Release);
        destroy::wake();
    }

    /// Takes the owners out, if they are due.
    fn take(&mut self) -> Option<PendingFree> {
        if !self.is_due {
            return None;
        }
        // Of the stream's context: the executable may run on streams of several.
        let context = self.behind.as_ref()?.context().clone();
        // Room for as many: retiring allocates nothing from then on.
        let room = Vec::with_capacity(self.owners.capacity());
        let owners = core::mem::replace(&mut self.owners, room);
        (self.bytes, self.launches, self.is_due) = (0, 0, false);
        let what = FreeKind::Behind(Kept::new(UnlessLostInPart::new(self.contexts.clone(), owners)));
        Some(PendingFree { context, home: self.behind.take(), what })
    }
}

/// Makes all batches due. Returns whether there are any.
pub(crate) fn hand_over_all() -> bool {
    let mut any = false;
    for batch in all() {
        let mut batch = batch.lock();
        batch.become_due();
        any |= batch.is_due;
    }
    any
}

/// Takes the batches that are due; each counts as pending already.
pub(super) fn take_due() -> Vec<PendingFree> {
    if !ANY_DUE.swap(false, Ordering::AcqRel) {
        return Vec::new();
    }
    all().iter().filter_map(|batch| batch.lock().take()).collect()
}

fn all() -> Vec<Arc<Lock<Batch>>> {
    ALL.lock().iter().filter_map(Weak::upgrade).collect()
}

/// The bytes of memory that only this owner holds.
fn own_bytes(owner: &Owner) -> u64 {
    match owner {
        Owner::Allocation(memory) if Arc::strong_count(memory) == 1 => memory.bytes() as u64,
        _ => 0,
    }
}
