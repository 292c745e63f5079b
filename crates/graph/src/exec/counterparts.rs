//! Which nodes of two graphs stand for the same node of an executable.

use std::collections::HashMap;

use crate::state::ids::NodeId;

/// The pairs of nodes of two graphs that stand for the same nodes of an executable: of the graph
/// that it was made of, whose nodes are the keys, and of the graph that it was updated from.
#[derive(Debug)]
pub(crate) enum Counterparts {
    Known {
        of_keys: HashMap<NodeId, NodeId>,
        keys: HashMap<NodeId, NodeId>,
    },
    /// The reason for which the pairs cannot be known.
    Unknown(&'static str),
}

impl Counterparts {
    /// The key of a node of the other graph.
    pub(crate) fn key(&self, counterpart: NodeId) -> Option<NodeId> {
        match self {
            Self::Known { keys, .. } => keys.get(&counterpart).copied(),
            Self::Unknown(_) => None,
        }
    }

    /// The node of the other graph that has a key.
    pub(crate) fn of_key(&self, key: NodeId) -> Option<NodeId> {
        match self {
            Self::Known { of_keys, .. } => of_keys.get(&key).copied(),
            Self::Unknown(_) => None,
        }
    }
}

impl FromIterator<(NodeId, NodeId)> for Counterparts {
    /// Of pairs of a key and its counterpart.
    fn from_iter<I: IntoIterator<Item = (NodeId, NodeId)>>(pairs: I) -> Self {
        let of_keys: HashMap<NodeId, NodeId> = pairs.into_iter().collect();
        let keys = of_keys.iter().map(|(key, counterpart)| (*counterpart, *key)).collect();
        Self::Known { of_keys, keys }
    }
}
