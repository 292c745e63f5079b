//! Threads that do the reaper's work.

use core::cell::Cell;
use core::time::Duration;
use std::sync::Arc;
use std::sync::mpsc::channel;
use std::thread::{self, Thread};

use super::destructors::Destructors;
use crate::context::Busy;
use crate::destroy::{self, Destruction, List, Node};
use crate::error::Result;
use crate::sync::{AtomicU64, Lock, Rank};

thread_local! {
    /// This thread is doing the reaper's work; a destructor on it may ask to drain again.
    static WORKING: Cell<bool> = const { Cell::new(false) };
}

/// The runs of destructors of other code, which may be in the driver.
pub(super) static DESTRUCTORS: Destructors = Destructors::starting_with(AtomicU64::new(0), AtomicU64::new(0));

/// Whether this thread is doing the reaper's work.
pub(crate) fn is_working() -> bool {
    WORKING.get()
}

/// Marks the thread as working.
pub(crate) fn as_worker<R>(work: impl FnOnce() -> R) -> R {
    struct Done;
    impl Drop for Done {
        fn drop(&mut self) {
            WORKING.set(false);
        }
    }
    WORKING.set(true);
    let _done = Done;
    work()
}

pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Option<Thread> {
    let thread = thread::Builder::new().name(name.to_owned()).spawn(work).ok()?;
    Some(thread.thread().clone())
}

/// Destroys executables on a thread of its own: unknown work may hold up the driver forever. Those
/// that cannot be destroyed now go to `list`.
pub(crate) fn destroy_elsewhere(
    destruction: Vec<Destruction>,
    list: &'static List<Destruction>,
    try_end: impl Fn(Destruction) -> Result<(), Destruction> + Send + 'static,
    bound: Duration,
) -> Result<usize> {
    if destruction.is_empty() {
        return Ok(0);
    }
    let (done, ended) = channel();
    let destruction = Arc::new(Lock::new(Rank::DeferredBatch, destruction));
    let take = |destruction: &Lock<Vec<Destruction>>| core::mem::take(&mut *destruction.lock());
    let own = Arc::clone(&destruction);
    let end = move || {
        let _destroying = DESTRUCTORS.begin();
        let each = || destroy::retry_each(take(&own).into_iter(), list, try_end);
        let ended = if WORKING.get() { each() } else { as_worker(each) };
        if !list.is_empty() {
            destroy::wake();
        }
        // The waiting thread may have given up.
        let _ = done.send(ended);
    };
    if destroy::start().is_none() {
        // For hosts that allow no thread.
        end();
    } else if spawn("cuda-reaper-end", end).is_none() {
        take(&destruction).into_iter().for_each(|destruction| list.push(Node::new(destruction)));
        destroy::wake();
        return Ok(0);
    }
    ended.recv_timeout(bound).map_err(|_| {
        let by = "the driver, which waits in cuGraphExecDestroy for work on streams that were dropped or are not known here";
        Busy { what: "an executable graph that was dropped".into(), by: by.into() }.into()
    })
}
