//! The raw calls of the driver, of the software driver as of a GPU's: what the library above is
//! built on.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // This is how a test fails.
#![allow(clippy::undocumented_unsafe_blocks)] // Every call is given what lives in the test that makes it.

mod access_windows;
mod addresses;
mod bodies;
#[path = "../../../crates/soft/tests/driver/calls.rs"]
mod calls;
mod common;
mod conditionals;
mod context_flags;
mod destroyed_executables;
mod destroyed_streams;
mod elapsed;
mod embedded_clones;
mod embedded_memory;
mod freed_memory;
mod graph_memory;
mod lookups;
mod loops;
mod memory_nodes;
mod nesting;
mod ptx_images;
mod registered;
mod shared_memory;
mod signs;
mod single_calls;
mod table;
mod updates;
mod variables;
