//! cuda-graph: building graphs, running them, and what they keep alive.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // This is how a test fails.

mod cache;
mod capture;
mod check;
mod collectives;
mod common;
mod conditions;
mod costs;
mod dataflow;
mod devices;
mod edges;
mod exec;
mod fuzzed;
mod hierarchy;
mod interop;
mod lifetimes;
mod loops;
mod matrix;
mod memory;
mod messages;
mod nodes;
mod pictures;
mod programs;
mod rollback;
mod shape;
mod states;
mod threads;
mod update;
