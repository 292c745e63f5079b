//! Capture: graphs made from the work that is enqueued on streams.
//!
//! A stream that captures runs nothing. Its calls become nodes of a graph, in the order that
//! streams and events give them, and everything that the calls use stays alive with the graph,
//! whichever clone of the stream, thread or crate made the call.
//!
//! ```no_run
//! # use cuda_graph::{Result, StreamExt};
//! # use cuda_handles::{Buffer, Stream, capture::CaptureMode};
//! # fn example(stream: &Stream, x: &Buffer<f32>, y: &Buffer<f32>) -> Result<()> {
//! let graph = stream.capture(CaptureMode::ThreadLocal, |capture| {
//!     capture.fill(x, 1.0)?;
//!     capture.copy(x, y)
//! })?;
//! graph.instantiate()?.launch(stream)?;
//! # Ok(())
//! # }
//! ```
//!
//! # Builders
//!
//! [`StreamExt::capture`] is the short form: it ends the capture whatever the closure does. A
//! [`GraphBuilder`] is the same as a value. Its type has a kind and a state, and a method exists
//! only where it makes sense:
//!
//! | | [`NotBegun`] | [`Capturing`] | [`Ended`] |
//! | --- | --- | --- | --- |
//! | [`Primary`] | [`mode`], [`begin`], [`begin_on_any_thread`] | work, [`split`], [`join`], bodies, [`end`] | [`graph`], [`instantiate`] |
//! | [`AnyThread`] | | as `Primary`; the builder is `Send` | as `Primary` |
//! | [`Fork`] | | work, [`split`], [`join`], bodies | |
//! | [`Body`] | | work, [`split`], [`join`], bodies, [`end`] | [`graph`] |
//!
//! Builders of bodies and their forks capture no host functions, since bodies hold none.
//!
//! [`mode`]: GraphBuilder::mode
//! [`begin`]: GraphBuilder::begin
//! [`begin_on_any_thread`]: GraphBuilder::begin_on_any_thread
//! [`split`]: GraphBuilder::split
//! [`join`]: GraphBuilder::join
//! [`end`]: GraphBuilder::end
//! [`graph`]: GraphBuilder::graph
//! [`instantiate`]: GraphBuilder::instantiate
//!
//! # How it works
//!
//! 1. The driver captures into a **fresh graph** only, never into a graph that exists: a failed
//!    capture destroys the graph that it captures into, and drivers crash over bodies.
//! 2. A session (`session.rs`) is one capture of the driver, from begin to end. The primary or body
//!    builder and its forks share it. Dropping that builder, ending it and the end of the capture
//!    around it take the capture out of the session, so it ends exactly once. Nothing depends on
//!    the drop of a builder: one that is forgotten is ended by the capture around it.
//! 3. Nodes that no call on a stream makes (conditional nodes, child graphs) are added to the
//!    **target**: a graph of the session's own, or the graph that the capture is for. A host
//!    function marks their place among the captured nodes (`placed.rs`).
//! 4. The end adopts the driver's graph (`adopted.rs`): it reads each node once, and gives it the
//!    owners of the record that describes the same call. Without a target that is the result, and
//!    the nodes are read when they are first needed (`unread.rs`); with a target, they are added to
//!    it one by one (`copied.rs`), all or none.
//! 5. The record of a call with graph parameters carries their use, and its node gets that as well
//!    (`params.rs`).

mod adopted;
mod builder;
mod conditional;
mod copied;
mod early_params;
mod foreign;
mod fork;
#[cfg(doctest)]
#[doc = include_str!("illegal.md")]
mod illegal {}
mod kind;
mod params;
mod placed;
mod scope;
mod session;
mod unread;
mod work;

pub use builder::GraphBuilder;
pub use foreign::ForeignNode;
pub use kind::{AnyThread, Body, Capturing, Ended, Fork, Kind, NotBegun, Origin, Primary, State};
pub use params::{CaptureConfig, CaptureMemory};
pub use scope::StreamExt;
