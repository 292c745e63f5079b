//! Capturing the work of streams: beginning and ending a capture, and keeping what captured calls
//! use.
//!
//! A stream that is capturing runs nothing: its calls become nodes of a graph that runs later, any
//! number of times. A caller that enqueues therefore holds an [`Enqueue`] guard over the driver
//! call and, if the guard says so, gives the capture the owners of everything that the call uses.
//! cuda-graph builds its captures on this module.

mod active;
mod captured_memory;
mod enqueue;
mod first_use;
mod keeper;
mod mode;
mod options;
mod scratch;
mod scratch_home;
mod scratch_runs;

pub use active::{ActiveCapture, Captured};
pub use enqueue::Enqueue;
pub use keeper::Keeper;
pub use mode::CaptureMode;
pub use options::CaptureOptions;
pub use scratch::Scratch;
pub use scratch_runs::ScratchTurn;
