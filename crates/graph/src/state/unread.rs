//! The nodes of a captured graph, which are read when they are first needed.
//!
//! Most captured graphs are instantiated, or executables are updated from them, and nobody asks for
//! one of their nodes. Reading a node takes several driver calls, so it waits.
//! [`Hierarchy::enter`](super::hierarchy::Hierarchy::enter) reads; whoever needs no node takes the
//! lock by [`enter_unread`](super::hierarchy::Hierarchy::enter_unread).

use core::fmt::Debug;

use crate::error::Result;
use crate::state::GraphState;
use crate::state::guard::GraphGuard;

/// Nodes of a root graph that have no records yet. The root graph keeps their owners meanwhile.
pub(crate) trait UnreadNodes: Debug + Send + Sync {
    /// The number of nodes.
    fn count(&self) -> usize;

    /// Enters the records of the nodes, and gives them their owners. A failed call can be made
    /// again.
    fn read(&self, guard: &mut GraphGuard<'_>) -> Result<()>;
}

/// What was found about nodes that had no records when they were read.
#[derive(Debug, Default)]
pub(crate) struct ReadLate {
    /// How many calls of the capture that made the graph match none of them.
    pub(crate) unmatched_calls: usize,
    /// Whether a kernel among them had attributes.
    pub(crate) have_attributes: bool,
}

impl GraphState {
    /// Whether there are nodes without records.
    #[inline]
    pub(crate) fn has_unread(&self) -> bool {
        self.unread_nodes.is_some()
    }

    /// The number of nodes without records.
    pub(super) fn unread_count(&self) -> usize {
        self.unread_nodes.as_ref().filter(|_| self.is_unread()).map_or(0, |nodes| nodes.count())
    }

    /// The number of nodes of the hierarchy.
    pub(crate) fn node_count(&self) -> usize {
        self.records().count() + self.unread_count()
    }
}

impl GraphGuard<'_> {
    /// Enters the records of nodes that have none.
    #[inline]
    pub(crate) fn ensure_read(&mut self) -> Result<()> {
        if self.has_unread() { self.read_now() } else { Ok(()) }
    }

    #[cold]
    fn read_now(&mut self) -> Result<()> {
        let Some(nodes) = self.unread_nodes.take() else { return Ok(()) };
        match nodes.read(self) {
            Ok(()) => {
                // They have owners.
                self.leaving.get_or_insert_default().unread.push(nodes);
                Ok(())
            }
            Err(error) => {
                self.unread_nodes = Some(nodes);
                Err(error)
            }
        }
    }
}
