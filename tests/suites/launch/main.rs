//! cuda-launch: configurations, parameter holders and launches.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // This is how a test fails.

mod arguments;
mod captures;
mod configurations;
mod costs;
mod kernels;
mod messages;
mod ordering;
mod results;
mod rollback;
mod states;
