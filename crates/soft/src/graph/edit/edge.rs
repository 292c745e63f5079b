//! Edges: checking, adding and removing them.

use crate::graph::model::node_limits;
use cuda_sys::{CUgraphEdgeData, CUgraphNodeType};

use crate::driver::result_code::{Answer, INVALID_VALUE, NOT_SUPPORTED};
use crate::graph::model::edge::Edge;
use crate::graph::model::graphs::Graphs;

/// Parses edge data; `None` is a plain edge.
pub(crate) fn parse(raw: Option<&CUgraphEdgeData>) -> Answer<Edge> {
    let Some(raw) = raw else { return Ok(Edge::default()) };
    if raw.to_port != 0 || raw.reserved != [0; 5] {
        return Err(INVALID_VALUE);
    }
    match (raw.from_port, raw.type_) {
        (0, 0) | (1, 1) | (2, 0 | 1) => Ok(Edge { from_port: raw.from_port, kind: raw.type_ }),
        _ => Err(INVALID_VALUE),
    }
}

/// Edges with data connect kernels only.
pub(crate) fn check_kinds(edge: Edge, from: CUgraphNodeType, to: CUgraphNodeType) -> Answer {
    let kernel = CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL;
    if edge.is_plain() || (from == kernel && to == kernel) { Ok(()) } else { Err(INVALID_VALUE) }
}

/// Adds one edge.
pub(crate) fn add_edge(graphs: &mut Graphs, graph: u64, from: u64, to: u64, edge: Edge) -> Answer {
    let (source, target) = (graphs.node(from)?, graphs.node(to)?);
    if source.graph != graph || target.graph != graph || from == to {
        return Err(INVALID_VALUE);
    }
    if target.dependencies.contains(from) {
        return Err(INVALID_VALUE);
    }
    check_kinds(edge, source.payload.kind(), target.payload.kind())?;
    graphs.node_mut(to)?.dependencies.push(from, edge);
    graphs.node_mut(from)?.dependents.push(to, edge);
    Ok(())
}

/// Removes one edge, whatever its data.
pub(crate) fn remove_edge(graphs: &mut Graphs, graph: u64, from: u64, to: u64) -> Answer {
    let (source, target) = (graphs.node(from)?, graphs.node(to)?);
    if source.graph != graph || target.graph != graph {
        return Err(INVALID_VALUE);
    }
    if !target.dependencies.contains(from) {
        return Err(INVALID_VALUE);
    }
    if node_limits::holds_memory_nodes(graphs, graph) {
        return Err(NOT_SUPPORTED);
    }
    graphs.node_mut(to)?.dependencies.remove(from);
    graphs.node_mut(from)?.dependents.remove(to);
    Ok(())
}

/// All edges of a graph.
pub(crate) fn edges(graphs: &Graphs, graph: u64) -> Answer<Vec<(u64, u64, Edge)>> {
    let mut edges = Vec::new();
    for to in graphs.nodes_of(graph)? {
        edges.extend(graphs.node(to)?.dependencies.iter().map(|(from, edge)| (from, to, edge)));
    }
    Ok(edges)
}
