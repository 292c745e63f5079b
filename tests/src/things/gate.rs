//! A gate in a stream: work enqueued behind it stays in flight for as long as a test wants.

use core::ffi::c_void;
use core::ptr;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use cuda_handles::Stream;

use crate::driver::raw::{driver, ok};
use crate::faults::hold::in_host_function;

/// A test that forgot to open its gate must still end.
const BOUND: Duration = Duration::from_secs(30);

#[derive(Debug, Default)]
struct State {
    open: Mutex<bool>,
    changed: Condvar,
}

/// A host function that holds a stream back until the gate is opened or dropped.
#[derive(Debug)]
pub struct Gate(Arc<State>);

type Work = Box<dyn FnOnce() + Send>;

/// Host functions by number, until they are called. If the context is lost before, they never are,
/// and stay here: nothing else would refer to them, and the sanitiser would call them leaked.
static PENDING: Mutex<BTreeMap<usize, Work>> = Mutex::new(BTreeMap::new());

fn pending<R>(change: impl FnOnce(&mut BTreeMap<usize, Work>) -> R) -> R {
    change(&mut PENDING.lock().unwrap_or_else(PoisonError::into_inner))
}

extern "C" fn run(number: *mut c_void) {
    let work = pending(|pending| pending.remove(&number.addr()));
    let Some(work) = work else { std::process::abort() };
    if catch_unwind(AssertUnwindSafe(|| in_host_function(work))).is_err() {
        std::process::abort();
    }
}

/// Enqueues `work` as a host function: it runs on the driver's thread, where most driver calls are
/// refused.
///
/// # Panics
/// The driver refuses.
pub fn in_callback(stream: &Stream, work: impl FnOnce() + Send + 'static) {
    static NEXT: AtomicUsize = AtomicUsize::new(1);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    pending(|pending| pending.insert(number, Box::new(work)));
    // SAFETY: the stream lives; the function takes a number.
    ok(unsafe { driver().cuLaunchHostFunc(stream.as_raw(), Some(run), ptr::without_provenance_mut(number)) });
}

impl Gate {
    /// Closes a gate in `stream`: work enqueued from now on waits.
    #[must_use]
    pub fn close(stream: &Stream) -> Self {
        let state = Arc::new(State::default());
        let inside = Arc::clone(&state);
        in_callback(stream, move || {
            let open = inside.open.lock().unwrap_or_else(PoisonError::into_inner);
            let _ = inside.changed.wait_timeout_while(open, BOUND, |open| !*open);
        });
        Self(state)
    }

    /// Opens the gate.
    pub fn open(&self) {
        *self.0.open.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.changed.notify_all();
    }
}

impl Drop for Gate {
    fn drop(&mut self) {
        self.open();
    }
}
