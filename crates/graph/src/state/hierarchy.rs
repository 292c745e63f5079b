//! The hierarchy: a root graph and all graphs embedded in its nodes, behind one lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use cuda_handles::internal::{lock_second_unless_inside, lock_unless_inside};
use cuda_handles::{Context, Error as HandleError, GraphHandle};

use crate::error::{Broken, Error, NodeError, Result};
use crate::node_name::NodeName;
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::iterative_drop::LastingState;
use crate::state::{GraphState, RemovedNames};

/// A root graph and the graphs embedded in its nodes.
pub(crate) struct Hierarchy {
    /// Declared before the state: the driver's graph is dropped first, then the owners of its
    /// nodes.
    handle: GraphHandle,
    state: LastingState,
    removed: Arc<RemovedNames>,
    /// Identifies the hierarchy; never used twice.
    number: u64,
    /// Set once a change failed and could not be undone. Outside of the lock, since the undo may
    /// have failed because the lock could not be taken.
    broken: OnceLock<Box<Broken>>,
}

impl Hierarchy {
    pub(crate) fn new(handle: GraphHandle, state: GraphState) -> Arc<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let removed = Arc::clone(&state.removed);
        Arc::new(Self { handle, state: LastingState::new(state), removed, number, broken: OnceLock::new() })
    }

    pub(crate) fn handle(&self) -> &GraphHandle {
        &self.handle
    }

    #[inline]
    pub(crate) fn context(&self) -> &Context {
        self.handle.context()
    }

    /// Identifies the hierarchy; never used twice.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// Refuses a broken hierarchy.
    #[inline]
    pub(crate) fn ensure_whole(&self) -> Result<()> {
        match self.broken.get() {
            None => Ok(()),
            Some(broken) => Err(Error::Broken(broken.clone())),
        }
    }

    /// Marks the hierarchy as broken. Takes no lock. If it is broken already, the first reason
    /// stays.
    #[cold]
    pub(crate) fn mark_broken(&self, broken: Broken) -> Error {
        Error::Broken(self.broken.get_or_init(|| Box::new(broken)).clone())
    }

    /// The name of a removed node, if it is still remembered. Does not take the hierarchy's lock.
    pub(crate) fn name_of_removed(&self, id: NodeId) -> Option<NodeName> {
        self.removed.find(id)
    }

    /// Locks the hierarchy for driver calls on one of its graphs.
    ///
    /// # Errors
    /// The context is lost, the process is a forked child, the hierarchy was
    /// [moved](crate::NodeError::GraphMoved) or is [broken](Error::Broken), or the graph is gone
    /// with the node that it was embedded in ([`NodeError::GraphRemoved`]).
    pub(crate) fn enter(self: &Arc<Self>, subgraph: SubgraphId) -> Result<GraphGuard<'_>> {
        self.enter_here(subgraph)
    }

    /// [`enter`](Self::enter) for hot paths: the guard is built in place.
    #[inline(always)]
    pub(crate) fn enter_here(self: &Arc<Self>, subgraph: SubgraphId) -> Result<GraphGuard<'_>> {
        self.context().ensure_usable()?;
        let mut guard = self.lock(subgraph)?;
        guard.locate()?;
        Ok(guard)
    }

    /// As [`enter`](Self::enter), while the thread holds the lock of another hierarchy. For
    /// [`GuardPair`](crate::state::guard::GuardPair) alone, which takes the two in order: debug
    /// builds panic if anything else locks two.
    pub(crate) fn enter_second(self: &Arc<Self>, subgraph: SubgraphId) -> Result<GraphGuard<'_>> {
        self.context().ensure_usable()?;
        let state = lock_second_unless_inside(self.context(), "the graph", &self.state)?;
        let mut guard = GraphGuard::new(self, subgraph, state);
        guard.locate()?;
        Ok(guard)
    }

    /// Locks the hierarchy to read its state without driver calls. Also works after the context is
    /// lost.
    ///
    /// # Errors
    /// The process is a forked child, where the thread that holds the lock may not exist; or the
    /// root graph was moved ([`NodeError::GraphMoved`]).
    pub(crate) fn look(self: &Arc<Self>, subgraph: SubgraphId) -> Result<GraphGuard<'_>> {
        match self.context().ensure_usable() {
            Err(error @ HandleError::Forked) => Err(error.into()),
            _ => {
                let guard = self.lock(subgraph)?;
                if guard.is_moved() { Err(Error::Node(NodeError::GraphMoved)) } else { Ok(guard) }
            }
        }
    }

    /// Takes the lock. The lock is held over driver calls on the hierarchy's graphs, and some of
    /// these wait for the device. Therefore a host function is refused instead of waiting for the
    /// lock: the driver call under the lock may be waiting for that very function. Nothing is
    /// dropped under the lock.
    #[inline(always)]
    fn lock(self: &Arc<Self>, subgraph: SubgraphId) -> Result<GraphGuard<'_>> {
        // Code under the lock does not panic, so the state behind a poisoned lock is consistent.
        let state = lock_unless_inside(self.context(), "the graph", &self.state)?;
        Ok(GraphGuard::new(self, subgraph, state))
    }
}
