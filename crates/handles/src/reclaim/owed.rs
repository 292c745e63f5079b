//! What the driver has yet to give back of executables that were dropped.
//!
//! The driver runs the destructor of a user object some 100 µs after the last run that used it, on
//! a thread of its own. Nobody waits for that: what an executable kept is dropped with it where its
//! runs are known to be over, and else once somebody asks and they are. Until the destructor has
//! run it counts as [`pending`](crate::reaper::pending).

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

/// How long the driver may take for a destructor whose time has come, on a busy machine.
const PASSING: Duration = Duration::from_millis(50);

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

/// For moments; neither over a driver call nor over a drop of what is in it.
fn owed() -> LockGuard<'static, Vec<Owed>> {
    OWED.lock()
}

/// Counts a payload until the driver's destructor of it has run. Whoever calls this still has a
/// reference of the driver's.
pub(crate) fn expect(payload: &Arc<Payload>, context: &Context, runs: Option<Runs>) {
    payload.owe();
    let entry = Owed { payload: Arc::clone(payload), context: context.clone(), runs, since: Instant::now() };
    owed().push(entry);
}

/// Lets go of what is not owed any more: the driver has given it back, or never will, as the
/// context is lost. Where it failed to end something, nobody knows of which it will: nothing is
/// counted then.
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

/// Hands what no run uses any more to those that drop such things.
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

/// Whether the driver may be about to give something back of which nobody knows when its last run
/// ended.
pub(crate) fn is_about_to_come() -> bool {
    let is_young = |one: &Owed| one.runs.is_none() && one.payload.is_held() && one.since.elapsed() < PASSING;
    owed().iter().any(is_young)
}

thread_local! {
    /// While a payload is released on this thread by its owner's drop, those that went with it.
    /// There to the end of the thread, as destructors may drop executables then.
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
    // What is taken out is released when the list is free again: more may come.
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
