//! Taking records out of the state, with everything that they keep alive.
//!
//! Nothing is dropped here: records and owners go to the caller or to
//! [`DeferredDrops`](super::DeferredDrops), and are dropped after the lock.

use cuda_handles::Owner;
use smallvec::SmallVec;

use super::{GraphState, TakenNode, TakenNodes};
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::memory_nodes::MemoryNode;
use crate::state::owners::Owners;
use crate::state::params::{ConditionSource, Conditional, NodeParams};
use crate::toposort::Index;

impl GraphState {
    /// Removes a record. Its owners are dropped once the lock is released.
    pub(crate) fn remove_deferred(&mut self, id: NodeId) {
        let taken = self.take(id);
        self.leaving.get_or_insert_default().records.extend(taken);
    }

    /// Drops taken records and other owners once the lock is released.
    pub(crate) fn drop_taken_deferred(&mut self, taken: TakenNodes, owners: Vec<Owner>) {
        let leaving = self.leaving.get_or_insert_default();
        leaving.records.extend(taken);
        leaving.owners.extend(owners);
    }

    /// Drops an owner once the lock is released.
    pub(crate) fn drop_deferred(&mut self, owner: Option<Owner>) {
        if let Some(owner) = owner {
            self.leaving.get_or_insert_default().owners.push(owner);
        }
    }

    /// Removes a record and the records of all graphs in its node. The caller drops their owners
    /// after the lock.
    pub(crate) fn take(&mut self, id: NodeId) -> TakenNodes {
        let mut taken = TakenNodes::new();
        let mut waiting: SmallVec<[Index; 1]> = self.record(id).map(|_| id.index).into_iter().collect();
        while let Some(index) = waiting.pop() {
            let Some(mut record) = self.nodes.remove(index) else { continue };
            let id = NodeId { index, number: record.number };
            self.removed.note(id, record.display_name(id));
            self.changes.forget(id);
            let binding = self.bindings.forget(id);
            let mut owners = self.store.release_all(core::mem::take(&mut record.owners));
            self.conditions.clear_handles(index);
            if let NodeParams::Conditional(Conditional {
                source: ConditionSource::Condition(number), ..
            }) = record.node_params
            {
                self.conditions.note_release(number);
            }
            if let Some(noted) = MemoryNode::of(&record.node_params) {
                self.memory.forget(id, noted);
            }
            for &subgraph in record.node_params.subgraphs() {
                if let Some(graph) = self.take_embedded(subgraph) {
                    // The driver's graph goes before the owners of its nodes.
                    owners.extend(graph.own.map(Owner::other));
                    owners.extend(graph.facts.into_owners());
                    waiting.extend(graph.nodes);
                }
            }
            if let Some(graph) = self.embedded_mut(record.within) {
                graph.nodes.remove(&index);
            }
            owners.extend(binding.map(Owner::other));
            taken.push(TakenNode { record, _owners: owners });
        }
        taken
    }

    /// Removes the graph in a node with its records, but keeps the node's own record. As for
    /// [`take`](Self::take); the second result holds the owners that the graph kept.
    pub(crate) fn take_contents(&mut self, subgraph: SubgraphId) -> (TakenNodes, Vec<Owner>) {
        let mut taken = TakenNodes::new();
        let Some(graph) = self.take_embedded(subgraph) else { return (taken, Vec::new()) };
        for index in graph.nodes {
            if let Some(id) = self.id(index) {
                taken.extend(self.take(id));
            }
        }
        (taken, graph.facts.into_owners().collect())
    }

    /// Exchanges the owners of a node. Afterwards `owners` holds the previous ones that no other
    /// node uses, for the caller to drop after the lock. If the node is gone, `owners` stays as it
    /// is.
    pub(crate) fn swap_owners(&mut self, id: NodeId, owners: &mut Owners) {
        let Some(record) = self.record_mut(id) else { return };
        let mut uses = core::mem::take(&mut record.owners.used);
        self.store.swap(&mut uses, owners);
        if let Some(Some(record)) = self.nodes.records.get_mut(id.index as usize) {
            record.owners.used = uses;
        }
    }
}
