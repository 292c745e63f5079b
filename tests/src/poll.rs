//! Waiting for another thread, with a bound.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// The bound of a test for everything that comes soon.
pub const SOON: Duration = Duration::from_secs(20);

/// Polls `condition` until it holds or `bound` has passed. Returns whether it held.
#[must_use]
pub fn until(bound: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + bound;
    loop {
        if condition() {
            return true;
        }
        if Instant::now() >= end {
            return false;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// The result of `work` on a thread of its own.
///
/// # Panics
/// `work` does not end within [`SOON`].
#[track_caller]
pub fn ends_soon<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, receiver) = channel();
    std::thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(SOON).expect("it ends")
}
