//! Removing nodes and graphs, with everything in them.

use crate::graph::model::graphs::Graphs;
use crate::graph::model::node_limits;
use crate::graph::model::ordered_map::OrderedMap;
use crate::graph::model::payload::Payload;
use crate::graph::model::task::Task;
use crate::stream::callback::Callback;

/// Removes a node with its edges and everything in it.
pub(crate) fn remove_node(graphs: &mut Graphs, handle: u64) -> Removed {
    let mut leftovers = Removed::default();
    if let Ok(node) = graphs.node(handle) {
        let (graph, counted) = (node.graph, node_limits::of_payload(graphs, &node.payload));
        node_limits::count_out(graphs, graph, counted);
    }
    let inside = detach_node(graphs, handle, &mut leftovers);
    remove_graphs(graphs, inside, &mut leftovers);
    leftovers
}

/// Removes a node with its edges. It is not counted any more. Returns the graphs inside it for the
/// caller to remove.
fn detach_node(graphs: &mut Graphs, handle: u64, leftovers: &mut Removed) -> Vec<u64> {
    let Some(node) = graphs.take_node(handle) else { return Vec::new() };
    for dependency in node.dependencies.keys() {
        if let Ok(dependency) = graphs.node_mut(dependency) {
            dependency.dependents.remove(handle);
        }
    }
    for dependent in node.dependents.keys() {
        if let Ok(dependent) = graphs.node_mut(dependent) {
            dependent.dependencies.remove(handle);
        }
    }
    if let Ok(graph) = graphs.graph_mut(node.graph) {
        graph.order.remove(&node.local);
    }
    end_payload(node.payload, leftovers)
}

/// Takes a payload apart. Returns the graphs inside it for the caller to remove.
pub(super) fn end_payload(payload: Payload, leftovers: &mut Removed) -> Vec<u64> {
    match payload {
        Payload::Child(child) => vec![child],
        Payload::Conditional(conditional) => conditional.bodies.into_vec(),
        Payload::Task(task) => {
            leftovers.tasks.push(task);
            Vec::new()
        }
    }
}

/// Removes a graph with everything in it.
pub(crate) fn remove_graph(graphs: &mut Graphs, handle: u64) -> Removed {
    let mut leftovers = Removed::default();
    remove_graphs(graphs, vec![handle], &mut leftovers);
    leftovers
}

/// Removes graphs with everything in them. Iterative, since graphs may be nested deeper than the
/// stack allows.
pub(super) fn remove_graphs(graphs: &mut Graphs, mut waiting: Vec<u64>, leftovers: &mut Removed) {
    while let Some(graph) = waiting.pop() {
        waiting.extend(detach_graph(graphs, graph, leftovers));
    }
}

/// Removes a graph. Returns the graphs inside its nodes for the caller to remove.
fn detach_graph(graphs: &mut Graphs, handle: u64, leftovers: &mut Removed) -> Vec<u64> {
    let mut inside = Vec::new();
    let nodes = graphs.nodes_of(handle).unwrap_or_default();
    // All edges go with the nodes, so none has to be removed at its other end.
    for node in &nodes {
        if let Ok(node) = graphs.node_mut(*node) {
            (node.dependencies, node.dependents) = (OrderedMap::default(), OrderedMap::default());
        }
    }
    for node in nodes {
        inside.extend(detach_node(graphs, node, leftovers));
    }
    if let Some(mut graph) = graphs.take_graph(handle) {
        leftovers.destructors.extend(graph.objects.release_all());
    }
    inside
}

/// The remains of removed nodes and graphs. They must be ended without the lock.
#[derive(Debug, Default)]
#[must_use]
pub(crate) struct Removed {
    destructors: Vec<Callback>,
    tasks: Vec<Task>,
}

impl Removed {
    /// Calls the destructors of user objects and drops the rest.
    pub(crate) fn end(self) {
        self.destructors.into_iter().for_each(Callback::destruct);
    }
}
