//! cuda-handles: owners of driver objects, their look-up, their memory and their drops.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // This is how a test fails.

mod capture;
mod context;
mod devices;
mod interop;
mod lifetimes;
mod memory;
mod messages;
mod modules;
mod rollback;
mod states;
mod streams;
mod threads;
