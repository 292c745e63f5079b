//! The guard of a hierarchy: the lock, taken and held.

use core::ops::{Deref, DerefMut};
use std::sync::Arc;

use cuda_handles::internal::{LockGuard, lock_second_unless_inside, lock_unless_inside};
use cuda_handles::{Context, Error as HandleError};
use cuda_sys::{CUgraph, CUgraphNode, CUresult, Call, Driver};

use crate::error::wrong_context::Spans;
use crate::error::{Broken, Error, NodeError, Result};
use crate::state::hierarchy::Hierarchy;
use crate::state::ids::SubgraphId;
use crate::state::owners::Owners;
use crate::state::{DeferredDrops, GraphState};

/// A graph whose hierarchy is locked: the state of the hierarchy, and the driver's graph.
pub(crate) struct GraphGuard<'g> {
    hierarchy: &'g Arc<Hierarchy>,
    subgraph: SubgraphId,
    /// The driver's graph of the subgraph; live only if the lock was taken by [`Hierarchy::enter`].
    raw: CUgraph,
    state: LockGuard<'g, GraphState>,
    /// Declared below the lock, so that it is dropped after the lock is released.
    _after: Option<Box<DeferredDrops>>,
}

impl Deref for GraphGuard<'_> {
    type Target = GraphState;

    fn deref(&self) -> &GraphState {
        &self.state
    }
}

impl DerefMut for GraphGuard<'_> {
    fn deref_mut(&mut self) -> &mut GraphState {
        &mut self.state
    }
}

impl<'g> GraphGuard<'g> {
    pub(super) fn new(
        hierarchy: &'g Arc<Hierarchy>,
        subgraph: SubgraphId,
        raw: CUgraph,
        state: LockGuard<'g, GraphState>,
    ) -> Self {
        Self { hierarchy, subgraph, raw, state, _after: None }
    }
}

impl Hierarchy {
    /// Locks the hierarchy for driver calls on one of its graphs. All of its nodes have records
    /// then.
    ///
    /// # Errors
    /// The context is lost, the process is a forked child, the hierarchy was
    /// [moved](crate::NodeError::GraphMoved) or is [broken](Error::Broken), or the graph is gone
    /// with the node that it was embedded in ([`NodeError::GraphRemoved`]).
    pub(crate) fn enter(self: &Arc<Self>, subgraph: SubgraphId) -> Result<GraphGuard<'_>> {
        self.enter_here(subgraph)
    }

    /// [`enter`](Self::enter) for hot paths: the guard is built in place, last.
    #[inline(always)]
    pub(crate) fn enter_here(self: &Arc<Self>, subgraph: SubgraphId) -> Result<GraphGuard<'_>> {
        self.context().ensure_usable()?;
        let state = self.lock()?;
        let raw = self.graph_at(&state, subgraph)?;
        if state.has_unread() {
            return read(GraphGuard::new(self, subgraph, raw, state));
        }
        Ok(GraphGuard::new(self, subgraph, raw, state))
    }

    /// As [`enter`](Self::enter), for what needs no node: those of a capture may have
    /// [no records yet](crate::state::unread).
    pub(crate) fn enter_unread(self: &Arc<Self>, subgraph: SubgraphId) -> Result<GraphGuard<'_>> {
        self.context().ensure_usable()?;
        let state = self.lock()?;
        let raw = self.graph_at(&state, subgraph)?;
        Ok(GraphGuard::new(self, subgraph, raw, state))
    }

    /// As [`enter`](Self::enter), while the thread holds the lock of another hierarchy. For
    /// [`GuardPair`] alone, which takes the two in order: debug builds panic if anything else locks
    /// two.
    pub(crate) fn enter_second(self: &Arc<Self>, subgraph: SubgraphId) -> Result<GraphGuard<'_>> {
        self.context().ensure_usable()?;
        let state = lock_second_unless_inside(self.context(), "the graph", self.state())?;
        let raw = self.graph_at(&state, subgraph)?;
        read(GraphGuard::new(self, subgraph, raw, state))
    }

    /// Locks the hierarchy to read its state without driver calls. Also works after the context is
    /// lost. Nodes of a capture may have [no records yet](crate::state::unread): nobody has a
    /// handle of them.
    ///
    /// # Errors
    /// The process is a forked child, where the thread that holds the lock may not exist; or the
    /// root graph was moved ([`NodeError::GraphMoved`]).
    pub(crate) fn look(self: &Arc<Self>, subgraph: SubgraphId) -> Result<GraphGuard<'_>> {
        match self.context().ensure_usable() {
            Err(error @ HandleError::Forked) => Err(error.into()),
            _ => {
                let state = self.lock()?;
                match state.is_moved() {
                    true => Err(Error::Node(NodeError::GraphMoved)),
                    false => Ok(GraphGuard::new(self, subgraph, self.handle().as_raw(), state)),
                }
            }
        }
    }

    /// Takes the lock. The lock is held over driver calls on the hierarchy's graphs, and some of
    /// these wait for the device. Therefore a host function is refused instead of waiting for the
    /// lock: the driver call under the lock may be waiting for that very function. Nothing is
    /// dropped under the lock.
    #[inline(always)]
    fn lock(&self) -> Result<LockGuard<'_, GraphState>> {
        // Code under the lock does not panic, so the state behind a poisoned lock is consistent.
        Ok(lock_unless_inside(self.context(), "the graph", self.state())?)
    }

    /// Refuses a hierarchy that was moved, and a broken one.
    #[inline]
    fn ensure_usable(&self, state: &GraphState) -> Result<()> {
        if state.is_moved() {
            return Err(Error::Node(NodeError::GraphMoved));
        }
        self.ensure_whole()
    }

    /// The driver's graph of a subgraph of the hierarchy.
    #[inline]
    fn graph_at(&self, state: &GraphState, subgraph: SubgraphId) -> Result<CUgraph> {
        self.ensure_usable(state)?;
        match subgraph.is_root() {
            true => Ok(self.handle().as_raw()),
            false => {
                state.embedded(subgraph).map(|graph| graph.raw.0).ok_or(Error::Node(NodeError::GraphRemoved))
            }
        }
    }
}

/// A guard whose graph has a record of each node.
#[cold]
fn read(mut guard: GraphGuard<'_>) -> Result<GraphGuard<'_>> {
    guard.ensure_read()?;
    Ok(guard)
}

impl GraphGuard<'_> {
    /// Refuses a hierarchy that was moved, and a broken one.
    #[inline]
    pub(crate) fn ensure_usable(&self) -> Result<()> {
        self.hierarchy.ensure_usable(&self.state)
    }

    /// Marks the hierarchy as broken. It keeps the owners of the failed change, since the driver
    /// may still use them.
    #[cold]
    pub(crate) fn mark_broken(&mut self, broken: Broken, owners: Owners) -> Error {
        for owner in owners {
            self.keep(SubgraphId::ROOT, &owner);
        }
        self.hierarchy.mark_broken(broken)
    }

    /// The driver's graph; live if the lock was taken by [`Hierarchy::enter`].
    #[inline]
    pub(crate) fn raw(&self) -> CUgraph {
        self.raw
    }

    #[inline]
    pub(crate) fn subgraph(&self) -> SubgraphId {
        self.subgraph
    }

    pub(crate) fn driver(&self) -> &'static Driver {
        self.hierarchy.context().driver()
    }

    pub(crate) fn context(&self) -> &Context {
        self.hierarchy.context()
    }

    /// The contexts that the nodes may be of, the home first.
    pub(crate) fn spanned(&self) -> impl Iterator<Item = &Context> {
        core::iter::once(self.context()).chain(self.others())
    }

    pub(crate) fn answer(&self, call: Call, result: CUresult) -> Result<()> {
        Ok(self.hierarchy.context().check(call, result)?)
    }

    /// The driver's graph of a subgraph of the hierarchy.
    #[inline]
    pub(crate) fn graph_at(&self, subgraph: SubgraphId) -> Result<CUgraph> {
        self.hierarchy.graph_at(&self.state, subgraph)
    }

    pub(crate) fn hierarchy(&self) -> &Arc<Hierarchy> {
        self.hierarchy
    }

    /// The number of the hierarchy.
    pub(crate) fn number(&self) -> u64 {
        self.hierarchy.number()
    }

    /// The number by which the memory of the hierarchy's allocation nodes is known.
    pub(crate) fn memory_number(&self) -> u64 {
        self.memory_of.unwrap_or(self.hierarchy.number())
    }

    pub(crate) fn count(&self) -> Result<usize> {
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

    /// All raw nodes of a live graph: one of the hierarchy, or one that no other thread knows.
    pub(crate) fn raw_nodes_of(&self, graph: CUgraph) -> Result<Vec<CUgraphNode>> {
        self.list(Call::cuGraphGetNodes, |driver, _, nodes, count| {
            // SAFETY: as `list` promises, and as the caller does for the graph.
            unsafe { driver.cuGraphGetNodes(graph, nodes, count) }
        })
    }

    /// Queries a count, then that many raw nodes; see [`fetch`](Self::fetch).
    pub(crate) fn list(
        &self,
        name: Call,
        call: impl Fn(&Driver, CUgraph, *mut CUgraphNode, *mut usize) -> CUresult,
    ) -> Result<Vec<CUgraphNode>> {
        let mut count = 0;
        self.answer(name, call(self.driver(), self.raw(), core::ptr::null_mut(), &raw mut count))?;
        self.fetch(name, count, call)
    }

    /// Queries `count` raw nodes. `call` gets the driver, the locked graph, and a buffer of that
    /// size.
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
        self.state.log_touched();
        self._after = self.state.leaving.take();
    }
}

/// Two graphs, ours and the other, whose hierarchies are locked. One lock, if both are in one
/// hierarchy.
pub(crate) struct GuardPair<'g> {
    /// The guard of our graph, the one that a call changes.
    pub(crate) ours: GraphGuard<'g>,
    /// The guard of the other graph's hierarchy, if that is not ours.
    other: Option<GraphGuard<'g>>,
    /// The other graph.
    subgraph: SubgraphId,
    /// Declared below the locks, so that it is dropped after both are released.
    _after: [Option<Box<DeferredDrops>>; 2],
}

impl Drop for GuardPair<'_> {
    fn drop(&mut self) {
        let other = self.other.as_mut().and_then(|guard| guard.leaving.take());
        self._after = [self.ours.leaving.take(), other];
    }
}

impl<'g> GuardPair<'g> {
    /// Locks two hierarchies, the one at the lower address first, so that threads cannot deadlock.
    /// Nothing else holds the locks of two hierarchies.
    pub(crate) fn enter(
        (ours, our_graph): (&'g Arc<Hierarchy>, SubgraphId),
        (other, other_graph): (&'g Arc<Hierarchy>, SubgraphId),
    ) -> Result<Self> {
        let pair = |ours, other| Self { ours, other, subgraph: other_graph, _after: [None, None] };
        if Arc::ptr_eq(ours, other) {
            let guard = ours.enter(our_graph)?;
            guard.graph_at(other_graph)?;
            return Ok(pair(guard, None));
        }
        if Arc::as_ptr(ours) < Arc::as_ptr(other) {
            let guard = ours.enter(our_graph)?;
            Ok(pair(guard, Some(other.enter_second(other_graph)?)))
        } else {
            let guard = other.enter(other_graph)?;
            Ok(pair(ours.enter_second(our_graph)?, Some(guard)))
        }
    }

    /// The guard of the other graph's hierarchy, and the other graph in it.
    pub(crate) fn other(&mut self) -> (&mut GraphGuard<'g>, SubgraphId) {
        (self.other.as_mut().unwrap_or(&mut self.ours), self.subgraph)
    }

    /// The guard of the other graph's hierarchy.
    pub(crate) fn other_guard(&self) -> &GraphGuard<'g> {
        self.other.as_ref().unwrap_or(&self.ours)
    }

    /// Both guards; one, if the graphs are in one hierarchy.
    pub(crate) fn both(&mut self) -> (&mut GraphGuard<'g>, Option<&mut GraphGuard<'g>>) {
        (&mut self.ours, self.other.as_mut())
    }

    /// The driver's graph of the other graph.
    pub(crate) fn other_raw(&self) -> Result<CUgraph> {
        self.other.as_ref().unwrap_or(&self.ours).graph_at(self.subgraph)
    }

    /// Whether both graphs are in one hierarchy.
    pub(crate) fn are_in_one_hierarchy(&self) -> bool {
        self.other.is_none()
    }
}

impl Spans for GraphGuard<'_> {
    #[inline]
    fn home(&self) -> &Context {
        self.context()
    }

    #[inline]
    fn others(&self) -> &[Context] {
        self.hierarchy.others()
    }
}
