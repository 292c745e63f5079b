//! What a hierarchy keeps alive, and who else has its graphs.

use std::sync::Arc;

use cuda_handles::{Allocation, Owner};
use smallvec::SmallVec;

use super::{GraphState, NodeRecord};
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::lent_log::LentLog;

impl GraphState {
    /// Keeps an owner as long as a graph of the hierarchy lives: with the node that it is embedded
    /// in, if it is. False if it is gone.
    pub(crate) fn keep(&mut self, subgraph: SubgraphId, owner: &Owner) -> bool {
        let Some(about) = self.about_mut(subgraph) else { return false };
        about.kept.push(owner.clone());
        self.log(subgraph, [owner.clone()]);
        true
    }

    /// Keeps an owner as long as a node is in its graph. False if it is not.
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
        let inner = record.node_params.inside().iter().filter_map(|subgraph| self.embedded(*subgraph));
        let inner = inner.flat_map(|graph| graph.about.kept.iter().cloned());
        kept.chain(record.node_params.owner()).chain(inner)
    }

    /// Keeps an owner that was given with the root graph, once however often it is given.
    pub(crate) fn keep_given(&mut self, owner: Owner) {
        if !self.sharing.given.contains(&owner) {
            self.sharing.given.push(owner);
        }
    }

    /// What was given with the root graph.
    pub(crate) fn given(&self) -> &[Owner] {
        &self.sharing.given
    }

    /// A copy of everything that nodes and graph keep alive.
    pub(crate) fn owners(&self) -> Vec<Owner> {
        let mut owners = self.owners_within(SubgraphId::ROOT);
        owners.extend(self.sharing.given.iter().cloned());
        owners
    }

    /// The same but for what was given with the graph.
    fn owners_of_root(&self) -> Vec<Owner> {
        let records = self.nodes.records.iter().flatten();
        let graphs = self.subgraphs.slots.iter().flatten().map(|graph| &graph.about).chain([&self.root]);
        let kept = graphs
            .flat_map(|about| &about.kept)
            .chain(self.nodes.records.iter().flatten().flat_map(|record| record.owners.kept()));
        let mut owners: Vec<Owner> = self.store.iter().chain(kept).cloned().collect();
        owners.extend(records.filter_map(|record| record.node_params.owner()));
        owners
    }

    /// A copy of everything that the nodes of a graph, those of the graphs embedded in it and the
    /// graph itself keep alive, but for what was given with the root graph.
    pub(crate) fn owners_within(&self, subgraph: SubgraphId) -> Vec<Owner> {
        if subgraph.is_root() {
            return self.owners_of_root();
        }
        let mut owners = self.about(subgraph).map(|about| about.kept.clone()).unwrap_or_default();
        let mut waiting = vec![subgraph];
        while let Some(subgraph) = waiting.pop() {
            // What the driver has not told of yet is nowhere.
            let Some(graph) = self.embedded(subgraph) else { continue };
            for &index in &graph.nodes {
                if let Some(record) = self.at(index) {
                    owners.extend(self.owners_of(record));
                    waiting.extend(record.node_params.inside());
                }
            }
        }
        owners
    }

    /// Everything that nodes and graph use of pooled memory.
    pub(crate) fn allocations(&self) -> impl Iterator<Item = &Arc<Allocation>> {
        let graphs = self.subgraphs.slots.iter().flatten().map(|graph| &graph.about).chain([&self.root]);
        let kept = graphs
            .flat_map(|about| &about.kept)
            .chain(self.nodes.records.iter().flatten().flat_map(|record| record.owners.kept()));
        let owners = self.store.iter().chain(kept);
        owners.filter_map(|owner| match owner {
            Owner::Allocation(allocation) => Some(allocation),
            _ => None,
        })
    }

    /// Marks a graph as lent: what its nodes use from now on is logged.
    pub(crate) fn lend(&mut self, subgraph: SubgraphId, lent: Arc<LentLog>) {
        if let Some(about) = self.about_mut(subgraph) {
            about.lent = Some(lent);
            self.sharing.lending = true;
        }
    }

    /// Whether other code may change graphs of the hierarchy.
    pub(crate) fn is_shared(&self) -> bool {
        self.sharing.lending || self.sharing.adopted
    }

    /// Whether the root graph is other code's and does not retain yet what nodes added here use.
    #[inline]
    pub(crate) fn is_to_be_lent(&self) -> bool {
        self.sharing.adopted && self.root.lent.is_none()
    }

    /// Logs what the rows that were touched use, for the graphs that are lent. To be called before
    /// the lock is given back.
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

    /// Logs owners for a graph and those that it is embedded in, as far as they are lent.
    pub(crate) fn log(&self, subgraph: SubgraphId, owners: impl IntoIterator<Item = Owner>) {
        if !self.sharing.lending {
            return;
        }
        let lent: SmallVec<[&Arc<LentLog>; 2]> =
            self.outwards(subgraph).filter_map(|subgraph| self.about(subgraph)?.lent.as_ref()).collect();
        for owner in owners {
            lent.iter().for_each(|lent| lent.log(&owner));
        }
    }
}
