//! Waiting for something that another thread does.

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
