//! The state of a hierarchy: everything known of a root graph and of the graphs embedded in its
//! nodes.
//!
//! # Parts
//!
//! | part | holds | file |
//! | --- | --- | --- |
//! | [`NodeTable`] | one [`NodeRecord`] for each node: raw handle, parameters, owners | `nodes` |
//! | [`SubgraphTable`] | one [`Subgraph`] for each embedded graph and body | `subgraphs` |
//! | [`Store`] | the owners that nodes use, held once and counted | `owners` |
//! | [`ConditionTable`] | conditions, and the kernels that have their handles | `conditions` |
//! | [`Ledger`] | allocation and free nodes | `memory_nodes` |
//! | [`Sharing`] | whether other code has a graph, and the owners it retains | `keep`, `lent_log` |
//! | [`Bindings`] | graph parameters, and the nodes that use them | `bindings` |
//! | [`Changes`] | which nodes were changed since executables were made | `changes` |
//! | [`Flows`] | the knowledge of dataflows about their graphs | `flows` |
//! | [`LastRuns`] | the last run of each executable, which later ones wait for | `last_runs` |
//! | [`UnreadNodes`] | the nodes of a capture, until they have records | `unread` |
//!
//! # Rules
//!
//! 1. A [`Hierarchy`](hierarchy::Hierarchy) is one root graph with its state behind **one lock**.
//!    [`GraphGuard`](guard::GraphGuard) is the lock, held. Methods of the guard that call the
//!    driver lie in the rooms above, each in the room of its subject (`edge`, `build`, `condition`,
//!    …).
//! 2. Two hierarchies are locked by [`GuardPair`](guard::GuardPair) alone, the one at the lower
//!    address first.
//! 3. Ids are permanent. A [`NodeId`] is an index and a number: the index is used again, the number
//!    never, so the handle of a removed node finds nothing.
//! 4. A record exists exactly as long as its node. A node is added by the driver first, then gets
//!    its record; inserting a record cannot fail. The nodes of a capture get theirs when they are
//!    first needed; see [`unread`].
//! 5. A node keeps alive what its parameters name ([`NodeParams::owner`]) and its [`NodeOwners`]:
//!    the arguments in the store, the owners of [`Node::keep`](crate::Node::keep), and its
//!    decision. `keep` lists them all. [`take`](GraphState::take) releases those of a removed
//!    node; a node that stays gives up arguments in [`swap_owners`](GraphState::swap_owners), and
//!    its decision in [`take_decision`](NodeOwners::take_decision).
//! 6. Nothing is dropped under the lock, since destructors may use graphs. Whatever leaves the
//!    state goes to [`DeferredDrops`], or to a caller that drops it after the guard.
//! 7. A hierarchy is usable, moved (its state belongs to another hierarchy), or
//!    [broken](crate::Error::Broken). [`Hierarchy::enter`](hierarchy::Hierarchy::enter) refuses
//!    moved and broken ones; [`look`](hierarchy::Hierarchy::look) allows reading a broken one.

pub(crate) mod bindings;
pub(crate) mod changes;
pub(crate) mod conditions;
pub(crate) mod current_hierarchy;
pub(crate) mod deferred;
pub(crate) mod flows;
pub(crate) mod guard;
pub(crate) mod hierarchy;
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
pub(crate) mod place;
pub(crate) mod raw_params;
pub(crate) mod removed_names;
pub(crate) mod subgraphs;
pub(crate) mod take;
pub(crate) mod unread;

use std::sync::{Arc, Weak};

use cuda_handles::Owner;
use cuda_sys::CUgraphNode;

use crate::own_kernels::Own;
use crate::state::bindings::Bindings;
use crate::state::changes::Changes;
use crate::state::conditions::ConditionTable;
use crate::state::current_hierarchy::CurrentHierarchy;
use crate::state::flows::Flows;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::last_runs::LastRuns;
use crate::state::lineage::Moved;
use crate::state::memory_nodes::{Ledger, MemoryNode};
#[cfg(doc)]
use crate::state::owners::NodeOwners;
use crate::state::owners::{Owners, Store, Uses};
use crate::state::params::NodeParams;
use crate::state::unread::{ReadLate, UnreadNodes};
use crate::toposort::Index;

pub(crate) use crate::state::deferred::{DeferredDrops, TakenNode, TakenNodes};
pub(crate) use crate::state::merge::MovedRoot;
pub(crate) use crate::state::nodes::{AddedNode, NodeRecord, NodeTable};
pub(crate) use crate::state::removed_names::RemovedNames;
pub(crate) use crate::state::subgraphs::{Subgraph, SubgraphFacts, SubgraphTable};

/// The state of a hierarchy; see the [module](self).
#[derive(Debug, Default)]
pub(crate) struct GraphState {
    /// Declared first: the subgraphs that are driver graphs of their own are dropped before the
    /// owners of their nodes.
    subgraphs: SubgraphTable,
    nodes: NodeTable,
    /// The owners that nodes use.
    store: Store,
    /// Facts about the root graph.
    root: SubgraphFacts,
    pub(crate) conditions: ConditionTable,
    pub(crate) memory: Ledger,
    /// The executable, if the graph allows only one at a time.
    pub(crate) executable: Weak<()>,
    pub(crate) last_runs: LastRuns,
    pub(crate) changes: Changes,
    pub(crate) bindings: Bindings,
    pub(crate) flows: Flows,
    /// The hierarchies whose state was merged into this one.
    pub(crate) moved: Vec<Moved>,
    /// The number by which the memory of its allocation nodes is known, if it differs from the
    /// hierarchy's own number.
    pub(crate) memory_of: Option<u64>,
    /// Shared with readers that hold no lock.
    pub(crate) removed: Arc<RemovedNames>,
    /// The hierarchy that registered subgraphs are found in; see
    /// [`crate::interop::raw_handle_map`].
    pub(crate) current_hierarchy: Option<Arc<CurrentHierarchy>>,
    /// The library's own kernels in the graph's shaped executables, loaded as long as the graph
    /// lives.
    pub(crate) own_kernels: Option<Arc<Own>>,
    sharing: Sharing,
    /// The nodes that have no records yet.
    pub(crate) unread_nodes: Option<Box<dyn UnreadNodes>>,
    pub(crate) read_late: ReadLate,
    /// Dropped once the lock is released.
    pub(crate) leaving: Option<Box<DeferredDrops>>,
    is_moved: bool,
}

/// How graphs of a hierarchy are shared with other code.
#[derive(Debug, Default)]
struct Sharing {
    /// Whether a graph of the hierarchy was lent.
    lending: bool,
    /// Whether the root graph belongs to other code.
    adopted: bool,
    /// Whether the nodes are still to be read from the driver.
    unread: bool,
    /// Owners given with the root graph. They may own the graph, so it must not retain them.
    given: Vec<Owner>,
    /// Nodes whose owners may have changed since the lock was taken; recorded only if a graph is
    /// lent.
    touched: Vec<Index>,
}

impl GraphState {
    /// The state of a graph that belongs to other code.
    pub(crate) fn adopted() -> Self {
        let sharing = Sharing { adopted: true, unread: true, ..Sharing::default() };
        Self { sharing, ..Self::default() }
    }

    /// The state of a graph that this library owns, but whose nodes it has no records of.
    pub(crate) fn unread() -> Self {
        let sharing = Sharing { unread: true, ..Sharing::default() };
        Self { sharing, ..Self::default() }
    }

    /// The same with these graph parameters.
    pub(crate) fn with_params(self, bindings: Bindings) -> Self {
        Self { bindings, ..self }
    }

    /// Whether the nodes are still to be read from the driver.
    pub(crate) fn is_unread(&self) -> bool {
        self.sharing.unread
    }

    /// Notes that the nodes were read.
    pub(crate) fn mark_read(&mut self) {
        self.sharing.unread = false;
    }

    /// Makes room for one record in a graph, so that [`insert`](Self::insert) cannot fail.
    #[inline]
    pub(crate) fn reserve(&mut self, within: SubgraphId) {
        self.reserve_many(within, 1);
    }

    /// Makes room for several records.
    #[inline]
    pub(crate) fn reserve_many(&mut self, within: SubgraphId, records: usize) {
        self.nodes.reserve(records);
        if let Some(graph) = self.embedded_mut(within) {
            graph.nodes.reserve(records);
        }
    }

    /// The owners that nodes use.
    #[inline]
    pub(crate) fn store_mut(&mut self) -> &mut Store {
        &mut self.store
    }

    /// Inserts the record of a new node into an existing graph.
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

    /// [`insert`](Self::insert) for a node whose owners are in the store already.
    // Inlined so that the record is built in its place.
    #[inline(always)]
    pub(crate) fn insert_using(
        &mut self,
        within: SubgraphId,
        added: AddedNode,
        node_params: NodeParams,
        uses: Uses,
    ) -> NodeId {
        let id = self.nodes.insert(within, added, node_params, uses);
        self.changes.note_added();
        self.flows.note_added(within, id);
        if let Some(graph) = self.embedded_mut(within) {
            graph.nodes.insert(id.index);
        }
        if self.sharing.lending {
            self.sharing.touched.push(id.index);
        }
        id
    }

    fn keep_all(&mut self, owners: Owners) -> Uses {
        owners.into_iter().map(|owner| self.store.keep(owner)).collect()
    }

    /// The owners that a node uses through the store.
    pub(crate) fn used_by<'t>(&'t self, record: &'t NodeRecord) -> impl Iterator<Item = &'t Owner> + Clone {
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

    /// The raw handle of a condition with this default that nothing uses any more.
    pub(crate) fn reusable(&mut self, default: Option<u32>) -> Option<u64> {
        let Self { conditions, nodes, .. } = self;
        conditions.reusable(default, |id| nodes.get(id).is_some())
    }

    /// Whether there are allocation or free nodes. The driver removes nothing from such graphs.
    pub(crate) fn has_memory_nodes(&self) -> bool {
        !self.memory.is_empty()
    }

    /// Whether there are conditional nodes, placeholders included.
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

    /// Gives nodes other labels in the topological order.
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

    /// The number of the next node. Nodes that exist have lower ones.
    pub(crate) fn next_number(&self) -> u64 {
        self.nodes.next + self.unread_count() as u64
    }

    /// The number of indices of nodes that are or were in use.
    pub(crate) fn indices(&self) -> usize {
        self.nodes.records.len() + self.unread_count()
    }

    /// The label of the next new node.
    pub(crate) fn next_label(&self) -> u64 {
        self.nodes.next_label()
    }

    /// Makes the labels of new nodes larger than this one.
    pub(crate) fn continue_after(&mut self, label: u64) {
        self.nodes.continue_after(label);
    }

    /// Takes the whole state out, since the root graph was moved into another hierarchy.
    pub(crate) fn move_out(&mut self) -> Self {
        core::mem::replace(self, Self { is_moved: true, ..Self::default() })
    }

    /// Whether the root graph was moved into another hierarchy.
    #[inline]
    pub(crate) fn is_moved(&self) -> bool {
        self.is_moved
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(number: usize) -> CUgraphNode {
        core::ptr::without_provenance_mut(number)
    }

    fn insert_in(state: &mut GraphState, within: SubgraphId, number: usize) -> NodeId {
        state.reserve(within);
        state.insert(within, raw(number), NodeParams::Empty, Owners::new())
    }

    fn insert(state: &mut GraphState, number: usize) -> NodeId {
        insert_in(state, SubgraphId::ROOT, number)
    }

    #[test]
    fn a_removed_node_is_never_found_again() {
        let mut state = GraphState::default();
        let first = insert(&mut state, 16);
        assert_eq!(state.take(first).len(), 1);
        let second = insert(&mut state, 16);
        assert_eq!(first.index, second.index);
        assert!(state.record(first).is_none() && state.take(first).is_empty());
        assert!(state.record(second).is_some());
    }

    #[test]
    fn raw_nodes_are_found_before_and_after_changes() {
        let mut state = GraphState::default();
        let (a, b) = (insert(&mut state, 16), insert(&mut state, 32));
        assert_eq!(state.find(raw(32)), Some(b.index));
        let c = insert(&mut state, 48);
        assert_eq!(state.find(raw(48)), Some(c.index));
        assert_eq!(state.take(a).len(), 1);
        assert_eq!(state.find(raw(16)), None);
        assert_eq!(state.id(c.index), Some(c));
    }

    #[test]
    fn owners_are_those_of_rows_and_graph() {
        let mut state = GraphState::default();
        let held = Arc::new(());
        let other = || Owner::shared(held.clone());
        state.insert(SubgraphId::ROOT, raw(16), NodeParams::Empty, Owners::from_iter([other(), other()]));
        assert!(state.keep(SubgraphId::ROOT, &other()));
        assert_eq!(state.owners().len(), 3);
        assert_eq!(Arc::strong_count(&held), 4);
    }

    #[test]
    fn owners_come_out_with_the_last_row_that_uses_them() {
        let mut state = GraphState::default();
        let (first, second) = (Arc::new(()), Arc::new(()));
        let other = |held: &Arc<()>| Owner::shared(held.clone());
        let id =
            state.insert(SubgraphId::ROOT, raw(16), NodeParams::Empty, Owners::from_iter([other(&first)]));
        let mut owners = Owners::from_iter([other(&second)]);
        state.swap_owners(id, &mut owners);
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (2, 2));
        // The replaced owner belongs to the caller.
        drop(owners);
        assert_eq!(Arc::strong_count(&first), 1);
        let taken = state.take(id);
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (1, 2));
        assert!(state.owners().is_empty());
        drop(taken);
        assert_eq!((Arc::strong_count(&first), Arc::strong_count(&second)), (1, 1));
        // If the node is gone, the owners stay with the caller.
        let mut late = Owners::from_iter([other(&first)]);
        state.swap_owners(id, &mut late);
        assert_eq!(late.len(), 1);
    }

    #[test]
    fn an_embedded_graph_goes_with_its_node() {
        let mut state = GraphState::default();
        let graph = core::ptr::without_provenance_mut(8);
        let outside = insert(&mut state, 16);
        let node = insert(&mut state, 32);
        let subgraph = state.embed(graph, node);
        state.record_mut(node).unwrap().node_params = NodeParams::Child { graph: subgraph };
        let inner = insert_in(&mut state, subgraph, 48);
        let deep = state.embed(graph, inner);
        state.record_mut(inner).unwrap().node_params = NodeParams::Child { graph: deep };
        let deepest = insert_in(&mut state, deep, 64);
        let lonely = insert_in(&mut state, deep, 80);
        assert_eq!(state.take(lonely).len(), 1);
        let has = |state: &GraphState, subgraph| state.facts(subgraph).is_some();
        assert!(has(&state, subgraph) && has(&state, deep) && has(&state, SubgraphId::ROOT));
        assert_eq!(state.take(node).len(), 3);
        assert!(!has(&state, subgraph) && !has(&state, deep) && has(&state, SubgraphId::ROOT));
        assert!(
            state.record(deepest).is_none()
                && state.record(inner).is_none()
                && state.record(outside).is_some()
        );
        let again = insert(&mut state, 32);
        let next = state.embed(graph, again);
        assert!(has(&state, next) && next != subgraph && !has(&state, subgraph));
    }
}
