//! Everything that a hierarchy keeps alive, and how its graphs are shared with other code.

use std::sync::Arc;

use cuda_handles::capture::Scratch;
use cuda_handles::{Allocation, Owner};
use smallvec::SmallVec;

use super::{GraphState, NodeRecord};
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::lent_log::LentLog;
use crate::state::owners::contexts_of_copy;
use crate::state::params::NodeParams;
use crate::state::unread::UnreadNodes;

impl GraphState {
    /// Keeps an owner as long as a graph of the hierarchy lives. Returns false if the graph has
    /// gone.
    pub(crate) fn keep(&mut self, subgraph: SubgraphId, owner: &Owner) -> bool {
        let Some(facts) = self.facts_mut(subgraph) else { return false };
        facts.kept.push(owner.clone());
        self.log(subgraph, [owner.clone()]);
        true
    }

    /// Lets the root graph keep the owners of nodes that have no records yet, before all others.
    pub(crate) fn keep_for_unread(&mut self, owners: Vec<Owner>, nodes: Box<dyn UnreadNodes>) {
        self.root.kept.splice(..0, owners);
        self.unread_nodes = Some(nodes);
    }

    /// Takes back the first owners that the root graph keeps, to be dropped after the lock: those
    /// of nodes that had no records.
    pub(crate) fn let_go_of_unread(&mut self, owners: usize) {
        let end = owners.min(self.root.kept.len());
        let taken = self.root.kept.drain(..end);
        self.leaving.get_or_insert_default().owners.extend(taken);
    }

    /// Keeps an owner as long as a node is in its graph. Returns false if the node is removed.
    pub(crate) fn keep_with(&mut self, id: NodeId, owner: &Owner) -> bool {
        let Some(record) = self.record_mut(id) else { return false };
        let within = record.within;
        record.owners.keep(owner.clone());
        self.log(within, [owner.clone()]);
        true
    }

    /// Everything that a node keeps alive.
    fn owners_of<'t>(&'t self, record: &'t NodeRecord) -> impl Iterator<Item = Owner> + 't {
        let kept = record.owners.kept().iter().chain(self.used_by(record)).cloned();
        let inner = record.node_params.subgraphs().iter().filter_map(|subgraph| self.embedded(*subgraph));
        let inner = inner.flat_map(|graph| graph.facts.kept.iter().cloned());
        kept.chain(record.node_params.owner()).chain(inner)
    }

    /// Whether source and destination of a copy node [have a context](Allocation::has_context), as
    /// far as that is known.
    pub(crate) fn contexts_of_copy(&self, id: NodeId) -> [Option<bool>; 2] {
        match self.record(id) {
            Some(record) => match &record.node_params {
                NodeParams::Memcpy(copy) => {
                    contexts_of_copy(record.owners.kept().iter().chain(self.used_by(record)), copy)
                }
                _ => [None; 2],
            },
            None => [None; 2],
        }
    }

    /// The memory that a node keeps alive.
    pub(crate) fn memory_of<'s>(&'s self, id: NodeId) -> SmallVec<[&'s Arc<Allocation>; 4]> {
        let owners = |record: &'s NodeRecord| record.owners.kept().iter().chain(self.used_by(record));
        self.record(id).into_iter().flat_map(owners).filter_map(Owner::memory).collect()
    }

    /// Keeps an owner given with the root graph. An owner that is given again is kept once.
    pub(crate) fn keep_given(&mut self, owner: Owner) {
        if !self.sharing.given.contains(&owner) {
            self.sharing.given.push(owner);
        }
    }

    /// The owners given with the root graph.
    pub(crate) fn given(&self) -> &[Owner] {
        &self.sharing.given
    }

    /// A copy of every owner that the hierarchy keeps alive.
    pub(crate) fn owners(&self) -> Vec<Owner> {
        let mut owners = self.owners_within(SubgraphId::ROOT);
        owners.extend(self.sharing.given.iter().cloned());
        owners
    }

    /// [`owners`](Self::owners) without the owners given with the root graph.
    fn owners_of_root(&self) -> Vec<Owner> {
        let records = self.nodes.records.iter().flatten();
        let graphs = self.subgraphs.slots.iter().flatten().map(|graph| &graph.facts).chain([&self.root]);
        let kept = graphs
            .flat_map(|facts| &facts.kept)
            .chain(self.nodes.records.iter().flatten().flat_map(|record| record.owners.kept()));
        // Room for most, and for those that executables add: growing costs as much as the copies.
        let mut owners = Vec::with_capacity(self.store.slots() + self.nodes.records.len() + 4);
        owners.extend(self.store.iter().chain(kept).cloned());
        owners.extend(records.filter_map(|record| record.node_params.owner()));
        owners
    }

    /// A copy of every owner that a graph, its nodes, and the graphs embedded in it keep alive,
    /// without the owners given with the root graph.
    pub(crate) fn owners_within(&self, subgraph: SubgraphId) -> Vec<Owner> {
        if subgraph.is_root() {
            return self.owners_of_root();
        }
        let mut owners = self.facts(subgraph).map(|facts| facts.kept.clone()).unwrap_or_default();
        let mut waiting = vec![subgraph];
        while let Some(subgraph) = waiting.pop() {
            // Bodies that the driver has not reported are not in the state.
            let Some(graph) = self.embedded(subgraph) else { continue };
            for &index in &graph.nodes {
                if let Some(record) = self.at(index) {
                    owners.extend(self.owners_of(record));
                    waiting.extend(record.node_params.subgraphs());
                }
            }
        }
        owners
    }

    /// The nodes of a graph and of the graphs embedded in it.
    pub(crate) fn ids_within(&self, subgraph: SubgraphId) -> Vec<NodeId> {
        let (mut ids, mut waiting) = (Vec::new(), vec![subgraph]);
        while let Some(subgraph) = waiting.pop() {
            let Some(graph) = self.embedded(subgraph) else { continue };
            for &index in &graph.nodes {
                ids.extend(self.id(index));
                waiting.extend(self.at(index).into_iter().flat_map(|record| record.node_params.subgraphs()));
            }
        }
        ids
    }

    /// All allocations that the nodes and graphs of the hierarchy keep alive.
    pub(crate) fn allocations(&self) -> impl Iterator<Item = &Arc<Allocation>> {
        self.kept().filter_map(|owner| match owner {
            Owner::Allocation(allocation) => Some(allocation),
            _ => None,
        })
    }

    /// All memory that the nodes and graphs of the hierarchy keep alive, also what captures share.
    pub(crate) fn memory(&self) -> impl Iterator<Item = &Arc<Allocation>> {
        self.kept().filter_map(Owner::memory)
    }

    /// The scratch memory of captures that the graphs of the hierarchy use, in the order in which
    /// its turns are taken.
    pub(crate) fn scratch(&self) -> Vec<Scratch> {
        let mut scratch: Vec<Scratch> = self
            .kept()
            .filter_map(|owner| match owner {
                Owner::Other(other) => other.downcast_ref::<Scratch>().cloned(),
                _ => None,
            })
            .collect();
        Scratch::sort(&mut scratch);
        scratch
    }

    /// Whether the graphs inside of a node use this scratch memory.
    pub(crate) fn uses_scratch(&self, id: NodeId, scratch: &Scratch) -> bool {
        let inside = self.record(id).map_or(&[][..], |record| record.node_params.subgraphs());
        inside.iter().flat_map(|graph| self.owners_within(*graph)).any(|owner| {
            each_of(&owner).iter().any(|owner| match owner {
                Owner::Other(other) => other.downcast_ref::<Scratch>() == Some(scratch),
                _ => false,
            })
        })
    }

    /// The owners of nodes and graphs of the hierarchy, without what parameters name. If one is a
    /// list of owners, those in it instead.
    fn kept(&self) -> impl Iterator<Item = &Owner> {
        let graphs = self.subgraphs.slots.iter().flatten().map(|graph| &graph.facts).chain([&self.root]);
        let kept = graphs
            .flat_map(|facts| &facts.kept)
            .chain(self.nodes.records.iter().flatten().flat_map(|record| record.owners.kept()));
        self.store.iter().chain(kept).chain(&self.sharing.given).flat_map(each_of)
    }

    /// Marks a graph as lent: from now on every owner of its nodes is logged.
    pub(crate) fn lend(&mut self, subgraph: SubgraphId, lent: Arc<LentLog>) {
        if let Some(facts) = self.facts_mut(subgraph) {
            facts.lent = Some(lent);
            self.sharing.lending = true;
        }
    }

    /// Whether other code has a graph of the hierarchy.
    pub(crate) fn is_shared(&self) -> bool {
        self.sharing.lending || self.sharing.adopted
    }

    /// Whether the root graph belongs to other code and does not retain the owners of its nodes
    /// yet.
    #[inline]
    pub(crate) fn needs_lending(&self) -> bool {
        self.sharing.adopted && self.root.lent.is_none()
    }

    /// Logs the owners of all touched nodes for the lent graphs. To be called before the lock is
    /// released.
    #[inline]
    pub(crate) fn log_touched(&mut self) {
        if !self.sharing.touched.is_empty() {
            self.log_all_touched();
        }
    }

    #[cold]
    fn log_all_touched(&mut self) {
        for index in core::mem::take(&mut self.sharing.touched) {
            if let Some(record) = self.at(index) {
                self.log(record.within, self.owners_of(record));
            }
        }
    }

    /// Logs owners for a graph and for the graphs around it, as far as these are lent.
    pub(crate) fn log(&self, subgraph: SubgraphId, owners: impl IntoIterator<Item = Owner>) {
        if !self.sharing.lending {
            return;
        }
        let lent: SmallVec<[&Arc<LentLog>; 2]> = self
            .self_and_ancestors(subgraph)
            .filter_map(|subgraph| self.facts(subgraph)?.lent.as_ref())
            .collect();
        for owner in owners {
            lent.iter().for_each(|lent| lent.log(&owner));
        }
    }
}

/// The owner, or if it is a list, such as the owners of a capture, those in it.
fn each_of(owner: &Owner) -> &[Owner] {
    let list = match owner {
        Owner::Other(other) => other.downcast_ref::<Vec<Owner>>(),
        _ => None,
    };
    list.map_or(core::slice::from_ref(owner), Vec::as_slice)
}
