//! The builder: a capture as a value, with its kind and state in its type.

use core::fmt;
use core::marker::PhantomData;

use cuda_handles::Stream;
use cuda_handles::capture::{CaptureMode, CaptureOptions, Scratch};

use crate::capture::kind::{
    AnyThread, Body, Capturing, EndOnDrop, Ended, Fork, Kind, NotBegun, Origin, Primary, State,
};
use crate::capture::session::{Delivered, Session};
use crate::error::Result;
use crate::exec::GraphExec;
use crate::graph::Graph;

/// Makes a graph by capturing the work of streams; see the [module](crate::capture) for its kinds
/// and states.
///
/// Dropping a builder that captures ends the capture and discards what was captured; the streams
/// work as before. Dropping a fork does nothing by itself, but a fork with work of its own has to
/// be [joined](Self::join) before the end.
///
/// ```no_run
/// # use cuda_graph::{Result, StreamExt};
/// # use cuda_handles::{Buffer, Stream};
/// # fn example(stream: &Stream, x: &Buffer<f32>, y: &Buffer<f32>) -> Result<()> {
/// let capture = stream.graph_builder().begin()?;
/// let [fork] = capture.split()?;
/// capture.fill(x, 1.0)?;
/// fork.fill(y, 2.0)?;
/// capture.join([fork])?;
/// let mut exec = capture.end()?.instantiate()?;
/// exec.launch(stream)?;
/// # Ok(())
/// # }
/// ```
///
/// Methods exist only where they make sense. A fork does not end:
///
/// ```compile_fail,E0277
/// # use cuda_graph::capture::{Capturing, Fork, GraphBuilder};
/// # fn example(fork: GraphBuilder<Fork, Capturing>) {
/// fork.end();
/// # }
/// ```
///
/// A builder does not begin twice, and has no graph before the end:
///
/// ```compile_fail,E0599
/// # use cuda_graph::capture::{Capturing, GraphBuilder, Primary};
/// # fn example(capture: GraphBuilder<Primary, Capturing>) {
/// capture.begin();
/// # }
/// ```
/// ```compile_fail,E0599
/// # use cuda_graph::capture::{Capturing, GraphBuilder, Primary};
/// # fn example(capture: GraphBuilder<Primary, Capturing>) {
/// capture.instantiate();
/// # }
/// ```
/// ```compile_fail,E0599
/// # use cuda_graph::capture::{GraphBuilder, NotBegun, Primary};
/// # fn example(builder: GraphBuilder<Primary, NotBegun>) {
/// builder.split::<2>();
/// # }
/// ```
///
/// A builder that must end on its thread does not leave it:
///
/// ```compile_fail,E0277
/// # use cuda_graph::capture::{Capturing, GraphBuilder, Primary};
/// # fn example(capture: GraphBuilder<Primary, Capturing>) {
/// std::thread::spawn(move || capture.end());
/// # }
/// ```
#[must_use = "dropping a builder ends its capture and discards what was captured"]
#[doc(alias = "cuStreamBeginCapture")]
#[doc(alias = "cudaStreamBeginCapture")]
#[doc(alias = "stream capture")]
pub struct GraphBuilder<K: Kind, S: State> {
    pub(super) state: S,
    _kind: PhantomData<fn() -> K>,
    _thread: PhantomData<S::Thread<K>>,
}

impl<K: Kind, S: State> GraphBuilder<K, S> {
    fn new(state: S) -> Self {
        Self { state, _kind: PhantomData, _thread: PhantomData }
    }
}

impl GraphBuilder<Primary, NotBegun> {
    pub(super) fn on(stream: Stream) -> Self {
        Self::new(NotBegun { stream, options: CaptureOptions::default() })
    }

    /// Sets the capture mode: which calls of other code the capture forbids. The default is
    /// [`CaptureMode::ThreadLocal`].
    pub fn mode(mut self, mode: CaptureMode) -> Self {
        self.state.options = self.state.options.mode(mode);
        self
    }

    /// Takes memory for temporaries from `scratch`, which several captures share: graphs that share
    /// it do not overlap; see [`Scratch`].
    pub fn scratch(mut self, scratch: &Scratch) -> Self {
        self.state.options = self.state.options.scratch(scratch);
        self
    }

    pub(super) fn with_options(mut self, options: CaptureOptions) -> Self {
        self.state.options = options;
        self
    }

    /// Begins the capture.
    ///
    /// Calls `cuStreamBeginCapture` (CUDA 10.1).
    ///
    /// # Errors
    /// The errors of [`Stream::begin_capture`]. The stream does not capture then.
    #[doc(alias = "cuStreamBeginCapture")]
    #[doc(alias = "cudaStreamBeginCapture")]
    pub fn begin(self) -> Result<GraphBuilder<Primary, Capturing>> {
        let NotBegun { stream, options } = self.state;
        GraphBuilder::capturing(Session::begin(&stream, &options, Primary::NAME, None)?, stream)
    }

    /// Begins the capture in [`CaptureMode::Relaxed`], whatever mode was set. Any thread may end
    /// it, so the builder may change threads.
    ///
    /// Calls `cuStreamBeginCapture` (CUDA 10.1).
    ///
    /// # Errors
    /// The errors of [`begin`](Self::begin).
    #[doc(alias = "cuStreamBeginCapture")]
    #[doc(alias = "cudaStreamBeginCapture")]
    pub fn begin_on_any_thread(self) -> Result<GraphBuilder<AnyThread, Capturing>> {
        let NotBegun { stream, options } = self.state;
        let options = options.mode(CaptureMode::Relaxed);
        let session = Session::begin(&stream, &options, AnyThread::NAME, None)?;
        GraphBuilder::capturing(session, stream)
    }
}

impl<K: Origin> GraphBuilder<K, Capturing> {
    /// The builder of a session that has just begun.
    pub(super) fn capturing(session: std::sync::Arc<Session>, stream: Stream) -> Result<Self> {
        let ends = Some(EndOnDrop(std::sync::Arc::clone(&session)));
        Ok(Self::new(Capturing { session, stream, ends }))
    }
}

impl<K: Kind> GraphBuilder<K, Capturing> {
    /// Ends the capture. The result has the graph; for a body that is the body's graph.
    ///
    /// Whatever the driver answers, the streams of the capture work as before.
    ///
    /// Calls `cuStreamEndCapture` (CUDA 10.0), and asks for the type of each node. The rest about
    /// the nodes is queried once it is needed; at once, if it has to be known by node: kernels take
    /// conditions, calls take graph parameters, other code has captured nodes, or the streams are
    /// of several contexts.
    ///
    /// # Errors
    /// - [`CaptureError::Unjoined`](crate::CaptureError::Unjoined): a fork with work of its own was
    ///   not joined. [`CaptureError::BodyOpen`](crate::CaptureError::BodyOpen): a body builder has
    ///   not ended; it ends first.
    /// - [`CaptureInvalidated`](cuda_handles::Error::CaptureInvalidated): a call has invalidated
    ///   the capture. The error names it if this library made it.
    /// - [`CaptureError::NotCopied`](crate::CaptureError::NotCopied),
    ///   [`ConditionError::NotInBody`](crate::ConditionError::NotInBody): other code captured a
    ///   node that the graph cannot hold. Only if the nodes are for a body or an existing graph, or
    ///   the builder added conditional nodes or child graphs.
    /// - [`CaptureError::LaunchChanged`](crate::CaptureError::LaunchChanged): other code changed
    ///   the node of a launch that takes a condition's handle.
    /// - The driver's error.
    ///
    /// The captured work is discarded then, and a body or existing graph is as before the capture,
    /// but for [conditions](Self::condition).
    #[doc(alias = "cuStreamEndCapture")]
    #[doc(alias = "cudaStreamEndCapture")]
    pub fn end(mut self) -> Result<GraphBuilder<K, Ended>>
    where
        // Here, so that the compiler says why a fork has none.
        K: Origin,
    {
        // The drop finds the session ended.
        let ends = self.state.ends.take();
        let ended = self.state.session.end();
        drop(ends);
        let Delivered { graph, unmatched } = ended?;
        Ok(GraphBuilder::new(Ended { graph, unmatched }))
    }
}

impl GraphBuilder<Fork, Capturing> {
    pub(super) fn fork(session: std::sync::Arc<Session>, stream: Stream) -> Self {
        Self::new(Capturing { session, stream, ends: None })
    }
}

impl<K: Origin> GraphBuilder<K, Ended> {
    /// The graph with the captured nodes.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.state.graph
    }

    /// The graph with the captured nodes. It does not need the builder.
    #[must_use]
    pub fn into_graph(self) -> Graph {
        self.state.graph
    }

    /// How many calls of the library match no node. The graph as a whole keeps their owners. There
    /// are none unless other code changed the capture, such as by setting a captured node.
    ///
    /// Queries the nodes if they have not been needed yet.
    ///
    /// # Errors
    /// If they have not been: the driver's error, or the graph cannot be used, such as one that was
    /// moved.
    pub fn unmatched(&self) -> Result<usize> {
        self.state.unmatched.map_or_else(|| self.state.graph.unmatched_calls(), Ok)
    }
}

impl GraphBuilder<Primary, Ended> {
    /// Makes an executable of the graph; see [`Graph::instantiate`].
    ///
    /// # Errors
    /// The errors of [`Graph::instantiate`].
    #[doc(alias = "cuGraphInstantiateWithParams")]
    #[doc(alias = "cudaGraphInstantiate")]
    pub fn instantiate(&self) -> Result<GraphExec> {
        self.state.graph.instantiate()
    }
}

impl GraphBuilder<AnyThread, Ended> {
    /// Makes an executable of the graph; see [`Graph::instantiate`].
    ///
    /// # Errors
    /// The errors of [`Graph::instantiate`].
    #[doc(alias = "cuGraphInstantiateWithParams")]
    #[doc(alias = "cudaGraphInstantiate")]
    pub fn instantiate(&self) -> Result<GraphExec> {
        self.state.graph.instantiate()
    }
}

impl<K: Kind, S: State> fmt::Debug for GraphBuilder<K, S> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("GraphBuilder").field("kind", &K::NAME).field("state", &self.state).finish()
    }
}

/// Bodies are captured by builders of their own; see [`GraphBuilder::capture_body`].
pub(super) type BodyBuilder = GraphBuilder<Body, Capturing>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builders_that_may_change_threads_do() {
        fn is_send<T: Send>() {}
        is_send::<GraphBuilder<AnyThread, Capturing>>();
        is_send::<GraphBuilder<Fork, Capturing>>();
        is_send::<GraphBuilder<Primary, NotBegun>>();
        is_send::<GraphBuilder<Primary, Ended>>();
    }
}
