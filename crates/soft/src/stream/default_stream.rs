//! The stream that the null handle means: the legacy one, or in variants of the calls the thread's
//! own.

use std::cell::Cell;

thread_local! {
    static OWN: Cell<bool> = const { Cell::new(false) };
}

/// Whether the null stream is the thread's own.
pub(super) fn is_own() -> bool {
    OWN.get()
}

/// Runs a call for which the null stream is the thread's own.
pub(crate) fn with_own<R>(call: impl FnOnce() -> R) -> R {
    with(true, call)
}

/// Runs a callback, in which the null stream is the legacy one until a call says otherwise.
pub(super) fn with_legacy<R>(call: impl FnOnce() -> R) -> R {
    with(false, call)
}

fn with<R>(own: bool, call: impl FnOnce() -> R) -> R {
    let before = OWN.replace(own);
    let answer = call();
    OWN.set(before);
    answer
}
