//! Rows for nodes that other code added, and none for those that it removed.

use std::collections::{BTreeSet, HashMap, HashSet};

use cuda_sys::{CUgraph, CUgraphNode, CUgraphNodeType};
use smallvec::SmallVec;

use crate::edge_kind::EdgeKind;
use crate::error::{Error, Result};
use crate::state::NodeRecord;
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::owners::Owners;
use crate::state::params::{ConditionSource, Conditional, NodeParams};
use crate::state::raw_params::conditional_of;
use crate::toposort::Index;

/// Of the graphs in nodes of a survey, by the numbers of graph and node.
type Places = HashMap<(usize, usize), SmallVec<[SubgraphId; 2]>>;

/// What the driver says of graphs: asked for as a whole before anything is changed here.
struct Survey {
    /// Whether what is known was asked for as well.
    whole: bool,
    /// The outer before the inner.
    graphs: Vec<Surveyed>,
}

struct Surveyed {
    graph: Whereabouts,
    nodes: Vec<Met>,
    edges: Vec<(CUgraphNode, CUgraphNode, EdgeKind)>,
}

/// Where a graph is.
#[derive(Clone, Copy)]
enum Whereabouts {
    Known(SubgraphId),
    /// In a node of a graph of the survey, by the numbers of graph, node, and of the graph in the
    /// node; it gets its place with that.
    In(usize, usize, usize),
}

/// A node that is there.
struct Met {
    raw: CUgraphNode,
    /// Its row, or else what it does.
    record: Result<NodeId, NodeParams>,
    /// The graphs that are in it, if they have no places yet: the embedded one, or the bodies.
    graphs: SmallVec<[CUgraph; 2]>,
    /// The handle of the condition that a new conditional node goes by.
    condition: Option<u64>,
}

impl Met {
    fn known(raw: CUgraphNode, id: NodeId) -> Self {
        Self { raw, record: Ok(id), graphs: SmallVec::new(), condition: None }
    }

    fn new(raw: CUgraphNode, node_params: NodeParams) -> Self {
        Self { raw, record: Err(node_params), graphs: SmallVec::new(), condition: None }
    }
}

impl GraphGuard<'_> {
    /// Where the row of a raw node of the graph is. If other code added it, it gets one now, like
    /// all others that have none.
    #[inline]
    pub(crate) fn index(&mut self, raw: CUgraphNode) -> Result<Index> {
        self.index_in(self.subgraph(), raw)
    }

    /// [`index`](Self::index) for a graph of the hierarchy.
    #[inline]
    pub(crate) fn index_in(&mut self, subgraph: SubgraphId, raw: CUgraphNode) -> Result<Index> {
        match self.find(raw) {
            Some(index) if self.is_in(index, subgraph) => Ok(index),
            _ => self.adopted(subgraph, raw),
        }
    }

    /// Whether a row is of a node of this graph: one that other code removed may have had the
    /// address in another one.
    #[inline]
    fn is_in(&self, index: Index, subgraph: SubgraphId) -> bool {
        self.at(index).is_some_and(|record| record.within == subgraph)
    }

    #[cold]
    fn adopted(&mut self, subgraph: SubgraphId, raw: CUgraphNode) -> Result<Index> {
        self.adopt(subgraph)?;
        self.find(raw).ok_or(Error::UnknownNode { raw: raw.addr() })
    }

    /// Gives rows to the nodes of a graph, and of those embedded in it, that have none, and an
    /// order to all of them that their edges go along. If that fails, nothing has changed.
    pub(crate) fn adopt(&mut self, subgraph: SubgraphId) -> Result<()> {
        let survey = self.survey(subgraph, false)?;
        self.enter_survey(survey)
    }

    /// [`adopt`](Self::adopt) that also takes out the rows of nodes that other code removed, or put
    /// others in place of, or gave other kernels.
    pub(crate) fn renew(&mut self, subgraph: SubgraphId) -> Result<()> {
        let survey = self.survey(subgraph, true)?;
        self.enter_survey(survey)
    }

    /// Gives rows to nodes of the graph that are not known, if there are any: other code may have
    /// added some.
    pub(crate) fn meet(&mut self) -> Result<()> {
        let is_read = !self.may_be_unread || self.records().all(|(id, _)| !self.is_unread(id.index));
        let is_known = !self.is_shared() && is_read;
        let mut subgraphs = if is_known { Vec::new() } else { vec![self.subgraph()] };
        while let Some(subgraph) = subgraphs.pop() {
            for raw in self.raw_nodes_of(self.graph_at(subgraph)?)? {
                match self.find(raw) {
                    Some(index) if self.is_in(index, subgraph) && !self.is_unread(index) => {
                        let record = self.at(index).into_iter();
                        subgraphs
                            .extend(record.flat_map(|record| record.node_params.inside().iter().copied()));
                    }
                    _ => return self.adopt(self.subgraph()),
                }
            }
        }
        Ok(())
    }

    /// Whether the driver has not told yet what graph is in a node.
    pub(crate) fn is_unread(&self, index: Index) -> bool {
        let subgraph = self.at(index).and_then(|record| record.node_params.embedded());
        subgraph.is_some_and(|subgraph| self.embedded(subgraph).is_none())
    }

    /// The graph embedded in a child graph node; `None` if it is no such node. If the driver has
    /// not told what is in there, it is asked again.
    pub(crate) fn inside(&mut self, node: NodeId) -> Result<Option<SubgraphId>> {
        if self.is_unread(node.index)
            && let Some(within) = self.record(node).map(|record| record.within)
        {
            self.adopt(within)?;
        }
        Ok(self.record(node).and_then(|record| record.node_params.embedded()))
    }

    fn survey(&mut self, subgraph: SubgraphId, whole: bool) -> Result<Survey> {
        let mut survey = Survey { whole, graphs: Vec::new() };
        let mut waiting = vec![(Whereabouts::Known(subgraph), self.graph_at(subgraph)?)];
        while let Some((at, raw)) = waiting.pop() {
            let mut nodes = Vec::new();
            for raw in self.raw_nodes_of(raw)? {
                let met = self.met(at, raw, whole)?;
                if !met.graphs.is_empty() {
                    let at = |inner| Whereabouts::In(survey.graphs.len(), nodes.len(), inner);
                    waiting.extend(met.graphs.iter().enumerate().map(|(inner, graph)| (at(inner), *graph)));
                } else if let Some(record) = met.record.as_ref().ok().and_then(|id| self.record(*id)) {
                    for &inner in record.node_params.inside() {
                        waiting.push((Whereabouts::Known(inner), self.graph_at(inner)?));
                    }
                }
                nodes.push(met);
            }
            survey.graphs.push(Surveyed { graph: at, nodes, edges: self.raw_edges_of(raw)? });
        }
        Ok(survey)
    }

    /// A node that is in a graph. A row with its address is of another one that is gone, if it is
    /// of another graph or type.
    fn met(&mut self, at: Whereabouts, raw: CUgraphNode, whole: bool) -> Result<Met> {
        let found = self.find(raw);
        let found = found.and_then(|index| Some((self.id(index)?, self.at(index)?)));
        let here = found
            .filter(|(_, record)| matches!(at, Whereabouts::Known(subgraph) if subgraph == record.within));
        let Some((id, record)) = here else { return self.new_node(raw, self.raw_type(raw)?) };
        let subgraph = record.node_params.embedded();
        if whole {
            let (kind, before) = (self.raw_type(raw)?, record.node_params.raw_kind());
            if kind != before || !self.is_kernel_of(record, raw)? || !self.is_conditional_of(record, raw)? {
                return self.new_node(raw, kind);
            }
        }
        let mut met = Met::known(raw, id);
        if let Some(subgraph) = subgraph {
            let before = self.embedded(subgraph).map(|graph| graph.raw.0);
            let graph = if whole || before.is_none() { Some(self.raw_embedded(raw)?) } else { None };
            met.graphs.extend(graph.filter(|graph| Some(*graph) != before));
        }
        Ok(met)
    }

    /// Whether the driver's node has the bodies that its row has, if that is of a conditional node:
    /// other code may have put another one in its place, be it one that goes by a condition of this
    /// library's.
    fn is_conditional_of(&self, record: &NodeRecord, raw: CUgraphNode) -> Result<bool> {
        let NodeParams::Conditional(Conditional {
            by: ConditionSource::Foreign(_) | ConditionSource::Condition(_),
            bodies,
            ..
        }) = &record.node_params
        else {
            return Ok(true);
        };
        let Some((.., found)) = self.read_conditional(raw)?.as_ref().and_then(conditional_of) else {
            return Ok(true);
        };
        Ok(bodies
            .iter()
            .map(|subgraph| self.embedded(*subgraph).map(|graph| graph.raw.0))
            .eq(found.into_iter().map(Some)))
    }

    /// Whether the driver's node has the kernel that its row has, if that has one: with another
    /// one, what is known of its launch is of no use.
    fn is_kernel_of(&self, record: &NodeRecord, raw: CUgraphNode) -> Result<bool> {
        let NodeParams::Kernel { kernel, .. } = &record.node_params else { return Ok(true) };
        Ok(self.kernel_params(raw)?.kern == kernel.as_raw())
    }

    fn new_node(&self, raw: CUgraphNode, kind: CUgraphNodeType) -> Result<Met> {
        Ok(match kind {
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH => {
                let mut met = Met::new(raw, NodeParams::Child { graph: SubgraphId::UNREAD });
                met.graphs.push(self.raw_embedded(raw)?);
                met
            }
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL => {
                let Some((class, condition, graphs)) =
                    self.read_conditional(raw)?.as_ref().and_then(conditional_of)
                else {
                    return Ok(Met::new(raw, NodeParams::Other { kind }));
                };
                // Its number is known, and the places of its bodies, when it is entered.
                let (by, ready, bodies, default) = (ConditionSource::Foreign(0), None, Box::default(), None);
                let node_params = NodeParams::Conditional(Conditional { class, by, ready, bodies, default });
                Met { graphs, condition: Some(condition), ..Met::new(raw, node_params) }
            }
            _ => Met::new(raw, self.read(kind, raw)?),
        })
    }

    /// Enters what was found. No driver calls.
    fn enter_survey(&mut self, survey: Survey) -> Result<()> {
        let subgraphs = self.give_places(&survey)?;
        for (number, graph) in survey.graphs.into_iter().enumerate() {
            let subgraph = match graph.graph {
                Whereabouts::Known(subgraph) => subgraph,
                Whereabouts::In(graph, node, inner) => {
                    let subgraphs = subgraphs.get(&(graph, node)).and_then(|subgraphs| subgraphs.get(inner));
                    subgraphs.copied().ok_or(Error::GraphRemoved)?
                }
            };
            if survey.whole {
                self.lose_others(subgraph, &graph.nodes);
            }
            self.reserve_many(subgraph, graph.nodes.len());
            let mut ids = Vec::with_capacity(graph.nodes.len());
            for (node, met) in graph.nodes.into_iter().enumerate() {
                let inside = subgraphs.get(&(number, node)).map_or(&[][..], SmallVec::as_slice);
                ids.push(self.enter_node(subgraph, met, inside));
            }
            self.put_in_order(&ids, &graph.edges);
        }
        Ok(())
    }

    /// Gives places to the graphs that have none, and lets them be found by their raw values: all
    /// or, if one was adopted by itself, none.
    fn give_places(&mut self, survey: &Survey) -> Result<Places> {
        let mut subgraphs = Places::new();
        for (number, graph) in survey.graphs.iter().enumerate() {
            for (node, met) in graph.nodes.iter().enumerate() {
                if !met.graphs.is_empty() {
                    let inside = met.graphs.iter().map(|raw| self.embed(*raw, NodeId::NONE));
                    subgraphs.insert((number, node), inside.collect());
                }
            }
        }
        let new: Vec<SubgraphId> = subgraphs.values().flatten().copied().collect();
        match self.share_met(&new) {
            None => Ok(subgraphs),
            Some(alone) => {
                // They have no rows and keep nothing yet.
                new.into_iter().for_each(|subgraph| drop(self.take_inside(subgraph)));
                Err(Error::AdoptedAlone { raw: alone.addr() })
            }
        }
    }

    /// Takes out the rows of a graph that are of none of these nodes.
    fn lose_others(&mut self, subgraph: SubgraphId, nodes: &[Met]) {
        let there: HashSet<NodeId> =
            nodes.iter().filter_map(|node| node.record.as_ref().ok().copied()).collect();
        for id in self.records_within(subgraph) {
            if !there.contains(&id) {
                self.lose(id);
            }
        }
    }

    /// Enters a node with the graphs in it, if these are new.
    fn enter_node(&mut self, subgraph: SubgraphId, node: Met, inside: &[SubgraphId]) -> NodeId {
        let id = match node.record {
            Ok(id) => id,
            Err(node_params) => {
                self.lose_stale(node.raw);
                self.insert(subgraph, node.raw, node_params, Owners::new())
            }
        };
        if let Some(condition) = node.condition {
            self.enter_conditional(id, condition, inside);
        } else if let Some(&inner) = inside.first() {
            if let Some(before) = self.record(id).and_then(|record| record.node_params.embedded()) {
                self.lose_inside(before);
            }
            self.put_in(inner, id);
        }
        id
    }

    /// Enters what a new conditional node goes by, and its bodies.
    fn enter_conditional(&mut self, id: NodeId, condition: u64, bodies: &[SubgraphId]) {
        let met = self.conditions.meet(condition, id);
        if let Some(NodeParams::Conditional(conditional)) =
            self.record_mut(id).map(|record| &mut record.node_params)
        {
            conditional.by = met;
        }
        self.put_bodies_in(bodies.into(), id);
    }

    /// Gives labels that all edges go along; nodes of a cycle come last.
    fn put_in_order(&mut self, nodes: &[NodeId], edges: &[(CUgraphNode, CUgraphNode, EdgeKind)]) {
        let nodes: Vec<Index> = nodes.iter().map(|id| id.index).collect();
        let ends = edges.iter().filter_map(|&(from, to, _)| Some((self.find(from)?, self.find(to)?)));
        let ends: Vec<(Index, Index)> = ends.collect();
        let mut labels: Vec<u64> = nodes.iter().filter_map(|&index| Some(self.at(index)?.label)).collect();
        labels.sort_unstable();
        // Nodes without a way between them may have had the same.
        for subgraph in 1..labels.len() {
            labels[subgraph] = labels[subgraph].max(labels[subgraph - 1] + 1);
        }
        self.relabel(in_order(&nodes, &ends).into_iter().zip(labels).collect());
    }
}

/// The nodes, each after those that an edge leads from, else in their own order.
fn in_order(nodes: &[Index], edges: &[(Index, Index)]) -> Vec<Index> {
    let subgraph: HashMap<Index, usize> =
        nodes.iter().enumerate().map(|(subgraph, node)| (*node, subgraph)).collect();
    let mut after: Vec<Vec<usize>> = vec![Vec::new(); nodes.len()];
    let mut waits_for = vec![0_usize; nodes.len()];
    for (from, to) in edges {
        if let (Some(&from), Some(&to)) = (subgraph.get(from), subgraph.get(to)) {
            after[from].push(to);
            waits_for[to] += 1;
        }
    }
    let mut ready: BTreeSet<usize> = (0..nodes.len()).filter(|&node| waits_for[node] == 0).collect();
    let mut order = Vec::with_capacity(nodes.len());
    let mut done = vec![false; nodes.len()];
    while let Some(node) = ready.pop_first() {
        order.push(nodes[node]);
        done[node] = true;
        for &next in &after[node] {
            waits_for[next] -= 1;
            if waits_for[next] == 0 {
                ready.insert(next);
            }
        }
    }
    order.extend((0..nodes.len()).filter(|&node| !done[node]).map(|node| nodes[node]));
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_are_put_in_order() {
        assert_eq!(in_order(&[3, 5, 7], &[]), [3, 5, 7]);
        assert_eq!(in_order(&[3, 5, 7], &[(7, 3), (3, 5)]), [7, 3, 5]);
        assert_eq!(in_order(&[3, 5, 7, 9], &[(5, 7), (7, 5), (9, 3)]), [9, 3, 5, 7]);
    }
}
