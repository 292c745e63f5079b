//! The limits that certain nodes put on their graph. Each graph counts such nodes, including those
//! of the graphs inside it. Conditional nodes, which may be nested deeply, are counted for the root
//! alone.

use super::payload::Payload;
use super::task::Task;
use crate::graph::model::graph::Owner;
use crate::graph::model::graphs::Graphs;
use crate::graph::model::hierarchy;
use crate::graph::model::limiting_nodes::LimitingNodes;

/// The counts of a graph and everything inside it.
pub(crate) fn of_graph(graphs: &Graphs, graph: u64) -> LimitingNodes {
    graphs.graph(graph).map(|graph| graph.limiting).unwrap_or_default()
}

/// The counts that a node adds to its graph.
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

/// The counts of a graph inside a node, conditional nodes included.
fn with_nested_conditionals(graphs: &Graphs, graph: u64) -> LimitingNodes {
    LimitingNodes { conditional: conditionals_in(graphs, graph), ..of_graph(graphs, graph) }
}

/// The number of conditional nodes in a graph and everything inside it.
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

/// Counts a node in its graph and in all graphs around it.
pub(crate) fn count_in(graphs: &mut Graphs, graph: u64, limiting: LimitingNodes) {
    change_around(graphs, graph, limiting, LimitingNodes::plus);
}

/// Uncounts a node.
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

/// Whether the graph or anything inside it allocates or frees memory.
pub(crate) fn holds_memory_nodes(graphs: &Graphs, graph: u64) -> bool {
    of_graph(graphs, graph).memory > 0
}

/// Whether the graph contains a conditional node or has a conditional handle.
pub(crate) fn holds_conditionals(graphs: &Graphs, graph: u64) -> bool {
    conditionals_in(graphs, graph) > 0 || graphs.graph(graph).is_ok_and(|graph| !graph.conditions.is_empty())
}

/// Whether the device may update a kernel node inside the graph.
pub(crate) fn holds_updatable(graphs: &Graphs, graph: u64) -> bool {
    of_graph(graphs, graph).updatable > 0
}

/// Whether the graph contains nodes that cannot be duplicated: it cannot be cloned and has one
/// executable at a time.
pub(crate) fn is_unique(graphs: &Graphs, graph: u64) -> bool {
    holds_memory_nodes(graphs, graph) || holds_updatable(graphs, graph)
}
