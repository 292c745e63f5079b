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
    pub(super) around: Enclosing,
    /// The indices of its nodes.
    pub(super) nodes: HashSet<Index>,
    pub(crate) about: SubgraphFacts,
    /// Goes with the entry: weak references elsewhere tell that the graph is gone.
    pub(super) there: Arc<()>,
}

/// The innermost conditional nodes that a graph lies in, be it in a graph embedded in their bodies.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Enclosing {
    body: Option<NodeId>,
    /// One that has two bodies.
    of_two: Option<NodeId>,
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
        let about = SubgraphFacts::default();
        let (nodes, there) = (HashSet::new(), Arc::new(()));
        let raw = RawGraph(raw);
        let around = self.around_node(node);
        let graph =
            Some(Subgraph { own: None, raw, number, node, is_body: false, around, nodes, about, there });
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
        self.make_body(subgraph, node);
        subgraph
    }

    /// The same for a body that is a graph of its own for the driver.
    pub(crate) fn embed_own(&mut self, body: GraphHandle, node: NodeId) -> SubgraphId {
        let subgraph = self.embed_body(body.as_raw(), node);
        if let Some(graph) = self.embedded_mut(subgraph) {
            graph.own = Some(body);
            graph.around.place_holder = Some(node);
            self.subgraphs.place_holders += 1;
        }
        subgraph
    }

    /// Whether there are conditional nodes that the driver does not have.
    pub(crate) fn counts_place_holders(&self) -> bool {
        self.subgraphs.place_holders > 0
    }

    /// What the graphs in a node lie in, besides the node.
    fn around_node(&self, node: NodeId) -> Enclosing {
        let within = self.record(node).and_then(|record| self.embedded(record.within));
        within.map_or(Enclosing::default(), |graph| graph.around)
    }

    /// Says that the graph is a body of a conditional node.
    fn make_body(&mut self, subgraph: SubgraphId, node: NodeId) {
        let mut around = self.around_node(node);
        around.body = Some(node);
        if self.record(node).is_some_and(|record| record.node_params.kind() == NodeKind::IfElse) {
            around.of_two = Some(node);
        }
        if let Some(graph) = self.embedded_mut(subgraph) {
            (graph.node, graph.is_body, graph.around) = (node, true, around);
        }
    }

    /// The conditional node that the driver does not have, in whose body a graph lies, be it in a
    /// graph embedded there.
    pub(crate) fn place_holder_around(&self, subgraph: SubgraphId) -> Option<NodeId> {
        self.embedded(subgraph)?.around.place_holder
    }

    /// The conditional node in whose body a graph lies, be it in a graph embedded there.
    pub(crate) fn body_around(&self, subgraph: SubgraphId) -> Option<NodeId> {
        self.embedded(subgraph)?.around.body
    }

    /// The conditional node with two bodies in one of which a graph lies, be it in a graph embedded
    /// there.
    pub(crate) fn two_bodies_around(&self, subgraph: SubgraphId) -> Option<NodeId> {
        self.embedded(subgraph)?.around.of_two
    }

    /// Says which node an embedded graph is in.
    pub(crate) fn put_in(&mut self, subgraph: SubgraphId, node: NodeId) {
        let around = self.around_node(node);
        if let Some(graph) = self.embedded_mut(subgraph) {
            (graph.node, graph.around) = (node, around);
        }
        if let Some(record) = self.record_mut(node) {
            record.node_params.set_embedded(subgraph);
        }
    }

    /// Says which conditional node these graphs are the bodies of.
    pub(crate) fn put_bodies_in(&mut self, subgraphs: Box<[SubgraphId]>, node: NodeId) {
        subgraphs.iter().for_each(|subgraph| self.make_body(*subgraph, node));
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
    pub(crate) fn about(&self, subgraph: SubgraphId) -> Option<&SubgraphFacts> {
        if subgraph.is_root() { Some(&self.root) } else { Some(&self.embedded(subgraph)?.about) }
    }

    pub(crate) fn about_mut(&mut self, subgraph: SubgraphId) -> Option<&mut SubgraphFacts> {
        if subgraph.is_root() { Some(&mut self.root) } else { Some(&mut self.embedded_mut(subgraph)?.about) }
    }

    /// The graph that a graph is embedded in; `None` for the root.
    pub(crate) fn outer(&self, subgraph: SubgraphId) -> Option<SubgraphId> {
        self.record(self.embedded(subgraph)?.node).map(|record| record.within)
    }

    /// A graph and those that it is embedded in, from the inside out.
    pub(crate) fn outwards(&self, subgraph: SubgraphId) -> impl Iterator<Item = SubgraphId> {
        core::iter::successors(Some(subgraph), |subgraph| self.outer(*subgraph))
    }

    /// Says all there is to know of a graph that is new.
    pub(crate) fn describe(&mut self, subgraph: SubgraphId, about: SubgraphFacts) {
        self.sharing.lending |= about.lent.is_some();
        about.kept.iter().for_each(|owner| self.log(subgraph, [owner.clone()]));
        if let Some(known) = self.about_mut(subgraph) {
            *known = about;
        }
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
    pub(super) fn into_owners(self) -> impl Iterator<Item = Owner> {
        // An owner of nobody else's: dropped with the others, after the lock.
        let lent = self.lent.map(Owner::shared);
        self.kept.into_iter().chain(lent)
    }
}
