//! Driver calls that fail on demand.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use cuda_sys::{CUresult, Call};

use super::swept;

#[derive(Debug)]
struct Plan {
    id: u64,
    target: Target,
    /// The number of calls to let through before.
    before: u64,
    code: CUresult,
    hit: Option<Hit>,
}

#[derive(Clone, Copy, Debug)]
struct Hit {
    call: Call,
    thread: ThreadId,
}

#[derive(Debug)]
enum Target {
    /// Calls of this name on any thread.
    Named(Call),
    /// All calls of this thread.
    Thread(ThreadId),
    /// All calls of this thread that do something by themselves.
    Effects(ThreadId),
}

impl Target {
    fn is(&self, call: Call) -> bool {
        match self {
            Self::Named(name) => *name == call,
            Self::Thread(thread) => *thread == std::thread::current().id(),
            Self::Effects(thread) => {
                *thread == std::thread::current().id() && call != Call::cuThreadExchangeStreamCaptureMode
            }
        }
    }
}

static PLANS: Mutex<Vec<Plan>> = Mutex::new(Vec::new());
/// The number of plans, so that an ordinary call takes no lock.
static PLANNED: AtomicU64 = AtomicU64::new(0);
static NEXT: AtomicU64 = AtomicU64::new(0);

fn plans() -> MutexGuard<'static, Vec<Plan>> {
    PLANS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A planned failure. Dropping this cancels it.
#[derive(Debug)]
#[must_use = "dropping the injection calls it off"]
pub struct Injection {
    id: u64,
}

/// Answers the `nth` call of this name from now on (the first is 1), on any thread, with `code`,
/// once. The driver is not called.
///
/// # Panics
/// `nth` is 0.
pub fn fail(call: Call, nth: u64, code: CUresult) -> Injection {
    plan(Target::Named(call), nth, code)
}

/// Answers the `nth` driver call of this thread from now on, whatever its name, with `code`, once.
/// The driver is not called.
///
/// # Panics
/// `nth` is 0.
pub fn fail_any(nth: u64, code: CUresult) -> Injection {
    plan(Target::Thread(std::thread::current().id()), nth, code)
}

/// As [`fail_any`], without calls that exchange the thread's capture mode: where the driver refuses
/// that, it may answer the next call by invalidating captures of others.
///
/// # Panics
/// `nth` is 0.
pub(crate) fn fail_any_effect(nth: u64, code: CUresult) -> Injection {
    plan(Target::Effects(std::thread::current().id()), nth, code)
}

fn plan(target: Target, nth: u64, code: CUresult) -> Injection {
    let before = nth.checked_sub(1).expect("calls are counted from 1");
    let id = NEXT.fetch_add(1, Ordering::Relaxed);
    plans().push(Plan { id, target, before, code, hit: None });
    PLANNED.fetch_add(1, Ordering::SeqCst);
    Injection { id }
}

impl Injection {
    /// Whether the failure has happened.
    #[must_use]
    pub fn hit(&self) -> bool {
        self.hit_call().is_some()
    }

    /// The call that failed.
    #[must_use]
    pub fn hit_call(&self) -> Option<Call> {
        self.found().map(|hit| hit.call)
    }

    /// The thread whose call failed.
    #[must_use]
    pub fn hit_thread(&self) -> Option<ThreadId> {
        self.found().map(|hit| hit.thread)
    }

    fn found(&self) -> Option<Hit> {
        plans().iter().find(|plan| plan.id == self.id)?.hit
    }
}

impl Drop for Injection {
    fn drop(&mut self) {
        plans().retain(|plan| plan.id != self.id);
        PLANNED.fetch_sub(1, Ordering::SeqCst);
    }
}

/// The code to answer a call with, if it is to fail.
pub(crate) fn answer(call: Call) -> Option<CUresult> {
    if PLANNED.load(Ordering::SeqCst) == 0 {
        return None;
    }
    let code = planned(call)?;
    swept::note(call);
    Some(code)
}

fn planned(call: Call) -> Option<CUresult> {
    let mut plans = plans();
    for plan in plans.iter_mut().filter(|plan| plan.hit.is_none() && plan.target.is(call)) {
        if plan.before == 0 {
            plan.hit = Some(Hit { call, thread: std::thread::current().id() });
            return Some(plan.code);
        }
        plan.before -= 1;
    }
    None
}
