//! Ends of the process where the real driver crashes or hangs.

use crate::driver;

/// Ends the process where the real driver would crash. No library may ever get here.
pub(crate) fn crash(what: &str) -> ! {
    driver::say(&format!("the real driver crashes here: {what}"));
    std::process::abort()
}

/// Ends the process where the real driver never returns.
pub(crate) fn hang(what: &str) -> ! {
    driver::say(&format!("the real driver hangs here: {what}"));
    std::process::abort()
}
