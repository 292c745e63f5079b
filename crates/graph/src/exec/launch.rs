//! Launches and uploads of executables.

use std::sync::Arc;

use cuda_handles::capture::{Enqueue, Scratch, ScratchTurn};
use cuda_handles::internal::HeldStream;
use cuda_handles::{
    Allocation, AsStream, Buffer, Context, Error as HandleError, Event, GraphExecHandle, Stream, WrongContext,
};
use cuda_sys::{CUresult, Call};
use smallvec::SmallVec;

use crate::error::wrong_context::ensure;
use crate::error::{Error, ExecError, Result};
use crate::exec::recorded_events::RecordedEvents;
use crate::exec::{GraphExec, not_rebuilt};
use crate::memory::{OutputMemory, Outputs};
use crate::state::last_runs::OwnRuns;

/// The roles of streams, in errors.
const LAUNCH: &str = "the stream of the launch";
const UPLOAD: &str = "the stream of the upload";

/// What a launch needs that leaves memory of the graph.
const OUTPUTS: &str = "a launch that leaves graph memory has to be on a stream of that memory's context, which is that of the \
                       graph in which it was allocated: free it in the graph";

/// A launch, in errors.
const LAUNCHING: &str = "launching an executable graph";

/// State that goes with each launch of an executable.
pub(crate) struct LaunchState {
    /// The streams that the first launch waits for; empty afterwards. They are the home streams of
    /// memory that was perhaps not yet allocated when the executable was made, and the streams of
    /// the previous executable's runs.
    pub(crate) awaited: Vec<Stream>,
    /// The streams of the runs of the executable in whose place this one is, until the first launch
    /// has waited for them.
    pub(crate) former_runs: Vec<HeldStream>,
    /// The runs of this executable, if the graph can have one at a time.
    pub(crate) runs: Option<OwnRuns>,
    /// The events that each launch records.
    pub(crate) events: RecordedEvents,
    /// The graph memory that a launch leaves, if it leaves any.
    pub(crate) outputs: Option<Box<OutputMemory>>,
    /// The memory that the graph shares with other graphs, which it does not overlap.
    pub(crate) scratch: Arc<[Scratch]>,
}

impl LaunchState {
    /// Whether a launch is one call and no more.
    #[inline]
    fn is_plain(&self) -> bool {
        self.awaited.is_empty()
            && self.former_runs.is_empty()
            && self.outputs.is_none()
            && self.scratch.is_empty()
    }

    /// Lets the next launch wait for the home of memory that may not be allocated yet.
    #[inline]
    pub(crate) fn wait_for_home(&mut self, memory: &Allocation) {
        wait_for_home(&mut self.awaited, memory);
    }
}

impl GraphExec {
    /// Enqueues a run of the whole graph on `stream`, behind all work enqueued there. One driver
    /// call.
    ///
    /// Nodes whose [graph parameters](crate::GraphParam) were [set](Self::set) to other values
    /// since the last launch are updated first, by one driver call each.
    ///
    /// The first launch also makes `stream` wait for the streams on which buffers of the graph were
    /// allocated, unless they were synchronised in between. If the graph allows one executable at a
    /// time, it also waits for the previous executable's runs. If the graph shares
    /// [scratch memory](cuda_handles::capture::Scratch), each launch waits for the last launch of
    /// the graphs that share it: with two calls more if that was on another stream, and none
    /// otherwise.
    ///
    /// Memory that the graph allocates and does not free is freed in the order of the stream right
    /// behind the launch, by three driver calls for each allocation node; see
    /// [`launch_with_outputs`](Self::launch_with_outputs). With
    /// [`auto_free`](crate::InstantiateOptions::auto_free) it stays until the next launch, which
    /// frees it by itself, or until the executable is dropped.
    ///
    /// Calls `cuGraphLaunch` (CUDA 10.0).
    ///
    /// # Errors
    /// - `stream` is of a context that the graph does not [span](crate::Graph::spanning); or the
    ///   launch leaves memory of the graph, and `stream` is of another context than the graph that
    ///   the memory was allocated in.
    /// - [`ExecError::Captured`](crate::ExecError::Captured): `stream` is capturing.
    /// - [`Capturing`](cuda_handles::Error::Capturing): a stream that the launch waits for is
    ///   capturing: one on which a buffer was allocated, or that of the last launch with the same
    ///   scratch memory. Nothing is launched; launch when that capture is over, or wait on the host
    ///   for the stream before it begins.
    /// - The values of graph parameters do not fit: a condition of a kernel does not hold with them
    ///   ([`ParamError::Launch`](crate::ParamError::Launch)), another
    ///   [`ParamError`](crate::ParamError), or
    ///   [`UpdateError::NotPossible`](crate::UpdateError::NotPossible): a
    ///   [kernel](crate::InstantiateOptions::fills_by_kernels) runs in place of a fill or copy, and
    ///   may not reach the memory; or nodes would touch the same bytes that the executable runs in
    ///   no order ([`UpdateError::Meets`](crate::UpdateError::Meets)). Nothing is launched; set
    ///   them to others.
    /// - A parameter was set, and a node that takes it has been removed from the graph that the
    ///   executable was made of ([`NodeError::Removed`](crate::NodeError::Removed)), or that graph
    ///   was moved into a node: the driver finds nodes of an executable by those of that graph,
    ///   also after an [update](Self::update) from another one. Nothing is launched; set the
    ///   parameter to its former value, or make another executable.
    /// - This is a host function, where the driver permits launches, but no updates of nodes whose
    ///   parameters were set (`CUDA_ERROR_NOT_PERMITTED`).
    /// - [`MemoryError::OutputInUse`](crate::MemoryError::OutputInUse): memory that the previous
    ///   launch left is still in use; or it could not be freed, with the driver's reason.
    /// - [`ExecError::MayRun`](crate::ExecError::MayRun): the driver answers `CUDA_ERROR_UNKNOWN`,
    ///   as 580 does for graphs with user objects, such as lent ones, if another thread waits for
    ///   the stream meanwhile. The graph may run all the same.
    /// - The driver refuses the launch. If it does so for lack of memory for the graph's allocation
    ///   nodes (`CUDA_ERROR_OUT_OF_MEMORY`), it keeps what it had reserved for them, which may be
    ///   all memory of the device, until the process ends, whatever is dropped or
    ///   [trimmed](cuda_handles::Context::trim_graph_memory). Make sure that the allocation nodes
    ///   fit into the device together.
    #[doc(alias = "cuGraphLaunch")]
    #[doc(alias = "cudaGraphLaunch")]
    #[doc(alias = "graph launch")]
    #[doc(alias = "replay")]
    #[inline]
    pub fn launch(&mut self, stream: &impl AsStream) -> Result<()> {
        let stream = stream.as_stream();
        self.usable_on(stream, LAUNCH)?;
        self.update_pending()?;
        let launched = match self.launches.is_plain() {
            true => self.enqueue(stream),
            false => self.launch_in_steps(stream, false).map(drop),
        };
        self.retiring(launched)
    }

    /// [Launches](Self::launch) the executable, and returns the memory that the graph's nodes
    /// allocate and do not free.
    ///
    /// The memory can be used from this launch on, in the order of `stream`, and is freed in that
    /// order when the returned value is dropped. The next launch needs all of it to be dropped.
    ///
    /// If the previous launch was on another stream, this one waits for what is enqueued there now.
    ///
    /// ```no_run
    /// # fn example(
    /// #     graph: cuda_graph::Graph, stream: &cuda_handles::Stream
    /// # ) -> cuda_graph::Result<()> {
    /// let (node, numbers) = graph.root().alloc::<u32>(256)?;
    /// node.then().fill(&numbers, 7)?;
    /// let mut exec = graph.instantiate()?;
    /// for _ in 0..3 {
    ///     let output = exec.launch_with_outputs(stream)?.take(&numbers)?;
    ///     assert_eq!(output.read_blocking(stream)?, [7; 256]);
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Calls `cuGraphLaunch` (CUDA 10.0), and `cuMemFreeAsync` (CUDA 11.2) for each output that is
    /// dropped.
    ///
    /// # Errors
    /// As [`launch`](Self::launch); an error leaves no memory.
    #[doc(alias = "cuGraphLaunch")]
    #[doc(alias = "cudaGraphLaunch")]
    pub fn launch_with_outputs(&mut self, stream: &impl AsStream) -> Result<Outputs<'_>> {
        let stream = stream.as_stream();
        self.usable_on(stream, LAUNCH)?;
        self.update_pending()?;
        let launched = self.launch_in_steps(stream, true);
        let buffers = self.retiring(launched)?;
        Ok(Outputs::new(self.launches.outputs.as_deref(), buffers))
    }

    /// Uploads the executable to the device, enqueued on `stream`, so that the first launch need
    /// not do it. One driver call.
    ///
    /// Calls `cuGraphUpload` (CUDA 11.1).
    ///
    /// # Errors
    /// `stream` is of another context, or is capturing; or the driver fails.
    #[doc(alias = "cuGraphUpload")]
    #[doc(alias = "cudaGraphUpload")]
    pub fn upload(&mut self, stream: &impl AsStream) -> Result<()> {
        let stream = stream.as_stream();
        let context = self.usable_on(stream, UPLOAD)?;
        let handle = self.live()?.as_raw();
        let _turn = uncaptured(stream, "uploading an executable graph")?;
        // SAFETY: as for a launch.
        let result = unsafe { stream.context().driver().cuGraphUpload(handle, stream.as_raw()) };
        context.check(Call::cuGraphUpload, result)?;
        self.owners.note(stream);
        Ok(())
    }

    /// The stream's context, if the executable can run there.
    #[inline]
    fn usable_on<'s>(&self, stream: &'s Stream, what: &'static str) -> Result<&'s Context> {
        let (context, own) = (stream.context(), self.context());
        context.ensure_usable()?;
        if !own.is_same(context) {
            self.usable_beside_home(context, what)?;
        }
        // The owner of memory that is left has it in the order of the stream, and in its context.
        match &self.launches.outputs {
            Some(outputs) if !outputs.is_of(context) => {
                let wrong = WrongContext::new(what, context, "the executable graph", own);
                Err(HandleError::from(wrong.advise(OUTPUTS)).into())
            }
            _ => Ok(context),
        }
    }

    /// [`usable_on`](Self::usable_on) for a stream of another context than the home.
    #[cold]
    fn usable_beside_home(&self, context: &Context, what: &'static str) -> Result<()> {
        let own = self.context();
        own.ensure_usable()?;
        let wrong = || WrongContext::new(what, context, "the executable graph", own);
        ensure(self, context, wrong)
    }

    /// Updates the nodes whose graph parameters have changed.
    #[inline]
    fn update_pending(&mut self) -> Result<()> {
        match &self.owners.since.params {
            Some(params) if params.is_pending() => self.apply_params(),
            _ => Ok(()),
        }
    }

    /// The outcome of a launch. If it failed, retires what updates have replaced for it.
    #[inline]
    fn retiring<R>(&mut self, launched: Result<R>) -> Result<R> {
        if launched.is_err() {
            self.owners.retire_replaced();
        }
        launched
    }

    #[inline]
    fn enqueue(&mut self, stream: &Stream) -> Result<()> {
        let handle = self.handle.as_mut().map_err(|why| not_rebuilt(why))?;
        if let Err(error) = enqueue(handle, self.launches.events.all(), stream) {
            self.enqueue_again(stream, error).inspect_err(|error| self.may_run(stream, error))?;
        }
        self.owners.launched(stream);
        if let Some(runs) = &mut self.launches.runs {
            runs.note(stream);
        }
        Ok(())
    }

    /// Launches once more, if the launch failed for lack of memory and deferred executables were
    /// destroyed to make room. Holds no access to the stream meanwhile, which destroying them may
    /// wait for.
    #[cold]
    fn enqueue_again(&mut self, stream: &Stream, error: Error) -> Result<()> {
        const SHORT: CUresult = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
        match error {
            Error::Handles(HandleError::Driver { code: SHORT, .. })
                if GraphExecHandle::destroy_all_deferred() =>
            {
                let handle = self.handle.as_mut().map_err(|why| not_rebuilt(why))?;
                enqueue(handle, self.launches.events.all(), stream)
            }
            error => Err(error),
        }
    }

    /// Notes a run after an error: the driver may have enqueued the launch all the same. If it has
    /// not, the stream does not follow the run before, so it waits for that here.
    #[cold]
    fn may_run(&mut self, stream: &Stream, error: &Error) {
        if !matches!(error, Error::Handles(HandleError::Driver { .. }) | Error::Exec(ExecError::MayRun)) {
            return;
        }
        let follows = self.owners.note_possible(stream);
        match &mut self.launches.runs {
            Some(runs) if follows => runs.note(stream),
            Some(runs) => runs.note_possible(stream),
            None => {}
        }
    }

    /// A launch that does not overlap launches of other graphs with the same scratch memory.
    fn enqueue_in_turn(&mut self, stream: &Stream) -> Result<()> {
        let scratch = Arc::clone(&self.launches.scratch);
        let mut turns = turns(&scratch, stream)?;
        let launched = self.enqueue(stream);
        // Also after an error: it may run all the same.
        turns.iter_mut().for_each(|turn| turn.launched(stream));
        launched
    }

    /// A launch that waits for streams or leaves memory. Once one launch has waited, later ones
    /// need not, on whatever stream: an executable does not overlap itself.
    #[cold]
    fn launch_in_steps(&mut self, stream: &Stream, wants_outputs: bool) -> Result<Vec<Buffer<u8>>> {
        // Before the waits, which would become part of a capture.
        stream.refuse_capture(LAUNCHING).map_err(|error| captured(error.into()))?;
        if let Some(outputs) = &self.launches.outputs {
            outputs.make_ready(stream)?;
        }
        for other in self.launches.awaited.iter().filter(|other| *other != stream) {
            stream.wait_for_uncaptured(other)?;
        }
        wait_for_former(&self.launches.former_runs, stream)?;
        self.enqueue_in_turn(stream)?;
        self.launches.awaited.clear();
        self.launches.former_runs.clear();
        let Some(outputs) = &mut self.launches.outputs else { return Ok(Vec::new()) };
        let buffers = outputs.launched(stream, wants_outputs);
        if outputs.is_spent() {
            self.launches.outputs = None;
        }
        Ok(buffers)
    }
}

/// Adds the home of memory that may not be allocated yet to streams that are waited for.
#[inline]
pub(crate) fn wait_for_home(awaited: &mut Vec<Stream>, memory: &Allocation) {
    if !memory.is_settled()
        && let Some(home) = memory.home()
        && !awaited.contains(home)
    {
        awaited.push(home.clone());
    }
}

/// Makes a stream wait for the runs of the executable in whose place another one is, as far as
/// their ends are known.
pub(crate) fn wait_for_former(runs: &[HeldStream], stream: &Stream) -> Result<()> {
    let mut known = runs.iter().filter(|former| !former.has_unknown_end());
    Ok(known.try_for_each(|former| former.order_before(stream))?)
}

/// The turns of a run that uses scratch memory, from the wait for the last run on.
pub(crate) fn turns<'s>(scratch: &'s [Scratch], stream: &Stream) -> Result<SmallVec<[ScratchTurn<'s>; 1]>> {
    let turn = |scratch: &'s Scratch| {
        let turn = scratch.turn()?;
        turn.wait_on(stream)?;
        Ok(turn)
    };
    scratch.iter().map(turn).collect()
}

/// Launches an executable to which the caller has exclusive access, and which records these events.
/// Executable and stream are of one context, which is usable.
#[inline]
pub(crate) fn enqueue(handle: &mut GraphExecHandle, events: &[Event], stream: &Stream) -> Result<()> {
    let context = stream.context();
    // Held over the call, so that nobody records the events in a capture meanwhile, which `done`
    // below would miss. Taken before the access to the stream, as everywhere.
    let recording = if events.is_empty() { None } else { Some(Event::recording(events)?) };
    let turn = uncaptured(stream, LAUNCHING).map_err(captured)?;
    let launching = turn.launching();
    // SAFETY: executable and stream are live; the exclusive reference keeps other calls on the
    // executable away; it owns what its nodes use.
    let result = unsafe { context.driver().cuGraphLaunch(handle.as_raw(), stream.as_raw()) };
    drop(launching);
    context.check(Call::cuGraphLaunch, result).map_err(unknown)?;
    drop(turn);
    // The events were recorded outside of a capture last.
    if let Some(recording) = recording {
        recording.done();
    }
    Ok(())
}

/// The error of a launch to which the driver answers `UNKNOWN`.
#[cold]
fn unknown(error: HandleError) -> Error {
    match error {
        HandleError::Driver { code: CUresult::CUDA_ERROR_UNKNOWN, .. } => ExecError::MayRun.into(),
        error => error.into(),
    }
}

/// Access to a stream for work that cannot be captured. The driver refuses such work in a capture,
/// too, but then the capture is lost.
#[inline]
pub(crate) fn uncaptured<'s>(stream: &'s Stream, what: &'static str) -> Result<Enqueue<'s>> {
    let turn = stream.enqueue()?;
    if turn.is_captured()? { Err(HandleError::Capturing { what }.into()) } else { Ok(turn) }
}

/// The error of a launch on a stream that captures: what to do there instead.
#[cold]
fn captured(error: Error) -> Error {
    match error {
        Error::Handles(HandleError::Capturing { .. }) => ExecError::Captured.into(),
        error => error,
    }
}
