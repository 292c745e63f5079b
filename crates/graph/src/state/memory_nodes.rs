//! The ledger: the allocation and free nodes of a hierarchy, and which belong together.

use std::collections::HashMap;
use std::sync::Arc;

use cuda_handles::Allocation;
use cuda_sys::CUdeviceptr;
use smallvec::SmallVec;

use crate::state::ids::NodeId;
use crate::state::params::NodeParams;

/// The memory nodes of a hierarchy. Most hierarchies have none.
#[derive(Debug, Default)]
pub(crate) struct Ledger {
    /// An address may be used by one allocation after another, each after the previous one is
    /// freed.
    by_address: HashMap<CUdeviceptr, SmallVec<[LedgerEntry; 1]>>,
}

/// An allocation node with its free node, or one of the two.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct LedgerEntry {
    /// The memory; `None` if only a free node of other code is known.
    memory: Option<Key>,
    alloc: Option<NodeId>,
    free: Option<NodeId>,
    /// Whether the graph was ever instantiated with the allocation node.
    instantiated: bool,
}

/// Identifies memory by the address of its owner, which records keep alive.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Key(usize);

impl Key {
    fn of(memory: &Arc<Allocation>) -> Self {
        Self(Arc::as_ptr(memory).addr())
    }
}

/// The memory of an allocation node in one launch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Life {
    pub(crate) alloc: NodeId,
    /// `None` if the memory outlives the launch.
    pub(crate) free: Option<NodeId>,
}

/// An allocation or free node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum MemoryNode {
    Alloc(CUdeviceptr, Key),
    /// Without a key if other code added the node.
    Free(CUdeviceptr, Option<Key>),
}

impl MemoryNode {
    #[inline]
    pub(crate) fn of(node_params: &NodeParams) -> Option<Self> {
        match node_params {
            NodeParams::Alloc { memory, .. } => Some(Self::Alloc(memory.address(), Key::of(memory))),
            NodeParams::Free { address, memory } => Some(Self::Free(*address, memory.as_ref().map(Key::of))),
            NodeParams::Empty
            | NodeParams::Kernel { .. }
            | NodeParams::Memcpy(_)
            | NodeParams::Memset(_)
            | NodeParams::Host(_)
            | NodeParams::EventRecord(_)
            | NodeParams::EventWait(_)
            | NodeParams::Batch(_)
            | NodeParams::SignalSemaphores(_)
            | NodeParams::WaitSemaphores(_)
            | NodeParams::Child { .. }
            | NodeParams::Conditional(_)
            | NodeParams::Other { .. } => None,
        }
    }
}

impl LedgerEntry {
    fn new(memory: Option<Key>, alloc: Option<NodeId>, free: Option<NodeId>) -> Self {
        Self { memory, alloc, free, instantiated: false }
    }

    fn life(&self) -> Option<Life> {
        Some(Life { alloc: self.alloc?, free: self.free })
    }
}

impl Ledger {
    /// Enters a memory node. The nodes of one graph are entered in the order of their creation; a
    /// free node in a graph around it may be entered before.
    pub(crate) fn note(&mut self, node: NodeId, noted: MemoryNode) {
        let (MemoryNode::Alloc(address, _) | MemoryNode::Free(address, _)) = noted;
        let entries = self.by_address.entry(address).or_default();
        match noted {
            MemoryNode::Alloc(_, key) => {
                let is_its = |entry: &&mut LedgerEntry| {
                    entry.alloc.is_none() && entry.memory.is_none_or(|known| known == key)
                };
                match entries.iter_mut().find(is_its) {
                    Some(entry) => (entry.memory, entry.alloc) = (Some(key), Some(node)),
                    None => entries.push(LedgerEntry::new(Some(key), Some(node), None)),
                }
            }
            MemoryNode::Free(_, key) => {
                // A free node of other code only tells the address; that is freed once for each
                // allocation.
                let is_its =
                    |entry: &&mut LedgerEntry| entry.free.is_none() && (key.is_none() || entry.memory == key);
                match entries.iter_mut().rev().find(is_its) {
                    Some(entry) => entry.free = Some(node),
                    None => entries.push(LedgerEntry::new(key, None, Some(node))),
                }
            }
        }
    }

    /// Removes a memory node.
    #[cold]
    pub(crate) fn forget(&mut self, node: NodeId, noted: MemoryNode) {
        let (MemoryNode::Alloc(address, _) | MemoryNode::Free(address, _)) = noted;
        let Some(entries) = self.by_address.get_mut(&address) else { return };
        for entry in entries.iter_mut() {
            entry.alloc = entry.alloc.filter(|alloc| *alloc != node);
            entry.free = entry.free.filter(|free| *free != node);
        }
        entries.retain(|entry| entry.alloc.is_some() || entry.free.is_some());
        if entries.is_empty() {
            self.by_address.remove(&address);
        }
    }

    /// Replaces the id of a memory node.
    pub(crate) fn rename(&mut self, old: NodeId, new: NodeId, noted: MemoryNode) {
        let (MemoryNode::Alloc(address, _) | MemoryNode::Free(address, _)) = noted;
        for entry in self.by_address.get_mut(&address).into_iter().flatten() {
            for node in [&mut entry.alloc, &mut entry.free].into_iter().flatten() {
                if *node == old {
                    *node = new;
                }
            }
        }
    }

    /// Adds the entries of another hierarchy. An allocation node and a free node of the same memory
    /// become one entry.
    pub(crate) fn merge(&mut self, other: Self) {
        for (address, entries) in other.by_address {
            let own = self.by_address.entry(address).or_default();
            for entry in entries {
                let is_other_half = |known: &&mut LedgerEntry| {
                    known.memory == entry.memory
                        && known.alloc.is_some() != entry.alloc.is_some()
                        && known.free.is_some() != entry.free.is_some()
                };
                match own.iter_mut().find(is_other_half) {
                    Some(known) => {
                        (known.alloc, known.free) = (known.alloc.or(entry.alloc), known.free.or(entry.free));
                        known.instantiated |= entry.instantiated;
                    }
                    None => own.push(entry),
                }
            }
        }
    }

    /// Whether there are no memory nodes.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.by_address.is_empty()
    }

    /// The life of each allocation node's memory, in the order of the nodes.
    pub(crate) fn lives(&self) -> Vec<Life> {
        let mut lives: Vec<Life> = self.by_address.values().flatten().filter_map(LedgerEntry::life).collect();
        lives.sort_unstable_by_key(|life| life.alloc.number);
        lives
    }

    /// The life of this memory; `None` if no allocation node of the hierarchy has it.
    #[inline]
    pub(crate) fn life_of(&self, memory: &Arc<Allocation>) -> Option<Life> {
        self.entry_of(memory)?.life()
    }

    /// Notes that the graph was instantiated as it is now.
    pub(crate) fn instantiated(&mut self) {
        let allocated = self.by_address.values_mut().flatten().filter(|entry| entry.alloc.is_some());
        allocated.for_each(|entry| entry.instantiated = true);
    }

    /// Whether the graph was ever instantiated with the allocation node of this memory.
    pub(crate) fn was_instantiated(&self, memory: &Arc<Allocation>) -> bool {
        self.entry_of(memory).is_some_and(|entry| entry.instantiated)
    }

    /// The life that a free node ends.
    pub(crate) fn freed_by(&self, address: CUdeviceptr, free: NodeId) -> Option<Life> {
        self.find(address, |entry| entry.free == Some(free))?.life()
    }

    #[inline]
    fn entry_of(&self, memory: &Arc<Allocation>) -> Option<&LedgerEntry> {
        memory.graph()?;
        self.find(memory.address(), |entry| entry.memory == Some(Key::of(memory)))
    }

    fn find(&self, address: CUdeviceptr, is_it: impl Fn(&LedgerEntry) -> bool) -> Option<&LedgerEntry> {
        self.by_address.get(&address)?.iter().find(|entry| is_it(entry))
    }

    /// All memory nodes.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.by_address.values().flatten().flat_map(|entry| [entry.alloc, entry.free]).flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(index: u32) -> NodeId {
        NodeId { index, number: u64::from(index) }
    }

    fn life(alloc: u32, free: Option<u32>) -> Life {
        Life { alloc: id(alloc), free: free.map(id) }
    }

    const A: MemoryNode = MemoryNode::Alloc(512, Key(1));
    const B: MemoryNode = MemoryNode::Alloc(512, Key(2));
    const FREE_A: MemoryNode = MemoryNode::Free(512, Some(Key(1)));
    const FREE_B: MemoryNode = MemoryNode::Free(512, Some(Key(2)));
    /// Of other code.
    const FREE: MemoryNode = MemoryNode::Free(512, None);

    #[test]
    fn an_address_is_freed_once_for_each_allocation_there() {
        let mut ledger = Ledger::default();
        assert!(ledger.is_empty());
        for (node, noted) in [A, FREE_A, B, MemoryNode::Alloc(1024, Key(3))].into_iter().enumerate() {
            ledger.note(id(node as u32), noted);
        }
        assert_eq!(ledger.lives(), [life(0, Some(1)), life(2, None), life(3, None)]);
        ledger.note(id(4), FREE);
        // Of memory of another graph.
        ledger.note(id(5), FREE);
        assert_eq!(ledger.freed_by(512, id(4)), Some(life(2, Some(4))));
        assert_eq!((ledger.freed_by(512, id(5)), ledger.nodes().count()), (None, 6));
        ledger.forget(id(5), FREE);
        ledger.forget(id(4), FREE);
        assert_eq!(ledger.lives(), [life(0, Some(1)), life(2, None), life(3, None)]);
        ledger.forget(id(0), A);
        ledger.forget(id(1), FREE_A);
        ledger.forget(id(2), B);
        assert!(!ledger.is_empty());
        ledger.forget(id(3), MemoryNode::Alloc(1024, Key(3)));
        assert!(ledger.is_empty());
    }

    #[test]
    fn what_was_there_at_an_instantiation_is_known_for_good() {
        let mut ledger = Ledger::default();
        let instantiated = |ledger: &Ledger| -> Vec<bool> {
            let entries = ledger.by_address.values().flatten();
            let mut all: Vec<_> = entries.map(|entry| (entry.alloc, entry.instantiated)).collect();
            all.sort_unstable_by_key(|(alloc, _)| alloc.map(|id| id.index));
            all.into_iter().map(|(_, instantiated)| instantiated).collect()
        };
        // Of memory of another graph.
        ledger.note(id(0), MemoryNode::Free(1024, None));
        ledger.note(id(1), A);
        assert_eq!(instantiated(&ledger), [false, false]);
        ledger.instantiated();
        ledger.note(id(2), FREE_A);
        ledger.note(id(3), B);
        assert_eq!(instantiated(&ledger), [false, true, false]);
    }

    #[test]
    fn a_free_may_be_met_before_its_allocation() {
        let mut ledger = Ledger::default();
        // The graph around frees what the graph inside allocates second.
        for (node, noted) in [FREE_B, A, FREE_A, B].into_iter().enumerate() {
            ledger.note(id(node as u32), noted);
        }
        assert_eq!(ledger.lives(), [life(1, Some(2)), life(3, Some(0))]);
        let mut ledger = Ledger::default();
        for (node, noted) in [FREE, A].into_iter().enumerate() {
            ledger.note(id(node as u32), noted);
        }
        assert_eq!(ledger.lives(), [life(1, Some(0))]);
    }
}
