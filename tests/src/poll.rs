//! Waiting for another thread, with a bound.

use std::sync::LazyLock;
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

/// The bound of a test for everything that comes soon.
pub const SOON: Duration = Duration::from_secs(20);

/// Tools that watch every access make a test slower so many times: `CUDA_TEST_PATIENCE`.
static PATIENCE: LazyLock<u32> = LazyLock::new(|| {
    let times = std::env::var("CUDA_TEST_PATIENCE").ok().and_then(|times| times.parse().ok());
    times.unwrap_or(1).max(1)
});

/// How long to wait for what must come. Shorter bounds are for what must not.
fn patient(bound: Duration) -> Duration {
    if bound >= SOON { bound * *PATIENCE } else { bound }
}

/// Polls `condition` until it holds or `bound` has passed. Returns whether it held.
#[must_use]
pub fn until(bound: Duration, mut condition: impl FnMut() -> bool) -> bool {
    let end = Instant::now() + patient(bound);
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
    receiver.recv_timeout(patient(SOON)).expect("it ends")
}
