//! Capturing the work of streams: beginning and ending a capture, and keeping what captured calls
//! use.
//!
//! A stream that is capturing runs nothing: its calls become nodes of a graph that runs later, any
//! number of times. A caller that enqueues therefore holds an [`Enqueue`] guard over the driver
//! call and, if the guard says so, gives the capture the owners of everything that the call uses.
//! cuda-graph builds its captures on this module.

mod active;
mod enqueue;
mod keeper;
mod mode;
mod records;
pub use records::*;

pub use active::{ActiveCapture, Captured};
pub use enqueue::Enqueue;
pub use keeper::Keeper;
pub use mode::CaptureMode;
