//! Failures of drops, and the hook that they are reported to.

use core::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::error::Error;
use crate::sync::{Lock, Rank, outside, panics, process};

static HOOK: Lock<Option<fn(&DropFailure)>> = Lock::new(Rank::DropHook, None);

/// A failure in the drop of an owner.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct DropFailure {
    /// The action that failed, such as `freeing a buffer`.
    pub what: &'static str,
    /// The cause of the failure.
    pub cause: DropCause,
}

/// Why a drop failed.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DropCause {
    /// The driver refused the call, and the object leaks.
    Refused(Error),
    /// The destructor of a value that was given to this library panicked with this message. Nothing
    /// else is affected.
    Panicked(Box<str>),
}

impl fmt::Display for DropFailure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.cause {
            DropCause::Refused(error) => write!(formatter, "{} failed in a drop: {error}", self.what),
            DropCause::Panicked(message) => write!(formatter, "{} panicked: {message}", self.what),
        }
    }
}

impl core::error::Error for DropFailure {
    fn source(&self) -> Option<&(dyn core::error::Error + 'static)> {
        match &self.cause {
            DropCause::Refused(error) => Some(error),
            DropCause::Panicked(_) => None,
        }
    }
}

/// Reports failures of drops to `hook`, which replaces the previous hook. The hook runs on the
/// thread of the drop, including the reaper's and the driver's, also while that thread unwinds. A
/// panic in the hook is caught and ignored. The hook may use this library, but the reaper frees
/// nothing while it runs: return soon, and wait for no other thread. Without a hook, failures are
/// silent; with the feature `tracing` they are warnings of the target `cuda_handles::reaper`.
///
/// With or without a hook, Rust has reported the panic as any other (`std::panic::set_hook`).
///
/// In a forked child it does nothing, as drops do nothing there.
pub fn set_hook(hook: fn(&DropFailure)) {
    if process::is_forked() {
        return;
    }
    *HOOK.lock() = Some(hook);
}

/// Reports a refusal in a drop. A lost context is no failure: everything in it is gone.
pub(crate) fn report(what: &'static str, error: Error) {
    if !matches!(error, Error::ContextLost(_) | Error::Forked) {
        tell(DropFailure { what, cause: DropCause::Refused(error) });
    }
}

/// Drops a value of other code. A panic ends only that drop and is reported.
pub(crate) fn dropping(what: &'static str, run: impl FnOnce()) {
    if let Err(payload) = catch_unwind(AssertUnwindSafe(run)) {
        let message = panics::message(&*payload);
        panics::contain(|| drop(payload));
        tell(DropFailure { what, cause: DropCause::Panicked(message) });
    }
}

fn tell(failure: DropFailure) {
    if !process::is_running() {
        return;
    }
    let hook = *HOOK.lock();
    panics::contain(|| outside(|| hook.unwrap_or(default_hook)(&failure)));
}

/// The hook where none is set.
#[cfg(feature = "tracing")]
fn default_hook(failure: &DropFailure) {
    let what = failure.what;
    match &failure.cause {
        DropCause::Refused(error) => {
            tracing::warn!(target: "cuda_handles::reaper", what, error = %error, "a drop failed")
        }
        DropCause::Panicked(message) => {
            tracing::warn!(target: "cuda_handles::reaper", what, panic = %message, "a destructor panicked");
        }
    }
}

/// The hook where none is set.
#[cfg(not(feature = "tracing"))]
fn default_hook(_failure: &DropFailure) {}
