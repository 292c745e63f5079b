//! Memory nodes, and the memory that graphs map.

mod addresses;
mod embedded;
mod freed;
pub(crate) mod nodes;
mod shared;
mod usage;
