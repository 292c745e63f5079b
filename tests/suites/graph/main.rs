//! cuda-graph: drawing graphs, running them, and what they keep alive.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // This is how a test fails.

mod capture;
mod cost;
mod drawn;
mod edges;
mod exec;
mod faults;
mod flat;
mod lifetimes;
mod lost;
mod model;
mod nodes;
mod picture;
mod read_back;
mod six_states;
mod sweep;
