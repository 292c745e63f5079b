//! Reading a graph made by other code: a snapshot of its nodes and edges, and of the graphs
//! embedded in its nodes.
//!
//! The driver is queried for everything first. Only then are records entered, so that a failed
//! query changes nothing.

use std::collections::HashMap;

use cuda_sys::{CUgraph, CUgraphNode, CUgraphNodeType};
use smallvec::SmallVec;

use crate::edge_kind::EdgeKind;
use crate::error::{Error, InteropError, NodeError, Result};
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::owners::Owners;
use crate::state::params::{ConditionSource, Conditional, NodeParams};
use crate::state::raw_params::conditional_of;
use crate::toposort::{self, Index, Successors};

/// One graph as the driver describes it.
struct ReadGraph {
    place: Place,
    nodes: Vec<ReadNode>,
    edges: Vec<(CUgraphNode, CUgraphNode, EdgeKind)>,
}

/// The position of a graph in the hierarchy.
#[derive(Clone, Copy)]
enum Place {
    Known(SubgraphId),
    /// In a node of a graph read before: the index of that graph, of the node, and of the graph in
    /// the node.
    In(usize, usize, usize),
}

/// A node as the driver describes it.
struct ReadNode {
    raw: CUgraphNode,
    node_params: NodeParams,
    /// The graphs in the node: the embedded graph, or the bodies.
    graphs: SmallVec<[CUgraph; 2]>,
    /// The condition handle of a conditional node.
    condition: Option<u64>,
}

/// The subgraphs in nodes, by the indices of graph and node.
type Subgraphs = HashMap<(usize, usize), SmallVec<[SubgraphId; 2]>>;

impl GraphGuard<'_> {
    /// The index of the record of a raw node of the graph.
    ///
    /// # Errors
    /// [`InteropError::UnknownNode`], if other code added the node after the graph was read.
    #[inline]
    pub(crate) fn index(&mut self, raw: CUgraphNode) -> Result<Index> {
        self.index_in(self.subgraph(), raw)
    }

    /// [`index`](Self::index) for a graph of the hierarchy.
    #[inline]
    pub(crate) fn index_in(&mut self, subgraph: SubgraphId, raw: CUgraphNode) -> Result<Index> {
        let found = self.find(raw);
        let is_in = |index: &Index| self.at(*index).is_some_and(|record| record.within == subgraph);
        found.filter(is_in).ok_or(Error::Interop(InteropError::UnknownNode { raw: raw.addr() }))
    }

    /// Enters all nodes of a graph that has no records, and of the graphs embedded in it. On
    /// failure nothing has changed.
    pub(crate) fn read_graph(&mut self, subgraph: SubgraphId) -> Result<()> {
        let graphs = self.read_all(subgraph)?;
        self.enter_all(graphs)?;
        self.mark_read();
        Ok(())
    }

    /// Queries a graph and the graphs embedded in it, the outer before the inner.
    fn read_all(&self, subgraph: SubgraphId) -> Result<Vec<ReadGraph>> {
        let mut graphs: Vec<ReadGraph> = Vec::new();
        let mut waiting = vec![(Place::Known(subgraph), self.graph_at(subgraph)?)];
        while let Some((place, raw)) = waiting.pop() {
            let mut nodes = Vec::new();
            for raw in self.raw_nodes_of(raw)? {
                let node = self.read_node(raw)?;
                let inside = |inner| Place::In(graphs.len(), nodes.len(), inner);
                waiting.extend(node.graphs.iter().enumerate().map(|(inner, graph)| (inside(inner), *graph)));
                nodes.push(node);
            }
            graphs.push(ReadGraph { place, nodes, edges: self.raw_edges_of(raw)? });
        }
        Ok(graphs)
    }

    fn read_node(&self, raw: CUgraphNode) -> Result<ReadNode> {
        let node = |node_params| ReadNode { raw, node_params, graphs: SmallVec::new(), condition: None };
        let kind = self.raw_type(raw)?;
        match kind {
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH => {
                // The subgraph is set once it is entered.
                let mut node = node(NodeParams::Child { graph: SubgraphId::ROOT });
                node.graphs.push(self.raw_embedded(raw)?);
                Ok(node)
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL => {
                let read = self.read_conditional(raw)?;
                let Some((conditional_kind, condition, graphs)) = read.as_ref().and_then(conditional_of)
                else {
                    return Ok(node(NodeParams::Other { kind }));
                };
                // Source and bodies are set once the node is entered.
                let (source, bodies) = (ConditionSource::Foreign(0), Box::default());
                let conditional =
                    Conditional { kind: conditional_kind, source, control: None, bodies, default: None };
                let condition = Some(condition);
                Ok(ReadNode { graphs, condition, ..node(NodeParams::Conditional(conditional)) })
            }
            kind => Ok(node(self.read(kind, raw)?)),
        }
    }

    /// Enters the graphs. Makes no driver call.
    fn enter_all(&mut self, graphs: Vec<ReadGraph>) -> Result<()> {
        let subgraphs = self.enter_subgraphs(&graphs)?;
        for (number, graph) in graphs.into_iter().enumerate() {
            let subgraph = match graph.place {
                Place::Known(subgraph) => subgraph,
                Place::In(graph, node, inner) => {
                    let found = subgraphs.get(&(graph, node)).and_then(|inside| inside.get(inner));
                    found.copied().ok_or(Error::Node(NodeError::GraphRemoved))?
                }
            };
            self.reserve_many(subgraph, graph.nodes.len());
            let mut ids = Vec::with_capacity(graph.nodes.len());
            for (node, read) in graph.nodes.into_iter().enumerate() {
                let inside = subgraphs.get(&(number, node)).map_or(&[][..], SmallVec::as_slice);
                ids.push(self.enter_node(subgraph, read, inside));
            }
            self.put_in_order(&ids, &graph.edges);
        }
        Ok(())
    }

    /// Enters the embedded graphs and registers their raw values: all, or none if one of them was
    /// adopted alone.
    fn enter_subgraphs(&mut self, graphs: &[ReadGraph]) -> Result<Subgraphs> {
        let mut subgraphs = Subgraphs::new();
        for (number, graph) in graphs.iter().enumerate() {
            for (node, read) in graph.nodes.iter().enumerate().filter(|(_, node)| !node.graphs.is_empty()) {
                let inside = read.graphs.iter().map(|raw| self.embed(*raw, NodeId::NONE));
                subgraphs.insert((number, node), inside.collect());
            }
        }
        let new: Vec<SubgraphId> = subgraphs.values().flatten().copied().collect();
        match self.register_read(&new) {
            None => Ok(subgraphs),
            Some(alone) => {
                // They have no records and keep nothing yet.
                new.into_iter().for_each(|subgraph| drop(self.take_contents(subgraph)));
                Err(Error::Interop(InteropError::AdoptedAlone { raw: alone.addr() }))
            }
        }
    }

    /// Enters a node and assigns the graphs in it.
    fn enter_node(&mut self, subgraph: SubgraphId, node: ReadNode, inside: &[SubgraphId]) -> NodeId {
        let id = self.insert(subgraph, node.raw, node.node_params, Owners::new());
        match (node.condition, inside.first()) {
            (Some(condition), _) => self.enter_conditional(id, condition, inside),
            (None, Some(&inner)) => self.set_embedded_in(inner, id),
            (None, None) => {}
        }
        id
    }

    /// Enters the condition and assigns the bodies of a conditional node.
    fn enter_conditional(&mut self, id: NodeId, condition: u64, bodies: &[SubgraphId]) {
        let source = self.conditions.note_conditional(condition, id);
        let node_params = self.record_mut(id).map(|record| &mut record.node_params);
        if let Some(NodeParams::Conditional(conditional)) = node_params {
            conditional.source = source;
        }
        self.set_bodies_of(bodies.into(), id);
    }

    /// Assigns labels that grow along all edges; nodes of a cycle come last.
    fn put_in_order(&mut self, nodes: &[NodeId], edges: &[(CUgraphNode, CUgraphNode, EdgeKind)]) {
        let numbers: HashMap<Index, u32> = nodes.iter().map(|id| id.index).zip(0..).collect();
        let mut number = |raw| numbers.get(&self.find(raw)?).copied();
        let ends = edges.iter().filter_map(|&(from, to, _)| Some((number(from)?, number(to)?)));
        let ends: Vec<(u32, u32)> = ends.collect();
        let order = toposort::sort_cyclic(&Successors::new(nodes.len(), ends.iter().copied()));
        let mut labels: Vec<u64> = nodes.iter().filter_map(|id| Some(self.at(id.index)?.label)).collect();
        labels.sort_unstable();
        // Unrelated nodes may have had the same label.
        for at in 1..labels.len() {
            labels[at] = labels[at].max(labels[at - 1] + 1);
        }
        self.relabel(order.iter().map(|&node| nodes[node as usize].index).zip(labels).collect());
    }
}
