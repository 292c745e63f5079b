//! Everything lives as long as somebody may use it, and a drop never waits.

mod across_devices;
mod drops;
mod failure_hooks;
mod panicking_drops;
mod pools;
mod process_end_and_fork;
mod reaper;
mod user_objects;
