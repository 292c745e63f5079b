//! Executable graphs: launched on streams, owners of all they use.

pub(crate) mod instantiate;
pub(crate) mod options;
pub(crate) mod resources;

use core::fmt;
use std::sync::{Arc, Weak};

use cuda_handles::capture::Enqueue;
use cuda_handles::{
    AsStream, Buffer, Context, Error as HandleError, Event, GraphExecHandle, Stream, WrongContext,
};
use cuda_sys::{CUgraphExec, CUgraphInstantiate_flags as Flags, CUresult, Call};

use crate::error::wrong_context::ensure;
use crate::error::{Error, Result};
use crate::exec::options::InstantiateOptions;
use crate::exec::resources::ExecResources;
use crate::graph::Graph;
use crate::memory::{Outlet, Outputs};
use crate::state::hierarchy::Hierarchy;
use crate::state::ids::SubgraphId;
use crate::state::last_runs::OwnRuns;

/// What streams are for, in errors.
const LAUNCH: &str = "the stream of the launch";
const UPLOAD: &str = "the stream of the upload";

/// An executable graph: what a [`Graph`] was when [`instantiate`](Graph::instantiate) made it,
/// ready to be launched.
///
/// It owns a share of all that its nodes use, independent of the graph: nodes removed from the
/// graph stay in it, and memory is freed only once no launch can use it. One executable never runs
/// twice at the same time; the driver puts its launches one after the other, on whatever streams
/// they are. To run the same work side by side, instantiate again.
///
/// It can be dropped while it runs; the launch still ends as it should. What it owns is dropped
/// with it if its runs are over, on the thread that drops it, but for a host function; else by the
/// [reaper](cuda_handles::reaper) once they are. So after a wait for its stream,
/// [`SharedHostBuffer::try_unique`](cuda_handles::SharedHostBuffer::try_unique) of memory that it
/// used succeeds. Of one with conditional nodes the driver's own part stays until somebody
/// [drains](cuda_handles::reaper::drain), or the device has no memory left, or the graph is
/// instantiated again or lent: destroying it would wait for all work of the device, and the
/// launches of every thread with it. What its nodes use is let go once its last run is over, as
/// ever. Where other code has the graph, too, as it is made, it is destroyed at once all the same,
/// since that code may instantiate it.
pub struct GraphExec {
    handle: GraphExecHandle,
    owners: ExecResources,
    source: Source,
    launches: Launches,
    options: InstantiateOptions,
}

/// What goes with each launch of an executable.
pub(crate) struct Launches {
    /// Where memory comes from that was perhaps not yet allocated when the executable was made, and
    /// where one before it ran last: the first launch waits for these.
    pub(crate) homes: Vec<Stream>,
    /// Of a graph that has one executable at a time.
    pub(crate) runs: Option<OwnRuns>,
    /// Those that each launch records.
    pub(crate) events: Vec<Event>,
    /// For what it leaves of the graph's memory, if it does.
    pub(crate) outlet: Option<Box<Outlet>>,
}

impl Launches {
    /// Whether a launch is one call and no more.
    #[inline]
    fn are_plain(&self) -> bool {
        self.homes.is_empty() && self.outlet.is_none()
    }
}

/// What an executable was made of.
pub(crate) enum Source {
    /// Kept: keys of later updates are the nodes of this graph, which must exist then.
    Own(Graph),
    /// Other code destroys its graph when no handle is left. Were it kept, the graph would be known
    /// at an address that may be another one's by then.
    Adopted(Weak<Hierarchy>),
}

impl Source {
    pub(crate) fn of(graph: &Graph) -> Self {
        match graph.handle().is_owned() {
            true => Self::Own(graph.clone()),
            false => Self::Adopted(Arc::downgrade(graph.hierarchy())),
        }
    }

    pub(crate) fn graph(&self) -> Option<Graph> {
        match self {
            Self::Own(graph) => Some(graph.clone()),
            Self::Adopted(root) => Some(Graph::from_hierarchy(root.upgrade()?, SubgraphId::ROOT)),
        }
    }
}

impl GraphExec {
    pub(crate) fn new(
        handle: GraphExecHandle,
        owners: ExecResources,
        graph: &Graph,
        launches: Launches,
        options: InstantiateOptions,
    ) -> Self {
        Self { handle, owners, source: Source::of(graph), launches, options }
    }

    /// Enqueues a run of the whole graph on `stream`, behind all that was enqueued there. One
    /// driver call.
    ///
    /// The first launch also makes the stream wait for the streams on which buffers of the graph
    /// were allocated, if they were not synchronised in between. That of a graph that can have one
    /// executable only waits for the runs of the one before, too.
    ///
    /// Memory that the graph allocates and does not free is freed in the order of the stream right
    /// behind the launch, by three calls for each allocation node; see
    /// [`launch_with_outputs`](Self::launch_with_outputs). With
    /// [`auto_free`](InstantiateOptions::auto_free) it stays until the next launch, which frees it
    /// by itself, or until the executable is dropped.
    ///
    /// Stands on `cuGraphLaunch`, CUDA 10.0.
    ///
    /// # Errors
    /// A stream of another context or one that is capturing; what a launch before left of the
    /// graph's memory is in use ([`Error::OutputInUse`](crate::Error::OutputInUse)), or could not
    /// be freed, with the reason; or what the driver answers. One refused because the device lacks
    /// memory for the graph's allocation nodes (`CUDA_ERROR_OUT_OF_MEMORY`) does harm: the driver
    /// keeps what it reserved for it, which may be all memory of the device, until the process
    /// ends, whatever is dropped or [trimmed](cuda_handles::Context::trim_graph_memory). Allocation
    /// nodes have to fit into the device together.
    #[doc(alias = "cuGraphLaunch")]
    #[inline]
    pub fn launch(&mut self, stream: &impl AsStream) -> Result<()> {
        let stream = stream.as_stream();
        self.usable_on(stream, LAUNCH)?;
        if !self.launches.are_plain() {
            return self.launch_in_steps(stream, false).map(drop);
        }
        self.enqueue(stream)
    }

    /// [`launch`](Self::launch), and what the graph does not free of the memory that its nodes
    /// allocate. That is there from this launch on in the order of `stream`, and goes back in that
    /// order as it is dropped; the next launch can be made when all is gone.
    ///
    /// On another stream than that of the launch before, it waits for what is enqueued there now.
    ///
    /// ```no_run
    /// # fn example(graph: cuda_graph::Graph, stream: &cuda_handles::Stream) -> cuda_graph::Result<()> {
    /// let (node, numbers) = graph.root().alloc::<u32>(256)?;
    /// node.then().fill(&numbers, 7)?;
    /// let mut exec = graph.into_exec()?;
    /// for _ in 0..3 {
    ///     let output = exec.launch_with_outputs(stream)?.take(&numbers)?;
    ///     assert_eq!(output.read_blocking(stream)?, [7; 256]);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Stands on `cuGraphLaunch`, CUDA 10.0, and `cuMemFreeAsync`, CUDA 11.2, for each output that
    /// is dropped.
    ///
    /// # Errors
    /// As [`launch`](Self::launch). Nothing is left then.
    #[doc(alias = "cuGraphLaunch")]
    pub fn launch_with_outputs(&mut self, stream: &impl AsStream) -> Result<Outputs<'_>> {
        let stream = stream.as_stream();
        self.usable_on(stream, LAUNCH)?;
        let buffers = self.launch_in_steps(stream, true)?;
        Ok(Outputs::new(self.launches.outlet.as_deref(), buffers))
    }

    /// Sends the executable to the device, enqueued on `stream`, so that the first launch need not.
    /// One driver call.
    ///
    /// Stands on `cuGraphUpload`, CUDA 11.1.
    ///
    /// # Errors
    /// A stream of another context or one that is capturing, or what the driver answers.
    #[doc(alias = "cuGraphUpload")]
    pub fn upload(&mut self, stream: &impl AsStream) -> Result<()> {
        let stream = stream.as_stream();
        let context = self.usable_on(stream, UPLOAD)?;
        let _turn = uncaptured(stream, "uploading an executable graph")?;
        // SAFETY: as for a launch.
        let result =
            unsafe { stream.context().driver().cuGraphUpload(self.handle.as_raw(), stream.as_raw()) };
        context.check(Call::cuGraphUpload, result)?;
        self.owners.note(stream);
        Ok(())
    }

    /// How it was made.
    pub fn options(&self) -> &InstantiateOptions {
        &self.options
    }

    /// What the driver says of how it was made: of [`auto_free`](InstantiateOptions::auto_free) and
    /// [`device_launch`](InstantiateOptions::device_launch). It does not tell the rest.
    ///
    /// Stands on `cuGraphExecGetFlags`, CUDA 12.0.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuGraphExecGetFlags")]
    pub fn driver_options(&mut self) -> Result<InstantiateOptions> {
        let context = self.handle.context();
        context.ensure_usable()?;
        let mut flags = 0;
        // SAFETY: the executable is live and the out pointer valid.
        let result = unsafe { context.driver().cuGraphExecGetFlags(self.handle.as_raw(), &raw mut flags) };
        context.check(Call::cuGraphExecGetFlags, result)?;
        let has = |flag: Flags| flags & u64::from(flag.0) != 0;
        let mut options = InstantiateOptions::new();
        if has(Flags::CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH) {
            options = options.auto_free();
        }
        if has(Flags::CUDA_GRAPH_INSTANTIATE_FLAG_DEVICE_LAUNCH) {
            options = options.device_launch();
        }
        Ok(options)
    }

    /// The graph that the executable was made of. It keeps a graph of this library's, and lets an
    /// [adopted](Graph::from_raw) one go: `None` once there is no other handle of that.
    #[must_use]
    pub fn graph(&self) -> Option<Graph> {
        self.source.graph()
    }

    pub(crate) fn context(&self) -> &Context {
        self.handle.context()
    }

    /// The driver's own handle, for calls that this library lacks. It is destroyed with the
    /// `GraphExec`, or later. As such calls may launch it, what it owns is let go only when the
    /// driver says that nothing runs any more. Should such a call launch an executable with
    /// conditional nodes, the run has to be over before the `GraphExec` is dropped.
    #[must_use]
    pub fn as_raw(&self) -> CUgraphExec {
        self.owners.lend();
        self.handle.as_raw()
    }

    /// The stream's context, if the executable can run there.
    #[inline]
    fn usable_on<'s>(&self, stream: &'s Stream, what: &'static str) -> Result<&'s Context> {
        let (context, own) = (stream.context(), self.handle.context());
        context.ensure_usable()?;
        ensure(own, context, || WrongContext::new(what, context, "the executable graph", own))?;
        Ok(context)
    }

    #[inline]
    fn enqueue(&mut self, stream: &Stream) -> Result<()> {
        if let Err(error) = enqueue(&mut self.handle, &self.launches.events, stream) {
            self.enqueue_with_room(stream, error)?;
        }
        self.owners.note(stream);
        if let Some(runs) = &mut self.launches.runs {
            runs.note(stream);
        }
        Ok(())
    }

    /// Once more, if the launch failed for lack of memory and executables of which only the
    /// driver's part was left had some. Without the stream's turn, which who ends these may be
    /// waiting for.
    #[cold]
    fn enqueue_with_room(&mut self, stream: &Stream, error: Error) -> Result<()> {
        const SHORT: CUresult = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
        match error {
            Error::Handles(HandleError::Driver { code: SHORT, .. }) if GraphExecHandle::make_room() => {
                enqueue(&mut self.handle, &self.launches.events, stream)
            }
            error => Err(error),
        }
    }

    /// A launch that has to wait for something or leaves something. Once one has waited for the
    /// homes, later ones need not, on whatever stream: an executable does not overlap itself.
    #[cold]
    fn launch_in_steps(&mut self, stream: &Stream, asks: bool) -> Result<Vec<Buffer<u8>>> {
        // Before the waits, which a capture would take for its own.
        stream.refuse_capture("launching an executable graph")?;
        if let Some(outlet) = &self.launches.outlet {
            outlet.make_ready(stream)?;
        }
        for home in self.launches.homes.iter().filter(|home| *home != stream) {
            stream.wait_for_uncaptured(home)?;
        }
        self.enqueue(stream)?;
        self.launches.homes = Vec::new();
        let Some(outlet) = &mut self.launches.outlet else { return Ok(Vec::new()) };
        let outputs = outlet.launched(stream, asks);
        if outlet.is_spent() {
            self.launches.outlet = None;
        }
        Ok(outputs)
    }
}

/// Launches an executable that nobody else uses meanwhile, and that records these events.
/// Executable and stream are of one context, which is usable.
#[inline]
pub(crate) fn enqueue(handle: &mut GraphExecHandle, events: &[Event], stream: &Stream) -> Result<()> {
    let context = stream.context();
    // Over the call: nobody records them in a capture meanwhile, of which the note below would know
    // nothing. Before the turn, as everywhere.
    let recording = if events.is_empty() { None } else { Some(Event::recording(events)?) };
    let turn = uncaptured(stream, "launching an executable graph")?;
    // SAFETY: executable and stream are live; the exclusive reference keeps other calls on the
    // executable away; it owns what its nodes use.
    let result = unsafe { context.driver().cuGraphLaunch(handle.as_raw(), stream.as_raw()) };
    context.check(Call::cuGraphLaunch, result)?;
    // In no capture any more, if that is where they were recorded before.
    drop(turn);
    if let Some(recording) = recording {
        recording.done();
    }
    Ok(())
}

/// The right to enqueue what cannot be captured. The driver refuses it, too, but then the capture
/// is lost.
#[inline]
pub(crate) fn uncaptured<'s>(stream: &'s Stream, what: &'static str) -> Result<Enqueue<'s>> {
    let turn = stream.enqueue()?;
    if turn.is_captured()? { Err(HandleError::Capturing { what }.into()) } else { Ok(turn) }
}

impl fmt::Debug for GraphExec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("GraphExec")
            .field("raw", &self.handle.as_raw())
            .field("graph", &self.graph())
            .finish()
    }
}
