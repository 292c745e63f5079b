//! cuda-sys: finding, checking, wrapping and watching a driver.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // This is how a test fails.

mod fake_driver;
mod loading;
mod missing_calls;
mod result_codes;
mod table;
mod version;
mod watching;
