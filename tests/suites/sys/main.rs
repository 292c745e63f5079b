//! cuda-sys: finding, checking, wrapping and watching a driver.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // This is how a test fails.

mod fake;
mod load;
mod missing;
mod status;
mod table;
mod version;
mod watching;
