//! Which nodes an executable has, and what updates have set.

use std::collections::{HashMap, HashSet};
use std::sync::OnceLock;

use crate::exec::counterparts::Counterparts;
use crate::exec::source::Source;
use crate::state::changes::{ChangePoint, StructurePoint};
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::kernel_config::KernelConfig;
use crate::state::params::NodeParams;

/// The nodes of an executable as they differ from a graph's.
///
/// The driver knows an executable's nodes by those of the graph that it was made of, the **keys**.
/// Their parameters are those of the graph of the last whole update: of their **counterparts**
/// there, or of the keys themselves without one.
pub(crate) struct NodeUpdates {
    keys: Keys,
    latest: Latest,
    /// Kernels that have handles of conditions, by key.
    deciding: HashSet<NodeId>,
    /// Whether a kernel may have attributes. Those of a node whose parameters are not known are not
    /// known, either, and the conditions of kernels may name them.
    attributes: Attributes,
    /// Nodes of the latest graph that were changed after this have other parameters than in the
    /// executable.
    made: ChangePoint,
    /// The parameters that node updates have set, by key.
    set: HashMap<NodeId, NodeParams>,
    /// Nodes of child graphs that updates have replaced, by key: their parameters are those of
    /// nodes of other graphs.
    replaced: HashSet<NodeId>,
    /// By key. They stay disabled in whole updates.
    disabled: HashSet<NodeId>,
}

/// The graph that an executable was made of, as it was then.
#[derive(Clone, Copy)]
struct Keys {
    /// Nodes from this number on were added later.
    end: u64,
    /// Nodes from this index on, too: they may have come with a graph that was moved into this one,
    /// and have numbers of that.
    records: usize,
    structure: StructurePoint,
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

/// Whether a kernel of an executable may have attributes.
#[derive(Clone, Copy)]
enum Attributes {
    Known(bool),
    /// As those of the nodes of the latest graph, which had no records yet.
    AsRead,
}

impl Attributes {
    /// Of an executable with the nodes of a graph.
    fn of(guard: &GraphGuard<'_>) -> Self {
        match guard.has_unread() {
            true => Self::AsRead,
            false => Self::Known(has_attributes(guard)),
        }
    }
}

/// Whether a kernel among the nodes of a graph has attributes.
pub(crate) fn has_attributes(graph: &GraphGuard<'_>) -> bool {
    have_attributes(graph.records().map(|(_, record)| &record.node_params))
}

/// Whether a kernel among nodes has attributes.
pub(crate) fn have_attributes<'p>(mut nodes: impl Iterator<Item = &'p NodeParams>) -> bool {
    nodes.any(|params| matches!(params, NodeParams::Kernel { config: KernelConfig::WithAttributes(_), .. }))
}

impl NodeUpdates {
    /// Of an executable that is made of the graph now.
    pub(crate) fn of(guard: &mut GraphGuard<'_>) -> Self {
        let structure = guard.changes.structure();
        Self {
            keys: Keys { end: guard.next_number(), records: guard.indices(), structure },
            latest: Latest::Own,
            deciding: guard.kernels_with_handles().collect(),
            attributes: Attributes::of(guard),
            made: guard.changes.now(),
            set: HashMap::new(),
            replaced: HashSet::new(),
            disabled: HashSet::new(),
        }
    }

    /// Notes a whole update from the graph that the executable was made of. Returns what was known
    /// before, to be dropped without the lock.
    pub(crate) fn update_from_own(&mut self, guard: &mut GraphGuard<'_>) -> Self {
        let is_as_it_was = self.has_keys_as_they_were(guard);
        let latest = if is_as_it_was { Latest::Own } else { Latest::OwnChanged };
        let deciding = guard.kernels_with_handles().collect();
        self.renew(guard, latest, deciding)
    }

    /// The same for another graph. Without its counterparts, they are found once they are needed:
    /// it has no kernel with handles of conditions then.
    pub(crate) fn update_from(
        &mut self,
        guard: &mut GraphGuard<'_>,
        source: Source,
        counterparts: Option<Counterparts>,
    ) -> Self {
        let known = counterparts.as_ref();
        let key = |id| known.and_then(|counterparts| counterparts.key(id));
        let deciding = guard.kernels_with_handles().filter_map(key).collect();
        let structure = guard.changes.structure();
        let counterparts = counterparts.map_or_else(OnceLock::new, OnceLock::from);
        let latest = LatestGraph { source, structure, counterparts };
        self.renew(guard, Latest::Other(Box::new(latest)), deciding)
    }

    fn renew(&mut self, guard: &mut GraphGuard<'_>, latest: Latest, deciding: HashSet<NodeId>) -> Self {
        let (keys, disabled) = (self.keys, core::mem::take(&mut self.disabled));
        let attributes = Attributes::of(guard);
        let (made, set, replaced) = (guard.changes.now(), HashMap::new(), HashSet::new());
        let new = Self { keys, latest, deciding, attributes, made, set, replaced, disabled };
        core::mem::replace(self, new)
    }

    /// The graph that the parameters are of.
    pub(crate) fn latest(&self) -> &Latest {
        &self.latest
    }

    /// The node of the latest graph that has a key.
    pub(crate) fn counterpart(&self, key: NodeId) -> NodeId {
        match &self.latest {
            Latest::Other(latest) => latest.counterparts.get().and_then(|known| known.of_key(key)),
            Latest::Own | Latest::OwnChanged => None,
        }
        .unwrap_or(key)
    }

    /// Whether a node of the graph of the keys was in it when the executable was made.
    pub(crate) fn has(&self, id: NodeId) -> bool {
        id.number < self.keys.end && (id.index as usize) < self.keys.records
    }

    /// Whether the graph of the keys has the nodes and edges that it had then.
    pub(crate) fn has_keys_as_they_were(&self, guard: &GraphGuard<'_>) -> bool {
        guard.changes.structure() == self.keys.structure
    }

    /// Whether a node has the handle of a condition in the executable.
    pub(crate) fn is_deciding(&self, key: NodeId) -> bool {
        self.deciding.contains(&key)
    }

    /// The parameters of a node in the executable, given its counterpart in the graph that the
    /// parameters are of. `None` if they are not known: the graph's node was changed since, or the
    /// child graph around it was replaced here.
    pub(crate) fn params<'s>(
        &'s self,
        guard: &'s GraphGuard<'_>,
        key: NodeId,
        counterpart: NodeId,
    ) -> Option<&'s NodeParams> {
        match self.set.get(&key) {
            None if !self.is_replaced(key) => self.unchanged(guard, counterpart),
            set => set,
        }
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

    /// Whether a kernel whose parameters are not known may have attributes, given the graph that
    /// the parameters are of.
    pub(crate) fn may_have_attributes(&self, latest: &GraphGuard<'_>) -> bool {
        match self.attributes {
            Attributes::Known(known) => known,
            Attributes::AsRead => latest.read_late.have_attributes,
        }
    }

    /// Notes that updates have replaced the child graphs around nodes, and whether kernels in the
    /// new ones have attributes.
    pub(crate) fn replace(&mut self, keys: &[NodeId], have_attributes: bool) {
        if have_attributes {
            self.attributes = Attributes::Known(true);
        }
        keys.iter().for_each(|key| drop(self.set.remove(key)));
        self.replaced.extend(keys);
    }

    /// Whether the child graph around a node was replaced.
    pub(crate) fn is_replaced(&self, key: NodeId) -> bool {
        self.replaced.contains(&key)
    }

    /// The nodes that have handles of conditions in the executable.
    pub(crate) fn deciding(&self) -> impl Iterator<Item = NodeId> {
        self.deciding.iter().copied()
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
