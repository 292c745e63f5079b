//! Inserting a node, and replacing the payload of one.

use crate::graph::edit::remove;
use crate::graph::model::node_limits;
use std::collections::HashSet;

use crate::driver::result_code::{Answer, INVALID_VALUE};
use crate::graph::edit::remove::Removed;
use crate::graph::model::edge::Edge;
use crate::graph::model::graphs::{Graphs, new_uid};
use crate::graph::model::node::Node;
use crate::graph::model::ordered_map::OrderedMap;
use crate::graph::model::payload::Payload;

/// Checks dependencies: nodes of the graph, without duplicates.
pub(crate) fn check_dependencies(graphs: &Graphs, graph: u64, dependencies: &[(u64, Edge)]) -> Answer {
    graphs.graph(graph)?;
    let mut seen = HashSet::new();
    for (dependency, _) in dependencies {
        let is_new = dependencies.len() == 1 || seen.insert(*dependency);
        if graphs.node(*dependency)?.graph != graph || !is_new {
            return Err(INVALID_VALUE);
        }
    }
    Ok(())
}

/// Adds a node whose dependencies have been checked.
pub(crate) fn insert(
    graphs: &mut Graphs,
    graph: u64,
    dependencies: &[(u64, Edge)],
    payload: Payload,
) -> Answer<u64> {
    let uid = new_uid();
    let limiting = node_limits::of_payload(graphs, &payload);
    let own = graphs.graph_mut(graph)?;
    let local = own.next_local;
    own.next_local += 1;
    let handle = graphs.insert_node(Node {
        uid,
        local,
        graph,
        payload,
        block: None,
        added_after: dependencies.iter().map(|(node, _)| *node).collect(),
        dependencies: dependencies.iter().copied().collect(),
        dependents: OrderedMap::default(),
    });
    graphs.graph_mut(graph)?.order.insert(local, handle);
    node_limits::count_in(graphs, graph, limiting);
    for (dependency, edge) in dependencies {
        graphs.node_mut(*dependency)?.dependents.push(handle, *edge);
    }
    Ok(handle)
}

/// Replaces the payload of a node. What it replaces must be dropped without the lock.
pub(crate) fn replace(graphs: &mut Graphs, handle: u64, payload: Payload) -> Answer<Removed> {
    let (old, new) = (
        node_limits::of_payload(graphs, &graphs.node(handle)?.payload),
        node_limits::of_payload(graphs, &payload),
    );
    let node = graphs.node_mut(handle)?;
    let graph = node.graph;
    let replaced = std::mem::replace(&mut node.payload, payload);
    if let (Some(spec), Some(block)) = (node.payload.kernel(), node.block.take()) {
        node.block = Some(block.renewed(spec));
    }
    node_limits::count_out(graphs, graph, old);
    node_limits::count_in(graphs, graph, new);
    let mut leftovers = Removed::default();
    let inside = remove::end_payload(replaced, &mut leftovers);
    remove::remove_graphs(graphs, inside, &mut leftovers);
    Ok(leftovers)
}
