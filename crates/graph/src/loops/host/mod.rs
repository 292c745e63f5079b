//! The host loop: runs graphs with ready-made loops and branches on drivers without conditional
//! nodes, with decisions made by the host.
//!
//! A graph becomes a [program](plan) of steps: launches of [segments](segment), which are
//! executables of the nodes between two decisions, decisions, and entries into loops and branches.
//! A [run](mod@run) executes it.
//!
//! | File | Contents |
//! | --- | --- |
//! | `mod.rs` | `Graph::instantiate_with_fallback`, `HostLoopExec` |
//! | [`stages`] | a [flattened](crate::clone::flattened) graph, cut into stages |
//! | [`plan`] | the program of steps |
//! | [`segment`] | executables of [copied](crate::clone::node_copy) nodes |
//! | [`run`](mod@run) | one run of a program |
//! | [`rebuild`] | updates, and other executables in the place of one |
//! | [`params`] | graph parameters: updates of segments, and memory that the host tests |

mod params;
mod plan;
mod rebuild;
mod run;
mod segment;
mod stages;

use core::fmt;
use std::sync::Arc;

use cuda_handles::capture::Scratch;
use cuda_handles::capture_mode::relaxed;
use cuda_handles::internal::HeldStream;
use cuda_handles::{AsStream, Context, Owner, Stream, WrongContext};

use crate::error::wrong_context::ensure;
use crate::error::{Error, ExecError, Result};
use crate::exec::GraphExec;
use crate::exec::destroy::after_deferred;
use crate::exec::exec_params::ExecParams;
use crate::exec::instantiate::awaited_streams;
use crate::exec::launch::{turns, wait_for_former};
use crate::exec::options::InstantiateOptions;
use crate::exec::resources::ExecResources;
use crate::exec::source::Source;
use crate::graph::Graph;
use crate::state::last_runs::LastRuns;
use plan::Program;
use rebuild::GivenUp;
use run::{ConditionalState, Run};

/// How to run a graph if the driver lacks conditional nodes for its ready-made loops and branches;
/// see [`Graph::instantiate_with_fallback`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Fallback {
    /// The host decides, and waits for each decision. If the driver has all nodes that the graph
    /// needs, the device decides, as in a [`GraphExec`].
    HostLoop,
    /// The host decides in any case: to look for a difference, or to learn in which round something
    /// fails.
    HostLoopAlways,
}

/// How much the host has done, over all runs of a [`HostLoopExec`].
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct HostCounts {
    /// Runs started.
    pub runs: u64,
    /// Launches of segments between decisions.
    pub launches: u64,
    /// Decisions about loops and branches.
    pub decisions: u64,
    /// Rounds of all loops.
    pub rounds: u64,
}

/// An executable graph that runs to its end before the call returns, since the host may have to
/// decide about loops and branches. Made by [`Graph::instantiate_with_fallback`].
///
/// It owns what its nodes use, as a [`GraphExec`] does. If the [host decides](Self::is_on_host), a
/// run launches the nodes up to a decision, waits for them, reads the number of the
/// [`Test`](crate::Test), and goes on.
///
/// The results are the device's: child graphs are expanded in place, nodes without an order get
/// one, and rounds are counted where [`Loop::rounds_done`](crate::Loop::rounds_done) finds them.
/// Nodes without an order that wait for each other through memory, which graphs do not promise to
/// work, wait for ever.
pub struct HostLoopExec {
    form: Executor,
    source: Source,
    context: Context,
    fallback: Fallback,
    options: InstantiateOptions,
}

enum Executor {
    Device(Box<GraphExec>),
    Host(Box<HostExec>),
    /// It was given up for one that could not be made.
    None(Box<GivenUp>),
}

/// Fields are dropped in this order: executables before what they use.
struct HostExec {
    program: Program,
    states: Vec<ConditionalState>,
    counts: HostCounts,
    /// The streams that a run waits for, until one run has ended: home streams of memory that was
    /// perhaps not yet allocated when the executable was made, streams of the previous executable's
    /// runs, and streams of failed runs, of which something may still be running.
    awaited: Vec<Stream>,
    /// The streams of the runs of the executable in whose place it is, until a run has waited for
    /// them.
    former_runs: Vec<HeldStream>,
    /// The memory that the graph shares with other graphs. A run has it until it ends.
    scratch: Vec<Scratch>,
    /// The last runs, if the graph can have one executable at a time.
    runs: Option<LastRuns>,
    /// The same as in a `GraphExec`.
    owners: ExecResources,
    /// Lives as long as the executable, if the graph can have one at a time.
    _single: Option<Arc<()>>,
}

impl Graph {
    /// Makes an executable that also runs if the driver lacks conditional nodes for the [ready-made
    /// loops and branches](crate::Frontier::while_loop) of the graph: before CUDA 12.3, and before
    /// 12.8 for branches with two bodies. Then the host decides, and a run waits for each decision.
    ///
    /// ```no_run
    /// # use cuda_graph::{Fallback, InstantiateOptions, Test};
    /// # fn example(
    /// #     graph: &cuda_graph::Graph, stream: &cuda_handles::Stream,
    /// #     left: &cuda_handles::Buffer<u32>, step: &cuda_graph::Graph
    /// # ) -> cuda_graph::Result<()> {
    /// let test = cuda_graph::Test::nonzero(left);
    /// let rounds = graph.root().while_loop(test, |body| body.root().child(step))?;
    /// let options = InstantiateOptions::new();
    /// let mut exec = graph.instantiate_with_fallback(Fallback::HostLoop, options)?;
    /// exec.run_blocking(stream)?;
    /// let rounds = rounds.rounds_done_blocking(stream)?;
    /// println!("{rounds} rounds, by the host: {}", exec.is_on_host());
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// As on the device, a graph with loops or branches can have one executable at a time.
    ///
    /// If the device decides, this is [`instantiate_with`](Self::instantiate_with). If the host
    /// decides, the nodes between two decisions are copied into a graph of their own, with the
    /// parameters that the driver reports. For each such graph it calls `cuGraphCreate`,
    /// `cuGraphAddNode`, `cuGraphInstantiateWithParams` and `cuGraphDestroy` (CUDA 12.2).
    ///
    /// # Errors
    /// As [`instantiate_with`](Self::instantiate_with). If the host decides:
    /// [`LoopError::NotOnHost`](crate::LoopError::NotOnHost) for a node with a condition, a kernel
    /// that sets one, or a memory node; [`ExecError::DeviceLaunch`] for an executable that kernels
    /// launch.
    #[doc(alias = "cuGraphInstantiate")]
    #[doc(alias = "cudaGraphInstantiate")]
    pub fn instantiate_with_fallback(
        &self,
        fallback: Fallback,
        options: InstantiateOptions,
    ) -> Result<HostLoopExec> {
        let on_host = match fallback {
            Fallback::HostLoop => self.look()?.has_placeholders(),
            Fallback::HostLoopAlways => true,
        };
        let form = match on_host {
            true => Executor::Host(Box::new(after_deferred(self, || self.host(&options))?)),
            false => Executor::Device(Box::new(self.instantiate_with(options.clone())?)),
        };
        let (source, context) = (Source::of(self), self.context().clone());
        Ok(HostLoopExec { form, source, context, fallback, options })
    }

    fn host(&self, options: &InstantiateOptions) -> Result<HostExec> {
        // Declared before the lock, so that nothing is dropped under it if a call fails.
        let mut spare = None;
        let base;
        if !self.subgraph().is_root() {
            return Err(self.refuse_embedded("instantiated"));
        }
        if options.is_for_device_launch() {
            return Err(Error::Exec(ExecError::DeviceLaunch { node: None, why: "the host decides in it" }));
        }
        let context = self.context();
        let turn = options.upload_stream().map(|stream| self.upload_turn(stream)).transpose()?;
        let mut guard = self.enter_with_spare(&mut spare)?;
        guard.ensure_read()?;
        guard.ensure_conditions_used()?;
        let single = guard.claim_only_executable()?;
        let (awaited, scratch) = (awaited_streams(&guard), guard.scratch());
        let runs = single.as_ref().map(|_| guard.last_runs.clone());
        runs.iter().for_each(LastRuns::begin);
        let mut owners = guard.owners();
        // It may have been given user objects in a capture, of which the segments have no share.
        owners.extend(self.handle().is_owned().then(|| Owner::other(self.clone())));
        base = owners;
        let program = {
            let _relaxed = relaxed(context.driver());
            context.with_current(|| Program::make(&mut guard, options))
        };
        let program = program??;
        if let Some(single) = &single {
            guard.executable = Arc::downgrade(single);
        }
        let params = ExecParams::of(&guard, spare);
        drop(guard);
        drop(turn);
        let owners = ExecResources::new(self, base, params, None);
        let states = vec![ConditionalState::default(); program.conditionals.len()];
        let counts = HostCounts::default();
        let former_runs = Vec::new();
        Ok(HostExec { program, states, counts, awaited, former_runs, scratch, runs, owners, _single: single })
    }
}

impl HostLoopExec {
    /// Runs the whole graph on `stream`, behind all work enqueued there, and **waits** for its end
    /// and, if the host decides, for each decision.
    ///
    /// Calls `cuGraphLaunch` (CUDA 10.0) and `cuStreamSynchronize`. If the host decides, each
    /// decision also calls the driver as
    /// [`Slice::read_into_blocking`](cuda_handles::Slice::read_into_blocking) does, and for a loop
    /// as [`Stream::fill`] does for the count of rounds.
    ///
    /// # Errors
    /// - `stream` is of another context, or is capturing.
    /// - The call is made inside a host function.
    /// - The values of graph parameters do not fit; see [`GraphExec::launch`]. Nothing has run.
    /// - [`Error::HostLoop`]: a step of a run failed where the host
    ///   decides. The error names the loop and round; work enqueued before has run or is running.
    /// - [`ExecError::NotRebuilt`]: there is no executable.
    /// - The driver fails.
    #[doc(alias = "cuGraphLaunch")]
    #[doc(alias = "cudaGraphLaunch")]
    pub fn run_blocking(&mut self, stream: &impl AsStream) -> Result<()> {
        let stream = stream.as_stream();
        let context = stream.context();
        context.ensure_usable()?;
        let own = &self.context;
        let wrong = || WrongContext::new("the stream of the launch", context, "the executable graph", own);
        ensure(own, context, wrong)?;
        // Checked before the first launch: a run that cannot be waited for is not started.
        stream.refuse_capture("running an executable graph to its end")?;
        context.refuse_in_callback()?;
        match &mut self.form {
            Executor::Device(exec) => {
                exec.launch(stream)?;
                Ok(stream.synchronize_blocking()?)
            }
            Executor::Host(host) => {
                host.apply_params(self.source.graph())?;
                host.run_blocking(stream)
            }
            Executor::None(none) => Err(none.error()),
        }
    }

    /// Whether the host decides.
    #[must_use]
    pub fn is_on_host(&self) -> bool {
        matches!(self.form, Executor::Host(_))
    }

    /// How much the host has done so far; zeros if the device decides.
    #[must_use]
    pub fn counts(&self) -> HostCounts {
        match &self.form {
            Executor::Device(_) | Executor::None(_) => HostCounts::default(),
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
        wait_for_former(&self.former_runs, stream)?;
        let mut turns = turns(&self.scratch, stream)?;
        self.counts.runs += 1;
        let Self { program, states, counts, owners, .. } = self;
        let values = owners.since.params.as_ref().map_or(&[][..], |params| params.values());
        let outcome = Run { program, states, counts, stream, values }.all_blocking();
        turns.iter_mut().for_each(|turn| turn.launched(stream));
        drop(turns);
        // The stream has waited for them.
        self.former_runs = Vec::new();
        match &outcome {
            // Waited for, so that later runs need not wait, on whatever stream.
            Ok(()) => {
                self.owners.ended(stream);
                self.awaited = Vec::new();
                self.runs.iter().for_each(LastRuns::end);
            }
            Err(_) => {
                self.owners.launched(stream);
                // The stream has waited for all others.
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
