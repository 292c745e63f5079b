//! Updates: executables changed without a new one.

mod nodes;
mod params;
