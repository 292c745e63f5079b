//! cuda-graph: drawing graphs, running them, and what they keep alive.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // This is how a test fails.

mod adopted;
mod all_or_nothing;
mod batch;
mod callbacks;
mod capture;
mod children;
mod clones;
mod condition_values;
mod conditionals;
mod copies;
mod cost;
mod drawn;
mod edges;
mod event_nodes;
mod exec;
mod faults;
mod fills;
mod flat;
mod half_done;
mod host_functions;
mod insertion;
mod instantiate;
mod interop;
mod kernel_nodes;
mod lifetimes;
mod loops;
mod lost;
mod memory;
mod model;
mod neighbours;
mod nested_conditions;
mod nesting;
mod nodes;
mod outcome;
mod picture;
mod programs;
mod read_back;
mod removal;
mod scale;
#[cfg(unix)]
mod semaphores;
mod six_states;
mod sweep;
mod taken_back;
mod vanished;
