//! Owners that an executable graph has given up, until the runs that may use them are over.

use std::sync::{Arc, Weak};

use super::{FreeKind, PendingFree, push_free};
use crate::context::Context;
use crate::destroy::{Kept, Node};
use crate::graph::Owner;
use crate::raw_stream::RawStream;
use crate::stream::Stream;
use crate::sync::{Lock, Rank};

/// The launches after which a batch goes to the reaper.
const LAUNCHES: u32 = 64;
/// The bytes of device memory that nothing else holds after which a batch goes to the reaper.
const BYTES: u64 = 1 << 20;

/// Owners that an executable graph has given up, but that runs of it may still use.
///
/// The reaper gets them in batches, with the stream of a run that comes after all that may use
/// them: an executable does not overlap itself. It drops a batch once that stream has got so far.
/// A batch is full after 64 launches, or once it holds 1 MiB that nothing else holds. Callers that
/// want memory back hand over all batches ([`hand_over_all`]).
#[derive(Debug)]
pub struct Retired(Arc<Lock<Batch>>);

#[derive(Debug)]
struct Batch {
    context: Context,
    owners: Vec<Owner>,
    bytes: u64,
    launches: u32,
    /// The stream of the last run; `None` if no handle of it was left.
    behind: Option<Arc<RawStream>>,
}

static ALL: Lock<Vec<Weak<Lock<Batch>>>> = Lock::new(Rank::AllRetired, Vec::new());

impl Retired {
    /// Of an executable in a context.
    #[must_use]
    pub fn new(context: &Context) -> Self {
        let owners = Vec::with_capacity(LAUNCHES as usize);
        let batch = Batch { context: context.clone(), owners, bytes: 0, launches: 0, behind: None };
        let batch = Arc::new(Lock::new(Rank::Retired, batch));
        let mut all = ALL.lock();
        all.retain(|known| known.strong_count() > 0);
        all.push(Arc::downgrade(&batch));
        drop(all);
        Self(batch)
    }

    /// Takes owners that runs up to now may use, the last of which is on this stream. `None` if no
    /// handle of the stream is left: then they stay until the next launch.
    pub fn push(&self, owners: impl IntoIterator<Item = Owner>, behind: Option<&Stream>) {
        let mut batch = self.0.lock();
        batch.behind = behind.map(raw);
        for owner in owners {
            batch.bytes += own_bytes(&owner);
            batch.owners.push(owner);
        }
    }

    /// Notes a launch, to be called once it is enqueued. Returns whether owners are left here.
    pub fn launched(&self, stream: &Stream) -> bool {
        let mut batch = self.0.lock();
        if batch.owners.is_empty() {
            return false;
        }
        batch.launches += 1;
        batch.behind = Some(raw(stream));
        let is_full = batch.launches >= LAUNCHES || batch.bytes >= BYTES;
        drop(batch);
        if is_full {
            self.hand_over();
        }
        !is_full
    }

    /// Hands the batch to the reaper.
    pub fn hand_over(&self) {
        hand_over(&self.0);
    }
}

/// Hands all batches to the reaper.
pub(crate) fn hand_over_all() {
    let all: Vec<_> = ALL.lock().iter().filter_map(Weak::upgrade).collect();
    all.iter().for_each(|batch| hand_over(batch));
}

fn hand_over(batch: &Lock<Batch>) {
    let mut batch = batch.lock();
    if batch.owners.is_empty() || batch.behind.is_none() {
        return;
    }
    let room = Vec::with_capacity(batch.owners.len());
    let owners = core::mem::replace(&mut batch.owners, room);
    (batch.bytes, batch.launches) = (0, 0);
    let (context, home) = (batch.context.clone(), batch.behind.take());
    drop(batch);
    let what = FreeKind::Owned(Kept::new(owners));
    push_free(Node::new(PendingFree { context, home, what }));
}

fn raw(stream: &Stream) -> Arc<RawStream> {
    // The end of the work on a stream of other code is recorded with its last handle.
    stream.raw_stream().set_home();
    Arc::clone(stream.raw_stream())
}

/// The bytes of memory that only this owner holds.
fn own_bytes(owner: &Owner) -> u64 {
    match owner {
        Owner::Allocation(memory) if Arc::strong_count(memory) == 1 => memory.bytes() as u64,
        _ => 0,
    }
}
