//! The table of a root graph: a row for each node of it and of the graphs embedded in it, with what the node uses.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cuda_handles::{Allocation, Owner};
use cuda_sys::{CUgraph, CUgraphNode};
use smallvec::SmallVec;

use crate::detail::Detail;
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

/// A raw graph that may lie in a table.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct RawGraph(pub(crate) CUgraph);

// SAFETY: as for `RawNode`.
unsafe impl Send for RawGraph {}

/// A graph of the hierarchy under one root, for good: as for nodes, its place is given to others, its number never.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Place {
    /// 0 for the root; above, one more than the index in the table.
    index: u32,
    number: u64,
}

impl Place {
    /// The root graph itself.
    pub(crate) const ROOT: Self = Self { index: 0, number: 0 };

    pub(crate) fn is_root(self) -> bool {
        self.index == 0
    }
}

/// A graph embedded in a node.
#[derive(Debug)]
pub(crate) struct Embedded {
    pub(crate) raw: RawGraph,
    number: u64,
    /// The node that it is embedded in.
    pub(crate) node: NodeId,
    /// Its rows.
    nodes: HashSet<Index>,
}

/// A node of one root graph or of a graph embedded in it, for good: its place is given to others once it is removed, its number never.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct NodeId {
    pub(crate) index: Index,
    pub(crate) number: u64,
}

#[derive(Debug)]
pub(crate) struct Row {
    pub(crate) raw: RawNode,
    number: u64,
    /// The graph that it is a node of.
    pub(crate) within: Place,
    /// See [`crate::order`].
    pub(crate) label: u64,
    pub(crate) detail: Detail,
    pub(crate) owners: Owners,
    pub(crate) name: Option<Box<str>>,
}

/// Rows taken out of a table.
pub(crate) type Taken = SmallVec<[Row; 1]>;

/// Rows in use have a `Some`; the others are listed as free.
#[derive(Debug, Default)]
pub(crate) struct Table {
    rows: Vec<Option<Row>>,
    free: Vec<Index>,
    /// The graphs embedded in nodes.
    embedded: Vec<Option<Embedded>>,
    free_embedded: Vec<u32>,
    /// The number of the next node.
    next: u64,
    /// The number of the latest embedded graph; the root has 0.
    latest: u64,
    /// From raw nodes to rows; made when first asked for, since most graphs are only built and run.
    by_raw: Option<HashMap<usize, Index>>,
    /// Kept for the whole graph.
    pub(crate) kept: Vec<Owner>,
}

impl Table {
    /// Makes room for one row in a graph, so that [`insert`](Self::insert) cannot fail.
    #[inline]
    pub(crate) fn reserve(&mut self, within: Place) {
        self.reserve_many(within, 1);
    }

    /// Makes room for some rows.
    #[inline]
    pub(crate) fn reserve_many(&mut self, within: Place, rows: usize) {
        if self.free.len() < rows {
            self.rows.reserve(rows - self.free.len());
        }
        if let Some(by_raw) = &mut self.by_raw {
            by_raw.reserve(rows);
        }
        if let Some(graph) = self.embedded_mut(within) {
            graph.nodes.reserve(rows);
        }
    }

    /// A row for a new node of a graph that is there.
    #[inline]
    pub(crate) fn insert(
        &mut self,
        within: Place,
        raw: CUgraphNode,
        detail: Detail,
        owners: Owners,
    ) -> NodeId {
        let (raw, number) = (RawNode(raw), self.next);
        self.next += 1;
        let row = Some(Row { raw, number, within, label: number, detail, owners, name: None });
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
        if let Some(graph) = self.embedded_mut(within) {
            graph.nodes.insert(index);
        }
        NodeId { index, number }
    }

    /// A place for the graph embedded in a node.
    pub(crate) fn embed(&mut self, raw: CUgraph, node: NodeId) -> Place {
        self.latest += 1;
        let number = self.latest;
        let graph = Some(Embedded { raw: RawGraph(raw), number, node, nodes: HashSet::new() });
        let index = self.free_embedded.pop().unwrap_or_else(|| {
            self.embedded.push(None);
            (self.embedded.len() - 1) as u32
        });
        self.embedded[index as usize] = graph;
        Place { index: index + 1, number }
    }

    /// An embedded graph; `None` for the root, and once the node that it was embedded in is gone.
    pub(crate) fn embedded(&self, place: Place) -> Option<&Embedded> {
        let index = (place.index as usize).checked_sub(1)?;
        self.embedded.get(index)?.as_ref().filter(|graph| graph.number == place.number)
    }

    #[inline]
    fn embedded_mut(&mut self, place: Place) -> Option<&mut Embedded> {
        let index = (place.index as usize).checked_sub(1)?;
        self.embedded.get_mut(index)?.as_mut().filter(|graph| graph.number == place.number)
    }

    /// Whether a graph is there.
    pub(crate) fn has(&self, place: Place) -> bool {
        place.is_root() || self.embedded(place).is_some()
    }

    /// Takes a row out, and with it those of the graph embedded in its node; their owners are the caller's to drop, after the lock.
    pub(crate) fn take(&mut self, id: NodeId) -> Taken {
        let mut taken = Taken::new();
        let mut waiting: SmallVec<[Index; 1]> = self.row(id).map(|_| id.index).into_iter().collect();
        while let Some(index) = waiting.pop() {
            let Some(row) = self.rows.get_mut(index as usize).and_then(Option::take) else { continue };
            if let Some(by_raw) = &mut self.by_raw {
                by_raw.remove(&row.raw.key());
            }
            self.free.push(index);
            if let Some(graph) = row.detail.embedded().and_then(|place| self.take_embedded(place)) {
                waiting.extend(graph.nodes);
            } else if let Some(graph) = self.embedded_mut(row.within) {
                graph.nodes.remove(&index);
            }
            taken.push(row);
        }
        taken
    }

    fn take_embedded(&mut self, place: Place) -> Option<Embedded> {
        self.embedded(place)?;
        let index = place.index.checked_sub(1)?;
        self.free_embedded.push(index);
        self.embedded.get_mut(index as usize)?.take()
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

    /// Keeps an owner as long as a graph of the hierarchy lives: with the node that it is embedded in, if it is.
    pub(crate) fn keep(&mut self, place: Place, owner: Owner) {
        if place.is_root() {
            return self.kept.push(owner);
        }
        let node = self.embedded(place).map(|graph| graph.node);
        if let Some(row) = node.and_then(|node| self.row_mut(node)) {
            row.owners.push(owner);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(number: usize) -> CUgraphNode {
        core::ptr::without_provenance_mut(number)
    }

    fn insert_in(table: &mut Table, within: Place, number: usize) -> NodeId {
        table.reserve(within);
        table.insert(within, raw(number), Detail::Empty, Owners::new())
    }

    fn insert(table: &mut Table, number: usize) -> NodeId {
        insert_in(table, Place::ROOT, number)
    }

    #[test]
    fn a_removed_node_is_never_found_again() {
        let mut table = Table::default();
        let first = insert(&mut table, 16);
        assert_eq!(table.take(first).len(), 1);
        let second = insert(&mut table, 16);
        assert_eq!(first.index, second.index);
        assert!(table.row(first).is_none() && table.take(first).is_empty());
        assert!(table.row(second).is_some());
    }

    #[test]
    fn raw_nodes_are_found_before_and_after_changes() {
        let mut table = Table::default();
        let (a, b) = (insert(&mut table, 16), insert(&mut table, 32));
        assert_eq!(table.find(raw(32)), Some(b.index));
        let c = insert(&mut table, 48);
        assert_eq!(table.find(raw(48)), Some(c.index));
        assert_eq!(table.take(a).len(), 1);
        assert_eq!(table.find(raw(16)), None);
        assert_eq!(table.id(c.index), Some(c));
    }

    #[test]
    fn owners_are_those_of_rows_and_graph() {
        let mut table = Table::default();
        let held = Arc::new(());
        let other = || Owner::Other(held.clone());
        table.insert(Place::ROOT, raw(16), Detail::Empty, Owners::from_iter([other(), other()]));
        table.kept.push(other());
        assert_eq!(table.owners().len(), 3);
        assert_eq!(Arc::strong_count(&held), 4);
    }

    #[test]
    fn an_embedded_graph_goes_with_its_node() {
        let mut table = Table::default();
        let graph = core::ptr::without_provenance_mut(8);
        let outside = insert(&mut table, 16);
        let node = insert(&mut table, 32);
        let place = table.embed(graph, node);
        table.row_mut(node).unwrap().detail = Detail::Child { graph: place };
        let inner = insert_in(&mut table, place, 48);
        let deep = table.embed(graph, inner);
        table.row_mut(inner).unwrap().detail = Detail::Child { graph: deep };
        let deepest = insert_in(&mut table, deep, 64);
        let lonely = insert_in(&mut table, deep, 80);
        assert_eq!(table.take(lonely).len(), 1);
        assert!(table.has(place) && table.has(deep) && table.has(Place::ROOT));
        assert_eq!(table.take(node).len(), 3);
        assert!(!table.has(place) && !table.has(deep) && table.has(Place::ROOT));
        assert!(table.row(deepest).is_none() && table.row(inner).is_none() && table.row(outside).is_some());
        let again = insert(&mut table, 32);
        let next = table.embed(graph, again);
        assert!(table.has(next) && next != place && !table.has(place));
    }
}
