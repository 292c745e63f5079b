//! Cloning graphs, and finding a node in a clone.

use crate::graph::edit::insert;
use crate::graph::model::node_limits;
use std::collections::HashMap;

use crate::driver::abort::crash;
use crate::driver::result_code::{Answer, INVALID_VALUE, NOT_SUPPORTED};
use crate::graph::model::edge::Edge;
use crate::graph::model::graph::Owner;
use crate::graph::model::graphs::Graphs;
use crate::graph::model::ordered_map::OrderedMap;
use crate::graph::model::payload::Payload;
use crate::graph::model::task::Task;

/// Clones a graph for the user.
pub(crate) fn clone_graph(graphs: &mut Graphs, graph: u64) -> Answer<u64> {
    let owner = graphs.graph(graph)?.owner;
    if matches!(owner, Owner::Body { .. })
        || node_limits::is_unique(graphs, graph)
        || node_limits::holds_conditionals(graphs, graph)
    {
        return Err(NOT_SUPPORTED);
    }
    duplicate(graphs, graph, Owner::User)
}

/// Clones a graph for an owner. The caller has checked that it can be cloned.
pub(crate) fn duplicate(graphs: &mut Graphs, graph: u64, owner: Owner) -> Answer<u64> {
    let clone = graphs.create(owner);
    // Iterative, since graphs may be nested deeper than the stack allows.
    let mut waiting = vec![(graph, clone)];
    while let Some((graph, clone)) = waiting.pop() {
        duplicate_into(graphs, graph, clone, &mut waiting)?;
    }
    Ok(clone)
}

/// Copies nodes and edges into a clone. The graphs inside its nodes are added to `waiting`.
fn duplicate_into(graphs: &mut Graphs, graph: u64, clone: u64, waiting: &mut Vec<(u64, u64)>) -> Answer {
    let nodes = graphs.nodes_of(graph)?;
    let objects = graphs.graph(graph)?.objects.duplicate();
    graphs.graph_mut(clone)?.objects = objects;
    let mut twin = HashMap::with_capacity(nodes.len());
    for node in &nodes {
        let payload = duplicate_payload(graphs, *node, waiting)?;
        let copied = insert::insert(graphs, clone, &[], payload)?;
        if let Payload::Child(child) = graphs.node(copied)?.payload {
            graphs.graph_mut(child)?.owner = Owner::Child { node: copied, moved: false };
        }
        twin.insert(*node, copied);
        let (uid, copied_uid) = (graphs.node(*node)?.uid, graphs.node(copied)?.uid);
        graphs.graph_mut(clone)?.from_original.insert(uid, (copied, copied_uid));
    }
    // Cycles are cloned, too, so the edges are added after all nodes.
    for node in &nodes {
        let own = graphs.node(*node)?;
        let of = |node: u64| twin.get(&node).copied().ok_or(INVALID_VALUE);
        let copy = |list: &OrderedMap<Edge>| -> Answer<OrderedMap<Edge>> {
            list.iter().map(|(node, edge)| Ok((of(node)?, edge))).collect()
        };
        let (dependencies, dependents) = (copy(&own.dependencies)?, copy(&own.dependents)?);
        let copied = graphs.node_mut(of(*node)?)?;
        copied.dependencies = dependencies;
        copied.dependents = dependents;
    }
    Ok(())
}

fn duplicate_payload(graphs: &mut Graphs, node: u64, waiting: &mut Vec<(u64, u64)>) -> Answer<Payload> {
    match &graphs.node(node)?.payload {
        Payload::Task(Task::Alloc(_) | Task::Free(_)) | Payload::Conditional(_) => Err(NOT_SUPPORTED),
        Payload::Task(task) => Ok(Payload::Task(task.clone())),
        Payload::Child(child) => {
            let child = *child;
            let clone = graphs.create(Owner::User);
            waiting.push((child, clone));
            Ok(Payload::Child(clone))
        }
    }
}

/// The node of a clone that was cloned from a node of the original.
pub(crate) fn find_in_clone(graphs: &Graphs, original: u64, clone: u64) -> Answer<u64> {
    let graph = graphs.graph(clone)?;
    let Ok(node) = graphs.node(original) else {
        if graphs.is_destroyed(original) {
            crash("a destroyed node is looked up in a clone");
        }
        return Err(INVALID_VALUE);
    };
    let (found, uid) = graph.from_original.get(&node.uid).copied().ok_or(INVALID_VALUE)?;
    // It may have been destroyed since, and its handle reused.
    if graphs.node(found)?.uid == uid { Ok(found) } else { Err(INVALID_VALUE) }
}
