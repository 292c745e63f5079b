//! The records of the nodes of a hierarchy, found by id and by raw handle.

use std::collections::HashMap;

use cuda_sys::CUgraphNode;

use crate::state::ids::{NodeId, RawNode, SubgraphId};
use crate::state::owners::{NodeOwners, Uses};
use crate::state::params::NodeParams;
use crate::toposort::{self, Index};

/// Everything known of one node.
#[derive(Debug)]
pub(crate) struct NodeRecord {
    pub(crate) raw: RawNode,
    pub(super) number: u64,
    /// The graph that contains the node.
    pub(crate) within: SubgraphId,
    /// The node's label in the topological order; see [`crate::toposort`].
    pub(crate) label: u64,
    pub(crate) node_params: NodeParams,
    pub(crate) owners: NodeOwners,
    pub(crate) name: Option<Box<str>>,
}

/// A node that the driver has added and that has no record yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddedNode {
    pub(crate) raw: CUgraphNode,
    /// The label of a node that comes before existing nodes. Without one the node comes last.
    pub(crate) label: Option<u64>,
}

impl From<CUgraphNode> for AddedNode {
    fn from(raw: CUgraphNode) -> Self {
        Self { raw, label: None }
    }
}

/// The records by index. The index of a removed node is used again; its number never is.
#[derive(Debug, Default)]
pub(crate) struct NodeTable {
    pub(super) records: Vec<Option<NodeRecord>>,
    /// The indices without a record.
    pub(super) free: Vec<Index>,
    /// The number of the next node.
    pub(super) next: u64,
    /// The newest rank; see [`toposort::fresh`].
    pub(super) newest: u64,
    /// Indices by raw handle, built on first use: most graphs are only built and run.
    pub(super) by_raw: Option<HashMap<usize, Index>>,
    /// The number of conditional nodes, including placeholders.
    pub(super) conditionals: usize,
}

impl NodeTable {
    /// Makes room for records, so that [`insert`](Self::insert) cannot fail.
    #[inline]
    pub(super) fn reserve(&mut self, records: usize) {
        if self.free.len() < records {
            self.records.reserve(records - self.free.len());
        }
        if let Some(by_raw) = &mut self.by_raw {
            by_raw.reserve(records);
        }
    }

    // Inlined so that the record is built in its place.
    #[inline(always)]
    pub(super) fn insert(
        &mut self,
        within: SubgraphId,
        AddedNode { raw, label }: AddedNode,
        node_params: NodeParams,
        uses: Uses,
    ) -> NodeId {
        let (raw, number) = (RawNode(raw), self.next);
        self.next += 1;
        self.newest += 1;
        let label = label.unwrap_or_else(|| toposort::fresh(self.newest));
        let index = self.free.pop().unwrap_or_else(|| {
            // Not `push`, which would copy the bytes of a record that is not there.
            self.records.extend(core::iter::once_with(|| None));
            // A driver node is larger than a byte, so memory runs out before the index does.
            (self.records.len() - 1) as Index
        });
        self.conditionals += usize::from(node_params.is_conditional());
        if let Some(slot @ None) = self.records.get_mut(index as usize) {
            let owners = NodeOwners::new(uses);
            *slot = Some(NodeRecord { raw, number, within, label, node_params, owners, name: None });
        }
        if let Some(by_raw) = &mut self.by_raw {
            by_raw.insert(raw.key(), index);
        }
        NodeId { index, number }
    }

    /// Removes and returns a record.
    pub(super) fn remove(&mut self, index: Index) -> Option<NodeRecord> {
        let record = self.records.get_mut(index as usize).and_then(Option::take)?;
        if let Some(by_raw) = &mut self.by_raw {
            by_raw.remove(&record.raw.key());
        }
        self.free.push(index);
        self.conditionals -= usize::from(record.node_params.is_conditional());
        Some(record)
    }

    /// The record of a node; `None` once the node is removed.
    #[inline]
    pub(super) fn get(&self, id: NodeId) -> Option<&NodeRecord> {
        self.records.get(id.index as usize)?.as_ref().filter(|record| record.number == id.number)
    }

    pub(super) fn get_mut(&mut self, id: NodeId) -> Option<&mut NodeRecord> {
        self.records.get_mut(id.index as usize)?.as_mut().filter(|record| record.number == id.number)
    }

    pub(super) fn at(&self, index: Index) -> Option<&NodeRecord> {
        self.records.get(index as usize)?.as_ref()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (NodeId, &NodeRecord)> {
        let used = (0..).zip(&self.records).filter_map(|(index, record)| Some((index, record.as_ref()?)));
        used.map(|(index, record)| (NodeId { index, number: record.number }, record))
    }

    /// The index of a raw node.
    pub(super) fn find(&mut self, raw: CUgraphNode) -> Option<Index> {
        let records = &self.records;
        let by_raw = self.by_raw.get_or_insert_with(|| {
            let used =
                (0..).zip(records).filter_map(|(index, record)| Some((record.as_ref()?.raw.key(), index)));
            used.collect()
        });
        by_raw.get(&RawNode(raw).key()).copied()
    }

    pub(super) fn relabel(&mut self, labels: Vec<(Index, u64)>) {
        for (index, label) in labels {
            self.continue_after(label);
            if let Some(Some(record)) = self.records.get_mut(index as usize) {
                record.label = label;
            }
        }
    }

    /// The label of the next new node.
    pub(super) fn next_label(&self) -> u64 {
        toposort::fresh(self.newest + 1)
    }

    /// Makes the labels of new nodes larger than this one.
    pub(super) fn continue_after(&mut self, label: u64) {
        self.newest = self.newest.max(toposort::rank(label));
    }
}
