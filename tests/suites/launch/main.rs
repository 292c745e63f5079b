//! cuda-launch: configurations, parameter holders and launches.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // This is how a test fails.

mod across;
mod arguments;
mod attributes;
mod compiled;
mod conditional;
mod cost;
mod liars;
mod limits;
mod occupancy;
mod order;
mod owned;
mod recording;
mod results;
mod six_states;
mod sweep;
mod typed;
mod windows;
mod wrong_object;
