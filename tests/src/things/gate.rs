//! A gate in a stream: work enqueued behind it stays in flight for as long as a test wants.

use core::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};
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

unsafe extern "C" fn run(work: *mut c_void) {
    // SAFETY: `in_callback` made the pointer from a box for the one call of this function.
    let work = unsafe { Box::from_raw(work.cast::<Work>()) };
    if catch_unwind(AssertUnwindSafe(|| in_host_function(*work))).is_err() {
        std::process::abort();
    }
}

/// Enqueues `work` as a host function: it runs on the driver's thread, where most driver calls are
/// refused.
///
/// # Panics
/// The driver refuses.
pub fn in_callback(stream: &Stream, work: impl FnOnce() + Send + 'static) {
    let work: Box<Work> = Box::new(Box::new(work));
    // SAFETY: the stream lives; the function takes the box that goes with it.
    ok(unsafe { driver().cuLaunchHostFunc(stream.as_raw(), Some(run), Box::into_raw(work).cast()) });
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
