//! Capturing the work of streams: beginning and ending a capture, and recording what captured calls
//! use.
//!
//! A stream that is capturing runs nothing: its calls become nodes of a graph that runs later, any
//! number of times. A caller that enqueues therefore holds an [`Enqueue`] guard over the driver
//! call. If the guard says that the call is captured, the capture gets a [`Record`] of it, with the
//! owners of everything that the call uses. cuda-graph builds its captures on this module.
//!
//! # Memory in a capture
//!
//! Captured calls wait for no memory: the graph's first launch waits for the homes of what is not
//! settled then.
//!
//! [`Stream::zeros`](crate::Stream::zeros), [`alloc`](crate::Stream::alloc),
//! [`upload`](crate::Stream::upload) and their like allocate ordinary pooled memory at once, on a
//! stream of this library, and the capture and its graph keep it. What fills it is captured, and so
//! happens at each launch. The buffer is valid before, during and after the capture, and its drop
//! calls no driver as long as the capture or the graph keeps the memory.
//!
//! **Temporaries cost their peak, not their sum.** Memory is given to a later allocation on the
//! same stream of the capture, the smallest that is large enough, once
//!
//! - every holder is gone: buffers, slices and views of it, and owners in closures or given to
//!   [`Enqueue::keep`];
//! - and only captured calls on that stream have used it.
//!
//! So do not assume that
//!
//! - an address means the same memory after its buffer was dropped;
//! - a buffer holds at a launch what was written to it before that launch: earlier nodes of the
//!   graph may have memory in common with it. What a graph reads without writing it first is
//!   allocated before the capture;
//! - nodes are ordered otherwise than by the stream, if other code has changed which nodes the
//!   stream's next one depends on (`cuStreamUpdateCaptureDependencies`). Hold the buffers then.
//!
//! **The memory is one for everything made of the graph.** Executables, clones and embedded copies
//! of a captured graph all use it, as they use any buffer of its nodes. Order their launches, by
//! one stream or by events, or capture once for each that runs at the same time.
//!
//! [`Scratch`] is for several captures that take their memory from one place.
//!
//! In a capture that other code began, allocations are refused.

mod active;
mod book;
mod captured_call;
mod captured_memory;
mod discard;
mod enqueue;
mod first_use;
mod info;
mod kept_memory;
mod log;
mod mode;
mod options;
mod records;
mod scratch;
mod scratch_home;
mod scratch_runs;

pub use crate::stream::Work;
pub use active::{ActiveCapture, Captured};
pub use book::Recorder;
#[doc(hidden)]
pub use book::Tag;
pub use enqueue::Enqueue;
pub use info::CaptureInfo;
pub use kept_memory::KeptMemory;
pub use mode::CaptureMode;
pub use options::CaptureOptions;
pub use records::{Record, Records};
pub use scratch::Scratch;
pub use scratch_runs::ScratchTurn;
