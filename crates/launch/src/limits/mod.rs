//! Checks of a launch configuration against driver, device and kernel, and occupancy queries.

mod attributes;
mod extents;
pub(crate) mod occupancy;
