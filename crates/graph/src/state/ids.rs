//! What nodes and graphs of a hierarchy are known by.

use cuda_sys::{CUgraph, CUgraphNode};

use crate::toposort::Index;

/// A raw node that may lie in a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RawNode(pub(crate) CUgraphNode);

// SAFETY: it is a name that goes to the driver and is never dereferenced here; any thread may use
// it, one at a time, which the lock of the table sees to.
unsafe impl Send for RawNode {}

impl RawNode {
    pub(crate) fn key(self) -> usize {
        self.0.addr()
    }
}

/// A raw graph that may lie in a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RawGraph(pub(crate) CUgraph);

// SAFETY: as for `RawNode`.
unsafe impl Send for RawGraph {}

/// A graph of the hierarchy under one root, for good: as for nodes, its place is given to others,
/// its number never.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct SubgraphId {
    /// 0 for the root; above, one more than the index in the table.
    index: u32,
    number: u64,
}

impl SubgraphId {
    /// The root graph itself.
    pub(crate) const ROOT: Self = Self { index: 0, number: 0 };

    /// The place of the embedded graph at an index of the table.
    pub(crate) fn embedded(index: u32, number: u64) -> Self {
        Self { index: index + 1, number }
    }

    pub(crate) fn is_root(self) -> bool {
        self.index == 0
    }

    /// The index in the table; `None` for the root.
    #[inline]
    pub(crate) fn index(self) -> Option<u32> {
        self.index.checked_sub(1)
    }

    /// The number, which is that of no other place.
    pub(crate) fn number(self) -> u64 {
        self.number
    }
}

/// A node of one root graph or of a graph embedded in it, for good: its place is given to others
/// once it is removed, its number never.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct NodeId {
    pub(crate) index: Index,
    pub(crate) number: u64,
}

impl NodeId {
    /// Of no node.
    pub(crate) const NONE: Self = Self { index: Index::MAX, number: u64::MAX };
}
