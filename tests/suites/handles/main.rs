//! cuda-handles: owners of driver objects, their look-up, their memory and their drops.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // This is how a test fails.

mod capture;
mod context;
mod device;
mod drops;
mod events;
mod faults;
mod library;
mod lost;
mod memory;
mod process;
mod registry;
mod streams;
mod user_objects;
