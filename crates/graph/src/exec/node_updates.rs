//! Which nodes an executable has, and what updates have set.

use std::collections::{HashMap, HashSet};

use crate::state::changes::ChangePoint;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::params::NodeParams;

/// The nodes of an executable as they differ from the graph's.
#[derive(Debug)]
pub(crate) struct NodeUpdates {
    /// Nodes from this number on were added later.
    end: u64,
    /// Nodes from this index on, too: they may have come with a graph that was moved into this one,
    /// and have numbers of that.
    records: usize,
    /// Kernels that have handles of conditions.
    deciding: HashSet<NodeId>,
    /// Nodes that were changed after this have other parameters than in the executable.
    made: ChangePoint,
    /// The parameters that updates have set.
    set: HashMap<NodeId, NodeParams>,
    /// Nodes of child graphs that updates have replaced: their parameters are those of nodes of
    /// other graphs.
    replaced: HashSet<NodeId>,
    disabled: HashSet<NodeId>,
}

impl NodeUpdates {
    /// Of an executable that is made of the graph now.
    pub(crate) fn of(guard: &mut GraphGuard<'_>) -> Self {
        Self {
            end: guard.next_number(),
            records: guard.indices(),
            deciding: guard.kernels_with_handles().collect(),
            made: guard.changes.now(),
            set: HashMap::new(),
            replaced: HashSet::new(),
            disabled: HashSet::new(),
        }
    }

    /// Whether a node was in the graph when the executable was made.
    pub(crate) fn has(&self, id: NodeId) -> bool {
        id.number < self.end && (id.index as usize) < self.records
    }

    /// Whether a node has the handle of a condition in the executable.
    pub(crate) fn is_deciding(&self, id: NodeId) -> bool {
        self.deciding.contains(&id)
    }

    /// The parameters of a node in the executable; `None` if they are not known: the graph's node
    /// was changed after the executable was made, or the child graph around it was replaced here.
    pub(crate) fn params<'s>(&'s self, guard: &'s GraphGuard<'_>, id: NodeId) -> Option<&'s NodeParams> {
        match self.set.get(&id) {
            None if !self.is_replaced(id) && guard.changes.is_unchanged(id, self.made) => {
                Some(&guard.record(id)?.node_params)
            }
            set => set,
        }
    }

    /// Notes the parameters that an update has set. Returns the ones before, to be dropped without
    /// the lock.
    pub(crate) fn set(&mut self, id: NodeId, node_params: NodeParams) -> Option<NodeParams> {
        self.set.insert(id, node_params)
    }

    /// Notes that updates have replaced the child graphs around nodes.
    pub(crate) fn replace(&mut self, nodes: &[NodeId]) {
        nodes.iter().for_each(|id| drop(self.set.remove(id)));
        self.replaced.extend(nodes);
    }

    /// Whether the child graph around a node was replaced.
    pub(crate) fn is_replaced(&self, id: NodeId) -> bool {
        self.replaced.contains(&id)
    }

    /// The nodes that have handles of conditions in the executable.
    pub(crate) fn deciding(&self) -> impl Iterator<Item = NodeId> {
        self.deciding.iter().copied()
    }

    /// Whether a node is enabled.
    pub(crate) fn is_enabled(&self, id: NodeId) -> bool {
        !self.disabled.contains(&id)
    }

    /// Notes whether a node is enabled.
    pub(crate) fn set_enabled(&mut self, id: NodeId, enabled: bool) {
        if enabled {
            self.disabled.remove(&id);
        } else {
            self.disabled.insert(id);
        }
    }
}
