//! Snapshots: copies of the records of a graph and its embedded graphs, for the driver's clone of
//! it.

use std::collections::HashMap;

use cuda_handles::Owner;
use cuda_handles::internal::graph_memory;
use cuda_sys::{CUgraph, CUgraphNode, CUgraphNodeType, Call};

use crate::error::{ConditionError, Error, InteropError, MemoryError, Result};
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::lineage::Lineage;
use crate::state::owners::Owners;
use crate::state::params::NodeParams;
use crate::state::{GraphState, SubgraphFacts};

/// A snapshot of a graph and the graphs embedded in it.
pub(crate) struct GraphSnapshot {
    /// The number of the hierarchy that they were copied from.
    source: u64,
    /// Outer graphs before inner ones; the first is the graph itself.
    graphs: Vec<SubgraphSnapshot>,
}

struct SubgraphSnapshot {
    raw: CUgraph,
    facts: SubgraphFacts,
    nodes: Vec<CopiedNode>,
}

struct CopiedNode {
    raw: CUgraphNode,
    id: NodeId,
    label: u64,
    node_params: NodeParams,
    owners: Owners,
    kept: Vec<Owner>,
    name: Option<Box<str>>,
    /// The index of the graph that is embedded in the node.
    inner: Option<usize>,
}

/// The driver's objects for a snapshot: each graph with its nodes, in the order of the snapshot.
pub(crate) struct CloneMap(Vec<(CUgraph, Vec<CUgraphNode>)>);

impl GraphGuard<'_> {
    /// Takes a snapshot of a graph of the hierarchy.
    pub(crate) fn copy(&mut self, subgraph: SubgraphId) -> Result<GraphSnapshot> {
        if subgraph.is_root() && !self.conditions.is_empty() {
            return Err(Error::Condition(ConditionError::HasConditions {
                what: "cloned, embedded or moved",
            }));
        }
        let mut subgraphs = vec![subgraph];
        let mut graphs = Vec::new();
        while let Some(&subgraph) = subgraphs.get(graphs.len()) {
            let raw = self.graph_at(subgraph)?;
            let mut facts = self.facts(subgraph).cloned().unwrap_or_default();
            if !self.moved.is_empty() {
                facts.lineage = facts.lineage.within(subgraph, &self.moved);
            }
            if graphs.is_empty() {
                facts.kept.extend_from_slice(self.given());
            }
            let mut nodes = Vec::new();
            let raws = self.raw_nodes_of(raw)?;
            for raw in raws {
                let index = self.index_in(subgraph, raw)?;
                let (Some(id), Some(record)) = (self.id(index), self.at(index)) else {
                    return Err(Error::Interop(InteropError::UnknownNode { raw: raw.addr() }));
                };
                if record.node_params.is_conditional() {
                    return Err(Error::Condition(ConditionError::HasConditions {
                        what: "cloned, embedded or moved",
                    }));
                }
                let inner = record.node_params.embedded().map(|inner| {
                    subgraphs.push(inner);
                    subgraphs.len() - 1
                });
                nodes.push(CopiedNode {
                    raw,
                    id,
                    label: record.label,
                    node_params: record.node_params.clone(),
                    owners: self.used_by(record).cloned().collect(),
                    kept: record.owners.kept().to_vec(),
                    name: record.name.clone(),
                    inner,
                });
            }
            graphs.push(SubgraphSnapshot { raw, facts, nodes });
        }
        Ok(GraphSnapshot { source: self.number(), graphs })
    }

    /// Finds the driver's objects in `clone`, the driver's clone of the graph in the snapshot.
    ///
    /// Calls `cuGraphGetNodes` for each graph and `cuGraphChildGraphNodeGetGraph` for each embedded
    /// graph (CUDA 10.0).
    pub(crate) fn pair(&self, snapshot: &GraphSnapshot, clone: CUgraph) -> Result<CloneMap> {
        let mut raws = vec![core::ptr::null_mut(); snapshot.graphs.len()];
        raws[0] = clone;
        let mut clone_map = Vec::with_capacity(raws.len());
        for (index, graph) in snapshot.graphs.iter().enumerate() {
            let clone = raws[index];
            let nodes = self.pair_one(graph, clone)?;
            for (node, &raw) in graph.nodes.iter().zip(&nodes) {
                if let Some(inner) = node.inner {
                    raws[inner] = self.raw_embedded(raw)?;
                }
            }
            clone_map.push((clone, nodes));
        }
        Ok(CloneMap(clone_map))
    }

    /// The nodes of the clone of one graph. The driver lists the nodes of a clone in the order of
    /// the original's. `cuGraphNodeFindInClone` is not called: it crashes if an original was
    /// destroyed, and a source may itself be a clone of any graph.
    fn pair_one(&self, graph: &SubgraphSnapshot, clone: CUgraph) -> Result<Vec<CUgraphNode>> {
        let nodes = self.raw_nodes_of(clone)?;
        if nodes.len() != graph.nodes.len() {
            return Err(Error::Interop(InteropError::UnknownNode {
                raw: nodes.last().map_or(0, |node| node.addr()),
            }));
        }
        Ok(nodes)
    }

    /// The type of a live node.
    pub(crate) fn raw_type(&self, node: CUgraphNode) -> Result<CUgraphNodeType> {
        let mut kind = CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY;
        // SAFETY: the node is live and the out pointer valid.
        let result = unsafe { self.driver().cuGraphNodeGetType(node, &raw mut kind) };
        self.answer(Call::cuGraphNodeGetType, result)?;
        Ok(kind)
    }

    /// The graph embedded in a live child graph node.
    pub(crate) fn raw_embedded(&self, node: CUgraphNode) -> Result<CUgraph> {
        let mut graph = core::ptr::null_mut();
        // SAFETY: the node is live and the out pointer valid.
        let result = unsafe { self.driver().cuGraphChildGraphNodeGetGraph(node, &raw mut graph) };
        self.answer(Call::cuGraphChildGraphNodeGetGraph, result)?;
        Ok(graph)
    }
}

impl GraphSnapshot {
    /// The driver's objects of the original, for a graph that is moved.
    pub(crate) fn themselves(&self) -> CloneMap {
        let graph = |graph: &SubgraphSnapshot| (graph.raw, graph.nodes.iter().map(|node| node.raw).collect());
        CloneMap(self.graphs.iter().map(graph).collect())
    }

    /// Refuses memory nodes, and nodes that use their memory: no driver clones them.
    pub(crate) fn ensure_without_memory(&self) -> Result<()> {
        let is_memory = |node_params: &NodeParams| {
            matches!(node_params, NodeParams::Alloc { .. } | NodeParams::Free { .. })
        };
        let of_graph = |owner: &Owner| matches!(owner, Owner::Allocation(memory) if memory.graph().is_some());
        let mut nodes = self.graphs.iter().flat_map(|graph| &graph.nodes);
        match nodes
            .any(|node| is_memory(&node.node_params) || node.owners.iter().chain(&node.kept).any(of_graph))
        {
            true => Err(Error::Memory(MemoryError::HasMemory)),
            false => Ok(()),
        }
    }

    /// Hands the memory of the allocation nodes over to another hierarchy.
    pub(crate) fn let_memory_belong_to(&self, hierarchy: u64) {
        for node_params in self.node_params() {
            if let NodeParams::Alloc { memory, .. } = node_params {
                // SAFETY: the allocation node is in that hierarchy.
                unsafe { graph_memory::moved(memory, hierarchy) };
            }
        }
    }

    /// Whether the graph has embedded graphs.
    pub(crate) fn holds_children(&self) -> bool {
        self.graphs.len() > 1
    }

    /// The parameters of all nodes.
    pub(crate) fn node_params(&self) -> impl Iterator<Item = &NodeParams> {
        self.graphs.iter().flat_map(|graph| graph.nodes.iter().map(|node| &node.node_params))
    }

    /// The number of nodes in all graphs.
    pub(crate) fn len(&self) -> usize {
        self.graphs.iter().map(|graph| graph.nodes.len()).sum()
    }

    /// Everything that the graphs keep alive.
    pub(crate) fn into_owners(self) -> Owners {
        let mut owners = Owners::new();
        for graph in self.graphs {
            owners.extend(graph.facts.kept);
            for node in graph.nodes {
                owners.extend(node.node_params.owner());
                owners.extend(node.owners);
                owners.extend(node.kept);
            }
        }
        owners
    }
}

impl CloneMap {
    /// The clone itself.
    pub(crate) fn graph(&self) -> CUgraph {
        self.0.first().map_or(core::ptr::null_mut(), |(raw, _)| *raw)
    }
}

impl GraphState {
    /// Enters a snapshot at a subgraph without records, and returns the subgraphs of its graphs. A
    /// `moved` graph stays the same graph and keeps what was lent of it; a clone is a new graph.
    pub(crate) fn paste(
        &mut self,
        snapshot: GraphSnapshot,
        clone_map: &CloneMap,
        subgraph: SubgraphId,
        moved: bool,
    ) -> Vec<SubgraphId> {
        let mut subgraphs = vec![SubgraphId::ROOT; snapshot.graphs.len()];
        subgraphs[0] = subgraph;
        let mut highest = 0;
        for (index, (graph, (_, raws))) in snapshot.graphs.into_iter().zip(&clone_map.0).enumerate() {
            let subgraph = subgraphs[index];
            let mut lineage = HashMap::with_capacity(graph.nodes.len());
            self.reserve_many(subgraph, graph.nodes.len());
            for (node, &raw) in graph.nodes.into_iter().zip(raws) {
                let id = self.insert(subgraph, raw, node.node_params, node.owners);
                lineage.insert(node.id, id);
                highest = highest.max(node.label);
                let inner = node.inner.and_then(|inner| Some((inner, clone_map.0.get(inner)?.0)));
                let inner = inner.map(|(inner, raw)| {
                    subgraphs[inner] = self.embed(raw, id);
                    subgraphs[inner]
                });
                if let Some(record) = self.record_mut(id) {
                    record.label = node.label;
                    record.name = node.name;
                    if let Some(inner) = inner {
                        record.node_params.set_embedded(inner);
                    }
                }
                for owner in &node.kept {
                    self.keep_with(id, owner);
                }
            }
            let lineage = Lineage::new(snapshot.source, lineage, &graph.facts.lineage);
            self.set_facts(
                subgraph,
                SubgraphFacts { kept: graph.facts.kept, lineage, lent: graph.facts.lent.filter(|_| moved) },
            );
        }
        self.continue_after(highest);
        subgraphs
    }
}
