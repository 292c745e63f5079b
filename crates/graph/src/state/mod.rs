//! The table of a root graph: a row for each node of it and of the graphs embedded in it, with what
//! the node uses.

pub(crate) mod conditions;
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
pub(crate) mod owners;
pub(crate) mod params;
pub(crate) mod raw_params;
pub(crate) mod removed_names;
pub(crate) mod subgraphs;

pub(crate) use crate::state::merge::MovedRoot;
pub(crate) use crate::state::removed_names::RemovedNames;

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Weak};

use cuda_handles::{GraphHandle, Owner};
use cuda_sys::CUgraphNode;
use smallvec::SmallVec;

use crate::error::{Broken, Error, Result};
use crate::state::conditions::ConditionTable;
use crate::state::home::Home;
use crate::state::ids::{NodeId, RawGraph, RawNode, SubgraphId};
use crate::state::last_runs::LastRuns;
use crate::state::lent_log::LentLog;
use crate::state::lineage::{Lineage, Moved};
use crate::state::memory_nodes::{Ledger, MemoryNode};
use crate::state::owners::{NodeOwners, Owners, Store, Uses};
use crate::state::params::{ConditionSource, Conditional, NodeParams};
use crate::toposort::{self, Index};

/// A graph embedded in a node.
#[derive(Debug)]
pub(crate) struct Subgraph {
    /// A body where the driver has no conditional nodes: a graph of its own for the driver. Before
    /// what its nodes use.
    own: Option<GraphHandle>,
    pub(crate) raw: RawGraph,
    number: u64,
    /// The node that it is embedded in.
    pub(crate) node: NodeId,
    /// Whether it is a body of a conditional.
    pub(crate) is_body: bool,
    /// What it lies in, itself included.
    around: Enclosing,
    /// Its rows.
    nodes: HashSet<Index>,
    pub(crate) about: SubgraphFacts,
    /// Goes with the entry, for who knows of the graph elsewhere.
    there: Arc<()>,
}

/// The innermost conditional nodes that a graph lies in, be it in a graph embedded in their bodies.
#[derive(Clone, Copy, Debug, Default)]
struct Enclosing {
    body: Option<NodeId>,
    /// One that has two bodies.
    of_two: Option<NodeId>,
    /// One that the driver does not have.
    place_holder: Option<NodeId>,
}

/// What there is to know of any graph of a hierarchy.
#[derive(Clone, Debug, Default)]
pub(crate) struct SubgraphFacts {
    /// Kept for the whole graph.
    pub(crate) kept: Vec<Owner>,
    /// What it is a clone of.
    pub(crate) lineage: Lineage,
    /// Set once its raw value was lent.
    pub(crate) lent: Option<Arc<LentLog>>,
}

#[derive(Debug)]
pub(crate) struct NodeRecord {
    pub(crate) raw: RawNode,
    number: u64,
    /// The graph that it is a node of.
    pub(crate) within: SubgraphId,
    /// See [`crate::toposort`].
    pub(crate) label: u64,
    pub(crate) node_params: NodeParams,
    pub(crate) owners: NodeOwners,
    pub(crate) name: Option<Box<str>>,
}

/// Rows taken out of a table.
pub(crate) type TakenNodes = SmallVec<[TakenNode; 1]>;

/// A row taken out of a table, with the owners that no other row uses.
#[derive(Debug)]
pub(crate) struct TakenNode {
    pub(crate) record: NodeRecord,
    _owners: Owners,
}

/// What nodes that other code removed have kept, until the lock is given back.
#[derive(Debug, Default)]
pub(crate) struct DeferredDrops {
    records: Vec<TakenNode>,
    owners: Vec<Owner>,
}

/// Rows in use have a `Some`; the others are listed as free.
#[derive(Debug, Default)]
pub(crate) struct GraphState {
    /// The graphs embedded in nodes. First of all: those that are the driver's own graphs go before
    /// what their nodes use.
    embedded: Vec<Option<Subgraph>>,
    records: Vec<Option<NodeRecord>>,
    free: Vec<Index>,
    /// What rows use.
    store: Store,
    free_embedded: Vec<u32>,
    /// The number of the next node.
    next: u64,
    /// The newest label; see [`toposort::fresh`].
    newest: u64,
    /// The number of the latest embedded graph; the root has 0.
    latest: u64,
    /// From raw nodes to rows; made when first asked for, since most graphs are only built and run.
    by_raw: Option<HashMap<usize, Index>>,
    /// Of the root graph.
    about: SubgraphFacts,
    pub(crate) conditions: ConditionTable,
    /// The memory nodes.
    pub(crate) memory: Ledger,
    /// Of the executable, where only one may live.
    pub(crate) executable: Weak<()>,
    pub(crate) last_runs: LastRuns,
    /// The hierarchies that were moved into this one and whose tables it has taken over.
    pub(crate) moved: Vec<Moved>,
    /// The number by which the memory of its allocation nodes is known, if that is not the
    /// hierarchy's own.
    pub(crate) memory_of: Option<u64>,
    /// Shared with who has no lock.
    pub(crate) removed: Arc<RemovedNames>,
    /// How the graphs in nodes are found by their raw values.
    pub(crate) home: Option<Arc<Home>>,
    /// How many rows are of conditional nodes, be they the driver's or not.
    conditionals: usize,
    /// How many bodies are graphs of their own for the driver.
    place_holders: usize,
    /// Whether a graph of the hierarchy was lent.
    lending: bool,
    /// Whether the root graph is other code's.
    adopted: bool,
    /// Whether its nodes, which other code added, have no records yet.
    unread: bool,
    /// Given with the root graph. They may own it, so it must not retain them.
    given: Vec<Owner>,
    /// To be dropped once the lock is given back.
    pub(crate) leaving: Option<Box<DeferredDrops>>,
    /// Rows that may have got other owners since the lock was taken; only where a graph was lent.
    touched: Vec<Index>,
    /// Whether the graphs can be used.
    standing: Standing,
}

/// A node that the driver has added and that has no record yet.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddedNode {
    pub(crate) raw: CUgraphNode,
    /// The label of a node that comes before others. Without one the node comes last.
    pub(crate) label: Option<u64>,
}

impl From<CUgraphNode> for AddedNode {
    fn from(raw: CUgraphNode) -> Self {
        Self { raw, label: None }
    }
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
    /// That of a graph of other code.
    pub(crate) fn adopted() -> Self {
        Self { adopted: true, ..Self::unread() }
    }

    /// That of a graph whose nodes other code added.
    pub(crate) fn unread() -> Self {
        Self { unread: true, ..Self::default() }
    }

    /// Whether the graph's nodes, which other code added, have no records yet.
    pub(crate) fn is_unread(&self) -> bool {
        self.unread
    }

    pub(crate) fn set_read(&mut self) {
        self.unread = false;
    }

    /// Makes room for one row in a graph, so that [`insert`](Self::insert) cannot fail.
    #[inline]
    pub(crate) fn reserve(&mut self, within: SubgraphId) {
        self.reserve_many(within, 1);
    }

    /// Makes room for some rows.
    #[inline]
    pub(crate) fn reserve_many(&mut self, within: SubgraphId, records: usize) {
        if self.free.len() < records {
            self.records.reserve(records - self.free.len());
        }
        if let Some(by_raw) = &mut self.by_raw {
            by_raw.reserve(records);
        }
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
        AddedNode { raw, label }: AddedNode,
        node_params: NodeParams,
        uses: Uses,
    ) -> NodeId {
        let (raw, number) = (RawNode(raw), self.next);
        self.next += 1;
        self.newest += 1;
        let label = label.unwrap_or_else(|| toposort::fresh(self.newest));
        let index = self.free.pop().unwrap_or_else(|| {
            self.records.push(None);
            // A node of the driver is larger than a byte: there is no memory for more than fit.
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
        if let Some(graph) = self.embedded_mut(within) {
            graph.nodes.insert(index);
        }
        if self.lending {
            self.touched.push(index);
        }
        NodeId { index, number }
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
            let Some(mut record) = self.records.get_mut(index as usize).and_then(Option::take) else {
                continue;
            };
            let id = NodeId { index, number: record.number };
            self.removed.note(id, record.display_name(id));
            let mut owners = self.store.release_all(core::mem::take(&mut record.owners));
            if let Some(by_raw) = &mut self.by_raw {
                by_raw.remove(&record.raw.key());
            }
            self.free.push(index);
            self.conditionals -= usize::from(record.node_params.is_conditional());
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
        if let Some(Some(record)) = self.records.get_mut(id.index as usize) {
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

    /// The node's row; `None` once the node is removed.
    #[inline]
    pub(crate) fn record(&self, id: NodeId) -> Option<&NodeRecord> {
        self.records.get(id.index as usize)?.as_ref().filter(|record| record.number == id.number)
    }

    pub(crate) fn record_mut(&mut self, id: NodeId) -> Option<&mut NodeRecord> {
        let record =
            self.records.get_mut(id.index as usize)?.as_mut().filter(|record| record.number == id.number)?;
        if self.lending {
            self.touched.push(id.index);
        }
        Some(record)
    }

    /// What the driver has for a condition with this default that nothing uses any more.
    pub(crate) fn left_over(&mut self, default: Option<u32>) -> Option<u64> {
        let Self { conditions, records, .. } = self;
        let is_there = |id: NodeId| {
            let record = records.get(id.index as usize).and_then(Option::as_ref);
            record.is_some_and(|record| record.number == id.number)
        };
        conditions.left_over(default, is_there)
    }

    /// Whether there are allocation or free nodes, from whose graphs the driver removes nothing.
    pub(crate) fn has_memory_nodes(&self) -> bool {
        !self.memory.is_empty()
    }

    /// Whether there are conditional nodes, be they the driver's or not.
    pub(crate) fn has_conditional_nodes(&self) -> bool {
        self.conditionals > 0
    }

    /// The row at a place that is in use.
    pub(crate) fn at(&self, index: Index) -> Option<&NodeRecord> {
        self.records.get(index as usize)?.as_ref()
    }

    /// All rows of the hierarchy.
    pub(crate) fn records(&self) -> impl Iterator<Item = (NodeId, &NodeRecord)> {
        let used = (0..).zip(&self.records).filter_map(|(index, record)| Some((index, record.as_ref()?)));
        used.map(|(index, record)| (NodeId { index, number: record.number }, record))
    }

    pub(crate) fn relabel(&mut self, labels: Vec<(Index, u64)>) {
        for (index, label) in labels {
            self.continue_after(label);
            if let Some(Some(record)) = self.records.get_mut(index as usize) {
                record.label = label;
            }
        }
    }

    pub(crate) fn id(&self, index: Index) -> Option<NodeId> {
        self.at(index).map(|record| NodeId { index, number: record.number })
    }

    /// The place of a raw node.
    pub(crate) fn find(&mut self, raw: CUgraphNode) -> Option<Index> {
        let records = &self.records;
        let by_raw = self.by_raw.get_or_insert_with(|| {
            let used =
                (0..).zip(records).filter_map(|(index, record)| Some((record.as_ref()?.raw.key(), index)));
            used.collect()
        });
        by_raw.get(&RawNode(raw).key()).copied()
    }

    /// The label of the next new node.
    pub(crate) fn next_label(&self) -> u64 {
        toposort::fresh(self.newest + 1)
    }

    /// New nodes get labels above this one.
    pub(crate) fn continue_after(&mut self, label: u64) {
        self.newest = self.newest.max(toposort::rank(label));
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

impl Subgraph {
    /// Whether the graph is still in its node, for who has no lock.
    pub(crate) fn there(&self) -> Weak<()> {
        Arc::downgrade(&self.there)
    }
}

impl SubgraphFacts {
    /// What goes with the graph.
    fn into_owners(self) -> impl Iterator<Item = Owner> {
        // An owner of nobody else's: dropped with the others, after the lock.
        let lent = self.lent.map(Owner::shared);
        self.kept.into_iter().chain(lent)
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
