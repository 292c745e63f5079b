//! The graph handle and the node handle.
//!
//! A [`Graph`] is an [`Arc`] of a [`Hierarchy`] with the id of one graph in it; a
//! [`Node`](node::Node) is a `Graph` with the id of one node. Handles have no state of their own:
//! every operation locks the hierarchy ([`Graph::enter`]) and finds the record by its id.

pub(crate) mod keep;
pub(crate) mod node;

use core::fmt;
use std::sync::Arc;

use cuda_handles::internal::{Lock, Rank};
use cuda_handles::{Context, Error as HandleError, GraphHandle, Owner};

use crate::error::wrong_context::Spans;
use crate::error::{EmbedError, Error, NodeError, Result};
use crate::node_name::NodeName;
use crate::state::GraphState;
use crate::state::guard::{GraphGuard, GuardPair};
use crate::state::hierarchy::Hierarchy;
use crate::state::ids::{NodeId, SubgraphId};

/// A CUDA graph: work and its order, built once and run many times.
///
/// Nodes are added at a [`Frontier`](crate::Frontier): at the [`root`](Self::root),
/// [`after`](Self::after) other nodes, or at [`Node::then`](crate::Node::then). The graph keeps
/// alive everything that its nodes use, and so does every executable made by
/// [`instantiate`](Self::instantiate).
///
/// A `Graph` is a reference-counted handle: clones refer to the same graph. It lives until the last
/// handle of it, of its nodes and of its executables is dropped (executables of an
/// [adopted](Self::from_raw) graph do not need it). It is thread-safe: the driver does not
/// synchronize calls on a graph, so a lock lets one operation at a time reach it. In a host
/// function, which the driver may be waiting for, an operation does not wait for the lock: if
/// another thread holds it for more than a moment, the operation fails with `NOT_PERMITTED`.
///
/// ```no_run
/// # use cuda_graph::{ContextExt, Result};
/// # use cuda_handles::{Context, Stream};
/// # fn example(context: &Context, stream: &Stream) -> Result<()> {
/// # let zeros = stream.zeros::<f32>(1024)?;
/// let graph = context.graph()?;
/// let first = graph.root().fill(&zeros, 1.0)?;
/// first.then().empty()?;
/// graph.instantiate()?.launch(stream)?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
#[doc(alias = "cudaGraph_t")]
#[doc(alias = "CUgraph")]
pub struct Graph {
    hierarchy: Arc<Hierarchy>,
    subgraph: SubgraphId,
}

/// Methods of this crate on a [`Context`].
pub trait ContextExt {
    /// Creates a graph without nodes; see [`Graph::new`].
    ///
    /// Calls `cuGraphCreate` (CUDA 10.0).
    ///
    /// # Errors
    /// The driver's error.
    #[doc(alias = "cuGraphCreate")]
    #[doc(alias = "cudaGraphCreate")]
    fn graph(&self) -> Result<Graph>;

    /// Creates a graph without nodes whose nodes may be of other contexts, too; see
    /// [`Graph::spanning`].
    ///
    /// Calls `cuGraphCreate` (CUDA 10.0).
    ///
    /// # Errors
    /// The driver's error.
    fn graph_spanning(&self, others: &[&Context]) -> Result<Graph>;
}

impl ContextExt for Context {
    fn graph(&self) -> Result<Graph> {
        Graph::new(self)
    }

    fn graph_spanning(&self, others: &[&Context]) -> Result<Graph> {
        Graph::spanning(self, others)
    }
}

impl Graph {
    /// Creates a graph without nodes, for work in `context`.
    ///
    /// Calls `cuGraphCreate` (CUDA 10.0).
    ///
    /// # Errors
    /// The driver's error.
    #[doc(alias = "cuGraphCreate")]
    #[doc(alias = "cudaGraphCreate")]
    pub fn new(context: &Context) -> Result<Self> {
        let handle = GraphHandle::create(context)?;
        Ok(Self::of(handle, GraphState::default()))
    }

    /// Creates a graph without nodes, for work in `home` and in other contexts, such as those of
    /// other devices.
    ///
    /// Kernels, fills, copies, events and child graphs may then be of each of these contexts, and
    /// executables are launched on streams of each of them. Everything of a context that was not
    /// stated is refused, as it is in a graph for one context.
    ///
    /// - A fill runs in the context of its memory. [`copy`](crate::Frontier::copy) also copies from
    ///   one context to another.
    /// - A kernel uses memory of its own context, plain memory of contexts that it has
    ///   [access to](Context::enable_peer_access), memory of pools that
    ///   [grant its device access](cuda_handles::MemPool::grant_access), memory of allocation nodes
    ///   [for its device](crate::AllocOptions::accessible_from), and pinned memory.
    /// - Memory that graph parameters stand for, memory operations, semaphores and the memory of
    ///   host functions are of the home. So is the stream of a launch that leaves graph memory.
    /// - Such a graph has no conditions, and no loops and branches made of them: the driver refuses
    ///   most of them without a reason. It runs as drawn, whatever
    ///   [shape](crate::InstantiateOptions::shape) is asked for.
    ///
    /// Launches of one executable run one after the other, also on streams of several devices.
    ///
    /// ```no_run
    /// # use cuda_graph::{Graph, Result};
    /// # use cuda_handles::{Context, Stream};
    /// # fn example(here: &Context, there: &Context, stream: &Stream) -> Result<()> {
    /// # let zeros = here.alloc_blocking::<f32>(1024)?;
    /// # let far = there.alloc_blocking::<f32>(1024)?;
    /// let graph = Graph::spanning(here, &[there])?;
    /// let filled = graph.root().fill(&far, 1.0)?;
    /// filled.then().copy(&far, &zeros)?;
    /// graph.instantiate()?.launch(stream)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Calls `cuGraphCreate` (CUDA 10.0).
    ///
    /// # Errors
    /// The driver's error; or one of the contexts is lost.
    #[doc(alias = "multi-GPU")]
    #[doc(alias = "cuGraphCreate")]
    #[doc(alias = "cudaGraphCreate")]
    pub fn spanning(home: &Context, others: &[&Context]) -> Result<Self> {
        others.iter().try_for_each(|other| other.ensure_usable())?;
        let graph = Self::new(home)?;
        graph.hierarchy.widen(others.iter().copied());
        Ok(graph)
    }

    /// The contexts that the nodes may be of: its [home](Self::context) first, and then those
    /// beside it that were [stated](Self::spanning), or whose streams were in the
    /// [capture](crate::StreamExt).
    pub fn contexts(&self) -> impl Iterator<Item = &Context> {
        core::iter::once(self.context()).chain(self.others())
    }

    /// The root graph of a handle, with its state. The graph is tied to the handle, so that it is
    /// found by the raw value; if another graph is tied to it already, the result is that one.
    pub(crate) fn of(handle: GraphHandle, state: GraphState) -> Self {
        Self::numbered(handle, state, Hierarchy::next_number())
    }

    /// [`of`](Self::of) for a hierarchy whose number was taken before.
    pub(crate) fn numbered(handle: GraphHandle, state: GraphState, number: u64) -> Self {
        let hierarchy = Hierarchy::new(handle, state, number);
        let known = hierarchy.handle().tie(&hierarchy);
        Self { hierarchy: known.unwrap_or(hierarchy), subgraph: SubgraphId::ROOT }
    }

    /// The root graph tied to a handle.
    pub(crate) fn tied_to(handle: &GraphHandle) -> Option<Self> {
        Some(Self { hierarchy: handle.knowledge()?, subgraph: SubgraphId::ROOT })
    }

    /// Whether the graph is still at its place in the hierarchy.
    ///
    /// # Errors
    /// The hierarchy cannot be locked here, as in a host function while another thread works on it.
    pub(crate) fn exists(&self) -> Result<bool> {
        match self.look() {
            Ok(guard) => Ok(guard.facts(self.subgraph).is_some()),
            Err(Error::Node(NodeError::GraphMoved)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Whether a change of the hierarchy failed and could not be undone.
    pub(crate) fn is_broken(&self) -> bool {
        self.hierarchy.ensure_whole().is_err()
    }

    /// The error of an operation that only a root graph has. If the embedded graph is gone, the
    /// error says that instead.
    pub(crate) fn refuse_embedded(&self, what: &'static str) -> Error {
        match self.look() {
            Ok(guard) if guard.facts(self.subgraph).is_none() => Error::Node(NodeError::GraphRemoved),
            Ok(_) => Error::Embed(EmbedError::Embedded { what }),
            Err(error) => error,
        }
    }

    pub(crate) fn from_hierarchy(hierarchy: Arc<Hierarchy>, subgraph: SubgraphId) -> Self {
        Self { hierarchy, subgraph }
    }

    pub(crate) fn hierarchy(&self) -> &Arc<Hierarchy> {
        &self.hierarchy
    }

    /// The name of a removed node, if it is still remembered. Does not take the lock.
    pub(crate) fn name_of_removed(&self, id: NodeId) -> Option<NodeName> {
        self.hierarchy.name_of_removed(id)
    }

    /// The number of its hierarchy; never used twice.
    pub(crate) fn number(&self) -> u64 {
        self.hierarchy.number()
    }

    /// Another graph of the same hierarchy.
    pub(crate) fn at(&self, subgraph: SubgraphId) -> Self {
        Self { hierarchy: Arc::clone(&self.hierarchy), subgraph }
    }

    /// The id of the graph in its hierarchy.
    pub(crate) fn subgraph(&self) -> SubgraphId {
        self.subgraph
    }

    /// Whether both graphs are in one hierarchy, and so behind one lock.
    pub(crate) fn is_in_same_hierarchy(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.hierarchy, &other.hierarchy)
    }

    /// The context whose kernels and memory the nodes use; the home of a graph that
    /// [spans](Self::spanning) several.
    #[inline]
    #[must_use]
    pub fn context(&self) -> &Context {
        self.hierarchy.context()
    }

    /// Keeps `owner` alive for as long as the graph lives, and as long as any executable made from
    /// now on.
    ///
    /// This is for memory that the nodes reach in ways invisible to the library, such as through
    /// addresses inside structs. See also [`Node::keep`](crate::Node::keep). A graph that was
    /// moved, or removed with the node that it was embedded in, keeps nothing; neither does a
    /// forked child, which cannot use graphs. An [adopted](Self::from_raw) graph keeps the owner
    /// while a handle of it lives; once it is [lent](Self::lend), which the first node added here
    /// does, the graph itself retains the owner.
    ///
    /// While another thread works on the graph, this call waits. If it cannot wait, in a host
    /// function, or has waited longer than calls are [patient](cuda_handles::patience), `owner`
    /// stays alive to the end of the process, since nodes may rely on it.
    pub fn keep(&self, owner: impl Into<Owner>) {
        // Declared before the guard, so that an owner that is not kept is dropped after the lock.
        let owner = owner.into();
        match self.look() {
            Ok(mut guard) => drop(guard.keep(self.subgraph, &owner)),
            Err(Error::Node(NodeError::GraphMoved) | Error::Handles(HandleError::Forked)) => {}
            Err(_) => for_good(owner),
        }
    }

    /// The number of nodes.
    ///
    /// Calls `cuGraphGetNodes` (CUDA 10.0).
    ///
    /// # Errors
    /// The driver's error.
    #[doc(alias = "cuGraphGetNodes")]
    #[doc(alias = "cudaGraphGetNodes")]
    pub fn len(&self) -> Result<usize> {
        self.enter_unread()?.count()
    }

    /// Whether there are no nodes.
    ///
    /// # Errors
    /// The driver's error.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    pub(crate) fn handle(&self) -> &GraphHandle {
        self.hierarchy.handle()
    }

    /// Locks the hierarchy for driver calls; see [`Hierarchy::enter`].
    pub(crate) fn enter(&self) -> Result<GraphGuard<'_>> {
        self.hierarchy.enter(self.subgraph)
    }

    /// Locks the hierarchy for what needs no node; see [`Hierarchy::enter_unread`].
    pub(crate) fn enter_unread(&self) -> Result<GraphGuard<'_>> {
        self.hierarchy.enter_unread(self.subgraph)
    }

    /// [`enter`](Self::enter) for hot paths: the guard is built in place.
    #[inline(always)]
    pub(crate) fn enter_here(&self) -> Result<GraphGuard<'_>> {
        self.hierarchy.enter_here(self.subgraph)
    }

    /// Locks the hierarchy to read its state; see [`Hierarchy::look`].
    pub(crate) fn look(&self) -> Result<GraphGuard<'_>> {
        self.hierarchy.look(self.subgraph)
    }

    /// Locks the hierarchies of two graphs; see [`GuardPair::enter`].
    pub(crate) fn enter_with<'g>(&'g self, other: &'g Self) -> Result<GuardPair<'g>> {
        GuardPair::enter((&self.hierarchy, self.subgraph), (&other.hierarchy, other.subgraph))
    }
}

impl Spans for Graph {
    #[inline]
    fn home(&self) -> &Context {
        self.hierarchy.context()
    }

    #[inline]
    fn others(&self) -> &[Context] {
        self.hierarchy.others()
    }
}

impl PartialEq for Graph {
    fn eq(&self, other: &Self) -> bool {
        self.is_in_same_hierarchy(other) && self.subgraph == other.subgraph
    }
}

impl Eq for Graph {}

impl core::hash::Hash for Graph {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        Arc::as_ptr(&self.hierarchy).hash(state);
        self.subgraph.hash(state);
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tuple = formatter.debug_tuple("Graph");
        tuple.field(&self.hierarchy.handle().as_raw());
        if !self.subgraph.is_root() {
            tuple.field(&self.subgraph);
        }
        tuple.finish()
    }
}

/// Keeps an owner to the end of the process.
fn for_good(owner: Owner) {
    static KEPT: Lock<Vec<Owner>> = Lock::new(Rank::KeptForGood, Vec::new());
    KEPT.lock().push(owner);
}
