//! The work of the reaper, on its own threads and in drains.

use std::sync::{Once, OnceLock, Weak};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use cuda_sys::{CUresult, Call};

use super::destructors::Destroying;
use super::fences::Fences;
use super::threads::{DESTRUCTORS, as_worker, destroy_elsewhere, is_working, spawn};
use super::{host_cache, idle, retired, staging};
use crate::context::{Busy, Context, capture_mode, in_host_function};
use crate::destroy::{
    self, DEFERRED, Destruction, Kept, LIBRARIES, List, Node, OBJECTS, PAYLOADS, UnusedLibrary,
};
use crate::error::{Error, Result};
use crate::raw_stream::{self, RawStream};
use crate::sync::{Lock, LockGuard, Rank, for_at_most, patience, process};

/// The state of the reaper. The thread that works holds it: the reaper's, or one that drains.
static FENCES: Lock<Fences> = Lock::new(Rank::Reaper, Fences::new());

/// How long postponed work waits for its next attempt: at first, and at most.
const FIRST_RETRY: Duration = Duration::from_millis(5);
const LONGEST_RETRY: Duration = Duration::from_secs(1);

/// How long a caller waits for values that are about to be released.
const CATCH_UP_LIMIT: Duration = Duration::from_millis(100);

/// The dropping thread, which runs destructors of other code.
static DROPPING: OnceLock<Thread> = OnceLock::new();

/// The action of [`destroy_deferred`], for errors.
const DEFERRED_ACTION: &str = "the end of an executable graph with conditional nodes that was dropped";

/// How long a caller waits for work of the device that delays a deferred destruction. The caller
/// itself may have to end that work.
const DEFERRED_LIMIT: Duration = Duration::from_secs(1);

/// How long the end of the process waits for the reaper to leave the driver.
const EXIT_LIMIT: Duration = Duration::from_millis(500);

/// Does all pending work of the reaper, and waits for what the reaper's thread is doing in the
/// driver, but not for a destructor that it is running. Returns how much this call did itself.
///
/// This call unloads libraries, destroys deferred executables, and frees pinned and managed memory.
/// The driver waits for all running work of the device in these calls, however long that takes, as
/// in calls named `blocking`; launches of other threads wait meanwhile. So drain where that does no
/// harm, and not where the caller has to end that work. Nothing else here waits for the device;
/// memory is freed in stream order. Work that the driver forbids at the moment (a stream whose work
/// has to be waited for is capturing) stays [`pending`](crate::reaper::pending). If the reaper's
/// own stream is the last user of a context of other code, this call waits for it and releases the
/// context.
///
/// Callable from any thread. In a destructor that the reaper runs it does nothing and returns 0. Do
/// not hold a lock that such a destructor takes.
///
/// Inside a host function, and in a destructor that the driver runs, it does nothing and returns 0
/// as well: the driver permits some of the calls there, and they would wait for the work that waits
/// for the function itself.
#[doc(alias = "cuLibraryUnload")]
#[doc(alias = "cuMemFreeHost")]
#[doc(alias = "cuGraphExecDestroy")]
#[doc(alias = "cudaFreeHost")]
#[doc(alias = "cudaLibraryUnload")]
#[doc(alias = "cudaGraphExecDestroy")]
pub fn drain() -> usize {
    // Asked before the lock is taken: its holder may wait for this function. If every context is
    // lost, nothing waits any more.
    if is_working() || !process::is_running() || Context::any_is_usable() && in_host_function::is_inside() {
        return 0;
    }
    retired::hand_over_all();
    as_worker(|| work_until_done(true))
}

/// The part of [`drain`] that frees memory in stream order and runs no destructors of other code;
/// for an allocation that failed. Does nothing inside a host function, where the allocation is
/// refused: a thread that drains may have the lock and wait for that function.
///
/// What executables have given up or left behind is dropped by the dropping thread, once the runs
/// that may use it are over. If they are, that is waited for, for some milliseconds at most.
pub(crate) fn free_pending() {
    if !may_work() {
        return;
    }
    let mut waits = retired::hand_over_all();
    if let Ok(mut fences) = fences_patiently() {
        as_worker(|| destroy_objects() + fences.work());
        waits |= fences.has_owners();
    }
    if waits {
        for_at_most(CATCH_UP_LIMIT, || (!as_worker(look_again)).then_some(()));
    }
}

/// Lets idle values that were dropped be released, until `is_so` or none is about to be, for some
/// milliseconds at most. Destructors of other code run on the dropping thread.
pub(crate) fn catch_up(is_so: impl Fn() -> bool) {
    if !may_work() {
        return;
    }
    retired::hand_over_all();
    for_at_most(CATCH_UP_LIMIT, || {
        let is_coming = as_worker(look_again);
        (is_so() || !is_coming).then_some(())
    });
}

/// Lets idle memory that was dropped be freed, for a caller that asks for the free memory; for some
/// milliseconds at most.
pub(crate) fn catch_up_frees(context: &Context) {
    if !may_work() {
        return;
    }
    // Memory that executables have left behind is freed with its owner.
    catch_up(|| false);
    if let Some(mut fences) = for_at_most(CATCH_UP_LIMIT, || FENCES.try_in_order()) {
        as_worker(|| {
            destroy_objects();
            fences.work();
            fences.see_freed(context);
        });
    }
}

/// Does what can be done immediately. Returns whether something is about to be released. A thread
/// that drains may have the lock for long.
fn look_again() -> bool {
    let in_fences = || {
        FENCES.try_in_order().is_none_or(|mut fences| {
            destroy_objects();
            fences.work();
            fences.has_owners() || fences.has_young()
        })
    };
    let waits = DESTRUCTORS.are_coming(|| in_fences() || !PAYLOADS.is_empty());
    // Without a thread everything waits for a drain.
    let Some(dropping) = DROPPING.get().filter(|_| waits) else { return false };
    dropping.unpark();
    true
}

/// Destroys the deferred executables, if [`free_pending`] was not enough: they have memory, too.
/// Returns whether there were some. Destroys none while work runs that the driver would wait for:
/// the caller itself may have to end it.
pub(crate) fn destroy_all_deferred() -> bool {
    may_work() && destroy_deferred(|_| true).is_ok_and(|ended| ended > 0)
}

/// Destroys the executable that keeps this, if it is deferred. Waits for work that ends within
/// [a moment](DEFERRED_LIMIT).
///
/// # Errors
/// Work runs for which the driver would wait.
pub(crate) fn destroy_keeping(kept: &Weak<()>) -> Result<()> {
    if !may_work() {
        return Ok(());
    }
    let end = |destruction: Destruction| {
        if destruction.keeps(kept) { destroy::try_destroy(destruction) } else { Err(destruction) }
    };
    let fences = fences_patiently()?;
    as_worker(|| destroy::retry_all(&OBJECTS, end));
    drop(fences);
    let mut last = destroy_deferred(|destruction| destruction.keeps(kept));
    let end = Instant::now() + DEFERRED_LIMIT.min(patience());
    while matches!(last, Err(Error::StillRunning { .. })) && Instant::now() < end {
        thread::sleep(Duration::from_millis(1));
        last = destroy_deferred(|destruction| destruction.keeps(kept));
    }
    last.map(drop)
}

/// Destroys some of the deferred executables. Returns how many. If streams of their context have
/// work, they stay, and the reaper's thread destroys them once none has; if that holds for all, it
/// is an error.
fn destroy_deferred(which: impl Fn(&Destruction) -> bool) -> Result<usize> {
    let fences = fences_patiently()?;
    let (mut chosen, mut busy) = (Vec::<Destruction>::new(), None);
    for list in [&DEFERRED, &idle::UNTIL_IDLE] {
        let (wanted, others): (Vec<_>, Vec<_>) = list.take().partition(&which);
        others.into_iter().for_each(|destruction| list.push(Node::new(destruction)));
        chosen.extend(wanted);
    }
    let is_idle = |destruction: &Destruction| {
        let idle = raw_stream::ensure_idle(&destruction.context, DEFERRED_ACTION);
        idle.map_err(|error| busy = Some(error)).is_ok()
    };
    let (chosen, staying): (Vec<_>, Vec<_>) = chosen.into_iter().partition(is_idle);
    staying.into_iter().for_each(|destruction| idle::UNTIL_IDLE.push(Node::new(destruction)));
    // Not over the driver's call: other threads need the lock.
    drop(fences);
    let ended = destroy_elsewhere(chosen, &DEFERRED, destroy::try_destroy, patience())?;
    match busy {
        Some(busy) => {
            destroy::wake();
            if ended == 0 { Err(busy) } else { Ok(ended) }
        }
        None => Ok(ended),
    }
}

/// [`free_pending`] for a caller that cannot go on before `done`, outside of host functions. An
/// error is the reason why it is not `done`.
pub(crate) fn free_now(done: impl FnOnce() -> bool) -> Result<()> {
    if is_working() || !process::is_running() {
        return Ok(());
    }
    let mut fences = fences_patiently()?;
    as_worker(|| {
        fences.clear_postpone_error();
        destroy_objects();
        fences.work();
        // With the lock: a moment later the reaper's thread may have tried again.
        if done() { Ok(()) } else { fences.postpone_error() }
    })
}

/// Makes `stream` wait for the frees that the reaper has enqueued in its context, for an allocation
/// that failed. A failure changes nothing.
pub(crate) fn wait_for_frees(stream: &RawStream) {
    if may_work()
        && let Ok(fences) = fences_patiently()
    {
        fences.let_wait_for_frees(stream);
    }
}

/// Makes `stream` wait for the frees that the reaper has enqueued in its context, for callers
/// outside of host functions.
pub(crate) fn order_after_frees(stream: &RawStream) -> Result<()> {
    // The reaper launches nothing by itself.
    if is_working() { Ok(()) } else { fences_patiently()?.order_after_frees(stream) }
}

fn may_work() -> bool {
    !is_working() && process::is_running() && !in_host_function::is_inside()
}

/// Starts the reaper's threads. Returns the one that works.
pub(crate) fn start() -> Option<Thread> {
    static ONCE: Once = Once::new();
    // The driver is initialised by now, so this handler runs before the driver's own.
    ONCE.call_once(|| {
        // SAFETY: the handler waits a bounded time and panics nowhere.
        unsafe { libc::atexit(stop) };
    });
    let dropping = spawn("cuda-reaper-drop", run_dropping_thread);
    // If there can be only one thread, it does both.
    let thread = spawn("cuda-reaper", {
        let dropping = dropping.clone();
        move || run_reaper_thread(dropping.as_ref())
    })?;
    let _ = DROPPING.set(dropping.unwrap_or_else(|| thread.clone()));
    Some(thread)
}

/// The reaper's thread. Destructors of other code run on `dropping`, so that a slow one keeps no
/// memory from being freed.
fn run_reaper_thread(dropping: Option<&Thread>) {
    let mut pause = FIRST_RETRY;
    while process::is_running() {
        let done = as_worker(|| match dropping {
            None => work_until_done(false),
            Some(dropping) => {
                let mut fences = fences();
                let done = destroy_objects() + idle::work() + fences.work();
                if fences.has_owners() || !PAYLOADS.is_empty() {
                    dropping.unpark();
                }
                done
            }
        });
        let again = fences().has_postponed() || !(OBJECTS.is_empty() && idle::UNTIL_IDLE.is_empty());
        if again {
            thread::park_timeout(pause);
            pause = if done == 0 { LONGEST_RETRY.min(pause * 2) } else { FIRST_RETRY };
        } else {
            pause = FIRST_RETRY;
            thread::park();
        }
    }
}

fn run_dropping_thread() {
    while process::is_running() {
        let busy = DESTRUCTORS.begin();
        let owners = fences().take_owners();
        if as_worker(|| run_destructors(owners, busy)) == 0 {
            thread::park();
        }
    }
}

/// The reaper's state, for its threads and for drains.
fn fences() -> LockGuard<'static, Fences> {
    FENCES.lock()
}

/// The reaper's state, for other callers.
fn fences_patiently() -> Result<LockGuard<'static, Fences>> {
    let busy = || {
        let by = "a thread in `reaper::drain`, or the reaper's own, which the driver keeps waiting";
        Busy { what: "the reaper".into(), by: by.into() }.into()
    };
    for_at_most(patience(), || FENCES.try_in_order()).ok_or_else(busy)
}

/// Repeats rounds until one finds nothing to do: a drop in one may leave more.
fn work_until_done(unload: bool) -> usize {
    let mut total = 0;
    while process::is_running() {
        let done = work_once(unload);
        total += done;
        if done == 0 {
            break;
        }
    }
    total
}

/// Makes the driver's calls with the lock, then runs the destructors of other code without it, so
/// that a slow one holds up nothing.
fn work_once(unload: bool) -> usize {
    let mut fences = fences();
    let done = destroy_objects() + fences.work();
    // A drain also destroys the objects that wait for idle streams.
    let done = done + if unload { make_stalling_calls() } else { idle::work() };
    let busy = DESTRUCTORS.begin();
    let owners = fences.take_owners();
    if unload {
        fences.end_lanes();
    }
    drop(fences);
    done + run_destructors(owners, busy)
}

fn run_destructors(owners: Vec<Kept>, _destroying: Destroying<'_>) -> usize {
    release_payloads() + drop_owners(owners)
}

fn release_payloads() -> usize {
    let released = PAYLOADS.take().map(|payload| {
        payload.release();
        destroy::one_done();
    });
    released.count()
}

fn drop_owners(owners: Vec<Kept>) -> usize {
    let dropped = owners.into_iter().map(|owner| {
        drop(owner);
        destroy::one_done();
    });
    dropped.count()
}

/// Destroys what the driver destroys without waiting for work of the device.
fn destroy_objects() -> usize {
    destroy_all(&OBJECTS)
}

/// Makes the calls in which the driver waits for all work of the device.
fn make_stalling_calls() -> usize {
    staging::trim();
    destroy_all(&DEFERRED)
        + destroy_all(&idle::UNTIL_IDLE)
        + unload_libraries()
        + host_cache::free_all()
        + host_cache::unregister_all()
}

fn destroy_all(list: &List<Destruction>) -> usize {
    destroy::retry_all(list, destroy::try_destroy)
}

fn unload_libraries() -> usize {
    destroy::retry_all(&LIBRARIES, unload)
}

/// Unloads a library, unless the driver does not permit the call here: then returns it.
fn unload(unused: UnusedLibrary) -> Result<(), UnusedLibrary> {
    let context = &unused.context;
    if !destroy::may_call(context) {
        return Ok(());
    }
    let mode = capture_mode::relaxed(context.driver());
    // SAFETY: the library is ours, and its kernels' owners, which hold it, are gone.
    let code = unsafe { context.driver().cuLibraryUnload(unused.raw.get()) };
    drop(mode);
    if code == CUresult::CUDA_ERROR_NOT_PERMITTED {
        return Err(unused);
    }
    if let Err(error) = context.check(Call::cuLibraryUnload, code) {
        destroy::report("unloading a library", error);
    }
    // Only now: the driver may have written to it until here.
    drop(unused.keep);
    Ok(())
}

/// At the end of the process no thread enters the driver any more, and a thread inside it gets a
/// moment to leave.
extern "C" fn stop() {
    process::exiting();
    if process::is_forked() || is_working() {
        return;
    }
    let end = Instant::now() + EXIT_LIMIT;
    while Instant::now() < end {
        match FENCES.try_lock() {
            Some(fences) if !DESTRUCTORS.are_running() => return core::mem::forget(fences),
            _ => thread::sleep(Duration::from_millis(1)),
        }
    }
}
