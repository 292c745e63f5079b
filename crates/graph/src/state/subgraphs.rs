//! The graphs that are in nodes, and what is known of each graph of a hierarchy.

use std::collections::HashSet;
use std::sync::{Arc, Weak};

use cuda_handles::{GraphHandle, Owner};
use cuda_sys::CUgraph;

use super::GraphState;
use crate::node_kind::NodeKind;
use crate::state::ids::{NodeId, RawGraph, SubgraphId};
use crate::state::lent_log::LentLog;
use crate::state::lineage::Lineage;
use crate::toposort::Index;

/// A graph embedded in a node.
#[derive(Debug)]
pub(crate) struct Subgraph {
    /// A body where the driver has no conditional nodes: a graph of its own for the driver. Before
    /// what its nodes use.
    pub(super) own: Option<GraphHandle>,
    pub(crate) raw: RawGraph,
    pub(super) number: u64,
    /// The node that it is embedded in.
    pub(crate) node: NodeId,
    /// Whether it is a body of a conditional.
    pub(crate) is_body: bool,
    /// What it lies in, itself included.
    pub(super) enclosing: Enclosing,
    /// The indices of its nodes.
    pub(super) nodes: HashSet<Index>,
    pub(crate) facts: SubgraphFacts,
    /// Goes with the entry: weak references elsewhere tell that the graph is gone.
    pub(super) alive: Arc<()>,
}

/// The innermost conditional nodes that a graph lies in, be it in a graph embedded in their bodies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Enclosing {
    body: Option<NodeId>,
    /// One that has two bodies.
    if_else: Option<NodeId>,
    /// One that the driver does not have.
    place_holder: Option<NodeId>,
}

/// Facts about any graph of a hierarchy, the root graph included.
#[derive(Clone, Debug, Default)]
pub(crate) struct SubgraphFacts {
    /// Kept for the whole graph.
    pub(crate) kept: Vec<Owner>,
    /// What it is a clone of.
    pub(crate) lineage: Lineage,
    /// Set once its raw value was lent.
    pub(crate) lent: Option<Arc<LentLog>>,
}

/// The graphs embedded in nodes, by index.
#[derive(Debug, Default)]
pub(crate) struct SubgraphTable {
    pub(super) slots: Vec<Option<Subgraph>>,
    pub(super) free: Vec<u32>,
    /// The number of the latest embedded graph; the root has 0.
    pub(super) latest: u64,
    /// The number of bodies that are graphs of their own for the driver.
    pub(super) place_holders: usize,
}

impl GraphState {
    /// A place for the graph embedded in a node.
    pub(crate) fn embed(&mut self, raw: CUgraph, node: NodeId) -> SubgraphId {
        self.subgraphs.latest += 1;
        let number = self.subgraphs.latest;
        let facts = SubgraphFacts::default();
        let (nodes, alive) = (HashSet::new(), Arc::new(()));
        let raw = RawGraph(raw);
        let enclosing = self.enclosing_of(node);
        let graph =
            Some(Subgraph { own: None, raw, number, node, is_body: false, enclosing, nodes, facts, alive });
        let index = self.subgraphs.free.pop().unwrap_or_else(|| {
            self.subgraphs.slots.push(None);
            (self.subgraphs.slots.len() - 1) as u32
        });
        self.subgraphs.slots[index as usize] = graph;
        SubgraphId::embedded(index, number)
    }

    /// A place for a body of a conditional node that has its row.
    pub(crate) fn embed_body(&mut self, raw: CUgraph, node: NodeId) -> SubgraphId {
        let subgraph = self.embed(raw, node);
        self.mark_as_body(subgraph, node);
        subgraph
    }

    /// The same for a body that is a graph of its own for the driver.
    pub(crate) fn embed_own(&mut self, body: GraphHandle, node: NodeId) -> SubgraphId {
        let subgraph = self.embed_body(body.as_raw(), node);
        if let Some(graph) = self.embedded_mut(subgraph) {
            graph.own = Some(body);
            graph.enclosing.place_holder = Some(node);
            self.subgraphs.place_holders += 1;
        }
        subgraph
    }

    /// Whether there are conditional nodes that the driver does not have.
    pub(crate) fn has_own_bodies(&self) -> bool {
        self.subgraphs.place_holders > 0
    }

    /// What the graphs in a node lie in, besides the node.
    fn enclosing_of(&self, node: NodeId) -> Enclosing {
        let within = self.record(node).and_then(|record| self.embedded(record.within));
        within.map_or(Enclosing::default(), |graph| graph.enclosing)
    }

    /// Says that the graph is a body of a conditional node.
    fn mark_as_body(&mut self, subgraph: SubgraphId, node: NodeId) {
        let mut enclosing = self.enclosing_of(node);
        enclosing.body = Some(node);
        if self.record(node).is_some_and(|record| record.node_params.kind() == NodeKind::IfElse) {
            enclosing.if_else = Some(node);
        }
        if let Some(graph) = self.embedded_mut(subgraph) {
            (graph.node, graph.is_body, graph.enclosing) = (node, true, enclosing);
        }
    }

    /// The conditional node that the driver does not have, in whose body a graph lies, be it in a
    /// graph embedded there.
    pub(crate) fn enclosing_place_holder(&self, subgraph: SubgraphId) -> Option<NodeId> {
        self.embedded(subgraph)?.enclosing.place_holder
    }

    /// The conditional node in whose body a graph lies, be it in a graph embedded there.
    pub(crate) fn enclosing_conditional(&self, subgraph: SubgraphId) -> Option<NodeId> {
        self.embedded(subgraph)?.enclosing.body
    }

    /// The conditional node with two bodies in one of which a graph lies, be it in a graph embedded
    /// there.
    pub(crate) fn enclosing_if_else(&self, subgraph: SubgraphId) -> Option<NodeId> {
        self.embedded(subgraph)?.enclosing.if_else
    }

    /// Says which node an embedded graph is in.
    pub(crate) fn set_embedded_in(&mut self, subgraph: SubgraphId, node: NodeId) {
        let enclosing = self.enclosing_of(node);
        if let Some(graph) = self.embedded_mut(subgraph) {
            (graph.node, graph.enclosing) = (node, enclosing);
        }
        if let Some(record) = self.record_mut(node) {
            record.node_params.set_embedded(subgraph);
        }
    }

    /// Says which conditional node these graphs are the bodies of.
    pub(crate) fn set_bodies_of(&mut self, subgraphs: Box<[SubgraphId]>, node: NodeId) {
        subgraphs.iter().for_each(|subgraph| self.mark_as_body(*subgraph, node));
        if let Some(record) = self.record_mut(node) {
            record.node_params.set_bodies(subgraphs);
        }
    }

    /// An embedded graph; `None` for the root, and once the node that it was embedded in is gone.
    pub(crate) fn embedded(&self, subgraph: SubgraphId) -> Option<&Subgraph> {
        let graph = self.subgraphs.slots.get(subgraph.index()? as usize)?;
        graph.as_ref().filter(|graph| graph.number == subgraph.number())
    }

    #[inline]
    pub(crate) fn embedded_mut(&mut self, subgraph: SubgraphId) -> Option<&mut Subgraph> {
        let graph = self.subgraphs.slots.get_mut(subgraph.index()? as usize)?;
        graph.as_mut().filter(|graph| graph.number == subgraph.number())
    }

    pub(crate) fn take_embedded(&mut self, subgraph: SubgraphId) -> Option<Subgraph> {
        let graph = self.embedded(subgraph)?;
        self.subgraphs.place_holders -= usize::from(graph.own.is_some());
        let index = subgraph.index()?;
        self.subgraphs.free.push(index);
        self.subgraphs.slots.get_mut(index as usize)?.take()
    }

    /// What there is to know of a graph; `None` once it is gone.
    pub(crate) fn facts(&self, subgraph: SubgraphId) -> Option<&SubgraphFacts> {
        if subgraph.is_root() { Some(&self.root) } else { Some(&self.embedded(subgraph)?.facts) }
    }

    pub(crate) fn facts_mut(&mut self, subgraph: SubgraphId) -> Option<&mut SubgraphFacts> {
        if subgraph.is_root() { Some(&mut self.root) } else { Some(&mut self.embedded_mut(subgraph)?.facts) }
    }

    /// The graph that a graph is embedded in; `None` for the root.
    pub(crate) fn parent(&self, subgraph: SubgraphId) -> Option<SubgraphId> {
        self.record(self.embedded(subgraph)?.node).map(|record| record.within)
    }

    /// A graph and those that it is embedded in, from the inside out.
    pub(crate) fn self_and_ancestors(&self, subgraph: SubgraphId) -> impl Iterator<Item = SubgraphId> {
        core::iter::successors(Some(subgraph), |subgraph| self.parent(*subgraph))
    }

    /// Says all there is to know of a graph that is new.
    pub(crate) fn set_facts(&mut self, subgraph: SubgraphId, facts: SubgraphFacts) {
        self.sharing.lending |= facts.lent.is_some();
        facts.kept.iter().for_each(|owner| self.log(subgraph, [owner.clone()]));
        if let Some(known) = self.facts_mut(subgraph) {
            *known = facts;
        }
    }
}

impl Subgraph {
    /// Whether the graph is still in its node, for who has no lock.
    pub(crate) fn alive(&self) -> Weak<()> {
        Arc::downgrade(&self.alive)
    }
}

impl SubgraphFacts {
    /// What goes with the graph.
    pub(super) fn into_owners(self) -> impl Iterator<Item = Owner> {
        // An owner of nobody else's: dropped with the others, after the lock.
        let lent = self.lent.map(Owner::shared);
        self.kept.into_iter().chain(lent)
    }
}
