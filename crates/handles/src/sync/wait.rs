//! Waiting for another thread by trying again and again, for a bounded time.

use core::time::Duration;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

/// How long an attempt is repeated where a wait is not allowed.
const MOMENT: Duration = Duration::from_millis(5);

/// In microseconds.
static PATIENCE: AtomicU64 = AtomicU64::new(30_000_000);

/// How long a call waits for what another call or guard holds before it fails with
/// [`Error::Busy`](crate::Error::Busy). Default: 30 seconds.
#[must_use]
pub fn patience() -> Duration {
    Duration::from_micros(PATIENCE.load(Ordering::Relaxed))
}

/// Sets how long calls of this process wait for what another call or guard holds before they fail
/// with [`Error::Busy`](crate::Error::Busy), to the microsecond. Most locks are released within
/// microseconds, but calls named `blocking` keep their stream from entering a capture as long as
/// they wait. Calls named `blocking` and [`reaper::drain`](crate::reaper::drain) wait for the
/// device as long as it takes, whatever is set here.
///
/// ```
/// cuda_handles::set_patience(std::time::Duration::from_secs(5));
/// assert_eq!(cuda_handles::patience().as_secs(), 5);
/// ```
pub fn set_patience(patience: Duration) {
    let micros = u64::try_from(patience.as_micros()).unwrap_or(u64::MAX);
    PATIENCE.store(micros, Ordering::Relaxed);
}

/// Repeats an attempt until it succeeds, but no longer than `bound`, and without keeping a
/// processor busy for long.
#[cold]
pub(crate) fn for_at_most<R>(bound: Duration, mut attempt: impl FnMut() -> Option<R>) -> Option<R> {
    let (mut tries, begin) = (0, Instant::now());
    loop {
        let result = attempt();
        if result.is_some() || begin.elapsed() >= bound {
            return result;
        }
        pause(&mut tries);
    }
}

/// Repeats an attempt for a moment, where a wait is not allowed.
pub(crate) fn for_a_moment<R>(attempt: impl FnMut() -> Option<R>) -> Option<R> {
    for_at_most(MOMENT, attempt)
}

fn pause(tries: &mut u32) {
    *tries = tries.saturating_add(1);
    if *tries < 100 {
        std::thread::yield_now();
    } else {
        std::thread::sleep(Duration::from_micros(50));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_with_success_or_the_bound() {
        let mut tries = 0;
        let mut third = || {
            tries += 1;
            (tries % 3 == 0).then_some(tries)
        };
        assert_eq!(for_at_most(Duration::from_secs(60), &mut third), Some(3));
        let begin = Instant::now();
        assert_eq!(for_at_most(Duration::from_millis(20), || None::<()>), None);
        assert!(begin.elapsed() >= Duration::from_millis(20));
    }
}
