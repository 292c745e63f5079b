//! The memory that a graph brings by itself: allocation and free nodes, the order of its uses, and
//! what a launch leaves.

mod device_limits;
mod lives;
mod options;
mod outputs;
mod rules;

pub(crate) use crate::state::memory_nodes::{Ledger, Life, MemoryNode};
pub use lives::{Disorder, MemoryOrder};
pub use options::{AllocOptions, AllocPlace};
pub(crate) use outputs::Outlet;
pub use outputs::{OutputBuffer, Outputs};
