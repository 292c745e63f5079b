//! The table of a root graph: a row for each node, with what the node uses and what was given at its creation.

use std::collections::HashMap;
use std::sync::Arc;

use cuda_handles::{Allocation, Kernel, Owner};
use cuda_launch::LaunchConfig;
use cuda_sys::{CUdeviceptr, CUgraphNode};
use smallvec::SmallVec;

use crate::order::Index;

/// What one node keeps alive besides its kernel; up to five buffers need no heap.
pub(crate) type Owners = SmallVec<[Owner; 5]>;

/// A raw node that may lie in a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RawNode(pub(crate) CUgraphNode);

// SAFETY: it is a name that goes to the driver and is never dereferenced here; any thread may use it, one at a time, which the lock of the
// table sees to.
unsafe impl Send for RawNode {}

impl RawNode {
    fn key(self) -> usize {
        self.0.addr()
    }
}

/// A node of one root graph, for good: its place is given to others once it is removed, its number never.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct NodeId {
    pub(crate) index: Index,
    pub(crate) number: u64,
}

/// What a node does, as it was given when the node was made.
#[derive(Clone, Debug)]
pub(crate) enum Detail {
    Empty,
    Kernel { kernel: Kernel, config: LaunchConfig },
    Memcpy { source: CUdeviceptr, destination: CUdeviceptr, bytes: usize },
    Memset { address: CUdeviceptr, value: u32, width: u8, count: usize },
}

#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) raw: RawNode,
    number: u64,
    /// See [`crate::order`].
    pub(crate) label: u64,
    pub(crate) detail: Detail,
    pub(crate) owners: Owners,
    pub(crate) name: Option<Box<str>>,
}

/// Rows in use have a `Some`; the others are listed as free.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Option<Row>>,
    free: Vec<Index>,
    /// The number of the next node.
    next: u64,
    /// From raw nodes to rows; made when first asked for, since most graphs are only built and run.
    by_raw: Option<HashMap<usize, Index>>,
    /// Kept for the whole graph.
    pub(crate) kept: Vec<Owner>,
}

impl Table {
    /// Makes room for one row, so that [`insert`](Self::insert) cannot fail.
    #[inline]
    pub(crate) fn reserve(&mut self) {
        if self.free.is_empty() {
            self.rows.reserve(1);
        }
        if let Some(by_raw) = &mut self.by_raw {
            by_raw.reserve(1);
        }
    }

    #[inline]
    pub(crate) fn insert(&mut self, raw: CUgraphNode, detail: Detail, owners: Owners) -> NodeId {
        let (raw, number) = (RawNode(raw), self.next);
        self.next += 1;
        let row = Some(Row { raw, number, label: number, detail, owners, name: None });
        let index = match self.free.pop() {
            Some(index) => {
                self.rows[index as usize] = row;
                index
            }
            None => {
                self.rows.push(row);
                // A node of the driver is larger than a byte: there is no memory for more than fit.
                (self.rows.len() - 1) as Index
            }
        };
        if let Some(by_raw) = &mut self.by_raw {
            by_raw.insert(raw.key(), index);
        }
        NodeId { index, number }
    }

    /// Takes a row out; its owners are the caller's to drop, after the lock.
    pub(crate) fn take(&mut self, id: NodeId) -> Option<Row> {
        self.row(id)?;
        let row = self.rows.get_mut(id.index as usize)?.take()?;
        if let Some(by_raw) = &mut self.by_raw {
            by_raw.remove(&row.raw.key());
        }
        self.free.push(id.index);
        Some(row)
    }

    /// The node's row; `None` once the node is removed.
    #[inline]
    pub(crate) fn row(&self, id: NodeId) -> Option<&Row> {
        self.rows.get(id.index as usize)?.as_ref().filter(|row| row.number == id.number)
    }

    pub(crate) fn row_mut(&mut self, id: NodeId) -> Option<&mut Row> {
        self.rows.get_mut(id.index as usize)?.as_mut().filter(|row| row.number == id.number)
    }

    /// The row at a place that is in use.
    pub(crate) fn at(&self, index: Index) -> Option<&Row> {
        self.rows.get(index as usize)?.as_ref()
    }

    pub(crate) fn relabel(&mut self, labels: Vec<(Index, u64)>) {
        for (index, label) in labels {
            if let Some(Some(row)) = self.rows.get_mut(index as usize) {
                row.label = label;
            }
        }
    }

    pub(crate) fn id(&self, index: Index) -> Option<NodeId> {
        self.at(index).map(|row| NodeId { index, number: row.number })
    }

    /// The place of a raw node.
    pub(crate) fn find(&mut self, raw: CUgraphNode) -> Option<Index> {
        let rows = &self.rows;
        let by_raw = self.by_raw.get_or_insert_with(|| {
            let used = (0..).zip(rows).filter_map(|(index, row)| Some((row.as_ref()?.raw.key(), index)));
            used.collect()
        });
        by_raw.get(&RawNode(raw).key()).copied()
    }

    /// A copy of everything that nodes and graph keep alive.
    pub(crate) fn owners(&self) -> Vec<Owner> {
        let rows = || self.rows.iter().flatten();
        let count = self.kept.len() + rows().map(|row| row.owners.len() + 1).sum::<usize>();
        let mut owners = Vec::with_capacity(count);
        owners.extend(self.kept.iter().cloned());
        for row in rows() {
            owners.extend(row.detail.owner());
            owners.extend(row.owners.iter().cloned());
        }
        owners
    }

    /// Everything that nodes and graph use of pooled memory.
    pub(crate) fn allocations(&self) -> impl Iterator<Item = &Arc<Allocation>> {
        let owners = self.rows.iter().flatten().flat_map(|row| &row.owners).chain(&self.kept);
        owners.filter_map(|owner| match owner {
            Owner::Allocation(allocation) => Some(allocation),
            _ => None,
        })
    }
}

impl Detail {
    fn owner(&self) -> Option<Owner> {
        match self {
            Self::Kernel { kernel, .. } => Some(Owner::Kernel(kernel.clone())),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(number: usize) -> CUgraphNode {
        core::ptr::without_provenance_mut(number)
    }

    fn insert(table: &mut Table, number: usize) -> NodeId {
        table.reserve();
        table.insert(raw(number), Detail::Empty, Owners::new())
    }

    #[test]
    fn a_removed_node_is_never_found_again() {
        let mut table = Table::default();
        let first = insert(&mut table, 16);
        assert!(table.take(first).is_some());
        let second = insert(&mut table, 16);
        assert_eq!(first.index, second.index);
        assert!(table.row(first).is_none() && table.take(first).is_none());
        assert!(table.row(second).is_some());
    }

    #[test]
    fn raw_nodes_are_found_before_and_after_changes() {
        let mut table = Table::default();
        let (a, b) = (insert(&mut table, 16), insert(&mut table, 32));
        assert_eq!(table.find(raw(32)), Some(b.index));
        let c = insert(&mut table, 48);
        assert_eq!(table.find(raw(48)), Some(c.index));
        table.take(a).unwrap();
        assert_eq!(table.find(raw(16)), None);
        assert_eq!(table.id(c.index), Some(c));
    }

    #[test]
    fn owners_are_those_of_rows_and_graph() {
        let mut table = Table::default();
        let held = Arc::new(());
        let other = || Owner::Other(held.clone());
        table.insert(raw(16), Detail::Empty, Owners::from_iter([other(), other()]));
        table.kept.push(other());
        assert_eq!(table.owners().len(), 3);
        assert_eq!(Arc::strong_count(&held), 4);
    }
}
