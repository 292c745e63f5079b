//! Identifiers of the nodes and graphs of a hierarchy.

use cuda_sys::{CUgraph, CUgraphNode};

use crate::toposort::Index;

/// A raw node handle that can be stored in the state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RawNode(pub(crate) CUgraphNode);

// SAFETY: the handle is only passed to the driver and never dereferenced here. Any thread may use
// it, one at a time, which the hierarchy's lock ensures.
unsafe impl Send for RawNode {}

impl RawNode {
    pub(crate) fn key(self) -> usize {
        self.0.addr()
    }
}

/// A raw graph handle that can be stored in the state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RawGraph(pub(crate) CUgraph);

// SAFETY: as for `RawNode`.
unsafe impl Send for RawGraph {}

/// Identifies a graph of a hierarchy forever: the index is used again, the number never.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct SubgraphId {
    /// 0 for the root; otherwise one more than the index in the table.
    index: u32,
    number: u64,
}

impl SubgraphId {
    /// The root graph itself.
    pub(crate) const ROOT: Self = Self { index: 0, number: 0 };

    /// The id of the embedded graph at an index of the table.
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

    /// The number, which no other graph of the hierarchy has.
    pub(crate) fn number(self) -> u64 {
        self.number
    }
}

/// Identifies a node of a hierarchy forever: after its removal the index is used again, the number
/// never.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct NodeId {
    pub(crate) index: Index,
    pub(crate) number: u64,
}

impl NodeId {
    /// The id of no node.
    pub(crate) const NONE: Self = Self { index: Index::MAX, number: u64::MAX };
}
