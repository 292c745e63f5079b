//! The reaper's thread, and doing its work on another one.

use core::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError, TryLockError, Weak};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use cuda_sys::{CUresult, Call};

use super::fence::Fences;
use super::list::{List, Node};
use super::queue::{self, Doomed, LIBRARIES, OBJECTS, PAYLOADS, STALLING, Unused};
use super::raw_stream::RawStream;
use super::spare;
use crate::callback;
use crate::capture_mode;
use crate::context::Context;
use crate::error::Result;
use crate::failure;
use crate::kept::Kept;
use crate::process;

/// Whose turn it is to do the work: the reaper's thread, or one that drains.
static TURN: Mutex<Fences> = Mutex::new(Fences::new());

thread_local! {
    /// This thread is doing the work; what it drops may ask to drain again.
    static WORKING: Cell<bool> = const { Cell::new(false) };
}

/// Threads that are running destructors of other code; those may be in the driver.
static DESTRUCTORS: AtomicUsize = AtomicUsize::new(0);

/// How long what was postponed waits for its next try, at first and at most.
const SOON: Duration = Duration::from_millis(5);
const LATE: Duration = Duration::from_secs(1);

/// How long the end of the process waits for the reaper to leave the driver.
const PATIENCE: Duration = Duration::from_millis(500);

/// Does everything that waits, and waits for what the reaper's thread is doing in the driver, but not for a destructor that it is running;
/// returns how much this call did itself.
///
/// This is the place where libraries are unloaded, executables with conditional nodes are destroyed, and pinned and managed memory is freed. The driver waits for all running work of the device
/// in these calls, and while it does, launches of other threads wait as well: drain where that is no matter. Nothing else here waits
/// for the device; memory is freed in stream order. What the driver forbids at the moment (a stream whose work has to be waited for is capturing) stays
/// [`pending`](super::pending). It also waits for what the reaper has enqueued in a context of other code of which nothing else is left, and lets go of that
/// context.
///
/// Callable from any thread. From a destructor that the reaper runs it does nothing and returns 0. Do not hold a lock that such a destructor
/// takes.
///
/// Inside a host function, and in a destructor that the driver runs, it does nothing and returns 0 as well: the driver permits some of the calls
/// there, and they would wait for the work that waits for the function itself.
#[doc(alias = "cuLibraryUnload")]
#[doc(alias = "cuMemFreeHost")]
#[doc(alias = "cuGraphExecDestroy")]
pub fn drain() -> usize {
    // Asked before the turn, which somebody may hold who waits for this function. Where every context is lost, nothing waits any more.
    if WORKING.get() || !process::is_running() || Context::any_is_usable() && callback::is_inside() {
        return 0;
    }
    as_worker(|| rounds(true))
}

/// The part of [`drain`] that frees memory in stream order and runs nobody's destructors; for an allocation that failed. Nothing inside a host function,
/// where the allocation is refused: somebody who drains may have the turn and be waiting for that function.
pub(crate) fn free_pending() {
    if !may_take_turn() {
        return;
    }
    let mut fences = turn();
    as_worker(|| objects() + fences.work());
}

/// Destroys the executables that wait for a drain, where [`free_pending`] was not enough: they have memory, too, and it is better to wait for their end than
/// to do without. Whether there were some.
pub(crate) fn make_room() -> bool {
    if !may_take_turn() {
        return false;
    }
    let mut fences = turn();
    as_worker(|| {
        let ended = destroy_all(&STALLING);
        fences.work();
        ended > 0
    })
}

/// Destroys the executable that keeps this, if it waits for that.
pub(crate) fn destroy_keeping(kept: &Weak<()>) {
    if !may_take_turn() {
        return;
    }
    let _turn = turn();
    let end = |doomed: Doomed| if doomed.keeps(kept) { queue::try_destroy(doomed) } else { Err(doomed) };
    as_worker(|| [&OBJECTS, &STALLING].map(|list| end_all(list, end)));
}

/// [`free_pending`] for who cannot go on before, and has asked whether this is a host function: why what is asked for is not
/// `done` now.
pub(crate) fn free_now(done: impl FnOnce() -> bool) -> Result<()> {
    if WORKING.get() || !process::is_running() {
        return Ok(());
    }
    let mut fences = turn();
    as_worker(|| {
        fences.forget_trouble();
        objects();
        fences.work();
        // With the turn: a moment later the reaper's thread may have tried again.
        if done() { Ok(()) } else { fences.trouble() }
    })
}

/// Makes `stream` wait for the frees that the reaper has enqueued in its context, for an allocation that failed. A failure changes nothing.
pub(crate) fn wait_for_frees(stream: &RawStream) {
    if may_take_turn() {
        turn().let_wait_for_frees(stream);
    }
}

/// Makes `stream` wait for the frees that the reaper has enqueued in its context, for who has asked whether this is a host function.
pub(crate) fn order_after_frees(stream: &RawStream) -> Result<()> {
    // The reaper launches nothing by itself.
    if WORKING.get() { Ok(()) } else { turn().order_after_frees(stream) }
}

fn may_take_turn() -> bool {
    !WORKING.get() && process::is_running() && !callback::is_inside()
}

/// Starts the thread.
pub(crate) fn start() -> Option<Thread> {
    static ONCE: Once = Once::new();
    // The driver is initialised by now, so this handler runs before the driver's own.
    ONCE.call_once(|| {
        // SAFETY: the handler waits a bounded time and panics nowhere.
        unsafe { libc::atexit(stop) };
    });
    let dropping = spawn("cuda-reaper-drop", drop_for_others);
    // Where there can be only one thread, it does both.
    let thread = spawn("cuda-reaper", move || run(dropping.as_ref()))?;
    Some(thread)
}

fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Option<Thread> {
    let thread = thread::Builder::new().name(name.to_owned()).spawn(work).ok()?;
    Some(thread.thread().clone())
}

/// The reaper's thread. Destructors of other code run on `dropping`, so that a slow one keeps no memory from being freed.
fn run(dropping: Option<&Thread>) {
    let mut pause = SOON;
    while process::is_running() {
        let done = as_worker(|| match dropping {
            None => rounds(false),
            Some(dropping) => {
                let mut fences = turn();
                let done = objects() + fences.work();
                if fences.has_owners() || !PAYLOADS.is_empty() {
                    dropping.unpark();
                }
                done
            }
        });
        let again = turn().has_postponed() || !OBJECTS.is_empty();
        if again {
            thread::park_timeout(pause);
            pause = if done == 0 { LATE.min(pause * 2) } else { SOON };
        } else {
            pause = SOON;
            thread::park();
        }
    }
}

fn drop_for_others() {
    while process::is_running() {
        let owners = turn().take_owners();
        if as_worker(|| destructors(owners)) == 0 {
            thread::park();
        }
    }
}

/// Marks the thread as working.
fn as_worker<R>(work: impl FnOnce() -> R) -> R {
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

fn turn() -> MutexGuard<'static, Fences> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Rounds until one finds nothing to do: what is dropped in one may leave more.
fn rounds(unload: bool) -> usize {
    let mut total = 0;
    while process::is_running() {
        let done = round(unload);
        total += done;
        if done == 0 {
            break;
        }
    }
    total
}

/// First what the driver frees, with the turn; then the destructors of other code, without it: one that is slow holds nobody up.
fn round(unload: bool) -> usize {
    let mut fences = turn();
    let done = objects() + fences.work() + if unload { stalling() } else { 0 };
    let owners = fences.take_owners();
    if unload {
        fences.end_lanes();
    }
    drop(fences);
    done + destructors(owners)
}

fn destructors(owners: Vec<Kept>) -> usize {
    DESTRUCTORS.fetch_add(1, Ordering::AcqRel);
    let done = payloads() + drop_owners(owners);
    DESTRUCTORS.fetch_sub(1, Ordering::AcqRel);
    done
}

fn payloads() -> usize {
    let released = PAYLOADS.take().map(|payload| {
        payload.release();
        queue::one_done();
    });
    released.count()
}

fn drop_owners(owners: Vec<Kept>) -> usize {
    let dropped = owners.into_iter().map(|owner| {
        drop(owner);
        queue::one_done();
    });
    dropped.count()
}

fn objects() -> usize {
    destroy_all(&OBJECTS)
}

/// What the driver waits for all work of the device in.
fn stalling() -> usize {
    destroy_all(&STALLING) + libraries() + spare::free_all()
}

fn destroy_all(list: &List<Doomed>) -> usize {
    end_all(list, queue::try_destroy)
}

fn libraries() -> usize {
    end_all(&LIBRARIES, unload)
}

/// Ends what is in a list; what comes back, as the driver does not permit its end now, stays there.
fn end_all<T>(list: &List<T>, end: impl Fn(T) -> Result<(), T>) -> usize {
    let (mut done, mut staying) = (0, Vec::new());
    for one in list.take() {
        match end(one) {
            Ok(()) => {
                queue::one_done();
                done += 1;
            }
            Err(one) => staying.push(one),
        }
    }
    staying.into_iter().for_each(|one| list.push(Node::new(one)));
    done
}

/// Unloads a library, unless the driver permits no such call here: then it comes back.
fn unload(unused: Unused) -> Result<(), Unused> {
    let context = &unused.context;
    if !queue::may_call(context) {
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
        failure::report("unloading a library", error);
    }
    // Only now: the driver may have written to it until here.
    drop(unused.keep);
    Ok(())
}

/// At the end of the process: nobody enters the driver any more, and whoever is in it gets a moment to leave.
extern "C" fn stop() {
    process::exiting();
    if process::is_forked() || WORKING.get() {
        return;
    }
    let end = Instant::now() + PATIENCE;
    while Instant::now() < end {
        match TURN.try_lock() {
            Err(TryLockError::Poisoned(_)) => return,
            Ok(turn) if DESTRUCTORS.load(Ordering::Acquire) == 0 => return core::mem::forget(turn),
            Ok(_) | Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(1)),
        }
    }
}
