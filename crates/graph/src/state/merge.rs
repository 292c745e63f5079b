//! Taking over the state of a larger hierarchy.
//!
//! If a large hierarchy is moved into a small one, its state becomes the state of the small one,
//! and the few records of the small one are added to it. A record is entered anew only when its
//! hierarchy at least doubles, so moving graphs into one another from the inside out costs n log n.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cuda_handles::Owner;
use cuda_handles::internal::graph_memory;
use cuda_sys::CUgraph;

use super::subgraphs::Enclosing;
use super::{GraphState, NodeRecord, Subgraph};
use crate::state::flows::Flows;
use crate::state::ids::{NodeId, RawGraph, SubgraphId};
use crate::state::lineage::{Moved, Renamed};
use crate::state::memory_nodes::MemoryNode;
use crate::state::owners::Uses;
use crate::state::params::NodeParams;
use crate::toposort::Index;

/// States with fewer records are copied.
const FEW: usize = 8;

/// The root graph of a hierarchy that is moved.
pub(crate) struct MovedRoot {
    pub(crate) raw: CUgraph,
    /// The number of its hierarchy, and the number under which its memory is known.
    pub(crate) hierarchy: u64,
    pub(crate) memory: u64,
    /// The indices of its records.
    pub(crate) records: Vec<Index>,
}

impl GraphState {
    /// Whether to take over the state of a hierarchy that is moved into this one instead of copying
    /// it: it is larger, and none of its nodes needs to be examined.
    pub(crate) fn should_take_over(&self, moved: &Self, into: SubgraphId) -> bool {
        let taken_in = self.nodes.records.len()
            + self.subgraphs.slots.len()
            + moved.nodes.free.len()
            + moved.subgraphs.free.len();
        let is_larger = moved.nodes.records.len() - moved.nodes.free.len() > FEW + taken_in;
        let is_plain =
            moved.conditions.is_empty() && moved.sharing.given.is_empty() && moved.nodes.conditionals == 0;
        is_larger
            && is_plain
            && !moved.is_shared()
            && !self.is_shared()
            && self.enclosing_conditional(into).is_none()
    }

    /// Takes over the state of a hierarchy whose root graph was moved into a node of this one. The
    /// nodes and graphs of this hierarchy keep their ids; those of the moved one that collide get
    /// new ids.
    ///
    /// Returns the id of the moved root, the ids of all graphs to register again, and the remains,
    /// which are to be dropped after the lock.
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
        let subgraph = moved.embed_root(&root, into, &mut renamed);
        let mut subgraphs: Vec<SubgraphId> = renamed.subgraphs.values().copied().collect();
        subgraphs.extend(self.shared_subgraphs());
        let renamed = Arc::new(renamed);
        moved.moved.retain_mut(|earlier| earlier.move_on(&renamed));
        moved.moved.push(Moved::new(root.hierarchy, renamed));
        moved.moved.append(&mut self.moved);
        moved.memory_of = Some(root.memory);
        // Executables of the moved graph are updated no more; those of this one are.
        moved.changes = core::mem::take(&mut self.changes);
        moved.changes.note_structure();
        // Those of both go by graphs of before; they are made anew.
        moved.flows = Flows::default();
        // Parameters of the moved graph are no parameters here, and go after the lock.
        core::mem::swap(&mut moved.bindings, &mut self.bindings);
        moved.take_records_of(self);
        let left = core::mem::replace(self, moved);
        if let Some(record) = self.record_mut(into) {
            record.node_params.set_embedded(subgraph);
        }
        (subgraph, subgraphs, left)
    }

    /// The graphs that the map of raw handles knows: all but the driver's bodies.
    fn shared_subgraphs(&self) -> impl Iterator<Item = SubgraphId> {
        let graphs =
            (0..).zip(&self.subgraphs.slots).filter_map(|(index, graph)| Some((index, graph.as_ref()?)));
        let shared = graphs.filter(|(_, graph)| !graph.is_body || graph.own.is_some());
        shared.map(|(index, graph)| SubgraphId::embedded(index, graph.number))
    }

    /// Frees the first `count` indices for the records of another state.
    fn clear_records(&mut self, count: usize, renamed: &mut Renamed) {
        let mut within = HashSet::new();
        for index in 0..count.min(self.nodes.records.len()) {
            let Some(mut record) = self.nodes.records.get_mut(index).and_then(Option::take) else { continue };
            let old = NodeId { index: index as Index, number: record.number };
            let new = NodeId { index: self.nodes.records.len() as Index, number: self.nodes.next };
            self.nodes.next += 1;
            record.number = new.number;
            within.insert(record.within);
            self.rename_record(old, new, &record);
            self.nodes.records.push(Some(record));
            renamed.nodes.insert(old, new);
        }
        for subgraph in within {
            if let Some(facts) = self.facts_mut(subgraph) {
                facts.lineage.rename(renamed);
            }
        }
        self.nodes.free.retain(|index| *index as usize >= count);
    }

    /// Updates everything that refers to a record by its id.
    fn rename_record(&mut self, old: NodeId, new: NodeId, record: &NodeRecord) {
        if let Some(graph) = self.embedded_mut(record.within) {
            graph.nodes.remove(&old.index);
            graph.nodes.insert(new.index);
        }
        for &subgraph in record.node_params.subgraphs() {
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

    /// [`clear_records`](Self::clear_records) for the graphs in nodes.
    fn clear_embedded(&mut self, count: usize, renamed: &mut Renamed) {
        let filled = count.min(self.subgraphs.slots.len());
        // New places lie behind those of the other state, also where this one has fewer.
        if self.subgraphs.slots.len() < count {
            self.subgraphs.slots.resize_with(count, || None);
        }
        for index in 0..filled {
            let Some(mut graph) = self.subgraphs.slots.get_mut(index).and_then(Option::take) else {
                continue;
            };
            let old = SubgraphId::embedded(index as u32, graph.number);
            self.subgraphs.latest += 1;
            graph.number = self.subgraphs.latest;
            let new = SubgraphId::embedded(self.subgraphs.slots.len() as u32, graph.number);
            self.set_within(&graph.nodes, new);
            if let Some(Some(record)) = self.nodes.records.get_mut(graph.node.index as usize) {
                record.node_params.set_embedded(new);
            }
            self.subgraphs.slots.push(Some(graph));
            renamed.subgraphs.insert(old, new);
        }
        self.subgraphs.free.retain(|index| *index as usize >= count);
    }

    fn set_within<'i>(&mut self, records: impl IntoIterator<Item = &'i Index>, subgraph: SubgraphId) {
        for &index in records {
            if let Some(Some(record)) = self.nodes.records.get_mut(index as usize) {
                record.within = subgraph;
            }
        }
    }

    /// The root graph becomes the graph embedded in a node.
    fn embed_root(&mut self, root: &MovedRoot, node: NodeId, renamed: &mut Renamed) -> SubgraphId {
        let by_index: HashMap<Index, Index> =
            renamed.nodes.iter().map(|(old, new)| (old.index, new.index)).collect();
        let nodes: HashSet<Index> =
            root.records.iter().map(|index| by_index.get(index).copied().unwrap_or(*index)).collect();
        self.subgraphs.latest += 1;
        let number = self.subgraphs.latest;
        let subgraph = SubgraphId::embedded(self.subgraphs.slots.len() as u32, number);
        self.set_within(&nodes, subgraph);
        let facts = core::mem::take(&mut self.root);
        self.subgraphs.slots.push(Some(Subgraph {
            own: None,
            raw: RawGraph(root.raw),
            number,
            node,
            is_body: false,
            enclosing: Enclosing::default(),
            nodes,
            facts,
            alive: Arc::new(()),
        }));
        renamed.subgraphs.insert(SubgraphId::ROOT, subgraph);
        subgraph
    }

    /// Moves everything out of the state of the hierarchy around, unchanged. Its indices are free
    /// here.
    fn take_records_of(&mut self, other: &mut Self) {
        let memory_of = self.memory_of;
        for (index, slot) in other.nodes.records.iter_mut().enumerate() {
            let Some(mut record) = slot.take() else { continue };
            // Each owner is also held by the other state until that is dropped.
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
        self.memory.merge(core::mem::take(&mut other.memory));
        // Nothing was given with the moved graph; see `should_take_over`.
        self.sharing.given = core::mem::take(&mut other.sharing.given);
        self.executable = core::mem::take(&mut other.executable);
        self.removed = Arc::clone(&other.removed);
        self.last_runs = other.last_runs.clone();
        self.subgraphs.placeholders = other.subgraphs.placeholders;
        self.nodes.conditionals = other.nodes.conditionals;
        self.current_hierarchy = self.current_hierarchy.take().or_else(|| other.current_hierarchy.take());
        if let Some(leaving) = other.leaving.take() {
            let own = self.leaving.get_or_insert_default();
            own.records.extend(leaving.records);
            own.owners.extend(leaving.owners);
            own.unread.extend(leaving.unread);
        }
    }
}

/// Puts a value at a free index.
fn put<T>(slots: &mut Vec<Option<T>>, index: usize, value: T) {
    if slots.len() <= index {
        slots.resize_with(index + 1, || None);
    }
    if let Some(slot) = slots.get_mut(index) {
        *slot = Some(value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::state::owners::Owners;

    #[test]
    fn owners_given_with_the_graph_stay_when_a_state_is_taken_over() {
        let (mut outer, mut moved, given) = (GraphState::default(), GraphState::default(), Arc::new(()));
        outer.keep_given(Owner::shared(Arc::clone(&given)));
        let raw = core::ptr::without_provenance_mut(16);
        let node =
            outer.insert(SubgraphId::ROOT, raw, NodeParams::Child { graph: SubgraphId::ROOT }, Owners::new());
        for number in 0..2 * FEW {
            let raw = core::ptr::without_provenance_mut(32 + 16 * number);
            moved.insert(SubgraphId::ROOT, raw, NodeParams::Empty, Owners::new());
        }
        assert!(outer.should_take_over(&moved, SubgraphId::ROOT));
        let records = moved.records().map(|(id, _)| id.index).collect();
        let root = MovedRoot { raw: core::ptr::null_mut(), hierarchy: 1, memory: 1, records };
        let (.., left) = outer.take_over(moved, root, node);
        drop(left);
        assert_eq!((outer.given().len(), Arc::strong_count(&given)), (1, 2));
    }
}
