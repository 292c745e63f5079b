//! Configurations: what a device allows, attributes, occupancy.

mod access_windows;
mod attributes;
mod limits;
mod occupancy;
