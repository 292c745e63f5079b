//! Child nodes: graphs cloned or moved into others.

use crate::driver::abort::crash;
use crate::driver::result_code::{Answer, INVALID_VALUE, NOT_SUPPORTED};
use crate::graph::edit::clone;
use crate::graph::edit::insert;
use crate::graph::edit::remove::Removed;
use crate::graph::model::edge::Edge;
use crate::graph::model::graph::Owner;
use crate::graph::model::graphs::Graphs;
use crate::graph::model::hierarchy;
use crate::graph::model::node_limits;
use crate::graph::model::payload::Payload;

/// Adds a child node.
pub(crate) fn add_child(
    graphs: &mut Graphs,
    graph: u64,
    dependencies: &[(u64, Edge)],
    child: u64,
    by_move: bool,
) -> Answer<u64> {
    let embedded = embed(graphs, graph, child, by_move)?;
    let node = insert::insert(graphs, graph, dependencies, Payload::Child(embedded))?;
    graphs.graph_mut(embedded)?.owner = Owner::Child { node, moved: by_move };
    Ok(node)
}

/// Replaces the graph of a child node. The old graph is destroyed.
pub(crate) fn replace_child(graphs: &mut Graphs, node: u64, child: u64, by_move: bool) -> Answer<Removed> {
    let own = graphs.node(node)?;
    if !matches!(own.payload, Payload::Child(_)) {
        return Err(INVALID_VALUE);
    }
    let graph = own.graph;
    // Nodes of such graphs cannot be destroyed either.
    if node_limits::holds_memory_nodes(graphs, graph) {
        return Err(NOT_SUPPORTED);
    }
    let embedded = embed(graphs, graph, child, by_move)?;
    let leftovers = insert::replace(graphs, node, Payload::Child(embedded))?;
    graphs.graph_mut(embedded)?.owner = Owner::Child { node, moved: by_move };
    Ok(leftovers)
}

/// The graph for a child node in `graph`: a clone, or the child itself.
fn embed(graphs: &mut Graphs, graph: u64, child: u64, by_move: bool) -> Answer<u64> {
    graphs.graph(graph)?;
    let owner = graphs.graph(child)?.owner;
    if hierarchy::is_inside(graphs, graph, child) {
        if !by_move {
            crash("a graph is embedded in itself or in a part of itself");
        }
        if owner != Owner::User {
            return Err(NOT_SUPPORTED);
        }
        // The driver accepts it, and the graph is lost. An empty graph takes its place in the node,
        // so that the hierarchy stays a tree.
        graphs.graph_mut(child)?.is_lost = true;
        return Ok(graphs.create(Owner::User));
    }
    match owner {
        Owner::Body { .. } | Owner::Child { .. } => return Err(NOT_SUPPORTED),
        Owner::User => {}
    }
    if node_limits::holds_conditionals(graphs, child) {
        return Err(NOT_SUPPORTED);
    }
    if !by_move {
        return if node_limits::is_unique(graphs, child) {
            Err(NOT_SUPPORTED)
        } else {
            clone::duplicate(graphs, child, Owner::User)
        };
    }
    if graphs.graph(child)?.live_execs > 0 && node_limits::is_unique(graphs, child) {
        return Err(NOT_SUPPORTED);
    }
    Ok(child)
}
