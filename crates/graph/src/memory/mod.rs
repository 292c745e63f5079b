//! The memory that a graph brings by itself: allocation and free nodes, the order of its uses, and
//! what a launch leaves.

mod ledger;
mod lives;
mod options;
mod order;
mod outputs;
mod own;
mod room;

pub(crate) use ledger::{Ledger, Life, Noted};
pub use lives::{Disorder, MemoryOrder};
pub use options::{AllocOptions, AllocPlace};
pub(crate) use outputs::Outlet;
pub use outputs::{OutputBuffer, Outputs};
