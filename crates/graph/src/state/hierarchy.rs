//! The hierarchy: a root graph and all graphs embedded in its nodes, behind one lock.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

use cuda_handles::{Context, GraphHandle};

use crate::error::wrong_context::Spans;
use crate::error::{Broken, Error, Result};
use crate::node_name::NodeName;
use crate::state::ids::NodeId;
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
    /// The contexts beside its home that the nodes may be of, if there are any. Of a capture's own
    /// graph they are known at the end of the capture.
    others: OnceLock<Box<[Context]>>,
}

impl Hierarchy {
    /// A number for a hierarchy; never returned twice.
    pub(crate) fn next_number() -> u64 {
        static NUMBERS: AtomicU64 = AtomicU64::new(0);
        NUMBERS.fetch_add(1, Ordering::Relaxed)
    }

    /// A hierarchy with a number that no other one has.
    pub(crate) fn new(handle: GraphHandle, state: GraphState, number: u64) -> Arc<Self> {
        let removed = Arc::clone(&state.removed);
        Arc::new(Self {
            handle,
            state: LastingState::new(state),
            removed,
            number,
            broken: OnceLock::new(),
            others: OnceLock::new(),
        })
    }

    /// Lets nodes be of these contexts, too; once, before others know the hierarchy.
    pub(crate) fn widen<'c>(&self, contexts: impl IntoIterator<Item = &'c Context>) {
        let mut others: Vec<Context> = Vec::new();
        for context in contexts {
            if !self.context().is_same(context) && !others.iter().any(|other| other.is_same(context)) {
                others.push(context.clone());
            }
        }
        if !others.is_empty() {
            let _ = self.others.set(others.into_boxed_slice());
        }
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

    /// The state behind its lock, which [`enter`](Self::enter) and [`look`](Self::look) take.
    #[inline]
    pub(super) fn state(&self) -> &LastingState {
        &self.state
    }

    /// The name of a removed node, if it is still remembered. Does not take the hierarchy's lock.
    pub(crate) fn name_of_removed(&self, id: NodeId) -> Option<NodeName> {
        self.removed.find(id)
    }
}

impl Spans for Hierarchy {
    #[inline]
    fn home(&self) -> &Context {
        self.context()
    }

    #[inline]
    fn others(&self) -> &[Context] {
        self.others.get().map_or(&[], |others| others)
    }
}
