//! cuda-handles: owners of driver objects, their look-up, their memory and their drops.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // This is how a test fails.

mod across;
mod addresses;
mod capture;
mod capture_state;
mod context;
mod copies;
mod default_streams;
mod device;
mod drops;
mod events;
mod faults;
mod host;
mod host_functions;
mod ipc;
mod kernels;
mod library;
mod lost;
mod memory;
mod panicking_drops;
mod patience;
mod pool_drops;
mod pools;
mod process;
mod reaper;
mod registry;
mod six_states;
mod streams;
mod sweep;
mod unknown_captures;
mod user_objects;
mod waits;
