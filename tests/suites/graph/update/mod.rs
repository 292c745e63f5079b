//! Updates: executables changed without a new one.

mod captured_params;
mod event_params;
mod loop_params;
mod nodes;
mod params;
