//! Driver calls that are held up, as a driver does while another call of the process waits for all
//! work.

use core::cell::Cell;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use cuda_sys::Call;

/// A test that forgot to open must still end.
const BOUND: Duration = Duration::from_secs(30);

struct State {
    call: Option<Call>,
    /// The number of calls that arrived.
    arrived: usize,
}

static STATE: Mutex<State> = Mutex::new(State { call: None, arrived: 0 });
static CHANGED: Condvar = Condvar::new();
/// The number of holds, so that an ordinary call takes no lock.
static HOLDS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    static IN_HOST_FUNCTION: Cell<bool> = const { Cell::new(false) };
}

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Holds up calls of one name until it is dropped; see [`hold`].
#[derive(Debug)]
#[must_use = "dropping it lets the calls go on"]
pub struct Hold(());

/// Holds up all calls of this name before they reach the driver, except those made in a host
/// function of [`in_callback`](crate::in_callback). One at a time in a process.
pub fn hold(call: Call) -> Hold {
    *state() = State { call: Some(call), arrived: 0 };
    HOLDS.fetch_add(1, Ordering::SeqCst);
    Hold(())
}

impl Hold {
    /// Whether a call has arrived.
    #[must_use]
    pub fn has_arrived(&self) -> bool {
        state().arrived > 0
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        state().call = None;
        HOLDS.fetch_sub(1, Ordering::SeqCst);
        CHANGED.notify_all();
    }
}

/// Runs `work` as a host function, whose calls are not held up.
pub(crate) fn in_host_function(work: impl FnOnce()) {
    let outer = IN_HOST_FUNCTION.replace(true);
    work();
    IN_HOST_FUNCTION.set(outer);
}

/// Returns when no hold stops the call.
pub(crate) fn pass(call: Call) {
    if HOLDS.load(Ordering::SeqCst) == 0 || IN_HOST_FUNCTION.try_with(Cell::get).unwrap_or(false) {
        return;
    }
    let mut state = state();
    if state.call == Some(call) {
        state.arrived += 1;
        let _ = CHANGED.wait_timeout_while(state, BOUND, |state| state.call == Some(call));
    }
}
