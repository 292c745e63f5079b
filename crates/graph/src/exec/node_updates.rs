//! Which nodes an executable has, and what updates have set.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use crate::exec::counterparts::Counterparts;
use crate::exec::source::Source;
use crate::state::changes::{ChangePoint, StructurePoint};
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::params::NodeParams;

/// The nodes of an executable as they differ from a graph's.
///
/// The driver knows an executable's nodes by those of the graph that it was made of, the **keys**.
/// Their parameters are those of the graph of the last whole update: their **counterparts** there,
/// or the keys themselves without one.
pub(crate) struct NodeUpdates {
    /// Keys have lower numbers: nodes from this one on were added later.
    end: u64,
    /// The graph of the keys as it was when the executable was made.
    structure: StructurePoint,
    /// The graph that the parameters are of.
    latest: Latest,
    /// Nodes of that graph that were changed after this have other parameters than in the
    /// executable.
    made: ChangePoint,
    /// The parameters that node updates have set, by key.
    set: HashMap<NodeId, NodeParams>,
    /// By key. They stay disabled in whole updates.
    disabled: HashSet<NodeId>,
}

/// The graph that the parameters of an executable are of.
pub(crate) enum Latest {
    /// The graph that it was made of.
    Own,
    /// The graph of the last whole update.
    Other(Box<LatestGraph>),
    /// The graph that it was made of, with other nodes or edges by the time of a whole update.
    OwnChanged,
}

/// The graph of the last whole update, if that is not the graph that the executable was made of.
pub(crate) struct LatestGraph {
    /// Kept alive: its nodes also stand for those of the executable.
    pub(crate) source: Source,
    /// The graph as it was at the update.
    structure: StructurePoint,
    /// Found when they are first needed.
    pub(crate) counterparts: OnceLock<Counterparts>,
}

impl LatestGraph {
    /// Whether the graph has the nodes and edges that it had at the update.
    pub(crate) fn is_as_it_was(&self, guard: &GraphGuard<'_>) -> bool {
        guard.changes.structure() == self.structure
    }
}

impl NodeUpdates {
    /// Of an executable that is made of the graph now.
    pub(crate) fn of(guard: &mut GraphGuard<'_>) -> Self {
        Self {
            end: guard.next_number(),
            structure: guard.changes.structure(),
            latest: Latest::Own,
            made: guard.changes.now(),
            set: HashMap::new(),
            disabled: HashSet::new(),
        }
    }

    /// The same nodes after a whole update from the graph, which may be the one of the keys.
    /// Returns what it was before, to be dropped without the lock.
    pub(crate) fn update(&mut self, guard: &mut GraphGuard<'_>, source: Source, is_own: bool) -> Self {
        let structure = guard.changes.structure();
        let latest = match is_own {
            true if structure == self.structure => Latest::Own,
            true => Latest::OwnChanged,
            false => {
                Latest::Other(Box::new(LatestGraph { source, structure, counterparts: OnceLock::new() }))
            }
        };
        let disabled = core::mem::take(&mut self.disabled);
        let (end, of_keys, made) = (self.end, self.structure, guard.changes.now());
        let new = Self { end, structure: of_keys, latest, made, set: HashMap::new(), disabled };
        core::mem::replace(self, new)
    }

    /// The graph that the parameters are of.
    pub(crate) fn latest(&self) -> &Latest {
        &self.latest
    }

    /// Whether a node of the graph of the keys was in it when the executable was made.
    pub(crate) fn has(&self, id: NodeId) -> bool {
        id.number < self.end
    }

    /// Whether the graph of the keys has the nodes and edges that it had then.
    pub(crate) fn has_keys_as_they_were(&self, guard: &GraphGuard<'_>) -> bool {
        guard.changes.structure() == self.structure
    }

    /// The parameters of a node in the executable, given its counterpart in the graph that the
    /// parameters are of. `None` if they are not known, as the graph's node was changed since.
    pub(crate) fn params<'s>(
        &'s self,
        guard: &'s GraphGuard<'_>,
        key: NodeId,
        counterpart: NodeId,
    ) -> Option<&'s NodeParams> {
        self.set.get(&key).or_else(|| self.unchanged(guard, counterpart))
    }

    /// The parameters of a node of the graph that the parameters are of, unless it was changed.
    pub(crate) fn unchanged<'s>(
        &self,
        guard: &'s GraphGuard<'_>,
        counterpart: NodeId,
    ) -> Option<&'s NodeParams> {
        let is_unchanged = guard.changes.is_unchanged(counterpart, self.made);
        guard.record(counterpart).filter(|_| is_unchanged).map(|record| &record.node_params)
    }

    /// Notes the parameters that an update has set. Returns the ones before, to be dropped without
    /// the lock.
    pub(crate) fn set(&mut self, key: NodeId, node_params: NodeParams) -> Option<NodeParams> {
        self.set.insert(key, node_params)
    }

    /// Whether a node is enabled.
    pub(crate) fn is_enabled(&self, key: NodeId) -> bool {
        !self.disabled.contains(&key)
    }

    /// The disabled nodes.
    pub(crate) fn disabled(&self) -> impl ExactSizeIterator<Item = NodeId> {
        self.disabled.iter().copied()
    }

    /// Notes whether a node is enabled.
    pub(crate) fn set_enabled(&mut self, key: NodeId, enabled: bool) {
        if enabled {
            self.disabled.remove(&key);
        } else {
            self.disabled.insert(key);
        }
    }
}
