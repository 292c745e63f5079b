//! References that the driver has yet to give back for executables that were dropped.
//!
//! The driver runs the destructor of a user object some 100 µs after the last run that used it, on
//! a thread of its own. Nothing waits for that: the owners of an executable are dropped with it if
//! its runs are known to be over, otherwise once a caller asks and they are. Until the destructor
//! has run, the object counts as [`pending`](crate::reaper::pending).

use core::cell::RefCell;
use core::mem::ManuallyDrop;
use std::sync::Arc;
use std::time::{Duration, Instant};

use smallvec::SmallVec;

use crate::context::Context;
use crate::destroy::{self, Node, PAYLOADS, Payload};
use crate::raw_stream::RawStream;
use crate::sync::{Lock, LockGuard, Rank};

/// The streams of the runs that may use something; all are over when these are idle.
pub(crate) type Runs = SmallVec<[Arc<RawStream>; 1]>;

/// How long before something is expected the driver may have failed to end the executable.
const BEFORE: Duration = Duration::from_secs(1);

struct Owed {
    payload: Arc<Payload>,
    context: Context,
    /// `None` if other code may have launched the executable.
    runs: Option<Runs>,
    since: Instant,
}

static OWED: Lock<Vec<Owed>> = Lock::new(Rank::Owed, Vec::new());

/// Held for moments; neither over a driver call nor over the drop of an entry.
fn owed() -> LockGuard<'static, Vec<Owed>> {
    OWED.lock()
}

/// Counts a payload until the driver's destructor of it has run. The driver still has a reference.
pub(crate) fn expect(payload: &Arc<Payload>, context: &Context, runs: Option<Runs>) {
    payload.owe();
    let entry = Owed { payload: Arc::clone(payload), context: context.clone(), runs, since: Instant::now() };
    owed().push(entry);
}

/// Removes entries that are not owed any more: the driver has given them back, or never will, as
/// the context is lost. If the driver failed to destroy something, it is unknown which entries it
/// will give back, so none is counted.
pub(crate) fn sweep() {
    let failed = destroy::last_failed_destroy();
    // An executable is ended before its share is expected, and others may sweep in between.
    let is_hopeless = |one: &Owed| failed.is_some_and(|failed| one.since <= failed + BEFORE);
    let is_lost = |one: &Owed| !destroy::may_call(&one.context);
    let is_over = |one: &mut Owed| is_hopeless(one) || !one.payload.is_owed() || is_lost(one);
    let over: Vec<Owed> = owed().extract_if(.., is_over).collect();
    for one in over {
        if one.payload.stop_owing() {
            if is_lost(&one) {
                one.payload.release();
            }
            destroy::one_done();
        }
    }
}

/// Hands payloads that no run uses any more to the dropping thread.
pub(crate) fn hand_over() {
    let mut asked: Vec<(Arc<Payload>, Runs)> = Vec::new();
    for one in owed().iter().filter(|one| one.payload.is_held()) {
        asked.extend(one.runs.clone().map(|runs| (Arc::clone(&one.payload), runs)));
    }
    for (payload, runs) in asked {
        if runs.iter().all(|stream| stream.is_idle_soon()) {
            destroy::expect_one();
            PAYLOADS.push(Node::new(payload));
        }
    }
}

/// Whether the driver may be about to give back a payload whose last run is unknown. If its time
/// had come with the drop, it takes less than `passing`.
pub(crate) fn is_about_to_come(passing: Duration) -> bool {
    let is_young = |one: &Owed| one.runs.is_none() && one.payload.is_held() && one.since.elapsed() < passing;
    owed().iter().any(is_young)
}

thread_local! {
    /// While a payload is released on this thread by its owner's drop: the payloads that went with
    /// it. It exists to the end of the thread, as destructors may drop executables then.
    static WAITING: RefCell<ManuallyDrop<Option<Vec<Arc<Payload>>>>> =
        const { RefCell::new(ManuallyDrop::new(None)) };
}

/// Releases a payload on this thread. In the release of another one it waits for the end of that:
/// executables may keep each other in a long line.
pub(crate) fn release_here(payload: Arc<Payload>) {
    let mut payload = Some(payload);
    let begins = WAITING.try_with(|waiting| match &mut **waiting.borrow_mut() {
        Some(waiting) => {
            waiting.extend(payload.take());
            false
        }
        none => {
            *none = Some(Vec::new());
            true
        }
    });
    payload.iter().for_each(|payload| payload.release());
    if !matches!(begins, Ok(true)) {
        return;
    }
    // An entry is released while the list is not borrowed: it may add more.
    while let Some(next) = WAITING.try_with(next).ok().flatten() {
        next.release();
    }
}

/// The next one; once there is none, the list is gone.
fn next(waiting: &RefCell<ManuallyDrop<Option<Vec<Arc<Payload>>>>>) -> Option<Arc<Payload>> {
    let mut waiting = waiting.borrow_mut();
    let next = waiting.as_mut().and_then(Vec::pop);
    if next.is_none() {
        **waiting = None;
    }
    next
}
