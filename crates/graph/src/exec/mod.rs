//! Executable graphs: made by instantiation, launched on streams, owners of what they use.
//!
//! | File | Contents |
//! | --- | --- |
//! | `mod.rs` | [`GraphExec`], an executable |
//! | [`options`] | `InstantiateOptions` |
//! | [`instantiate`] | `Graph::instantiate`: checks, the driver's call, its failure in words |
//! | [`launch`] | launches and uploads |
//! | [`exec_params`] | the values of graph parameters, and the nodes that wait for an update |
//! | [`spare`] | memory for fills that parameters disable |
//! | [`source`] | the graph that the executable was made of |
//! | [`node_updates`] | which nodes the executable has, and what updates have set |
//! | [`counterparts`] | nodes of two graphs that stand for the same node of the executable |
//! | [`recorded_events`] | the events that each launch records |
//! | [`last_run`] | where the executable ran last |
//! | [`resources`] | when the executable drops what it keeps alive |
//! | [`since`] | what updates have brought to the executable |
//! | [`destroy`] | when an executable and what it owns are destroyed |

pub(crate) mod counterparts;
pub(crate) mod destroy;
pub(crate) mod exec_params;
pub(crate) mod instantiate;
pub(crate) mod last_run;
pub(crate) mod launch;
pub(crate) mod node_updates;
pub(crate) mod options;
pub(crate) mod recorded_events;
pub(crate) mod resources;
pub(crate) mod since;
pub(crate) mod source;
pub(crate) mod spare;

use core::fmt;
use cuda_handles::{Context, GraphExecHandle};
use cuda_sys::{CUgraphExec, CUgraphInstantiate_flags as Flags, CUgraphNode, Call};

use crate::error::wrong_context::Spans;
use crate::error::{Error, ExecError, Refusal, Result};
use crate::exec::launch::LaunchState;
use crate::exec::node_updates::NodeUpdates;
use crate::exec::options::InstantiateOptions;
use crate::exec::resources::ExecResources;
use crate::exec::source::Source;
use crate::graph::Graph;
use crate::shape::Shaping;
use crate::shape::by_data::apart::Apart;
use crate::shape::report::ShapeReport;
use crate::shape::shaped::ShapedGraph;
use crate::shape::substitute::Substitutes;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;

/// An executable graph: a [`Graph`] as it was when it was [instantiated](Graph::instantiate), ready
/// to be launched.
///
/// ```no_run
/// # fn example(
/// #     graph: &cuda_graph::Graph, stream: &cuda_handles::Stream
/// # ) -> cuda_graph::Result<()> {
/// let mut exec = graph.instantiate()?;
/// for _ in 0..100 {
///     exec.launch(stream)?;
/// }
/// stream.synchronize_blocking()?;
/// # Ok(())
/// # }
/// ```
///
/// An executable owns a share of all that its nodes use, independently of the graph: nodes that are
/// removed from the graph stay in it, and memory is freed only once no launch can use it.
///
/// It never overlaps itself. The driver runs its launches one after the other, on whatever streams
/// they are. To run the same work concurrently, instantiate again.
///
/// # Dropping it
///
/// An executable can be dropped while it runs; the run still ends as it should, and the drop does
/// not wait for it. What the nodes use is released in the drop if the runs have ended by then, and
/// by the [reaper](cuda_handles::reaper) otherwise. So once its stream was synchronised and the
/// executable dropped,
/// [`SharedHostBuffer::try_unique`](cuda_handles::SharedHostBuffer::try_unique) of memory that it
/// used succeeds.
///
/// The driver's own executable is destroyed in the drop, too, unless it has **conditional nodes**.
/// Destroying one of those makes the driver wait for all work on the device, and the launches of
/// every thread with it. So it is deferred, until
///
/// - [`reaper::drain`](cuda_handles::reaper::drain) is called;
/// - the graph is instantiated again, for the device or the [host loop](crate::HostLoopExec);
/// - the graph is [lent](Graph::lend);
/// - an allocation, instantiation or launch finds no device memory left, while no stream has work.
///
/// If the graph was lent or [adopted](Graph::from_raw) when the executable was made, other code may
/// instantiate it next, and knows of no drain. Such an executable is destroyed in the drop if no
/// stream of this library has work in the context, and by the reaper once none has otherwise. Work
/// on streams that this library does not know is not seen: if the driver waits for it, the drop
/// returns after 100 ms, and the destruction goes on.
#[doc(alias = "CUgraphExec")]
#[doc(alias = "cudaGraphExec_t")]
#[doc(alias = "cuGraphExecDestroy")]
#[doc(alias = "cudaGraphExecDestroy")]
#[doc(alias = "executable graph")]
pub struct GraphExec {
    /// `Err` after the executable was given up for one that could not be made.
    pub(crate) handle: Result<GraphExecHandle, Box<NotRebuilt>>,
    /// How it was shaped; `None` if no shape was asked for. Declared before the owners, so that the
    /// graph of its own goes before what the nodes there use.
    pub(crate) shaping: Option<Box<Shaping>>,
    context: Context,
    pub(crate) owners: ExecResources,
    pub(crate) source: Source,
    pub(crate) launches: LaunchState,
    pub(crate) updates: NodeUpdates,
    options: InstantiateOptions,
    /// The nodes that are apart in it, if edges were left out.
    pub(crate) apart: Option<Box<Apart>>,
}

/// The driver's executable, and the nodes by which the driver knows its nodes.
#[derive(Clone, Copy)]
pub(crate) struct ExecNodes<'e> {
    pub(crate) handle: &'e GraphExecHandle,
    pub(crate) shaped: Option<&'e ShapedGraph>,
}

/// Why there is no executable.
#[derive(Clone)]
pub(crate) struct NotRebuilt {
    /// Why the executable was not updated.
    pub(crate) refusal: Refusal,
    /// Why the next one was not made.
    pub(crate) cause: String,
}

impl Spans for GraphExec {
    #[inline]
    fn home(&self) -> &Context {
        &self.context
    }

    fn others(&self) -> &[Context] {
        self.owners.others()
    }
}

impl GraphExec {
    pub(crate) fn new(
        handle: GraphExecHandle,
        owners: ExecResources,
        graph: &Graph,
        launches: LaunchState,
        updates: NodeUpdates,
        options: InstantiateOptions,
    ) -> Self {
        let (context, source) = (handle.context().clone(), Source::of(graph));
        let handle = Ok(handle);
        Self { handle, shaping: None, context, owners, source, launches, updates, options, apart: None }
    }

    /// It, with how it was shaped.
    pub(crate) fn shaped_as(self, mut shaping: Option<Shaping>) -> Self {
        let apart = shaping.as_mut().and_then(|shaping| shaping.apart.take());
        Self { shaping: shaping.map(Box::new), apart: apart.map(Box::new), ..self }
    }

    /// The driver's executable.
    ///
    /// # Errors
    /// [`ExecError::NotRebuilt`].
    #[inline]
    pub(crate) fn live(&self) -> Result<&GraphExecHandle> {
        self.handle.as_ref().map_err(|why| not_rebuilt(why))
    }

    /// What [shaping](InstantiateOptions::shape) has done to the graph of the executable, and what
    /// it has left and why; `None` if no shape and no [order](InstantiateOptions::order) was asked
    /// for.
    #[must_use]
    pub fn shape_report(&self) -> Option<&ShapeReport> {
        self.shaping.as_ref().map(|shaping| &shaping.report)
    }

    /// The graph of its own that it was made of, if it was shaped.
    pub(crate) fn shaped(&self) -> Option<&ShapedGraph> {
        self.shaping.as_ref().and_then(|shaping| shaping.graph.as_ref())
    }

    /// The driver's executable, with its nodes.
    ///
    /// # Errors
    /// [`ExecError::NotRebuilt`].
    pub(crate) fn nodes(&self) -> Result<ExecNodes<'_>> {
        Ok(ExecNodes::new(self.live()?, self.shaping.as_deref()))
    }

    /// The options that it was made with.
    pub fn options(&self) -> &InstantiateOptions {
        &self.options
    }

    /// The options that the driver reports: [`auto_free`](InstantiateOptions::auto_free) and
    /// [`device_launch`](InstantiateOptions::device_launch). It does not report the others.
    ///
    /// Calls `cuGraphExecGetFlags` (CUDA 12.0).
    ///
    /// # Errors
    /// [`Error::Handles`](crate::Error::Handles) if the driver fails or is too old.
    #[doc(alias = "cuGraphExecGetFlags")]
    #[doc(alias = "cudaGraphExecGetFlags")]
    pub fn driver_options(&mut self) -> Result<InstantiateOptions> {
        let (context, handle) = (&self.context, self.live()?);
        context.ensure_usable()?;
        let mut flags = 0;
        // SAFETY: the executable is live and the out pointer valid.
        let result = unsafe { context.driver().cuGraphExecGetFlags(handle.as_raw(), &raw mut flags) };
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

    /// The graph that it was made of, also after an [update](Self::update) from another one. The
    /// executable keeps a graph of this library alive, but not
    /// an [adopted](Graph::from_raw) one: `None` once that has no other handle.
    #[must_use]
    pub fn graph(&self) -> Option<Graph> {
        self.source.graph()
    }

    #[inline]
    pub(crate) fn context(&self) -> &Context {
        &self.context
    }

    /// The driver's own handle, for calls that this library lacks. It is destroyed with the
    /// `GraphExec`, or [later](Self#dropping-it).
    ///
    /// If such a call launches it, and this library has no handle of the stream when the
    /// `GraphExec` is dropped or [updated](Self::update), the run has to be over by then: what its
    /// nodes use is released once all streams with handles are idle. A run of an executable with
    /// conditional nodes has to be over on whatever stream it is.
    ///
    /// From now on nodes cannot be updated, and graph parameters cannot be set. A launch with
    /// values that were set before, and not launched, is refused
    /// ([`UpdateError::Lent`](crate::UpdateError::Lent)).
    ///
    /// Null if there is none ([`ExecError::NotRebuilt`]).
    #[must_use]
    pub fn as_raw(&self) -> CUgraphExec {
        self.owners.lend();
        self.raw()
    }

    fn raw(&self) -> CUgraphExec {
        self.handle.as_ref().map_or(core::ptr::null_mut(), GraphExecHandle::as_raw)
    }
}

impl<'e> ExecNodes<'e> {
    pub(crate) fn new(handle: &'e GraphExecHandle, shaping: Option<&'e Shaping>) -> Self {
        Self { handle, shaped: shaping.and_then(|shaping| shaping.graph.as_ref()) }
    }

    /// The nodes in whose place a kernel of the library runs, if it was shaped.
    pub(crate) fn substitutes(&self) -> Option<&'e Substitutes> {
        self.shaped.map(ShapedGraph::substitutes)
    }

    /// The node by which the driver knows a node of the executable; `None` for one that shaping has
    /// put others in place of.
    ///
    /// # Errors
    /// [`NodeError::Removed`](crate::NodeError::Removed).
    pub(crate) fn raw_key(&self, keys: &GraphGuard<'_>, key: NodeId) -> Result<Option<CUgraphNode>> {
        let raw = keys.raw_of(key)?;
        Ok(self.shaped.map_or(Some(raw), |shaped| shaped.node(key)))
    }
}

#[cold]
pub(crate) fn not_rebuilt(why: &NotRebuilt) -> Error {
    ExecError::NotRebuilt { cause: why.cause.clone() }.into()
}

impl fmt::Debug for GraphExec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("GraphExec").field("raw", &self.raw()).field("graph", &self.graph()).finish()
    }
}
