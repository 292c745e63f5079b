//! Memory that a graph allocates by itself: the order of its uses, rules about it, and what
//! launches leave.
//!
//! | File | Contents |
//! | --- | --- |
//! | [`rules`] | what graphs with memory nodes refuse |
//! | [`lifetimes`] | whether every use lies between allocation and free |
//! | [`ends_before`](mod@ends_before) | which nodes end before others start |
//! | [`output_memory`], [`outputs`] | the memory that launches leave |
//! | [`device_limits`] | allocations larger than the device |
//!
//! The nodes and their allocations are recorded in [`memory_nodes`](crate::state::memory_nodes).

mod device_limits;
mod ends_before;
mod lifetimes;
mod output_memory;
mod outputs;
mod rules;

pub(crate) use output_memory::OutputMemory;
pub use outputs::{OutputBuffer, Outputs};
