//! Which allocation node is freed by which free node.

use std::collections::HashMap;

use cuda_sys::CUdeviceptr;
use smallvec::SmallVec;

use crate::detail::Detail;
use crate::place::NodeId;

/// The memory nodes of a hierarchy. Most have none.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// An address is given to one allocation after the other, each after the free of the one before.
    by_address: HashMap<CUdeviceptr, SmallVec<[Life; 1]>>,
    /// Nodes of other code that free memory of other graphs.
    strays: Vec<NodeId>,
}

/// What becomes of the memory of an allocation node in a launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Life {
    pub(crate) alloc: NodeId,
    /// `None` if a launch leaves it.
    pub(crate) free: Option<NodeId>,
}

/// What a new row says of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Noted {
    Alloc(CUdeviceptr),
    Free(CUdeviceptr),
}

impl Noted {
    #[inline]
    pub(crate) fn of(detail: &Detail) -> Option<Self> {
        match detail {
            Detail::Alloc { memory, .. } => Some(Self::Alloc(memory.address())),
            Detail::Free { address } => Some(Self::Free(*address)),
            _ => None,
        }
    }
}

impl Ledger {
    /// Takes note of a row. Rows come in the order in which the nodes were made.
    pub(crate) fn note(&mut self, node: NodeId, noted: Noted) {
        match noted {
            Noted::Alloc(address) => {
                self.by_address.entry(address).or_default().push(Life { alloc: node, free: None });
            }
            Noted::Free(address) => {
                let lives = self.by_address.get_mut(&address).into_iter().flatten();
                match lives.rev().find(|life| life.free.is_none()) {
                    Some(life) => life.free = Some(node),
                    None => self.strays.push(node),
                }
            }
        }
    }

    /// A row is gone: other code has taken the node away, or the graph that it was in.
    #[cold]
    pub(crate) fn forget(&mut self, node: NodeId, noted: Noted) {
        let (Noted::Alloc(address) | Noted::Free(address)) = noted;
        self.strays.retain(|stray| *stray != node);
        if let Some(lives) = self.by_address.get_mut(&address) {
            lives.retain(|life| life.alloc != node);
            for life in lives.iter_mut().filter(|life| life.free == Some(node)) {
                life.free = None;
            }
            if lives.is_empty() {
                self.by_address.remove(&address);
            }
        }
    }

    /// Whether there are no memory nodes.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_address.is_empty() && self.strays.is_empty()
    }

    /// What becomes of the memory of each allocation node, in the order of the nodes.
    pub(crate) fn lives(&self) -> Vec<Life> {
        let mut lives: Vec<Life> = self.by_address.values().flatten().copied().collect();
        lives.sort_unstable_by_key(|life| life.alloc.number);
        lives
    }

    /// What becomes of the memory at an address, one after the other.
    pub(crate) fn lives_at(&self, address: CUdeviceptr) -> &[Life] {
        self.by_address.get(&address).map_or(&[], SmallVec::as_slice)
    }

    /// What becomes of the memory at an address, by its allocation node.
    pub(crate) fn life(&self, address: CUdeviceptr, alloc: NodeId) -> Option<Life> {
        self.lives_at(address).iter().find(|life| life.alloc == alloc).copied()
    }

    /// The life that a free node ends.
    pub(crate) fn freed_by(&self, address: CUdeviceptr, free: NodeId) -> Option<Life> {
        self.lives_at(address).iter().find(|life| life.free == Some(free)).copied()
    }

    /// All memory nodes.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        let lives = self.by_address.values().flatten();
        lives.flat_map(|life| [Some(life.alloc), life.free]).flatten().chain(self.strays.iter().copied())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(index: u32) -> NodeId {
        NodeId { index, number: u64::from(index) }
    }

    #[test]
    fn an_address_is_freed_once_for_each_allocation_there() {
        let mut ledger = Ledger::default();
        assert!(ledger.is_empty());
        ledger.note(id(0), Noted::Alloc(512));
        ledger.note(id(1), Noted::Free(512));
        ledger.note(id(2), Noted::Alloc(512));
        ledger.note(id(3), Noted::Alloc(1024));
        let life = |alloc, free: Option<u32>| Life { alloc: id(alloc), free: free.map(id) };
        assert_eq!(ledger.lives(), [life(0, Some(1)), life(2, None), life(3, None)]);
        ledger.note(id(4), Noted::Free(512));
        ledger.note(id(5), Noted::Free(512));
        assert_eq!(ledger.life(512, id(2)), Some(life(2, Some(4))));
        assert_eq!(ledger.freed_by(512, id(1)), Some(life(0, Some(1))));
        assert_eq!(ledger.nodes().count(), 6);
        // The last free is of memory of another graph.
        ledger.forget(id(5), Noted::Free(512));
        ledger.forget(id(4), Noted::Free(512));
        assert_eq!(ledger.life(512, id(2)), Some(life(2, None)));
        ledger.forget(id(0), Noted::Alloc(512));
        ledger.forget(id(2), Noted::Alloc(512));
        assert!(!ledger.is_empty());
        ledger.forget(id(3), Noted::Alloc(1024));
        assert!(ledger.is_empty());
    }
}
