//! The graph of a whole update, and its nodes by those of the executable.

use crate::exec::counterparts::Counterparts;
use crate::exec::node_updates::NodeUpdates;
use crate::state::changes::StructurePoint;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;

/// The graph of an update.
pub(super) enum UpdateSource {
    /// The graph that the executable was made of, and whether its nodes and edges are as they were
    /// then.
    Own { is_as_it_was: bool },
    /// Another graph, with the counterparts of the keys, if they are needed.
    Other { pairs: Option<Pairs> },
}

/// The counterparts in a graph.
pub(super) struct Pairs {
    pub(super) counterparts: Counterparts,
    /// The graph as it was when they were found.
    pub(super) structure: StructurePoint,
}

impl UpdateSource {
    /// The same under the lock of the graph, which others may have changed before.
    pub(super) fn taken_now(self, guard: &GraphGuard<'_>, updates: &NodeUpdates) -> Self {
        let Self::Other { pairs } = self else {
            return Self::Own { is_as_it_was: updates.has_keys_as_they_were(guard) };
        };
        let structure = guard.changes.structure();
        let has_changed = match &pairs {
            Some(pairs) => pairs.structure != structure,
            // The graph got conditions or parameters after the look whether it has some.
            None => guard.has_conditionals() || !guard.bindings.is_empty(),
        };
        if !has_changed {
            return Self::Other { pairs };
        }
        let counterparts = Counterparts::Unknown("its nodes or edges changed during the update");
        Self::Other { pairs: Some(Pairs { counterparts, structure }) }
    }

    /// Whether it is known which nodes of the graph stand for those of the executable.
    pub(super) fn is_known(&self) -> bool {
        match self {
            Self::Own { is_as_it_was } => *is_as_it_was,
            Self::Other { pairs } => {
                pairs.as_ref().is_some_and(|pairs| matches!(pairs.counterparts, Counterparts::Known { .. }))
            }
        }
    }

    /// The node of the graph that has a key, if it is known.
    pub(super) fn of_key(&self, key: NodeId) -> Option<NodeId> {
        match self {
            Self::Own { is_as_it_was } => is_as_it_was.then_some(key),
            Self::Other { pairs } => pairs.as_ref()?.counterparts.of_key(key),
        }
    }

    /// The key of a node of the graph, if it is known.
    pub(super) fn key(&self, id: NodeId) -> Option<NodeId> {
        match self {
            Self::Own { is_as_it_was: true } => Some(id),
            Self::Own { is_as_it_was: false } => None,
            Self::Other { pairs } => pairs.as_ref()?.counterparts.key(id),
        }
    }
}
