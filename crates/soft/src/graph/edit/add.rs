//! Adding nodes to graphs.

use crate::graph::edit::child;
use crate::graph::edit::conditional;
use crate::graph::edit::insert;
use crate::graph::edit::memory_node;

use super::edge;
use crate::driver::result_code::{Answer, INVALID_VALUE};
use crate::graph::model::edge::Edge;
use crate::graph::model::graphs::Graphs;
use crate::graph::model::node_memory::{self};
use crate::graph::model::payload::Payload;
use crate::graph::model::task::Task;
use crate::graph::params::generic::NewNode;

/// Where a node is added: its graph and its dependencies.
#[derive(Debug)]
pub(crate) struct Insertion {
    pub(crate) graph: u64,
    pub(crate) dependencies: Vec<(u64, Edge)>,
}

/// Adds a node of any type. A failure changes nothing.
pub(crate) fn add_node(graphs: &mut Graphs, insertion: &Insertion, new: NewNode) -> Answer<u64> {
    let Insertion { graph, dependencies } = insertion;
    insert::check_dependencies(graphs, *graph, dependencies)?;
    let kind = new.kind();
    for (node, edge) in dependencies {
        edge::check_kinds(*edge, graphs.node(*node)?.payload.kind(), kind)?;
    }
    match new {
        NewNode::Task(task) => add_task(graphs, *graph, dependencies, task),
        NewNode::Alloc(memory) => memory_node::add_alloc(graphs, *graph, dependencies, memory),
        NewNode::Child { graph: child, by_move } => {
            child::add_child(graphs, *graph, dependencies, child, by_move)
        }
        NewNode::Free(address) => memory_node::add_free(graphs, *graph, dependencies, address),
        NewNode::Conditional(raw) => conditional::add_conditional(graphs, *graph, dependencies, &raw),
    }
}

/// Adds a node that needs nothing of the graph. Everything has been checked but the graph. Copy and
/// fill nodes of any graph are refused if they use memory for which its own graph already has a
/// free node, wherever they are in the order. Kernels only have numbers.
pub(crate) fn add_task(
    graphs: &mut Graphs,
    graph: u64,
    dependencies: &[(u64, Edge)],
    task: Task,
) -> Answer<u64> {
    if task.addresses().into_iter().any(node_memory::has_free_node) {
        return Err(INVALID_VALUE);
    }
    insert::insert(graphs, graph, dependencies, Payload::Task(task))
}
