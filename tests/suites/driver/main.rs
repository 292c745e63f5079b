//! The driver's own answers to raw calls, which the libraries rely on: the same on the software
//! driver and on a GPU.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // This is how a test fails.
#![allow(clippy::undocumented_unsafe_blocks)] // Every call is given what lives in the test that makes it.

mod access_windows;
#[path = "../../../crates/soft/tests/driver/calls.rs"]
mod calls;
mod captured_graphs;
mod captures;
mod common;
mod conditions;
mod context_events;
mod context_flags;
mod context_limits;
mod copies;
mod core_dumps;
mod devices;
mod graph_memory;
mod hierarchy;
mod instantiation;
mod lifetimes;
mod lookups;
mod lost_devices;
mod managed_memory;
mod modules;
mod pool_memory;
mod registered_memory;
mod single_calls;
mod streams;
mod textures;
mod updates;
