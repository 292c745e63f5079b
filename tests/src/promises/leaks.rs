//! The promise that a section leaves nothing behind.

use cuda_handles::reaper;

use cuda_sys::CUresult;

use crate::faults::inject::fail_any;
use crate::poll::{SOON, until};
use crate::record::live::{ends_something, live};

/// Waits until the reaper has finished.
///
/// # Panics
/// It does not finish.
#[track_caller]
pub fn settle() {
    assert!(settles(), "the reaper still has {} things waiting", reaper::pending());
}

/// Waits until the reaper has finished, within a bounded time. Returns whether it has.
pub(super) fn settles() -> bool {
    until(SOON, || {
        reaper::drain();
        reaper::pending() == 0
    })
}

/// Runs `section` and asserts that every object it made is gone within a bounded time.
///
/// # Panics
/// An object stayed, or more were destroyed than made; the message names the kinds.
#[track_caller]
pub fn no_leaks<R>(section: impl FnOnce() -> R) -> R {
    settle();
    let before = live();
    let result = section();
    let back = until(SOON, || {
        reaper::drain();
        live() == before
    });
    assert!(back, "left behind: {}; waiting at the reaper: {}", live().since(&before), reaper::pending());
    result
}

/// Runs `operation` again and again, each time with another of its driver calls failing, until no
/// call is left; returns the number of calls. Each failure must come back as an error, or be
/// harmless, and leave nothing behind. Calls that end an object are skipped: if they fail, the
/// object stays.
///
/// # Panics
/// A failure left something behind.
#[track_caller]
pub fn every_failure<T, E: core::fmt::Display>(mut operation: impl FnMut() -> Result<T, E>) -> u64 {
    for nth in 1.. {
        // Each time: what one attempt leaves in a cache is freed with the objects of the next.
        settle();
        let before = live();
        let injection = fail_any(nth, CUresult::CUDA_ERROR_OPERATING_SYSTEM);
        let outcome = operation();
        let hit = injection.hit_call();
        drop(injection);
        let Some(call) = hit else {
            let error = outcome.err().map(|error| error.to_string());
            assert_eq!(error, None, "without a failure the operation works");
            return nth - 1;
        };
        let text = outcome.map(drop).map_err(|error| error.to_string());
        if let Err(text) = &text {
            assert!(
                text.contains("CUDA_ERROR_OPERATING_SYSTEM"),
                "the error of {} says: {text}",
                call.name()
            );
        }
        if ends_something(call) {
            continue;
        }
        let back = until(SOON, || {
            reaper::drain();
            // A cache may have given up a block meanwhile, so less is fine.
            !live().is_more_than(&before)
        });
        assert!(
            back,
            "after a failure of {} ({text:?}), left behind: {}",
            call.name(),
            live().since(&before)
        );
    }
    0
}
