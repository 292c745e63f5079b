//! Executable graphs: made of a graph, launched on streams, owners of all they use.

use core::fmt;
use std::sync::Arc;

use cuda_handles::capture::Enqueue;
use cuda_handles::capture_mode::relaxed;
use cuda_handles::{AsStream, Context, Error as HandleError, GraphExecHandle, Stream, UserObject};
use cuda_sys::{CUDA_GRAPH_INSTANTIATE_PARAMS, CUgraphExec, CUgraphNode, CUresult, Call};

use crate::error::{Error, InstantiateError, Result};
use crate::graph::{Graph, Locked};

/// An executable graph: what a [`Graph`] was when [`instantiate`](Graph::instantiate) made it, ready to be launched.
///
/// It owns a share of all that its nodes use, independent of the graph: nodes removed from the graph stay in it, and memory is freed only
/// once no launch can use it. One executable never runs twice at the same time; the driver puts its launches one after the other, on
/// whatever streams they are. To run the same work side by side, instantiate again.
///
/// It can be dropped while it runs; the launch still ends as it should.
pub struct GraphExec {
    handle: GraphExecHandle,
    /// The share of the owners that the executable has. Beside the driver's own references it is held here, so that after the context was lost,
    /// where nothing is destroyed any more, the drop still lets the owners go.
    _owners: UserObject,
    /// Keys of later updates are the nodes of this graph, which must exist then.
    graph: Graph,
    /// Where memory comes from that was perhaps not yet allocated when the executable was made: the first launch waits for these.
    homes: Vec<Stream>,
}

impl Graph {
    /// Makes an executable of the graph as it is now.
    ///
    /// The executable gets its own share of all owners. Of the driver's objects for that, one user object, nothing stays on the graph.
    ///
    /// Stands on `cuGraphInstantiateWithParams`, CUDA 12.0, and on user objects, CUDA 11.3.
    ///
    /// # Errors
    /// [`Error::Instantiate`] with the reason in words and the node by its name, where the driver tells them. Should the driver refuse to take
    /// the user object off the graph again, there is no executable, and what the nodes use now lives as long as the graph.
    #[doc(alias = "cuGraphInstantiate")]
    #[doc(alias = "cuGraphInstantiateWithParams")]
    #[doc(alias = "cuUserObjectCreate")]
    pub fn instantiate(&self) -> Result<GraphExec> {
        // Declared before the lock, so that nothing is dropped under it where a call fails.
        let shared;
        let context = self.context();
        let mut locked = self.enter()?;
        let homes = unsettled_homes(&locked);
        shared = Arc::new(locked.owners());
        let owners = UserObject::new(context, Box::new(Arc::clone(&shared)))?;
        owners.retain_on(self.handle())?;
        let outcome = {
            let _relaxed = relaxed(context.driver());
            context.with_current(|| instantiate(&locked))
        };
        // The executable has its own reference now; the graph gives its one back whatever came of it.
        let released = owners.release_from(self.handle());
        let raw = outcome?.map_err(|failure| locked.explain(&failure))?;
        // SAFETY: the driver has just made it, in this context, and nobody else knows it.
        let handle = unsafe { GraphExecHandle::from_raw_owned(context, raw) };
        drop(locked);
        released?;
        Ok(GraphExec { handle, _owners: owners, graph: self.clone(), homes })
    }
}

/// What the driver reported of a failed instantiation.
struct Failure {
    code: CUresult,
    params: CUDA_GRAPH_INSTANTIATE_PARAMS,
}

fn instantiate(locked: &Locked<'_>) -> Result<CUgraphExec, Failure> {
    let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS::default();
    let mut raw = core::ptr::null_mut();
    // SAFETY: the graph is live and locked, both structures are valid for the call, and there is no upload stream.
    let code =
        unsafe { locked.driver().cuGraphInstantiateWithParams(&raw mut raw, locked.raw(), &raw mut params) };
    // The result first: with a failure the handle means nothing.
    if code.is_success() { Ok(raw) } else { Err(Failure { code, params }) }
}

impl Locked<'_> {
    /// A failed instantiation in words.
    #[cold]
    fn explain(&mut self, &Failure { code, params }: &Failure) -> Error {
        match self.answer(Call::cuGraphInstantiateWithParams, code) {
            Err(Error::Handles(HandleError::Driver { .. })) | Ok(()) => {
                let node = self.node_name(params.hErrNode_out);
                Error::Instantiate(Box::new(InstantiateError { code, result: params.result_out, node }))
            }
            // A lost context is that, not a fault of the graph.
            Err(other) => other,
        }
    }

    fn node_name(&mut self, raw: CUgraphNode) -> Option<String> {
        if raw.is_null() {
            return None;
        }
        let index = self.find(raw)?;
        let id = self.id(index)?;
        self.row(id).map(|row| row.display_name(id))
    }
}

/// The home streams of memory that may not be allocated yet, each once.
fn unsettled_homes(locked: &Locked<'_>) -> Vec<Stream> {
    let mut homes: Vec<Stream> = Vec::new();
    let unsettled = locked.allocations().filter(|allocation| !allocation.is_settled());
    for home in unsettled.filter_map(|allocation| allocation.home()) {
        if !homes.contains(home) {
            homes.push(home.clone());
        }
    }
    homes
}

impl GraphExec {
    /// Enqueues a run of the whole graph on `stream`, behind all that was enqueued there. One driver call.
    ///
    /// The first launch also makes the stream wait for the streams on which buffers of the graph were allocated, if they were not
    /// synchronised in between.
    ///
    /// Stands on `cuGraphLaunch`, CUDA 10.0.
    ///
    /// # Errors
    /// A stream of another context or one that is capturing, or what the driver answers.
    #[doc(alias = "cuGraphLaunch")]
    #[inline]
    pub fn launch(&mut self, stream: &impl AsStream) -> Result<()> {
        let stream = stream.as_stream();
        self.usable_on(stream)?;
        if !self.homes.is_empty() {
            return self.launch_first(stream);
        }
        self.enqueue(stream)
    }

    /// Sends the executable to the device, enqueued on `stream`, so that the first launch need not. One driver call.
    ///
    /// Stands on `cuGraphUpload`, CUDA 11.1.
    ///
    /// # Errors
    /// A stream of another context or one that is capturing, or what the driver answers.
    #[doc(alias = "cuGraphUpload")]
    pub fn upload(&mut self, stream: &impl AsStream) -> Result<()> {
        let stream = stream.as_stream();
        let context = self.usable_on(stream)?;
        let _turn = uncaptured(stream, "uploading an executable graph")?;
        // SAFETY: as for a launch.
        let result =
            unsafe { stream.context().driver().cuGraphUpload(self.handle.as_raw(), stream.as_raw()) };
        context.check(Call::cuGraphUpload, result)?;
        Ok(())
    }

    /// The graph that the executable was made of.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.graph
    }

    /// The driver's own handle, for calls that this library lacks. It is destroyed with the `GraphExec`.
    #[must_use]
    pub fn as_raw(&self) -> CUgraphExec {
        self.handle.as_raw()
    }

    /// The stream's context, if the executable can run there.
    #[inline]
    fn usable_on<'s>(&self, stream: &'s Stream) -> Result<&'s Context> {
        let context = stream.context();
        context.ensure_usable()?;
        self.graph.context().ensure_same(context, "the stream of a graph launch")?;
        Ok(context)
    }

    #[inline]
    fn enqueue(&mut self, stream: &Stream) -> Result<()> {
        let context = stream.context();
        let _turn = uncaptured(stream, "launching an executable graph")?;
        // SAFETY: executable and stream are live; `&mut self` keeps other calls on the executable away; it owns what its nodes use.
        let result = unsafe { context.driver().cuGraphLaunch(self.handle.as_raw(), stream.as_raw()) };
        Ok(context.check(Call::cuGraphLaunch, result)?)
    }

    /// Once a launch has waited for the homes, later ones need not, on whatever stream: an executable does not overlap itself.
    #[cold]
    fn launch_first(&mut self, stream: &Stream) -> Result<()> {
        // Before the waits, which a capture would take for its own.
        stream.refuse_capture("launching an executable graph")?;
        for home in self.homes.iter().filter(|home| *home != stream) {
            stream.wait_for_uncaptured(home)?;
        }
        self.enqueue(stream)?;
        self.homes = Vec::new();
        Ok(())
    }
}

/// The right to enqueue what cannot be captured. The driver refuses it, too, but then the capture is lost.
#[inline]
fn uncaptured<'s>(stream: &'s Stream, what: &'static str) -> Result<Enqueue<'s>> {
    let turn = stream.enqueue()?;
    if turn.is_captured()? { Err(HandleError::Capturing { what }.into()) } else { Ok(turn) }
}

impl fmt::Debug for GraphExec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("GraphExec")
            .field("raw", &self.handle.as_raw())
            .field("graph", &self.graph)
            .finish()
    }
}
