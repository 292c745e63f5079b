//! The graph: the driver's object, its table of nodes, and the one lock around both.

pub(crate) mod keep;
pub(crate) mod node;

use core::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use cuda_handles::{Context, Error as HandleError, GraphHandle, Owner};

use crate::error::{Error, Result};
use crate::node_name::NodeName;
use crate::state::GraphState;
use crate::state::guard::{GraphGuard, GuardPair};
use crate::state::hierarchy::Hierarchy;
use crate::state::ids::{NodeId, SubgraphId};

/// A CUDA graph: work with an order, to be drawn once and run many times.
///
/// Nodes are added at a [`Frontier`](crate::Frontier): [`root`](Self::root), [`after`](Self::after)
/// or [`Node::then`](crate::Node::then). The graph keeps alive what its nodes use, and so does
/// every executable made by [`instantiate`](Self::instantiate), by itself.
///
/// A `Graph` is a handle: clones are the same graph, and it lives until the last handle of it, of
/// its nodes and of its executables is gone (executables of an [adopted](Self::from_raw) graph do
/// without it). It can be used from any thread; a lock lets one operation at a time reach the
/// driver, which does not guard graphs itself. A host function, which the driver may be waiting
/// for, is refused the lock (`NOT_PERMITTED`) after a moment, if another thread has it.
#[derive(Clone)]
pub struct Graph {
    hierarchy: Arc<Hierarchy>,
    subgraph: SubgraphId,
}

/// Graphs of a context.
pub trait ContextExt {
    /// A new graph without nodes; see [`Graph::new`].
    ///
    /// Stands on `cuGraphCreate`, CUDA 10.0.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuGraphCreate")]
    fn graph(&self) -> Result<Graph>;
}

impl ContextExt for Context {
    fn graph(&self) -> Result<Graph> {
        Graph::new(self)
    }
}

impl Graph {
    /// A new graph without nodes, for work in `context`.
    ///
    /// Stands on `cuGraphCreate`, CUDA 10.0.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuGraphCreate")]
    pub fn new(context: &Context) -> Result<Self> {
        let handle = GraphHandle::create(context)?;
        Ok(Self::of(handle, GraphState::default()))
    }

    /// The root graph of a handle and the table of its nodes. Who finds the handle by the raw graph
    /// finds the graph; if there is one already, that is the result.
    pub(crate) fn of(handle: GraphHandle, state: GraphState) -> Self {
        let hierarchy = Hierarchy::new(handle, state);
        let known = hierarchy.handle().tie(&hierarchy);
        Self { hierarchy: known.unwrap_or(hierarchy), subgraph: SubgraphId::ROOT }
    }

    /// The root graph tied to a handle.
    pub(crate) fn tied_to(handle: &GraphHandle) -> Option<Self> {
        Some(Self { hierarchy: handle.knowledge()?, subgraph: SubgraphId::ROOT })
    }

    /// Whether the graph is where it was.
    pub(crate) fn is_there(&self) -> bool {
        self.look().is_ok_and(|guard| guard.about(self.subgraph).is_some())
    }

    /// Whether a change of the hierarchy failed and could not be taken back.
    pub(crate) fn is_broken(&self) -> bool {
        self.look().is_ok_and(|guard| guard.ensure_usable().is_err())
    }

    /// The error of asking of an embedded graph, if it is there, what only a graph of its own can
    /// do.
    pub(crate) fn is_embedded(&self, what: &'static str) -> Error {
        match self.look() {
            Ok(guard) if guard.about(self.subgraph).is_none() => Error::GraphRemoved,
            Ok(_) => Error::Embedded { what },
            Err(error) => error,
        }
    }

    pub(crate) fn from_hierarchy(hierarchy: Arc<Hierarchy>, subgraph: SubgraphId) -> Self {
        Self { hierarchy, subgraph }
    }

    pub(crate) fn hierarchy(&self) -> &Arc<Hierarchy> {
        &self.hierarchy
    }

    /// What a node that is gone was called, if that is still known. Takes no lock of the graph.
    pub(crate) fn name_of_removed(&self, id: NodeId) -> Option<NodeName> {
        self.hierarchy.name_of_removed(id)
    }

    /// Which hierarchy it belongs to; never given twice.
    pub(crate) fn number(&self) -> u64 {
        self.hierarchy.number()
    }

    /// Another graph of the same hierarchy.
    pub(crate) fn at(&self, subgraph: SubgraphId) -> Self {
        Self { hierarchy: Arc::clone(&self.hierarchy), subgraph }
    }

    /// Which graph of its hierarchy it is.
    pub(crate) fn subgraph(&self) -> SubgraphId {
        self.subgraph
    }

    /// Whether both are graphs of one hierarchy, and so behind one lock.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.hierarchy, &other.hierarchy)
    }

    /// The context whose kernels and memory the nodes use.
    #[inline]
    #[must_use]
    pub fn context(&self) -> &Context {
        self.hierarchy.context()
    }

    /// Keeps `owner` alive for as long as the graph lives, and in every executable made from now
    /// on.
    ///
    /// For what the nodes reach in ways that the library cannot see, such as addresses inside
    /// structs. See also [`Node::keep`](crate::Node::keep). A graph that is gone, because it was
    /// moved or the node that it was embedded in was removed, keeps nothing, and neither does a
    /// forked child, which can use no graph. One that was [adopted](Self::from_raw) keeps it while
    /// a handle of it lives, and by itself from the first node on that is added here.
    ///
    /// While another thread works on the graph this waits. Where it cannot wait, in a host
    /// function, or has waited as long as calls are [patient](cuda_handles::patience), `owner`
    /// lives to the end of the process: nodes may rely on it.
    pub fn keep(&self, owner: impl Into<Owner>) {
        // Declared before the lock, so that what is not kept is dropped after it.
        let owner = owner.into();
        match self.look() {
            Ok(mut guard) => drop(guard.keep(self.subgraph, &owner)),
            Err(Error::GraphMoved | Error::Handles(HandleError::Forked)) => {}
            Err(_) => for_good(owner),
        }
    }

    /// The number of nodes.
    ///
    /// Stands on `cuGraphGetNodes`, CUDA 10.0.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuGraphGetNodes")]
    pub fn len(&self) -> Result<usize> {
        self.enter()?.count()
    }

    /// Whether there are no nodes.
    ///
    /// # Errors
    /// What the driver answers.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    pub(crate) fn handle(&self) -> &GraphHandle {
        self.hierarchy.handle()
    }

    /// Locks the hierarchy for work on the driver's graph; see [`Hierarchy::enter`].
    pub(crate) fn enter(&self) -> Result<GraphGuard<'_>> {
        self.hierarchy.enter(self.subgraph)
    }

    /// As [`enter`](Self::enter), for hot paths, which build the guard in place.
    #[inline(always)]
    pub(crate) fn enter_here(&self) -> Result<GraphGuard<'_>> {
        self.hierarchy.enter_here(self.subgraph)
    }

    /// Locks the hierarchy to look at what is known of it; see [`Hierarchy::look`].
    pub(crate) fn look(&self) -> Result<GraphGuard<'_>> {
        self.hierarchy.look(self.subgraph)
    }

    /// Locks the hierarchies of two graphs; see [`GuardPair::enter`].
    pub(crate) fn enter_with<'g>(&'g self, second: &'g Self) -> Result<GuardPair<'g>> {
        GuardPair::enter((&self.hierarchy, self.subgraph), (&second.hierarchy, second.subgraph))
    }
}

impl PartialEq for Graph {
    fn eq(&self, other: &Self) -> bool {
        self.is_beside(other) && self.subgraph == other.subgraph
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
    static KEPT: Mutex<Vec<Owner>> = Mutex::new(Vec::new());
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(owner);
}
