//! Reports on the standard error stream, for programs that open the driver by its path and cannot
//! ask: lost devices, refused calls, missing calls. `CUDA_SOFT_EXPLAIN` asks for them.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::LazyLock;

use cuda_sys::CUresult;

use crate::driver::abort::{self, AbortedCall};
use crate::driver::say;

thread_local! {
    /// The driver call that this thread is in.
    static CALL: Cell<Option<&'static str>> = const { Cell::new(None) };
    /// Why the call will fail, if its code does not say enough.
    static REASON: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Whether a variable is set to something other than 0.
fn is_set(variable: &str) -> bool {
    std::env::var_os(variable).is_some_and(|value| !value.is_empty() && value != "0")
}

fn is_wanted() -> bool {
    static WANTED: LazyLock<bool> = LazyLock::new(|| is_set("CUDA_SOFT_EXPLAIN"));
    *WANTED
}

/// The driver call that this thread is in.
pub(super) fn call() -> Option<&'static str> {
    CALL.get()
}

/// Runs a driver call and reports its failure.
pub(crate) fn during(name: &'static str, call: impl FnOnce() -> CUresult) -> CUresult {
    let outer = CALL.replace(Some(name));
    if is_wanted() {
        let _ = REASON.try_with(RefCell::take);
    }
    let answer = if abort::is_noted() { catch(call) } else { call() };
    CALL.set(outer);
    // Questions whether work is done are no failures.
    if !answer.is_success() && answer != CUresult::CUDA_ERROR_NOT_READY && is_wanted() {
        report(name, answer);
    }
    answer
}

/// Runs a call, which `abort` may end.
fn catch(call: impl FnOnce() -> CUresult) -> CUresult {
    match catch_unwind(AssertUnwindSafe(call)) {
        Ok(answer) => answer,
        Err(payload) if payload.is::<AbortedCall>() => CUresult::CUDA_ERROR_UNKNOWN,
        Err(payload) => resume_unwind(payload),
    }
}

fn report(name: &str, answer: CUresult) {
    // Destructors of the thread may call the driver after the end of its variables.
    let reason = REASON.try_with(RefCell::take).ok().flatten();
    match reason {
        Some(reason) => say(&format!("{name} returns {answer}: {reason}")),
        None => say(&format!("{name} returns {answer}")),
    }
}

/// Notes why the call will fail.
pub(crate) fn because(reason: impl FnOnce() -> String) {
    if is_wanted() {
        let _ = REASON.try_with(|noted| noted.replace(Some(reason())));
    }
}

/// Reports a lookup that succeeds with a null pointer.
pub(crate) fn found_nothing(what: impl FnOnce() -> String) {
    if is_wanted() {
        say(&format!("{} finds no {}", CALL.get().unwrap_or("a call"), what()));
    }
}

/// Reports an image that is rejected. Its call may succeed, and a later one fails.
pub(crate) fn image(code: CUresult, log: &str) {
    if is_wanted() {
        let call = CALL.get().unwrap_or("a call");
        say(&format!("{call} is given an image that is rejected with {code}: {log}"));
    }
}

/// Reports the loss of a device.
pub(crate) fn loss(device: i32, code: CUresult, sentence: &str) {
    if is_wanted() {
        say(&format!("device {device} is lost with {code}: {sentence}"));
    }
}
