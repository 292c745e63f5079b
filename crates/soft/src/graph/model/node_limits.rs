//! How many nodes of the kinds that forbid something a graph has, counted with all graphs in it.
//! Conditional nodes, which are nested deep, are counted for the outermost graph alone.

use super::payload::Payload;
use super::task::Task;
use crate::graph::model::graph::Owner;
use crate::graph::model::graphs::Graphs;
use crate::graph::model::hierarchy;
use crate::graph::model::limiting_nodes::LimitingNodes;

/// The counts of a graph, with all in it.
pub(crate) fn of_graph(graphs: &Graphs, graph: u64) -> LimitingNodes {
    graphs.graph(graph).map(|graph| graph.limiting).unwrap_or_default()
}

/// What a node adds to the counts of its graph.
pub(crate) fn of_payload(graphs: &Graphs, payload: &Payload) -> LimitingNodes {
    let mut limiting = LimitingNodes::default();
    match payload {
        Payload::Task(Task::Kernel(spec)) => limiting = LimitingNodes::of_kernel(spec),
        Payload::Task(Task::Alloc(_) | Task::Free(_)) => limiting.memory = 1,
        Payload::Task(_) => {}
        Payload::Child(child) => limiting = with_nested_conditionals(graphs, *child),
        Payload::Conditional(conditional) => {
            limiting.conditional = 1;
            conditional.bodies.iter().for_each(|body| limiting.plus(with_nested_conditionals(graphs, *body)));
        }
    }
    limiting
}

/// The counts of a graph in a node, its conditional nodes among them.
fn with_nested_conditionals(graphs: &Graphs, graph: u64) -> LimitingNodes {
    LimitingNodes { conditional: conditionals_in(graphs, graph), ..of_graph(graphs, graph) }
}

/// How many conditional nodes there are in a graph, with all in it.
fn conditionals_in(graphs: &Graphs, graph: u64) -> usize {
    let root = hierarchy::root(graphs, graph);
    let all = of_graph(graphs, root).conditional;
    if root == graph || all == 0 {
        return all;
    }
    let is_one =
        |node: &u64| graphs.node(*node).is_ok_and(|node| matches!(node.payload, Payload::Conditional(_)));
    let own = |graph| graphs.nodes_of(graph).unwrap_or_default().iter().filter(|node| is_one(node)).count();
    hierarchy::tree(graphs, graph).into_iter().map(own).sum()
}

/// Counts a node of a graph, there and in all graphs that it lies in.
pub(crate) fn count_in(graphs: &mut Graphs, graph: u64, limiting: LimitingNodes) {
    change_around(graphs, graph, limiting, LimitingNodes::plus);
}

/// Counts a node of a graph no more.
pub(crate) fn count_out(graphs: &mut Graphs, graph: u64, limiting: LimitingNodes) {
    change_around(graphs, graph, limiting, LimitingNodes::minus);
}

fn change_around(
    graphs: &mut Graphs,
    mut graph: u64,
    limiting: LimitingNodes,
    change: fn(&mut LimitingNodes, LimitingNodes),
) {
    if limiting == LimitingNodes::default() {
        return;
    }
    let root = hierarchy::root(graphs, graph);
    if let Ok(root) = graphs.graph_mut(root) {
        change(
            &mut root.limiting,
            LimitingNodes { conditional: limiting.conditional, ..LimitingNodes::default() },
        );
    }
    let limiting = LimitingNodes { conditional: 0, ..limiting };
    if limiting == LimitingNodes::default() {
        return;
    }
    while let Ok(own) = graphs.graph_mut(graph) {
        change(&mut own.limiting, limiting);
        match own.owner {
            Owner::User => return,
            Owner::Child { node, .. } | Owner::Body { node } => match graphs.node(node) {
                Ok(node) => graph = node.graph,
                Err(_) => return,
            },
        }
    }
}

/// Whether the graph or anything in it allocates or frees memory.
pub(crate) fn holds_memory_nodes(graphs: &Graphs, graph: u64) -> bool {
    of_graph(graphs, graph).memory > 0
}

/// Whether the graph has a conditional node in it or a condition that no node uses.
pub(crate) fn holds_conditionals(graphs: &Graphs, graph: u64) -> bool {
    conditionals_in(graphs, graph) > 0 || graphs.graph(graph).is_ok_and(|graph| !graph.conditions.is_empty())
}

/// Whether a kernel in the graph may be updated by the device.
pub(crate) fn holds_updatable(graphs: &Graphs, graph: u64) -> bool {
    of_graph(graphs, graph).updatable > 0
}

/// Whether the graph has nodes of which there cannot be two: it has no clone and one executable
/// at a time.
pub(crate) fn is_unique(graphs: &Graphs, graph: u64) -> bool {
    holds_memory_nodes(graphs, graph) || holds_updatable(graphs, graph)
}
