//! Panics of host functions, and the hook that reports them.

use core::any::Any;
use core::fmt;

use crate::sync::{Lock, Rank, is_forked, outside, panics};

static HOOK: Lock<Option<fn(&CallbackPanic)>> = Lock::new(Rank::CallbackHook, None);

/// A panic in a closure that a stream or a graph called, or a closure that was not called.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct CallbackPanic {
    /// The name of the function that contains the closure.
    pub callback: &'static str,
    /// The message of the panic, or a note that its payload is not text. If the closure was not
    /// called, the reason.
    pub message: String,
    /// Whether the closure was called. A closure with memory
    /// ([`Stream::host_with`](crate::Stream::host_with)) is not called while other code views that
    /// memory.
    pub was_called: bool,
}

impl fmt::Display for CallbackPanic {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = if self.was_called { "panicked" } else { "was not called" };
        write!(formatter, "the host function `{}` {what}: {}", self.callback, self.message)
    }
}

impl core::error::Error for CallbackPanic {}

/// Sets the hook for panics in closures that streams ([`Stream::host`](crate::Stream::host)) and
/// graphs call, and for closures that were not called because other code viewed their memory. It
/// replaces the previous hook. It runs on the driver's thread, where no driver call is permitted; a
/// panic in the hook is caught and ignored. In a forked child, where nothing is called, this does
/// nothing.
///
/// With or without a hook, Rust has reported the panic as any other (`std::panic::set_hook`), and
/// the stream or graph goes on.
pub fn set_panic_hook(hook: fn(&CallbackPanic)) {
    // In a forked child the lock may be held forever.
    if is_forked() {
        return;
    }
    *HOOK.lock() = Some(hook);
}

/// Reports a panic to the hook.
pub(super) fn panicked(callback: &'static str, payload: &(dyn Any + Send)) {
    report(CallbackPanic { callback, message: panics::message(payload).into(), was_called: true });
}

/// Reports a closure that was not called to the hook.
pub(super) fn not_called(callback: &'static str) {
    let message = "other code has a view of memory that it was given".to_owned();
    report(CallbackPanic { callback, message, was_called: false });
}

fn report(panic: CallbackPanic) {
    let hook = *HOOK.lock();
    if let Some(hook) = hook {
        panics::contain(|| outside(|| hook(&panic)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_told() {
        let told = |was_called| CallbackPanic { callback: "f", message: "m".into(), was_called }.to_string();
        assert_eq!(told(true), "the host function `f` panicked: m");
        assert_eq!(told(false), "the host function `f` was not called: m");
    }
}
