//! Captures in a scope: a closure, and whatever happens in it the capture ends.

use cuda_handles::Stream;
use cuda_handles::capture::CaptureOptions;

use crate::build::frontier::Frontier;
use crate::capture::builder::GraphBuilder;
use crate::capture::copied::Position;
use crate::capture::kind::{Capturing, Kind, NotBegun, Primary};
use crate::capture::session::Session;
use crate::error::{Error, Result};
use crate::graph::Graph;

/// Methods of this crate on a [`Stream`].
pub trait StreamExt {
    /// Captures the work that a closure enqueues, and returns its graph. The closure gets a
    /// [`GraphBuilder`]; what it enqueues on the stream itself, on clones of it or on streams that
    /// wait for it, is captured, too.
    ///
    /// ```no_run
    /// # use cuda_graph::{Result, StreamExt};
    /// # use cuda_handles::{Buffer, Stream, capture::CaptureMode};
    /// # fn step(stream: &Stream, x: &Buffer<f32>) -> Result<()> { Ok(stream.fill(x, 1.0)?) }
    /// # fn example(stream: &Stream, x: &Buffer<f32>) -> Result<()> {
    /// let graph = stream.capture(CaptureMode::ThreadLocal, |capture| step(capture.stream(), x))?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// The first argument is a [`CaptureMode`](cuda_handles::capture::CaptureMode), or
    /// [`CaptureOptions`] with memory that captures share.
    ///
    /// The capture ends when the closure returns, fails or panics, and the stream works as before.
    /// Forks that were not joined are joined at the end.
    ///
    /// Calls `cuStreamBeginCapture` (CUDA 10.1) and `cuStreamEndCapture` (CUDA 10.0), and asks for
    /// the type of each node. The rest about the nodes is queried once it is needed.
    ///
    /// # Errors
    /// The closure's error, or the errors of [`GraphBuilder::begin`] and [`GraphBuilder::end`].
    #[doc(alias = "cuStreamBeginCapture")]
    #[doc(alias = "cuStreamEndCapture")]
    #[doc(alias = "cudaStreamBeginCapture")]
    #[doc(alias = "cudaStreamEndCapture")]
    fn capture<R>(
        &self,
        options: impl Into<CaptureOptions>,
        work: impl FnOnce(&GraphBuilder<Primary, Capturing>) -> Result<R>,
    ) -> Result<Graph>;

    /// [`capture`](Self::capture) for a closure with errors and a result of its own.
    ///
    /// # Errors
    /// As for [`capture`](Self::capture).
    #[doc(alias = "cuStreamBeginCapture")]
    #[doc(alias = "cudaStreamBeginCapture")]
    fn try_capture<R, E: From<Error>>(
        &self,
        options: impl Into<CaptureOptions>,
        work: impl FnOnce(&GraphBuilder<Primary, Capturing>) -> Result<R, E>,
    ) -> Result<(Graph, R), E>;

    /// A builder that captures this stream, as a value. It has not begun.
    fn graph_builder(&self) -> GraphBuilder<Primary, NotBegun>;
}

impl StreamExt for Stream {
    fn capture<R>(
        &self,
        options: impl Into<CaptureOptions>,
        work: impl FnOnce(&GraphBuilder<Primary, Capturing>) -> Result<R>,
    ) -> Result<Graph> {
        Ok(self.try_capture(options, work)?.0)
    }

    fn try_capture<R, E: From<Error>>(
        &self,
        options: impl Into<CaptureOptions>,
        work: impl FnOnce(&GraphBuilder<Primary, Capturing>) -> Result<R, E>,
    ) -> Result<(Graph, R), E> {
        let capture = self.graph_builder().with_options(options.into()).begin()?;
        let result = work(&capture)?;
        Ok((capture.state.session.join_and_end()?.graph, result))
    }

    fn graph_builder(&self) -> GraphBuilder<Primary, NotBegun> {
        GraphBuilder::on(self.clone())
    }
}

impl Frontier<'_> {
    /// Captures the work that a closure enqueues on `stream`, and adds its nodes to this graph at
    /// the frontier, all or none. The graph itself is not captured into: it takes no part until the
    /// end.
    ///
    /// Calls `cuStreamBeginCapture` (CUDA 10.1) and `cuStreamEndCapture` (CUDA 10.0), and
    /// `cuGraphAddNode` (CUDA 12.2) for each node.
    ///
    /// # Errors
    /// The graph does not [span](Graph::spanning) the context of the stream, or of a stream that
    /// joins ([`WrongContext`](cuda_handles::Error::WrongContext)); the closure's error, or the
    /// errors of [`GraphBuilder::begin`] and [`GraphBuilder::end`]. The graph is as before, or
    /// [broken](Error::Broken). Only conditions that the closure made stay, since the driver cannot
    /// destroy them; see [`GraphBuilder::condition`].
    ///
    /// [`EdgeError::Dataflow`](crate::EdgeError::Dataflow), at a [dataflow](crate::Dataflow).
    #[doc(alias = "cuStreamBeginCaptureToGraph")]
    #[doc(alias = "cudaStreamBeginCaptureToGraph")]
    pub fn capture<R, E: From<Error>>(
        &self,
        stream: &Stream,
        options: impl Into<CaptureOptions>,
        work: impl FnOnce(&GraphBuilder<Primary, Capturing>) -> Result<R, E>,
    ) -> Result<R, E> {
        self.ensure_not_by_data("a capture")?;
        let session = Session::begin(stream, &options.into(), Primary::NAME, Some(Position::of(self)))?;
        let capture = GraphBuilder::<Primary, _>::capturing(session, stream.clone())?;
        let result = work(&capture)?;
        drop(capture.state.session.join_and_end()?);
        Ok(result)
    }
}
