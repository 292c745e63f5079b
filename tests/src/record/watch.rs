//! The observer of every driver call, and its counts and trace.

use core::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::thread::ThreadId;

use cuda_sys::{CUresult, Call, Interceptor, Observer};

use super::{heap, live};
use crate::faults::{hold, inject};

pub(crate) const CALLS: usize = Call::ALL.len();

static EVERYWHERE: [AtomicU64; CALLS] = [const { AtomicU64::new(0) }; CALLS];

thread_local! {
    static HERE: [Cell<u64>; CALLS] = const { [const { Cell::new(0) }; CALLS] };
    static IN_DESTRUCTOR: Cell<bool> = const { Cell::new(false) };
}

static FROM_DESTRUCTORS: AtomicU64 = AtomicU64::new(0);

/// Whether the environment asks for a line about every call, which shows what came before a crash.
static LOUD: LazyLock<bool> = LazyLock::new(|| std::env::var_os("CUDA_TEST_TRACE").is_some());

static TRACING: AtomicBool = AtomicBool::new(false);
static TRACE: Mutex<Vec<Step>> = Mutex::new(Vec::new());

/// One driver call in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// The thread that called.
    pub thread: ThreadId,
    /// What it called.
    pub call: Call,
    /// What the driver answered.
    pub result: CUresult,
}

/// Counts, injects and traces.
pub(crate) struct Watch;

impl Observer for Watch {
    fn before(&self, call: Call) {
        hold::pass(call);
        EVERYWHERE[call as usize].fetch_add(1, Ordering::SeqCst);
        // The counters of an ending thread may be gone.
        let _ = HERE.try_with(|here| here[call as usize].set(here[call as usize].get() + 1));
        if IN_DESTRUCTOR.try_with(Cell::get).unwrap_or(false) {
            FROM_DESTRUCTORS.fetch_add(1, Ordering::SeqCst);
        }
        heap::set_in_driver(true);
    }

    fn after(&self, call: Call, result: CUresult) {
        if *LOUD {
            eprintln!("{} answered {result}", call.name());
        }
        heap::set_in_driver(false);
        if result.is_success() {
            live::note(call);
        }
        if TRACING.load(Ordering::SeqCst) {
            let step = Step { thread: std::thread::current().id(), call, result };
            heap::set_in_driver(true);
            TRACE.lock().unwrap_or_else(PoisonError::into_inner).push(step);
            heap::set_in_driver(false);
        }
    }
}

impl Interceptor for Watch {
    fn answer(&self, call: Call) -> Option<CUresult> {
        inject::answer(call)
    }
}

/// The driver calls of every thread while `section` runs, in the order in which they returned.
pub fn trace<R>(section: impl FnOnce() -> R) -> (R, Vec<Step>) {
    let take = || core::mem::take(&mut *TRACE.lock().unwrap_or_else(PoisonError::into_inner));
    take();
    TRACING.store(true, Ordering::SeqCst);
    let result = section();
    TRACING.store(false, Ordering::SeqCst);
    (result, take())
}

/// Calls so far of this thread and of all threads.
pub(crate) fn calls() -> ([u64; CALLS], [u64; CALLS]) {
    let here = HERE.with(|here| core::array::from_fn(|call| here[call].get()));
    (here, core::array::from_fn(|call| EVERYWHERE[call].load(Ordering::SeqCst)))
}

/// Runs a destructor that the driver called. Driver calls in it are counted as mistakes.
pub(crate) fn in_destructor(run: impl FnOnce()) {
    let outer = IN_DESTRUCTOR.replace(true);
    run();
    IN_DESTRUCTOR.set(outer);
}

/// The number of driver calls inside destructors of user objects, which a real driver refuses.
#[must_use]
pub fn calls_from_destructors() -> u64 {
    FROM_DESTRUCTORS.load(Ordering::SeqCst)
}
