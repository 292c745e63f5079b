//! Updates: executables changed without a new one.

mod captured_params;
mod nodes;
mod params;
