//! Memory that waits for a fence, and the streams that a fence spans.

use super::pools;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

use cuda_sys::CUdeviceptr;

use super::host_cache::HostBlock;
use crate::context::Context;
use crate::destroy::{self, Kept, List, Node};
use crate::error::Error;
use crate::raw_stream::RawStream;
use crate::sync::{Lock, Rank, process};

/// Memory to be freed behind a fence.
#[derive(Clone, Debug)]
pub(crate) struct PendingFree {
    pub(crate) context: Context,
    /// The stream in whose order it was allocated, if it was.
    pub(crate) home: Option<Arc<RawStream>>,
    pub(crate) what: FreeKind,
}

/// How memory is freed.
#[derive(Clone, Debug)]
pub(crate) enum FreeKind {
    /// In stream order. Afterwards `keep` is dropped: the pool of the memory, if it was not the
    /// device's default pool.
    Device { address: CUdeviceptr, keep: Option<Arc<dyn FreedWith>> },
    /// By caching it for later allocations.
    Host(HostBlock),
    /// By dropping its owner.
    Owned(Kept),
    /// By dropping an owner that only work on the home stream uses: the fence is an event there.
    Behind(Kept),
}

/// A value that goes with memory until the memory is freed in stream order.
pub(crate) trait FreedWith: core::fmt::Debug + Send + Sync {
    /// The driver refused the free.
    fn free_failed(&self, error: &Error);
}

pub(crate) static FREES: List<PendingFree> = List::starting_with(AtomicPtr::new(core::ptr::null_mut()));
/// Streams without handles that could not be closed immediately.
pub(super) static CLOSINGS: List<Arc<RawStream>> = List::starting_with(AtomicPtr::new(core::ptr::null_mut()));
static MEMBERS: Lock<Vec<Arc<RawStream>>> = Lock::new(Rank::FenceMembers, Vec::new());
/// Whether memory was used on streams of other contexts than its own: then fences go over the
/// streams of all contexts.
pub(super) static ACROSS: AtomicBool = AtomicBool::new(false);

/// Hands memory to the reaper. The node was made when the memory was first shared, so that the drop
/// allocates nothing.
pub(crate) fn push_free(node: Box<Node<PendingFree>>) {
    destroy::expect_one();
    FREES.push(node);
    destroy::wake();
}

/// Makes a stream a member, before it first uses memory whose home is elsewhere.
pub(crate) fn join(stream: &Arc<RawStream>) {
    if stream.is_in_fence() {
        return;
    }
    // Now rather than in a drop: something will wait for the reaper.
    destroy::start();
    let mut members = MEMBERS.lock();
    if !stream.is_in_fence() {
        members.push(Arc::clone(stream));
        // After the push: a thread that sees it set relies on the membership.
        stream.set_in_fence();
    }
}

/// Says that memory is about to be used on a stream of another context.
pub(crate) fn expect_across() {
    ACROSS.store(true, Ordering::Release);
}

/// Whether the context is lost, and work of others may use its memory: nothing says when that is
/// over.
pub(crate) fn may_run_elsewhere(lost: &Context) -> bool {
    process::is_running()
        && lost.lost().is_some()
        && ACROSS.load(Ordering::Acquire)
        && Context::any_is_usable()
}

/// The last handle of a stream is gone.
pub(crate) fn close(stream: &Arc<RawStream>) {
    // In a forked child the locks may be held forever.
    if !process::is_running() {
        return;
    }
    let in_fence = stream.is_in_fence();
    if in_fence {
        destroy::expect_one();
    }
    if stream.try_close() {
        pools::close_home(stream);
    } else {
        destroy::expect_one();
        CLOSINGS.push(Node::new(Arc::clone(stream)));
        destroy::wake();
    }
    if in_fence {
        destroy::wake();
    }
}

/// Closes the streams whose gates were taken when their last handles went.
pub(super) fn close_late() -> usize {
    let closed = CLOSINGS.take().map(|stream| {
        stream.close();
        pools::close_home(&stream);
        destroy::one_done();
    });
    closed.count()
}

pub(super) fn members() -> Vec<Arc<RawStream>> {
    MEMBERS.lock().clone()
}

/// Ends the membership of streams without handles, whose work has been waited for; the streams are
/// destroyed.
pub(super) fn leave(closed: Vec<Arc<RawStream>>) -> usize {
    let leaving = |member: &Arc<RawStream>| closed.iter().any(|stream| stream.id() == member.id());
    let mut members = MEMBERS.lock();
    let (left, kept): (Vec<_>, Vec<_>) = members.drain(..).partition(leaving);
    *members = kept;
    drop(members);
    left.iter().for_each(|_| destroy::one_done());
    left.len()
}
