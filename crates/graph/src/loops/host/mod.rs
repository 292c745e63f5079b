//! Graphs with ready-made loops and branches about which the host decides, for drivers without
//! conditional nodes.

mod flattened;
mod node_copy;
mod plan;
mod run;
mod segment;

use core::fmt;
use std::sync::Arc;

use cuda_handles::capture_mode::relaxed;
use cuda_handles::{AsStream, Context, Stream, UserObject, WrongContext};

use crate::error::wrong_context::ensure;
use crate::error::{Error, Result};
use crate::exec::destroy::after_deferred;
use crate::exec::instantiate::awaited_streams;
use crate::exec::options::InstantiateOptions;
use crate::exec::resources::ExecResources;
use crate::exec::{GraphExec, Source};
use crate::graph::Graph;
use crate::state::last_runs::LastRuns;
use plan::Program;
use run::{ConditionalState, Run};
use segment::SegmentOptions;

/// What runs a graph where the driver has no conditional nodes for its ready-made loops and
/// branches; see [`Graph::instantiate_with_fallback`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Fallback {
    /// The host decides, and waits for each decision. Where the driver has all that the graph
    /// needs, the device decides as in a [`GraphExec`].
    HostLoop,
    /// The host decides whatever the driver has: to look for a difference, or to hear in which
    /// round something fails.
    HostLoopAlways,
}

/// How often the host did what the device does elsewhere, over all runs of a [`HostLoopExec`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct HostCounts {
    /// Runs that were begun.
    pub runs: u64,
    /// Launches of what lies between decisions.
    pub launches: u64,
    /// Decisions about loops and branches.
    pub decisions: u64,
    /// Rounds of all loops.
    pub rounds: u64,
}

/// An executable graph whose runs wait for their end, since the host may have to decide about loops
/// and branches on the way; made by [`Graph::instantiate_with_fallback`].
///
/// It owns what its nodes use, as a [`GraphExec`] does. Where the [host decides](Self::is_on_host),
/// a run launches the nodes up to a decision, waits for them, reads the number that the
/// [`Test`](crate::Test) is about, and goes on. Results are those of the device: what has no order
/// in the graph is put into one, child graphs are spread out, and rounds are counted where
/// [`Loop::rounds_done`](crate::Loop::rounds_done) finds them. Nodes that have no order but wait
/// for each other by way of memory, which a graph does not promise to work, do not find together.
pub struct HostLoopExec {
    form: Executor,
    source: Source,
}

enum Executor {
    Device(Box<GraphExec>),
    Host(Box<HostExec>),
}

/// Fields are dropped in this order: executables before what they use.
struct HostExec {
    program: Program,
    states: Vec<ConditionalState>,
    counts: HostCounts,
    /// What runs wait for until one has come to its end: where memory comes from that was perhaps
    /// not yet allocated when the executable was made, where one before it ran, and where runs have
    /// failed, of which something may still go on.
    awaited: Vec<Stream>,
    /// Of a graph that has one executable at a time.
    runs: Option<LastRuns>,
    /// As in a `GraphExec`.
    owners: ExecResources,
    context: Context,
    /// Lives as long as the executable, of which the graph has one at a time.
    _single: Option<Arc<()>>,
}

impl Graph {
    /// Makes an executable that runs also where the driver has no conditional nodes for the
    /// [ready-made loops and branches](crate::Frontier::while_loop) of the graph: before CUDA 12.3,
    /// and those with two bodies before 12.8. There the host decides, and a run waits for each of
    /// its decisions.
    ///
    /// ```no_run
    /// # use cuda_graph::{Fallback, InstantiateOptions, Test};
    /// # fn example(
    /// #     graph: &cuda_graph::Graph, stream: &cuda_handles::Stream, left: &cuda_handles::Buffer<u32>, step: &cuda_graph::Graph
    /// # ) -> cuda_graph::Result<()> {
    /// let rounds = graph.root().while_nonzero(left, |body| body.root().child(step))?;
    /// let mut exec = graph.instantiate_with_fallback(Fallback::HostLoop, InstantiateOptions::new())?;
    /// exec.run_blocking(stream)?;
    /// println!("{} rounds, by the host: {}", rounds.rounds_done_blocking(stream)?, exec.is_on_host());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// As on the device, there is one executable of a graph with loops or branches at a time.
    ///
    /// Where the device decides, this is [`instantiate_with`](Self::instantiate_with). Where the
    /// host does, the driver is asked what each node does, and gets copies of the nodes between two
    /// decisions as a graph of their own: for each of these, it stands on `cuGraphCreate`,
    /// `cuGraphAddNode`, `cuGraphInstantiateWithParams` and `cuGraphDestroy`; CUDA 12.2.
    ///
    /// # Errors
    /// As [`instantiate_with`](Self::instantiate_with). Where the host decides: a node that goes by
    /// a condition, a kernel that sets one, or a memory node ([`Error::NotOnHost`]); an executable
    /// for launches by kernels ([`Error::DeviceLaunch`]).
    #[doc(alias = "cuGraphInstantiate")]
    pub fn instantiate_with_fallback(
        &self,
        fallback: Fallback,
        options: InstantiateOptions,
    ) -> Result<HostLoopExec> {
        let on_host = match fallback {
            Fallback::HostLoop => self.look()?.has_place_holders(),
            Fallback::HostLoopAlways => true,
        };
        let form = match on_host {
            true => Executor::Host(Box::new(after_deferred(self, || self.host(&options))?)),
            false => Executor::Device(Box::new(self.instantiate_with(options)?)),
        };
        Ok(HostLoopExec { form, source: Source::of(self) })
    }

    fn host(&self, options: &InstantiateOptions) -> Result<HostExec> {
        // Declared before the lock, so that nothing is dropped under it where a call fails.
        let (shared, owners);
        if !self.subgraph().is_root() {
            return Err(self.is_embedded("instantiated"));
        }
        if options.is_for_device_launch() {
            return Err(Error::DeviceLaunch { node: None, why: "the host decides in it" });
        }
        let context = self.context();
        let turn = options.upload_stream().map(|stream| self.upload_turn(stream)).transpose()?;
        let mut guard = self.enter()?;
        guard.meet()?;
        guard.ensure_complete()?;
        guard.ensure_conditions_used()?;
        let single = guard.single()?;
        let awaited = awaited_streams(&guard);
        let runs = single.as_ref().map(|_| guard.last_runs.clone());
        runs.iter().for_each(LastRuns::begin);
        shared = Arc::new(guard.owners());
        owners = UserObject::new(context, Box::new(Arc::clone(&shared)))?;
        let making = SegmentOptions { options, owners: &owners };
        let program = {
            let _relaxed = relaxed(context.driver());
            context.with_current(|| Program::make(&mut guard, &making))
        };
        let program = program??;
        if let Some(single) = &single {
            guard.executable = Arc::downgrade(single);
        }
        drop(guard);
        drop(turn);
        let owners = ExecResources::new(owners, None, false);
        let states = vec![ConditionalState::default(); program.conditionals.len()];
        let counts = HostCounts::default();
        Ok(HostExec {
            program,
            states,
            counts,
            awaited,
            runs,
            owners,
            context: context.clone(),
            _single: single,
        })
    }
}

impl HostLoopExec {
    /// Runs the whole graph on `stream`, behind all that was enqueued there, and **waits** for its
    /// end; where the host decides, for each decision as well.
    ///
    /// Stands on `cuGraphLaunch`, CUDA 10.0, and `cuStreamSynchronize`; where the host decides,
    /// also on what [`Slice::read_into_blocking`](cuda_handles::Slice::read_into_blocking) and, for
    /// a count of rounds, [`Stream::fill`] do: both for each decision about a loop, the first alone
    /// for one about a branch.
    ///
    /// # Errors
    /// A stream of another context, or one that is capturing; inside a host function; or what the
    /// driver answers. What fails on the way, where the host decides, is [`Error::HostLoop`], which
    /// tells loop and round: what was enqueued before that has run or runs.
    #[doc(alias = "cuGraphLaunch")]
    pub fn run_blocking(&mut self, stream: &impl AsStream) -> Result<()> {
        let stream = stream.as_stream();
        let context = stream.context();
        context.ensure_usable()?;
        let own = self.context();
        let wrong = || WrongContext::new("the stream of the launch", context, "the executable graph", own);
        ensure(own, context, wrong)?;
        // Before the first launch: what cannot be waited for is not begun.
        stream.refuse_capture("running an executable graph to its end")?;
        context.refuse_in_callback()?;
        match &mut self.form {
            Executor::Device(exec) => {
                exec.launch(stream)?;
                Ok(stream.synchronize_blocking()?)
            }
            Executor::Host(host) => host.run_blocking(stream),
        }
    }

    fn context(&self) -> &Context {
        match &self.form {
            Executor::Device(exec) => exec.context(),
            Executor::Host(host) => &host.context,
        }
    }

    /// Whether the host decides in it.
    #[must_use]
    pub fn is_on_host(&self) -> bool {
        matches!(self.form, Executor::Host(_))
    }

    /// What the host has done so far; nothing where the device decides.
    #[must_use]
    pub fn counts(&self) -> HostCounts {
        match &self.form {
            Executor::Device(_) => HostCounts::default(),
            Executor::Host(host) => host.counts,
        }
    }

    /// The graph that it was made of; `None` as for [`GraphExec::graph`].
    #[must_use]
    pub fn graph(&self) -> Option<Graph> {
        self.source.graph()
    }
}

impl HostExec {
    fn run_blocking(&mut self, stream: &Stream) -> Result<()> {
        for other in self.awaited.iter().filter(|other| *other != stream) {
            stream.wait_for_uncaptured(other)?;
        }
        self.counts.runs += 1;
        let Self { program, states, counts, .. } = self;
        let outcome = Run { program, states, counts, stream }.all_blocking();
        match &outcome {
            // Waited for to the end, so that later runs need not, on whatever stream.
            Ok(()) => {
                self.awaited = Vec::new();
                self.runs.iter().for_each(LastRuns::end);
            }
            Err(_) => {
                self.owners.note(stream);
                // It has waited for all others.
                self.awaited = vec![stream.clone()];
                self.runs.iter().for_each(|runs| runs.follow(stream));
            }
        }
        outcome
    }
}

impl fmt::Debug for HostLoopExec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("HostLoopExec")
            .field("is_on_host", &self.is_on_host())
            .field("counts", &self.counts())
            .field("graph", &self.graph())
            .finish()
    }
}
