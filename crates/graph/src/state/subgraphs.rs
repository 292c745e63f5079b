//! The graphs in nodes, and the facts about every graph of a hierarchy.

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

/// A graph in a node: an embedded graph or a body.
#[derive(Debug)]
pub(crate) struct Subgraph {
    /// A body of a placeholder, which is a driver graph of its own. Declared first, so that it is
    /// dropped before the owners of its nodes.
    pub(super) own: Option<GraphHandle>,
    pub(crate) raw: RawGraph,
    pub(super) number: u64,
    /// The node that contains the graph.
    pub(crate) node: NodeId,
    /// Whether it is a body of a conditional node.
    pub(crate) is_body: bool,
    /// The conditional nodes around the graph, its own node included.
    pub(super) enclosing: Enclosing,
    /// The indices of its nodes.
    pub(super) nodes: HashSet<Index>,
    pub(crate) facts: SubgraphFacts,
    /// Dropped with the subgraph: weak references elsewhere show that the graph is gone.
    pub(super) alive: Arc<()>,
}

/// The innermost conditional nodes around a graph. Graphs embedded in bodies count as inside the
/// bodies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Enclosing {
    /// The innermost conditional node.
    body: Option<NodeId>,
    /// The innermost one with two bodies.
    if_else: Option<NodeId>,
    /// The innermost placeholder.
    placeholder: Option<NodeId>,
}

/// Facts about any graph of a hierarchy, the root graph included.
#[derive(Clone, Debug, Default)]
pub(crate) struct SubgraphFacts {
    /// Owners kept for the whole graph.
    pub(crate) kept: Vec<Owner>,
    /// The originals that it is a clone of.
    pub(crate) lineage: Lineage,
    /// Set once the graph's raw handle was lent.
    pub(crate) lent: Option<Arc<LentLog>>,
}

/// The graphs in nodes, by index.
#[derive(Debug, Default)]
pub(crate) struct SubgraphTable {
    pub(super) slots: Vec<Option<Subgraph>>,
    pub(super) free: Vec<u32>,
    /// The number of the latest subgraph; the root has 0.
    pub(super) latest: u64,
    /// The number of bodies that are driver graphs of their own.
    pub(super) placeholders: usize,
}

impl GraphState {
    /// Enters the embedded graph of a node.
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

    /// Enters a body of a conditional node that has its record.
    pub(crate) fn embed_body(&mut self, raw: CUgraph, node: NodeId) -> SubgraphId {
        let subgraph = self.embed(raw, node);
        self.mark_as_body(subgraph, node);
        subgraph
    }

    /// [`embed_body`](Self::embed_body) for a body that is a driver graph of its own.
    pub(crate) fn embed_own(&mut self, body: GraphHandle, node: NodeId) -> SubgraphId {
        let subgraph = self.embed_body(body.as_raw(), node);
        if let Some(graph) = self.embedded_mut(subgraph) {
            graph.own = Some(body);
            graph.enclosing.placeholder = Some(node);
            self.subgraphs.placeholders += 1;
        }
        subgraph
    }

    /// Whether there are placeholders: conditional nodes that the driver does not have.
    pub(crate) fn has_own_bodies(&self) -> bool {
        self.subgraphs.placeholders > 0
    }

    /// The conditional nodes around the graphs in a node, the node itself not counted.
    fn enclosing_of(&self, node: NodeId) -> Enclosing {
        let within = self.record(node).and_then(|record| self.embedded(record.within));
        within.map_or(Enclosing::default(), |graph| graph.enclosing)
    }

    /// Marks a graph as a body of a conditional node.
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

    /// The innermost placeholder around a graph.
    pub(crate) fn enclosing_placeholder(&self, subgraph: SubgraphId) -> Option<NodeId> {
        self.embedded(subgraph)?.enclosing.placeholder
    }

    /// The innermost conditional node around a graph.
    pub(crate) fn enclosing_conditional(&self, subgraph: SubgraphId) -> Option<NodeId> {
        self.embedded(subgraph)?.enclosing.body
    }

    /// The innermost conditional node with two bodies around a graph.
    pub(crate) fn enclosing_if_else(&self, subgraph: SubgraphId) -> Option<NodeId> {
        self.embedded(subgraph)?.enclosing.if_else
    }

    /// Assigns an embedded graph to its node.
    pub(crate) fn set_embedded_in(&mut self, subgraph: SubgraphId, node: NodeId) {
        let enclosing = self.enclosing_of(node);
        if let Some(graph) = self.embedded_mut(subgraph) {
            (graph.node, graph.enclosing) = (node, enclosing);
        }
        if let Some(record) = self.record_mut(node) {
            record.node_params.set_embedded(subgraph);
        }
    }

    /// Assigns bodies to their conditional node.
    pub(crate) fn set_bodies_of(&mut self, subgraphs: Box<[SubgraphId]>, node: NodeId) {
        subgraphs.iter().for_each(|subgraph| self.mark_as_body(*subgraph, node));
        if let Some(record) = self.record_mut(node) {
            record.node_params.set_bodies(subgraphs);
        }
    }

    /// The graph in a node; `None` for the root, and once the node is removed.
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
        self.subgraphs.placeholders -= usize::from(graph.own.is_some());
        let index = subgraph.index()?;
        self.subgraphs.free.push(index);
        self.subgraphs.slots.get_mut(index as usize)?.take()
    }

    /// The facts about a graph; `None` once it is gone.
    pub(crate) fn facts(&self, subgraph: SubgraphId) -> Option<&SubgraphFacts> {
        if subgraph.is_root() { Some(&self.root) } else { Some(&self.embedded(subgraph)?.facts) }
    }

    pub(crate) fn facts_mut(&mut self, subgraph: SubgraphId) -> Option<&mut SubgraphFacts> {
        if subgraph.is_root() { Some(&mut self.root) } else { Some(&mut self.embedded_mut(subgraph)?.facts) }
    }

    /// The graph that contains the node of a graph; `None` for the root.
    pub(crate) fn parent(&self, subgraph: SubgraphId) -> Option<SubgraphId> {
        self.record(self.embedded(subgraph)?.node).map(|record| record.within)
    }

    /// A graph and the graphs around it, from the inside out.
    pub(crate) fn self_and_ancestors(&self, subgraph: SubgraphId) -> impl Iterator<Item = SubgraphId> {
        core::iter::successors(Some(subgraph), |subgraph| self.parent(*subgraph))
    }

    /// Sets the facts about a new graph.
    pub(crate) fn set_facts(&mut self, subgraph: SubgraphId, facts: SubgraphFacts) {
        self.sharing.lending |= facts.lent.is_some();
        facts.kept.iter().for_each(|owner| self.log(subgraph, [owner.clone()]));
        if let Some(known) = self.facts_mut(subgraph) {
            *known = facts;
        }
    }
}

impl Subgraph {
    /// Lives as long as the graph is in its node, for readers without the lock.
    pub(crate) fn alive(&self) -> Weak<()> {
        Arc::downgrade(&self.alive)
    }
}

impl SubgraphFacts {
    /// The owners that go with the graph.
    pub(super) fn into_owners(self) -> impl Iterator<Item = Owner> {
        // The log becomes an owner, so that it is dropped with the others, after the lock.
        let lent = self.lent.map(Owner::shared);
        self.kept.into_iter().chain(lent)
    }
}
