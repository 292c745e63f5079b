//! The memory that a graph brings by itself: allocation and free nodes, the order of its uses, and
//! what a launch leaves.

mod device_limits;
mod ends_before;
mod lifetimes;
mod outputs;
mod rules;

pub(crate) use outputs::Outlet;
pub use outputs::{OutputBuffer, Outputs};
