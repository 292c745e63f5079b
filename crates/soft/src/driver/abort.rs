//! Ends of the process where the real driver crashes or hangs.
//!
//! With `CUDA_SOFT_ABORT=note` the process goes on after the message: the call that would crash or
//! hang returns `CUDA_ERROR_UNKNOWN`. Threads of the driver itself end the process all the same.

use std::panic::resume_unwind;
use std::sync::LazyLock;

use crate::driver::{self, explain};

/// The payload of the panic that ends a call instead of the process.
pub(super) struct AbortedCall;

/// Whether the environment asks to go on after the message.
pub(super) fn is_noted() -> bool {
    static NOTED: LazyLock<bool> =
        LazyLock::new(|| std::env::var_os("CUDA_SOFT_ABORT").is_some_and(|value| value == "note"));
    *NOTED
}

/// Ends the process where the real driver would crash. No library may ever get here.
pub(crate) fn crash(what: &str) -> ! {
    end("crashes", what)
}

/// Ends the process where the real driver never returns.
pub(crate) fn hang(what: &str) -> ! {
    end("hangs", what)
}

fn end(does: &str, what: &str) -> ! {
    let call = explain::call();
    let name = call.map(|name| format!("{name}: ")).unwrap_or_default();
    driver::say(&format!("the real driver {does} here: {name}{what}"));
    if is_noted() && call.is_some() {
        // The locks that it holds are released, and none of them is poisoned.
        resume_unwind(Box::new(AbortedCall));
    }
    std::process::abort()
}
