//! Capturing the work of streams: beginning and ending a capture, and recording what captured calls
//! use.
//!
//! A stream that is capturing runs nothing: its calls become nodes of a graph that runs later, any
//! number of times. A caller that enqueues therefore holds an [`Enqueue`] guard over the driver
//! call. If the guard says that the call is captured, the capture gets a [`Record`] of it, with the
//! owners of everything that the call uses. cuda-graph builds its captures on this module.

mod active;
mod book;
mod captured_call;
mod discard;
mod enqueue;
mod info;
mod mode;
mod records;

pub use crate::stream::Work;
pub use active::{ActiveCapture, Captured};
pub use book::Recorder;
pub use enqueue::Enqueue;
pub use info::CaptureInfo;
pub use mode::CaptureMode;
pub use records::{Record, Records};
