//! A large hierarchy that is moved into a small one: its table becomes that one's, and the few rows
//! of the small one come in. So each row is entered anew only when the hierarchy that it is of at
//! least doubles, and graphs that are moved into one another from the inside out cost n log n.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cuda_handles::{Owner, graph_memory};
use cuda_sys::CUgraph;

use super::subgraphs::Enclosing;
use super::{GraphState, NodeRecord, Subgraph};
use crate::state::ids::{NodeId, RawGraph, SubgraphId};
use crate::state::lineage::{Moved, Renamed};
use crate::state::memory_nodes::MemoryNode;
use crate::state::owners::Uses;
use crate::state::params::NodeParams;
use crate::toposort::Index;

/// Below this many rows a table is copied.
const FEW: usize = 8;

/// The root graph of a hierarchy that is moved.
pub(crate) struct MovedRoot {
    pub(crate) raw: CUgraph,
    /// The number of its hierarchy, and that by which its memory is known.
    pub(crate) hierarchy: u64,
    pub(crate) memory: u64,
    /// Its rows.
    pub(crate) records: Vec<Index>,
}

impl GraphState {
    /// Whether to take over the table of a hierarchy that is moved into a graph of this one, rather
    /// than to copy that: it is larger, and nothing in it has to be looked at node by node.
    pub(crate) fn is_to_take_over(&self, moved: &Self, into: SubgraphId) -> bool {
        let taken_in = self.nodes.records.len()
            + self.subgraphs.slots.len()
            + moved.nodes.free.len()
            + moved.subgraphs.free.len();
        let is_larger = moved.nodes.records.len() - moved.nodes.free.len() > FEW + taken_in;
        let is_plain =
            moved.conditions.is_empty() && moved.sharing.given.is_empty() && moved.nodes.conditionals == 0;
        is_larger && is_plain && !moved.is_shared() && !self.is_shared() && self.body_around(into).is_none()
    }

    /// Takes over the table of a hierarchy whose root graph was moved into a node of this one. The
    /// nodes and graphs of this one are known by what they were; of the other's, those that are in
    /// their way get new names. Gives the place of the root graph, those of all graphs that are to
    /// be entered anew, and what is left, to be dropped after the lock.
    pub(crate) fn take_over(
        &mut self,
        mut moved: Self,
        root: MovedRoot,
        into: NodeId,
    ) -> (SubgraphId, Vec<SubgraphId>, Self) {
        moved.nodes.next = moved.nodes.next.max(self.nodes.next);
        moved.subgraphs.latest = moved.subgraphs.latest.max(self.subgraphs.latest);
        moved.nodes.newest = moved.nodes.newest.max(self.nodes.newest);
        let (records, graphs) = (self.nodes.records.len(), self.subgraphs.slots.len());
        let mut renamed = Renamed { records, graphs, ..Renamed::default() };
        moved.clear_records(self.nodes.records.len(), &mut renamed);
        moved.clear_embedded(self.subgraphs.slots.len(), &mut renamed);
        let subgraph = moved.end_as_root(&root, into, &mut renamed);
        let mut subgraphs: Vec<SubgraphId> = renamed.subgraphs.values().copied().collect();
        subgraphs.extend(self.shared_places());
        let renamed = Arc::new(renamed);
        moved.moved.retain_mut(|earlier| earlier.move_on(&renamed));
        moved.moved.push(Moved::new(root.hierarchy, renamed));
        moved.moved.append(&mut self.moved);
        moved.memory_of = Some(root.memory);
        moved.take_records_of(self);
        let left = core::mem::replace(self, moved);
        if let Some(record) = self.record_mut(into) {
            record.node_params.set_embedded(subgraph);
        }
        (subgraph, subgraphs, left)
    }

    /// Where the graphs are that are found by their raw values, as all are but bodies that the
    /// driver has.
    fn shared_places(&self) -> impl Iterator<Item = SubgraphId> {
        let graphs =
            (0..).zip(&self.subgraphs.slots).filter_map(|(index, graph)| Some((index, graph.as_ref()?)));
        let shared = graphs.filter(|(_, graph)| !graph.is_body || graph.own.is_some());
        shared.map(|(index, graph)| SubgraphId::embedded(index, graph.number))
    }

    /// Makes room for the rows of another table: those at the first so many indices go elsewhere.
    fn clear_records(&mut self, count: usize, renamed: &mut Renamed) {
        let mut within = HashSet::new();
        for index in 0..count.min(self.nodes.records.len()) {
            let Some(mut record) = self.nodes.records.get_mut(index).and_then(Option::take) else { continue };
            let old = NodeId { index: index as Index, number: record.number };
            let new = NodeId { index: self.nodes.records.len() as Index, number: self.nodes.next };
            self.nodes.next += 1;
            record.number = new.number;
            within.insert(record.within);
            self.let_follow(old, new, &record);
            self.nodes.records.push(Some(record));
            renamed.nodes.insert(old, new);
        }
        for subgraph in within {
            if let Some(about) = self.about_mut(subgraph) {
                about.lineage.rename(renamed);
            }
        }
        self.nodes.free.retain(|index| *index as usize >= count);
    }

    /// What is known of a row by its index or number follows it.
    fn let_follow(&mut self, old: NodeId, new: NodeId, record: &NodeRecord) {
        if let Some(graph) = self.embedded_mut(record.within) {
            graph.nodes.remove(&old.index);
            graph.nodes.insert(new.index);
        }
        for &subgraph in record.node_params.inside() {
            if let Some(graph) = self.embedded_mut(subgraph) {
                graph.node = new;
            }
        }
        if let Some(by_raw) = &mut self.nodes.by_raw {
            by_raw.insert(record.raw.key(), new.index);
        }
        if let Some(noted) = MemoryNode::of(&record.node_params) {
            self.memory.rename(old, new, noted);
        }
    }

    /// The same for embedded graphs.
    fn clear_embedded(&mut self, count: usize, renamed: &mut Renamed) {
        for index in 0..count.min(self.subgraphs.slots.len()) {
            let Some(mut graph) = self.subgraphs.slots.get_mut(index).and_then(Option::take) else {
                continue;
            };
            let old = SubgraphId::embedded(index as u32, graph.number);
            self.subgraphs.latest += 1;
            graph.number = self.subgraphs.latest;
            let new = SubgraphId::embedded(self.subgraphs.slots.len() as u32, graph.number);
            self.let_lie_in(&graph.nodes, new);
            if let Some(Some(record)) = self.nodes.records.get_mut(graph.node.index as usize) {
                record.node_params.set_embedded(new);
            }
            self.subgraphs.slots.push(Some(graph));
            renamed.subgraphs.insert(old, new);
        }
        self.subgraphs.free.retain(|index| *index as usize >= count);
    }

    fn let_lie_in<'i>(&mut self, records: impl IntoIterator<Item = &'i Index>, subgraph: SubgraphId) {
        for &index in records {
            if let Some(Some(record)) = self.nodes.records.get_mut(index as usize) {
                record.within = subgraph;
            }
        }
    }

    /// The root graph becomes one that is embedded in a node.
    fn end_as_root(&mut self, root: &MovedRoot, node: NodeId, renamed: &mut Renamed) -> SubgraphId {
        let by_index: HashMap<Index, Index> =
            renamed.nodes.iter().map(|(old, new)| (old.index, new.index)).collect();
        let nodes: HashSet<Index> =
            root.records.iter().map(|index| by_index.get(index).copied().unwrap_or(*index)).collect();
        self.subgraphs.latest += 1;
        let number = self.subgraphs.latest;
        let subgraph = SubgraphId::embedded(self.subgraphs.slots.len() as u32, number);
        self.let_lie_in(&nodes, subgraph);
        let about = core::mem::take(&mut self.root);
        self.subgraphs.slots.push(Some(Subgraph {
            own: None,
            raw: RawGraph(root.raw),
            number,
            node,
            is_body: false,
            around: Enclosing::default(),
            nodes,
            about,
            there: Arc::new(()),
        }));
        renamed.subgraphs.insert(SubgraphId::ROOT, subgraph);
        subgraph
    }

    /// Takes all that the table of the hierarchy around has, as it is; nothing here is in its way.
    fn take_records_of(&mut self, other: &mut Self) {
        let memory_of = self.memory_of;
        for (index, slot) in other.nodes.records.iter_mut().enumerate() {
            let Some(mut record) = slot.take() else { continue };
            // Each is held by the other table as well, until that is dropped.
            let owners = record.owners.used.iter().filter_map(|&one| other.store.get(one));
            let uses: Uses = owners
                .map(|owner| match owner {
                    Owner::Allocation(memory) => self.store.keep_allocation(memory),
                    owner => self.store.keep(owner.clone()),
                })
                .collect();
            record.owners.used = uses;
            if let (NodeParams::Alloc { memory, .. }, Some(hierarchy)) = (&record.node_params, memory_of) {
                // SAFETY: its node is in the hierarchy that is known by this number now.
                unsafe { graph_memory::moved(memory, hierarchy) };
            }
            if let Some(by_raw) = &mut self.nodes.by_raw {
                by_raw.insert(record.raw.key(), index as Index);
            }
            put(&mut self.nodes.records, index, record);
        }
        for (index, slot) in other.subgraphs.slots.iter_mut().enumerate() {
            if let Some(graph) = slot.take() {
                put(&mut self.subgraphs.slots, index, graph);
            }
        }
        self.nodes.free.append(&mut other.nodes.free);
        self.subgraphs.free.append(&mut other.subgraphs.free);
        self.root = core::mem::take(&mut other.root);
        self.conditions = core::mem::take(&mut other.conditions);
        self.memory.take_in(core::mem::take(&mut other.memory));
        self.executable = core::mem::take(&mut other.executable);
        self.removed = Arc::clone(&other.removed);
        self.last_runs = other.last_runs.clone();
        self.subgraphs.place_holders = other.subgraphs.place_holders;
        self.nodes.conditionals = other.nodes.conditionals;
        self.home = self.home.take().or_else(|| other.home.take());
        if let Some(leaving) = other.leaving.take() {
            let own = self.leaving.get_or_insert_default();
            own.records.extend(leaving.records);
            own.owners.extend(leaving.owners);
        }
    }
}

/// Puts something at an index at which nothing is.
fn put<T>(slots: &mut Vec<Option<T>>, index: usize, value: T) {
    if slots.len() <= index {
        slots.resize_with(index + 1, || None);
    }
    if let Some(slot) = slots.get_mut(index) {
        *slot = Some(value);
    }
}
