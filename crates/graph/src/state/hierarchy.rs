//! The hierarchy: a root graph with all graphs embedded in its nodes, behind one lock.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cuda_handles::{Context, Error as HandleError, GraphHandle, lock_unless_inside};

use crate::error::{Error, Result};
use crate::node_name::NodeName;
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::iterative_drop::LastingState;
use crate::state::{GraphState, RemovedNames};

/// A root graph and the graphs embedded in its nodes.
pub(crate) struct Hierarchy {
    /// Before the state: the driver's graph goes first, then what its nodes used.
    handle: GraphHandle,
    state: LastingState,
    removed: Arc<RemovedNames>,
    /// Identifies the hierarchy; never given twice.
    number: u64,
}

impl Hierarchy {
    pub(crate) fn new(handle: GraphHandle, state: GraphState) -> Arc<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        let number = NUMBERS.fetch_add(1, Ordering::Relaxed);
        let removed = Arc::clone(&state.removed);
        Arc::new(Self { handle, state: LastingState::new(state), removed, number })
    }

    pub(crate) fn handle(&self) -> &GraphHandle {
        &self.handle
    }

    #[inline]
    pub(crate) fn context(&self) -> &Context {
        self.handle.context()
    }

    /// Identifies the hierarchy; never given twice.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The name of a removed node, if it is still remembered. Does not take the hierarchy's lock.
    pub(crate) fn name_of_removed(&self, id: NodeId) -> Option<NodeName> {
        self.removed.find(id)
    }

    /// Locks the hierarchy for driver calls on one of its graphs.
    ///
    /// # Errors
    /// The context was lost, the process is a forked child, or the graph is gone with the node that
    /// it was embedded in, or was moved.
    pub(crate) fn enter(self: &Arc<Self>, subgraph: SubgraphId) -> Result<GraphGuard<'_>> {
        self.enter_here(subgraph)
    }

    /// As [`enter`](Self::enter), for hot paths, which build the guard in place.
    #[inline(always)]
    pub(crate) fn enter_here(self: &Arc<Self>, subgraph: SubgraphId) -> Result<GraphGuard<'_>> {
        self.context().ensure_usable()?;
        let mut guard = self.lock(subgraph)?;
        guard.locate()?;
        Ok(guard)
    }

    /// Locks the hierarchy to look at what is known of it, which makes sense after the context was
    /// lost, too.
    ///
    /// # Errors
    /// The process is a forked child, where the thread that holds the lock may not exist; or the
    /// root graph was moved.
    pub(crate) fn look(self: &Arc<Self>, subgraph: SubgraphId) -> Result<GraphGuard<'_>> {
        match self.context().ensure_usable() {
            Err(error @ HandleError::Forked) => Err(error.into()),
            _ => {
                let guard = self.lock(subgraph)?;
                if guard.is_moved() { Err(Error::GraphMoved) } else { Ok(guard) }
            }
        }
    }

    /// Takes the lock. It is held over driver calls on the hierarchy's graphs, some of which wait
    /// for the device. So a host function is refused instead of waiting for the lock: it may be the
    /// work that such a call waits for. Nothing is dropped under the lock.
    #[inline(always)]
    fn lock(self: &Arc<Self>, subgraph: SubgraphId) -> Result<GraphGuard<'_>> {
        // Code under the lock does not panic; state that saw a panic is consistent between calls.
        let state = lock_unless_inside(self.context(), "the graph", &self.state)?;
        Ok(GraphGuard::new(self, subgraph, state))
    }
}
