//! Nodes that are apart in an executable, since edges were left out, stay apart.
//!
//! Two nodes are *apart* if the drawing orders them, and the executable does not. Later values that
//! would make their accesses conflict are refused. Nodes of different levels are never apart: all
//! that a conditional node runs keeps the order of that node.

mod level;

use crate::error::{Error, Meeting, UpdateError};
use crate::footprint::Footprint;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
pub(in crate::shape) use level::ApartLevel;
use level::LevelChanges;

/// The nodes of an executable that are apart, by level: the root graph, and bodies.
#[derive(Clone, Debug)]
pub(crate) struct Apart(Vec<ApartLevel>);

/// Footprints that nodes are about to get, by level.
#[derive(Debug, Default)]
pub(crate) struct Changes(Vec<LevelChanges>);

/// Two nodes that would meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Met {
    pub(crate) node: NodeId,
    pub(crate) other: NodeId,
    pub(crate) why: Meeting,
}

impl Met {
    /// The same nodes of another graph.
    pub(crate) fn among(self, of_key: impl Fn(NodeId) -> Option<NodeId>) -> Self {
        let node = |key| of_key(key).unwrap_or(key);
        Self { node: node(self.node), other: node(self.other), ..self }
    }

    /// The error that names both nodes.
    #[cold]
    pub(crate) fn error(self, guard: &GraphGuard<'_>) -> Error {
        let (node, other) = (guard.name(self.node), guard.name(self.other));
        UpdateError::Meets { node, other, why: self.why }.into()
    }
}

impl Apart {
    /// Of the levels with nodes that are apart; `None` if there are none.
    pub(in crate::shape) fn of(levels: Vec<ApartLevel>) -> Option<Self> {
        (!levels.is_empty()).then_some(Self(levels))
    }

    /// The nodes that may be apart from others.
    pub(crate) fn ids(&self) -> impl Iterator<Item = NodeId> {
        self.0.iter().flat_map(ApartLevel::ids)
    }

    /// Adds the footprint that a node is about to get to changes, unless it may get any, or has the
    /// same already.
    pub(crate) fn add(&self, changes: &mut Changes, id: NodeId, footprint: Footprint) {
        changes.0.resize_with(self.0.len(), LevelChanges::default);
        if let Some((level, changes)) = self.0.iter().zip(&mut changes.0).find(|(level, _)| level.has(id)) {
            level.add(changes, id, footprint);
        }
    }

    /// Whether nodes can get footprints, all together.
    ///
    /// # Errors
    /// Two nodes that are apart would meet.
    pub(crate) fn check(&mut self, changes: &Changes) -> Result<(), Met> {
        self.0.iter_mut().zip(&changes.0).try_for_each(|(level, changes)| level.check(changes))
    }

    /// Notes that nodes have got footprints.
    pub(crate) fn commit(&mut self, changes: Changes) {
        self.0.iter_mut().zip(changes.0).for_each(|(level, changes)| level.commit(changes));
    }
}
