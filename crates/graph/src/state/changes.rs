//! Which nodes were changed since executables were made.

use std::collections::HashMap;

use crate::state::ids::NodeId;

/// The changes of a hierarchy: of node parameters, counted from the first executable on, and of
/// nodes and edges, counted from the start.
#[derive(Debug, Default)]
pub(crate) struct Changes {
    count: u64,
    /// Whether an executable was made.
    is_watched: bool,
    /// The number of each node's last change.
    last: HashMap<NodeId, u64>,
    /// The number of changes of nodes and edges.
    structure: u64,
    /// The number of changes of parameters, and of nodes and edges but for nodes that were added
    /// behind others.
    other_than_adds: u64,
}

/// A point between changes of parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ChangePoint(u64);

/// A point between changes of nodes and edges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StructurePoint(u64);

impl Changes {
    /// The point between the changes up to now and later ones.
    pub(crate) fn now(&mut self) -> ChangePoint {
        self.is_watched = true;
        // A change allocates nothing of its own, unless many nodes change.
        self.last.reserve(8);
        ChangePoint(self.count)
    }

    /// Notes that a node's parameters change.
    pub(crate) fn note(&mut self, id: NodeId) {
        self.other_than_adds += 1;
        if self.is_watched {
            self.count += 1;
            self.last.insert(id, self.count);
        }
    }

    /// Forgets a node that is removed.
    pub(crate) fn forget(&mut self, id: NodeId) {
        self.last.remove(&id);
        self.note_structure();
    }

    /// Whether a node has the parameters that it had at a point.
    pub(crate) fn is_unchanged(&self, id: NodeId, since: ChangePoint) -> bool {
        self.last.get(&id).is_none_or(|last| *last <= since.0)
    }

    /// Notes that nodes or edges change, or their order.
    #[inline]
    pub(crate) fn note_structure(&mut self) {
        self.structure += 1;
        self.other_than_adds += 1;
    }

    /// Notes that a node is added behind others.
    #[inline]
    pub(crate) fn note_added(&mut self) {
        self.structure += 1;
    }

    /// Takes back the changes since a point: records were entered of nodes that the graph had.
    pub(crate) fn back_to(&mut self, point: StructurePoint) {
        self.structure = point.0;
    }

    /// How often anything changed but by nodes that were added behind others.
    pub(crate) fn other_than_adds(&self) -> u64 {
        self.other_than_adds
    }

    /// The point between the changes of nodes and edges up to now and later ones.
    pub(crate) fn structure(&self) -> StructurePoint {
        StructurePoint(self.structure)
    }
}
