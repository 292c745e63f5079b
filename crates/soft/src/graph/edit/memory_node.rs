//! Allocation and free nodes.

use std::collections::{HashSet, VecDeque};
use std::sync::Arc;

use crate::driver::result_code::{Answer, INVALID_VALUE, NOT_SUPPORTED, OUT_OF_MEMORY};
use crate::graph::edit::insert;
use crate::graph::model::edge::Edge;
use crate::graph::model::graph::Owner;
use crate::graph::model::graphs::Graphs;
use crate::graph::model::hierarchy;
use crate::graph::model::node_memory::{self, NodeMemory};
use crate::graph::model::payload::Payload;
use crate::graph::model::task::{AllocNode, Task};
use crate::graph::params::parse::NewMemory;

/// Adds an allocation node. If it depends on free nodes of the graph's own memory, it reuses their
/// addresses if it fits.
pub(crate) fn add_alloc(
    graphs: &mut Graphs,
    graph: u64,
    dependencies: &[(u64, Edge)],
    wanted: NewMemory,
) -> Answer<u64> {
    // Graphs in child nodes refuse them. Bodies accept them, but cannot be instantiated with them.
    let own = graphs.graph(graph)?;
    if matches!(own.owner, Owner::Child { .. }) {
        return Err(NOT_SUPPORTED);
    }
    let home = (graph, own.uid);
    let before = freed_before(graphs, dependencies, own.addresses.free_nodes(wanted.device))?;
    let range = graphs.graph_mut(graph)?.addresses.place(wanted.len, wanted.device, &before);
    let range = range.ok_or(OUT_OF_MEMORY)?;
    let memory = node_memory::reserve(range, wanted.len, wanted.device, home);
    let alloc = AllocNode { memory: Arc::clone(&memory), max: wanted.max, is_managed: wanted.is_managed };
    let node = insert::insert(graphs, graph, dependencies, Payload::Task(Task::Alloc(alloc)))?;
    memory.set_node(node);
    Ok(node)
}

/// The free nodes among `frees` that `dependencies` depend on, not counting paths through child
/// nodes and through edges that were added later than their target.
fn freed_before(
    graphs: &Graphs,
    dependencies: &[(u64, Edge)],
    mut frees: HashSet<u64>,
) -> Answer<HashSet<u64>> {
    let mut before = HashSet::new();
    let mut open: VecDeque<u64> = dependencies.iter().map(|(node, _)| *node).collect();
    let mut seen: HashSet<u64> = open.iter().copied().collect();
    while let Some(node) = open.pop_front().filter(|_| !frees.is_empty()) {
        if frees.remove(&node) {
            before.insert(node);
        }
        let own = graphs.node(node)?;
        if !matches!(own.payload, Payload::Child(_)) {
            let first = own.added_after.iter().copied().filter(|node| own.dependencies.contains(*node));
            open.extend(first.filter(|node| seen.insert(*node)));
        }
    }
    Ok(before)
}

/// The address of an allocation node.
pub(crate) fn address_of(graphs: &Graphs, node: u64) -> Answer<u64> {
    match &graphs.node(node)?.payload {
        Payload::Task(Task::Alloc(alloc)) => Ok(alloc.memory.start),
        Payload::Task(_) | Payload::Child(_) | Payload::Conditional(_) => Err(INVALID_VALUE),
    }
}

/// Adds a free node. Each graph has at most one for an allocation, and none if the allocating graph
/// has one. Graphs in child nodes refuse free nodes, and an instantiated graph refuses them for its
/// own memory.
pub(crate) fn add_free(
    graphs: &mut Graphs,
    graph: u64,
    dependencies: &[(u64, Edge)],
    address: u64,
) -> Answer<u64> {
    if matches!(graphs.graph(graph)?.owner, Owner::Child { .. }) {
        return Err(NOT_SUPPORTED);
    }
    let memory = node_memory::find(address).ok_or(INVALID_VALUE)?;
    check_other_frees(graphs, graph, &memory)?;
    let is_own = memory.home == (graph, graphs.graph(graph)?.uid);
    let node = insert::insert(graphs, graph, dependencies, Payload::Task(Task::Free(Arc::clone(&memory))))?;
    let own = (node, graphs.node(node)?.uid);
    memory.add_free(own, is_own);
    if is_own {
        graphs.graph_mut(graph)?.addresses.free(memory.range.clone(), node);
    }
    Ok(node)
}

/// Checks that existing free nodes and executables allow a free node for this memory in this graph.
fn check_other_frees(graphs: &Graphs, graph: u64, memory: &NodeMemory) -> Answer {
    let root_uid = |graph: u64| graphs.graph(hierarchy::root(graphs, graph)).map(|root| root.uid);
    let root = root_uid(graph)?;
    // The allocating graph may be part of another one by now, or destroyed.
    let home = match graphs.graph(memory.home.0) {
        Ok(own) if own.uid == memory.home.1 => root_uid(memory.home.0).ok(),
        Ok(_) | Err(_) => None,
    };
    let alive = |(node, uid): &(u64, u64)| graphs.node(*node).is_ok_and(|node| node.uid == *uid);
    let frees = memory.frees().into_iter().filter(alive);
    let in_roots: Vec<u64> =
        frees.filter_map(|(node, _)| root_uid(graphs.node(node).ok()?.graph).ok()).collect();
    let freed_by_own = home.is_some_and(|home| in_roots.contains(&home));
    let is_own = memory.home == (graph, graphs.graph(graph)?.uid);
    let is_late = is_own && memory.is_instantiated() || home == Some(root) && !in_roots.is_empty();
    if in_roots.contains(&root) || freed_by_own || is_late {
        return Err(INVALID_VALUE);
    }
    Ok(())
}
