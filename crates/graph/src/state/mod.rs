//! The state of a hierarchy: everything known of a root graph and of the graphs embedded in its
//! nodes.
//!
//! # Parts
//!
//! | part | holds | file |
//! | --- | --- | --- |
//! | [`NodeTable`] | one [`NodeRecord`] a node: raw handle, parameters, owners, label, name | `nodes` |
//! | [`SubgraphTable`] | one [`Subgraph`] for each graph in a node: embedded graphs and bodies | `subgraphs` |
//! | [`Store`] | what nodes use, held once and counted | `owners` |
//! | [`ConditionTable`] | conditions, and the kernels that have their handles | `conditions` |
//! | [`Ledger`] | allocation and free nodes | `memory_nodes` |
//! | [`Sharing`] | whether other code has a graph, and what that graph retains | `keep`, `lent_log` |
//! | [`LastRuns`] | the last run of each executable, which later ones wait for | `last_runs` |
//!
//! # Rules
//!
//! 1. A [`Hierarchy`](hierarchy::Hierarchy) is one root graph with its state behind **one lock**.
//!    [`GraphGuard`](guard::GraphGuard) is the lock, held. Methods of the guard that call the driver
//!    lie in the rooms above, each in the room of its subject (`edge`, `build`, `condition`, …).
//! 2. Two hierarchies are locked by [`GuardPair`](guard::GuardPair) alone, the one at the lower
//!    address first.
//! 3. Ids are for good. A [`NodeId`] is an index and a number: the index is used again, the number
//!    never, so the handle of a removed node finds nothing.
//! 4. A record exists exactly as long as its node. The driver's yes comes first, then the record;
//!    inserting a record cannot fail.
//! 5. A node keeps alive what its parameters name ([`NodeParams::owner`]) and its
//!    [`NodeOwners`]: the arguments in the store, the owners of
//!    [`Node::keep`](crate::Node::keep), and its decision. `keep.rs` lists them all, and
//!    [`take`](GraphState::take) is the only place that lets go of them.
//! 6. Nothing is dropped under the lock, since destructors may use graphs. What leaves the state
//!    goes to [`DeferredDrops`], or is returned to a caller who drops it after the guard.
//! 7. A hierarchy is usable, moved (its state is another's), or
//!    [broken](crate::Error::Broken). [`Hierarchy::enter`](hierarchy::Hierarchy::enter) refuses the
//!    latter two; [`look`](hierarchy::Hierarchy::look) allows reading a broken one.

pub(crate) mod conditions;
pub(crate) mod deferred;
pub(crate) mod guard;
pub(crate) mod hierarchy;
pub(crate) mod home;
pub(crate) mod host_function;
pub(crate) mod ids;
pub(crate) mod iterative_drop;
pub(crate) mod keep;
pub(crate) mod kernel_config;
pub(crate) mod last_runs;
pub(crate) mod lent_log;
pub(crate) mod lineage;
pub(crate) mod loop_control;
pub(crate) mod memory_nodes;
pub(crate) mod merge;
pub(crate) mod nodes;
pub(crate) mod owners;
pub(crate) mod params;
pub(crate) mod raw_params;
pub(crate) mod removed_names;
pub(crate) mod subgraphs;

use std::sync::{Arc, Weak};

use cuda_handles::Owner;
use cuda_sys::CUgraphNode;
use smallvec::SmallVec;

use crate::error::{Broken, Error, Result};
use crate::state::conditions::ConditionTable;
use crate::state::home::Home;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::last_runs::LastRuns;
use crate::state::lineage::Moved;
use crate::state::memory_nodes::{Ledger, MemoryNode};
#[cfg(doc)]
use crate::state::owners::NodeOwners;
use crate::state::owners::{Owners, Store, Uses};
use crate::state::params::{ConditionSource, Conditional, NodeParams};
use crate::toposort::Index;

pub(crate) use crate::state::deferred::{DeferredDrops, TakenNode, TakenNodes};
pub(crate) use crate::state::merge::MovedRoot;
pub(crate) use crate::state::nodes::{AddedNode, NodeRecord, NodeTable};
pub(crate) use crate::state::removed_names::RemovedNames;
pub(crate) use crate::state::subgraphs::{Subgraph, SubgraphFacts, SubgraphTable};

/// The state of a hierarchy; see the [module](self).
#[derive(Debug, Default)]
pub(crate) struct GraphState {
    /// First of all: the subgraphs that are graphs of their own for the driver go before what their
    /// nodes use.
    subgraphs: SubgraphTable,
    nodes: NodeTable,
    /// What nodes use.
    store: Store,
    /// Facts about the root graph.
    root: SubgraphFacts,
    pub(crate) conditions: ConditionTable,
    pub(crate) memory: Ledger,
    /// The executable, where only one may live.
    pub(crate) executable: Weak<()>,
    pub(crate) last_runs: LastRuns,
    /// The hierarchies that were moved into this one and whose state it has taken over.
    pub(crate) moved: Vec<Moved>,
    /// The number by which the memory of its allocation nodes is known, if that is not the
    /// hierarchy's own.
    pub(crate) memory_of: Option<u64>,
    /// Shared with readers that hold no lock.
    pub(crate) removed: Arc<RemovedNames>,
    /// How the graphs in nodes are found by their raw handles.
    pub(crate) home: Option<Arc<Home>>,
    sharing: Sharing,
    /// Dropped once the lock is given back.
    pub(crate) leaving: Option<Box<DeferredDrops>>,
    standing: Standing,
}

/// How graphs of a hierarchy are shared with other code.
#[derive(Debug, Default)]
struct Sharing {
    /// Whether a graph of the hierarchy was lent.
    lending: bool,
    /// Whether the root graph is other code's.
    adopted: bool,
    /// Whether the nodes of the root graph, which other code added, have no records yet.
    unread: bool,
    /// Owners given with the root graph. They may own it, so it must not retain them.
    given: Vec<Owner>,
    /// Nodes that may have got other owners since the lock was taken; only where a graph was lent.
    touched: Vec<Index>,
}

/// Whether the graphs of a hierarchy can be used.
#[derive(Debug, Default)]
enum Standing {
    #[default]
    Usable,
    /// The root graph was moved into a node of another hierarchy, with everything that was here.
    Moved,
    /// A change failed, and so did taking it back.
    Broken(Box<Broken>),
}

impl GraphState {
    /// The state of a graph of other code.
    pub(crate) fn adopted() -> Self {
        let sharing = Sharing { adopted: true, unread: true, ..Sharing::default() };
        Self { sharing, ..Self::default() }
    }

    /// The state of a graph that this library owns and whose nodes other code added.
    pub(crate) fn unread() -> Self {
        let sharing = Sharing { unread: true, ..Sharing::default() };
        Self { sharing, ..Self::default() }
    }

    /// Whether the nodes of the root graph, which other code added, have no records yet.
    pub(crate) fn is_unread(&self) -> bool {
        self.sharing.unread
    }

    /// Notes that the nodes of the root graph have records.
    pub(crate) fn set_read(&mut self) {
        self.sharing.unread = false;
    }

    /// Makes room for one row in a graph, so that [`insert`](Self::insert) cannot fail.
    #[inline]
    pub(crate) fn reserve(&mut self, within: SubgraphId) {
        self.reserve_many(within, 1);
    }

    /// Makes room for some rows.
    #[inline]
    pub(crate) fn reserve_many(&mut self, within: SubgraphId, records: usize) {
        self.nodes.reserve(records);
        if let Some(graph) = self.embedded_mut(within) {
            graph.nodes.reserve(records);
        }
    }

    /// What rows use.
    #[inline]
    pub(crate) fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    /// A row for a new node of a graph that is there.
    pub(crate) fn insert(
        &mut self,
        within: SubgraphId,
        added: impl Into<AddedNode>,
        node_params: NodeParams,
        owners: Owners,
    ) -> NodeId {
        let uses = self.keep_all(owners);
        let noted = MemoryNode::of(&node_params);
        let id = self.insert_using(within, added.into(), node_params, uses);
        if let Some(noted) = noted {
            self.memory.note(id, noted);
        }
        id
    }

    /// The same for a node that uses what is in the store already.
    #[inline]
    pub(crate) fn insert_using(
        &mut self,
        within: SubgraphId,
        added: AddedNode,
        node_params: NodeParams,
        uses: Uses,
    ) -> NodeId {
        let id = self.nodes.insert(within, added, node_params, uses);
        if let Some(graph) = self.embedded_mut(within) {
            graph.nodes.insert(id.index);
        }
        if self.sharing.lending {
            self.sharing.touched.push(id.index);
        }
        id
    }

    /// Takes out the row of a node that other code removed. What it kept goes with the lock.
    pub(crate) fn lose(&mut self, id: NodeId) {
        let taken = self.take(id);
        self.leaving.get_or_insert_default().records.extend(taken);
    }

    /// Drops rows that were taken out, and other owners, once the lock is given back.
    pub(crate) fn lose_taken(&mut self, taken: TakenNodes, owners: Vec<Owner>) {
        let leaving = self.leaving.get_or_insert_default();
        leaving.records.extend(taken);
        leaving.owners.extend(owners);
    }

    /// What is not kept any more goes with the lock.
    pub(crate) fn let_go(&mut self, owner: Option<Owner>) {
        if let Some(owner) = owner {
            self.leaving.get_or_insert_default().owners.push(owner);
        }
    }

    /// Takes a row out, and with it those of the graph embedded in its node; their owners are the
    /// caller's to drop, after the lock.
    pub(crate) fn take(&mut self, id: NodeId) -> TakenNodes {
        let mut taken = TakenNodes::new();
        let mut waiting: SmallVec<[Index; 1]> = self.record(id).map(|_| id.index).into_iter().collect();
        while let Some(index) = waiting.pop() {
            let Some(mut record) = self.nodes.remove(index) else { continue };
            let id = NodeId { index, number: record.number };
            self.removed.note(id, record.display_name(id));
            let mut owners = self.store.release_all(core::mem::take(&mut record.owners));
            self.conditions.take_from(index);
            if let NodeParams::Conditional(Conditional { by: ConditionSource::Condition(number), .. }) =
                record.node_params
            {
                self.conditions.lets_go(number);
            }
            if let Some(noted) = MemoryNode::of(&record.node_params) {
                self.memory.forget(id, noted);
            }
            for &subgraph in record.node_params.inside() {
                if let Some(graph) = self.take_embedded(subgraph) {
                    // The driver's graph before what its nodes use.
                    owners.extend(graph.own.map(Owner::other));
                    owners.extend(graph.about.into_owners());
                    waiting.extend(graph.nodes);
                }
            }
            if let Some(graph) = self.embedded_mut(record.within) {
                graph.nodes.remove(&index);
            }
            taken.push(TakenNode { record, _owners: owners });
        }
        taken
    }

    /// Takes out the graph embedded in a node with its rows, but not the node's own. As for
    /// [`take`](Self::take); what the graph kept is among the owners given back.
    pub(crate) fn take_inside(&mut self, subgraph: SubgraphId) -> (TakenNodes, Vec<Owner>) {
        let mut taken = TakenNodes::new();
        let Some(graph) = self.take_embedded(subgraph) else { return (taken, Vec::new()) };
        for index in graph.nodes {
            if let Some(id) = self.id(index) {
                taken.extend(self.take(id));
            }
        }
        (taken, graph.about.into_owners().collect())
    }

    /// Lets a row use other owners. What it used before and no other row uses takes their place, or
    /// they stay there if it is gone: it is the caller's to drop, after the lock.
    pub(crate) fn swap_owners(&mut self, id: NodeId, owners: &mut Owners) {
        let Some(record) = self.record_mut(id) else { return };
        let mut uses = core::mem::take(&mut record.owners.used);
        self.store.swap(&mut uses, owners);
        if let Some(Some(record)) = self.nodes.records.get_mut(id.index as usize) {
            record.owners.used = uses;
        }
    }

    fn keep_all(&mut self, owners: Owners) -> Uses {
        owners.into_iter().map(|owner| self.store.keep(owner)).collect()
    }

    /// What a row uses besides its kernel.
    pub(crate) fn used_by<'t>(&'t self, record: &'t NodeRecord) -> impl Iterator<Item = &'t Owner> {
        record.owners.used.iter().filter_map(|&one| self.store.get(one))
    }

    /// The record of a node; `None` once the node is removed.
    #[inline]
    pub(crate) fn record(&self, id: NodeId) -> Option<&NodeRecord> {
        self.nodes.get(id)
    }

    pub(crate) fn record_mut(&mut self, id: NodeId) -> Option<&mut NodeRecord> {
        let record = self.nodes.get_mut(id)?;
        if self.sharing.lending {
            self.sharing.touched.push(id.index);
        }
        Some(record)
    }

    /// What the driver has for a condition with this default that nothing uses any more.
    pub(crate) fn left_over(&mut self, default: Option<u32>) -> Option<u64> {
        let Self { conditions, nodes, .. } = self;
        conditions.left_over(default, |id| nodes.get(id).is_some())
    }

    /// Whether there are allocation or free nodes, from whose graphs the driver removes nothing.
    pub(crate) fn has_memory_nodes(&self) -> bool {
        !self.memory.is_empty()
    }

    /// Whether there are conditional nodes, be they the driver's or not.
    pub(crate) fn has_conditional_nodes(&self) -> bool {
        self.nodes.conditionals > 0
    }

    /// The record at an index.
    pub(crate) fn at(&self, index: Index) -> Option<&NodeRecord> {
        self.nodes.at(index)
    }

    /// All records of the hierarchy.
    pub(crate) fn records(&self) -> impl Iterator<Item = (NodeId, &NodeRecord)> {
        self.nodes.iter()
    }

    /// Gives nodes other places in the order.
    pub(crate) fn relabel(&mut self, labels: Vec<(Index, u64)>) {
        self.nodes.relabel(labels);
    }

    /// The id of the node whose record is at an index.
    pub(crate) fn id(&self, index: Index) -> Option<NodeId> {
        self.at(index).map(|record| NodeId { index, number: record.number })
    }

    /// The index of a raw node's record.
    pub(crate) fn find(&mut self, raw: CUgraphNode) -> Option<Index> {
        self.nodes.find(raw)
    }

    /// The label of the next new node.
    pub(crate) fn next_label(&self) -> u64 {
        self.nodes.next_label()
    }

    /// New nodes get labels above this one.
    pub(crate) fn continue_after(&mut self, label: u64) {
        self.nodes.continue_after(label);
    }

    /// Takes everything out, since the root graph was moved elsewhere.
    pub(crate) fn leave(&mut self) -> Self {
        core::mem::replace(self, Self { standing: Standing::Moved, ..Self::default() })
    }

    /// Whether the root graph was moved elsewhere.
    #[inline]
    pub(crate) fn is_moved(&self) -> bool {
        matches!(self.standing, Standing::Moved)
    }

    /// Refuses graphs that were moved, and broken ones.
    #[inline]
    pub(crate) fn ensure_usable(&self) -> Result<()> {
        match &self.standing {
            Standing::Usable => Ok(()),
            Standing::Moved => Err(Error::GraphMoved),
            Standing::Broken(broken) => Err(Error::Broken(broken.clone())),
        }
    }

    /// Marks the hierarchy as broken. It keeps what the failed change used, which the driver may
    /// use as well.
    #[cold]
    pub(crate) fn break_down(&mut self, broken: Broken, owners: Owners) -> Error {
        for owner in owners {
            self.keep(SubgraphId::ROOT, &owner);
        }
        self.standing = Standing::Broken(Box::new(broken.clone()));
        Error::Broken(Box::new(broken))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(number: usize) -> CUgraphNode {
        core::ptr::without_provenance_mut(number)
    }

    fn insert_in(table: &mut GraphState, within: SubgraphId, number: usize) -> NodeId {
        table.reserve(within);
        table.insert(within, raw(number), NodeParams::Empty, Owners::new())
    }

    fn insert(table: &mut GraphState, number: usize) -> NodeId {
        insert_in(table, SubgraphId::ROOT, number)
    }

    #[test]
    fn a_removed_node_is_never_found_again() {
        let mut table = GraphState::default();
        let first = insert(&mut table, 16);
        assert_eq!(table.take(first).len(), 1);
        let second = insert(&mut table, 16);
        assert_eq!(first.index, second.index);
        assert!(table.record(first).is_none() && table.take(first).is_empty());
        assert!(table.record(second).is_some());
    }

    #[test]
    fn raw_nodes_are_found_before_and_after_changes() {
        let mut table = GraphState::default();
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
        let mut table = GraphState::default();
        let held = Arc::new(());
        let other = || Owner::shared(held.clone());
        table.insert(SubgraphId::ROOT, raw(16), NodeParams::Empty, Owners::from_iter([other(), other()]));
        assert!(table.keep(SubgraphId::ROOT, &other()));
        assert_eq!(table.owners().len(), 3);
        assert_eq!(Arc::strong_count(&held), 4);
    }

    #[test]
    fn owners_come_out_with_the_last_row_that_uses_them() {
        let mut table = GraphState::default();
        let (first, second) = (Arc::new(()), Arc::new(()));
        let other = |held: &Arc<()>| Owner::shared(held.clone());
        let id =
            table.insert(SubgraphId::ROOT, raw(16), NodeParams::Empty, Owners::from_iter([other(&first)]));
        let mut owners = Owners::from_iter([other(&second)]);
        table.swap_owners(id, &mut owners);
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (2, 2));
        // What came out is the caller's.
        drop(owners);
        assert_eq!(Arc::strong_count(&first), 1);
        let taken = table.take(id);
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (1, 2));
        assert!(table.owners().is_empty());
        drop(taken);
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (1, 1));
        // Of a row that is gone, owners stay with the caller.
        let mut late = Owners::from_iter([other(&first)]);
        table.swap_owners(id, &mut late);
        assert_eq!(late.len(), 1);
    }

    #[test]
    fn an_embedded_graph_goes_with_its_node() {
        let mut table = GraphState::default();
        let graph = core::ptr::without_provenance_mut(8);
        let outside = insert(&mut table, 16);
        let node = insert(&mut table, 32);
        let subgraph = table.embed(graph, node);
        table.record_mut(node).unwrap().node_params = NodeParams::Child { graph: subgraph };
        let inner = insert_in(&mut table, subgraph, 48);
        let deep = table.embed(graph, inner);
        table.record_mut(inner).unwrap().node_params = NodeParams::Child { graph: deep };
        let deepest = insert_in(&mut table, deep, 64);
        let lonely = insert_in(&mut table, deep, 80);
        assert_eq!(table.take(lonely).len(), 1);
        let has = |table: &GraphState, subgraph| table.about(subgraph).is_some();
        assert!(has(&table, subgraph) && has(&table, deep) && has(&table, SubgraphId::ROOT));
        assert_eq!(table.take(node).len(), 3);
        assert!(!has(&table, subgraph) && !has(&table, deep) && has(&table, SubgraphId::ROOT));
        assert!(
            table.record(deepest).is_none()
                && table.record(inner).is_none()
                && table.record(outside).is_some()
        );
        let again = insert(&mut table, 32);
        let next = table.embed(graph, again);
        assert!(has(&table, next) && next != subgraph && !has(&table, subgraph));
    }
}
