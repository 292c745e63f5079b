//! Capturing the work of streams, the low-level part: beginning, ending, and keeping what captured
//! calls use.
//!
//! A stream that is capturing enqueues nothing: its calls become nodes of a graph that runs later,
//! any number of times. So whoever enqueues holds an [`Enqueue`] over the driver call and, if that
//! says so, gives the capture the owners of everything the call uses. cuda-graph builds its
//! captures on this; other code has no need for it.

mod active;
mod enqueue;
mod keeper;
mod mode;

pub use active::{ActiveCapture, Captured};
pub use enqueue::Enqueue;
pub use keeper::Keeper;
pub use mode::CaptureMode;
