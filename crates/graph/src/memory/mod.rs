//! The memory that a graph brings by itself: allocation and free nodes, the order of its uses, and
//! what a launch leaves.

mod device_limits;
mod ends_before;
mod lifetimes;
mod output_memory;
mod outputs;
mod rules;

pub(crate) use output_memory::OutputMemory;
pub use outputs::{OutputBuffer, Outputs};
