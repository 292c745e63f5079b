//! The graph: the driver's object, its table of nodes, and the one lock around both.

pub(crate) mod keep;
pub(crate) mod name;
pub(crate) mod node;

use core::fmt;
use core::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cuda_handles::{Context, Error as HandleError, GraphHandle, Owner, lock_unless_inside};
use cuda_sys::{CUgraph, CUgraphNode, CUresult, Call, Driver};

use crate::error::{Error, Result};
use crate::graph::name::NodeName;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::iterative_drop::LastingState;
use crate::state::{DeferredDrops, GraphState, RemovedNames};

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
    root: Arc<Hierarchy>,
    subgraph: SubgraphId,
}

/// The graph that was made, with those embedded in its nodes.
pub(crate) struct Hierarchy {
    /// Before the table: the driver's graph goes first, then what its nodes used.
    handle: GraphHandle,
    table: LastingState,
    removed: Arc<RemovedNames>,
    /// Which hierarchy it is; never given twice.
    number: u64,
}

impl Hierarchy {
    pub(crate) fn handle(&self) -> &GraphHandle {
        &self.handle
    }
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
    pub(crate) fn of(handle: GraphHandle, table: GraphState) -> Self {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let removed = Arc::clone(&table.removed);
        let root = Arc::new(Hierarchy { handle, table: LastingState::new(table), removed, number });
        let known = root.handle.tie(&root);
        Self { root: known.unwrap_or(root), subgraph: SubgraphId::ROOT }
    }

    /// The root graph tied to a handle.
    pub(crate) fn tied_to(handle: &GraphHandle) -> Option<Self> {
        Some(Self { root: handle.knowledge()?, subgraph: SubgraphId::ROOT })
    }

    /// Whether the graph is where it was.
    pub(crate) fn is_there(&self) -> bool {
        self.look().is_ok_and(|guard| guard.about(self.subgraph).is_some())
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

    pub(crate) fn from_root(root: Arc<Hierarchy>, subgraph: SubgraphId) -> Self {
        Self { root, subgraph }
    }

    pub(crate) fn hierarchy(&self) -> &Arc<Hierarchy> {
        &self.root
    }

    /// What a node that is gone was called, if that is still known. Takes no lock of the graph.
    pub(crate) fn name_of_removed(&self, id: NodeId) -> Option<NodeName> {
        self.root.removed.find(id)
    }

    /// Which hierarchy it belongs to; never given twice.
    pub(crate) fn number(&self) -> u64 {
        self.root.number
    }

    /// Another graph of the same hierarchy.
    pub(crate) fn at(&self, subgraph: SubgraphId) -> Self {
        Self { root: Arc::clone(&self.root), subgraph }
    }

    /// Which graph of its hierarchy it is.
    pub(crate) fn subgraph(&self) -> SubgraphId {
        self.subgraph
    }

    /// Whether both are graphs of one hierarchy, and so behind one lock.
    pub(crate) fn is_beside(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.root, &other.root)
    }

    /// The context whose kernels and memory the nodes use.
    #[inline]
    #[must_use]
    pub fn context(&self) -> &Context {
        self.root.handle.context()
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
        &self.root.handle
    }

    /// Takes the lock for work on the driver's graph; refused where the driver cannot be called any
    /// more, and where the graph is gone with the node that it was embedded in, or was moved.
    pub(crate) fn enter(&self) -> Result<GraphGuard<'_>> {
        self.enter_here()
    }

    /// As [`enter`](Self::enter), for where it matters that what comes back is made in place.
    #[inline(always)]
    pub(crate) fn enter_here(&self) -> Result<GraphGuard<'_>> {
        self.context().ensure_usable()?;
        let mut guard = self.lock()?;
        guard.locate()?;
        Ok(guard)
    }

    /// Takes the lock to look into the table, which makes sense after the context was lost, too.
    /// Refused in a forked child: the lock may have been held by a thread that does not exist
    /// there; and where the graph was moved.
    pub(crate) fn look(&self) -> Result<GraphGuard<'_>> {
        match self.context().ensure_usable() {
            Err(error @ HandleError::Forked) => Err(error.into()),
            _ => {
                let guard = self.lock()?;
                if guard.is_gone() { Err(Error::GraphMoved) } else { Ok(guard) }
            }
        }
    }

    /// Takes the lock of the root graph. It is held for driver calls on this graph, and nothing is
    /// dropped under it. Whoever does not [`enter`](Self::enter) asks first whether the driver can
    /// be called, and then [where](GraphGuard::locate) the graph is. Some of the calls wait for the
    /// device, so a host function does not wait for the lock: it may be what they wait for.
    #[inline(always)]
    fn lock(&self) -> Result<GraphGuard<'_>> {
        // What runs under the lock does not panic; a table that saw one anyway is consistent
        // between calls.
        let table = lock_unless_inside(self.root.handle.context(), "the graph", &self.root.table)?;
        let raw = self.root.handle.as_raw();
        Ok(GraphGuard { root: &self.root, subgraph: self.subgraph, raw, table, _after: None })
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
        Arc::as_ptr(&self.root).hash(state);
        self.subgraph.hash(state);
    }
}

impl fmt::Debug for Graph {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut tuple = formatter.debug_tuple("Graph");
        tuple.field(&self.root.handle.as_raw());
        if !self.subgraph.is_root() {
            tuple.field(&self.subgraph);
        }
        tuple.finish()
    }
}

/// A graph whose lock is held: the table of its hierarchy, and the driver's graph.
pub(crate) struct GraphGuard<'g> {
    root: &'g Arc<Hierarchy>,
    subgraph: SubgraphId,
    /// Of the place.
    raw: CUgraph,
    table: MutexGuard<'g, GraphState>,
    /// Below the guard, so that it is dropped after the lock is given back.
    _after: Option<Box<DeferredDrops>>,
}

impl Deref for GraphGuard<'_> {
    type Target = GraphState;

    fn deref(&self) -> &GraphState {
        &self.table
    }
}

impl DerefMut for GraphGuard<'_> {
    fn deref_mut(&mut self) -> &mut GraphState {
        &mut self.table
    }
}

impl GraphGuard<'_> {
    /// The driver's graph; live if the lock was taken by [`Graph::enter`].
    #[inline]
    pub(crate) fn raw(&self) -> CUgraph {
        self.raw
    }

    #[inline]
    pub(crate) fn subgraph(&self) -> SubgraphId {
        self.subgraph
    }

    /// Finds the driver's graph.
    #[inline]
    fn locate(&mut self) -> Result<()> {
        self.raw = self.graph_at(self.subgraph)?;
        Ok(())
    }

    pub(crate) fn driver(&self) -> &'static Driver {
        self.root.handle.context().driver()
    }

    pub(crate) fn context(&self) -> &Context {
        self.root.handle.context()
    }

    pub(crate) fn answer(&self, call: Call, result: CUresult) -> Result<()> {
        Ok(self.root.handle.context().check(call, result)?)
    }

    /// The driver's graph at a place of the hierarchy.
    #[inline]
    pub(crate) fn graph_at(&self, subgraph: SubgraphId) -> Result<CUgraph> {
        if self.is_gone() {
            return Err(Error::GraphMoved);
        }
        match subgraph.is_root() {
            true => Ok(self.root.handle.as_raw()),
            false => self.embedded(subgraph).map(|graph| graph.raw.0).ok_or(Error::GraphRemoved),
        }
    }

    pub(crate) fn hierarchy(&self) -> &Arc<Hierarchy> {
        self.root
    }

    /// The number of the hierarchy.
    pub(crate) fn number(&self) -> u64 {
        self.root.number
    }

    /// The number by which the memory of its allocation nodes is known.
    pub(crate) fn memory_number(&self) -> u64 {
        self.memory_of.unwrap_or(self.root.number)
    }

    fn count(&self) -> Result<usize> {
        let mut count = 0;
        // SAFETY: the graph is live and locked; without a buffer the call counts.
        let result =
            unsafe { self.driver().cuGraphGetNodes(self.raw(), core::ptr::null_mut(), &raw mut count) };
        self.answer(Call::cuGraphGetNodes, result)?;
        Ok(count)
    }

    /// All raw nodes, in the order of creation.
    pub(crate) fn raw_nodes(&self) -> Result<Vec<CUgraphNode>> {
        self.raw_nodes_of(self.raw())
    }

    /// All raw nodes of a graph of the hierarchy, or of one that nobody else knows; live.
    pub(crate) fn raw_nodes_of(&self, graph: CUgraph) -> Result<Vec<CUgraphNode>> {
        self.list(Call::cuGraphGetNodes, |driver, _, nodes, count| {
            // SAFETY: as `list` promises, and as the caller does for the graph.
            unsafe { driver.cuGraphGetNodes(graph, nodes, count) }
        })
    }

    /// Asks for a count, then for as many raw nodes; see [`fetch`](Self::fetch).
    pub(crate) fn list(
        &self,
        name: Call,
        call: impl Fn(&Driver, CUgraph, *mut CUgraphNode, *mut usize) -> CUresult,
    ) -> Result<Vec<CUgraphNode>> {
        let mut count = 0;
        self.answer(name, call(self.driver(), self.raw(), core::ptr::null_mut(), &raw mut count))?;
        self.fetch(name, count, call)
    }

    /// Asks for `count` raw nodes. The driver and the locked graph go to `call`, with a buffer of
    /// that size.
    pub(crate) fn fetch(
        &self,
        name: Call,
        mut count: usize,
        call: impl Fn(&Driver, CUgraph, *mut CUgraphNode, *mut usize) -> CUresult,
    ) -> Result<Vec<CUgraphNode>> {
        let mut nodes = vec![core::ptr::null_mut(); count];
        if count > 0 {
            self.answer(name, call(self.driver(), self.raw(), nodes.as_mut_ptr(), &raw mut count))?;
            nodes.truncate(count);
        }
        Ok(nodes)
    }
}

impl Drop for GraphGuard<'_> {
    fn drop(&mut self) {
        self.table.log_touched();
        self._after = self.table.leaving.take();
    }
}

/// Two graphs whose locks are held: one lock, if they are of one hierarchy.
pub(crate) struct GuardPair<'g> {
    pub(crate) first: GraphGuard<'g>,
    second: Option<GraphGuard<'g>>,
    /// Of the second graph.
    subgraph: SubgraphId,
    /// Below the locks, so that it is dropped after both are given back.
    _after: [Option<Box<DeferredDrops>>; 2],
}

impl Drop for GuardPair<'_> {
    fn drop(&mut self) {
        let second = self.second.as_mut().and_then(|guard| guard.leaving.take());
        self._after = [self.first.leaving.take(), second];
    }
}

/// Takes the locks of two graphs, in the order of their addresses, so that no two threads wait for
/// each other. Nobody holds two locks but by this.
pub(crate) fn enter_pair<'g>(first: &'g Graph, second: &'g Graph) -> Result<GuardPair<'g>> {
    let subgraph = second.subgraph;
    if first.is_beside(second) {
        let guard = first.enter()?;
        guard.graph_at(subgraph)?;
        return Ok(GuardPair { first: guard, second: None, subgraph, _after: [None, None] });
    }
    let (guard, other);
    if Arc::as_ptr(&first.root) < Arc::as_ptr(&second.root) {
        guard = first.enter()?;
        other = second.enter()?;
    } else {
        other = second.enter()?;
        guard = first.enter()?;
    }
    Ok(GuardPair { first: guard, second: Some(other), subgraph, _after: [None, None] })
}

impl<'g> GuardPair<'g> {
    /// The lock under which the second graph is, and its place there.
    pub(crate) fn second(&mut self) -> (&mut GraphGuard<'g>, SubgraphId) {
        (self.second.as_mut().unwrap_or(&mut self.first), self.subgraph)
    }

    /// The locks of both; one, if they are of one hierarchy.
    pub(crate) fn both(&mut self) -> (&mut GraphGuard<'g>, Option<&mut GraphGuard<'g>>) {
        (&mut self.first, self.second.as_mut())
    }

    /// The raw value of the second graph.
    pub(crate) fn second_raw(&self) -> Result<CUgraph> {
        self.second.as_ref().unwrap_or(&self.first).graph_at(self.subgraph)
    }

    /// Whether both are of one hierarchy.
    pub(crate) fn are_beside(&self) -> bool {
        self.second.is_none()
    }
}

/// Keeps an owner to the end of the process.
fn for_good(owner: Owner) {
    static KEPT: Mutex<Vec<Owner>> = Mutex::new(Vec::new());
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(owner);
}
