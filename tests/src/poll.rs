//! Waiting for something that another thread does.

use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// How long a test waits for what must come soon.
pub const SOON: Duration = Duration::from_secs(20);

/// Looks at `condition` until it holds or `bound` has passed; says whether it held.
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
