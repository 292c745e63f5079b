//! The hierarchy of graphs: roots, and the children and bodies inside them.

use super::graph::Owner;
use super::graphs::Graphs;
use super::payload::Payload;
use crate::driver::abort::crash;

/// The root that a child or body belongs to. All graphs on the path remember it, so that repeated
/// queries of deeply nested graphs are cheap.
pub(crate) fn root(graphs: &Graphs, graph: u64) -> u64 {
    let mut root = graph;
    while let Some(above) = above(graphs, root) {
        root = above;
    }
    let uid = graphs.graph(root).map_or(0, |root| root.uid);
    let mut at = graph;
    while at != root
        && let Some(above) = above(graphs, at)
    {
        if let Ok(own) = graphs.graph(at) {
            own.above.set((root, uid));
        }
        at = above;
    }
    root
}

/// The remembered ancestor of a graph, or its parent.
fn above(graphs: &Graphs, graph: u64) -> Option<u64> {
    let own = graphs.graph(graph).ok()?;
    let (above, uid) = own.above.get();
    if graphs.graph(above).is_ok_and(|above| above.uid == uid) {
        return Some(above);
    }
    match own.owner {
        Owner::User => None,
        Owner::Child { node, .. } | Owner::Body { node } => graphs.node(node).ok().map(|node| node.graph),
    }
}

/// Whether `inner` is `outer` or inside it.
pub(crate) fn is_inside(graphs: &Graphs, mut inner: u64, outer: u64) -> bool {
    if graphs.graph(outer).is_ok_and(|outer| outer.owner == Owner::User) {
        return root(graphs, inner) == outer;
    }
    loop {
        if inner == outer {
            return true;
        }
        match graphs.graph(inner).map(|graph| graph.owner) {
            Ok(Owner::Child { node, .. } | Owner::Body { node }) => match graphs.node(node) {
                Ok(node) => inner = node.graph,
                Err(_) => return false,
            },
            Ok(Owner::User) | Err(_) => return false,
        }
    }
}

/// The graph and all graphs inside it, parents first.
pub(crate) fn tree(graphs: &Graphs, graph: u64) -> Vec<u64> {
    let mut all = vec![graph];
    let mut at = 0;
    while let Some(graph) = all.get(at).copied() {
        for node in graphs.nodes_of(graph).unwrap_or_default() {
            all.extend(graphs.node(node).map(|node| node.payload.graphs()).unwrap_or_default());
        }
        at += 1;
    }
    all
}

/// Whether every child and body inside these nodes exists. A failed capture destroys the body or
/// child that it captured into, but not its node.
fn are_whole(graphs: &Graphs, mut nodes: Vec<u64>) -> bool {
    while let Some(node) = nodes.pop() {
        let parts = match graphs.node(node).map(|node| &node.payload) {
            Ok(Payload::Child(child)) => vec![*child],
            Ok(Payload::Conditional(conditional)) => conditional.bodies.to_vec(),
            Ok(Payload::Task(_)) | Err(_) => continue,
        };
        for part in parts {
            match graphs.graph(part).map(|part| part.owner) {
                Ok(Owner::Child { node: own, .. } | Owner::Body { node: own }) if own == node => {}
                _ => return false,
            }
            nodes.extend(graphs.nodes_of(part).unwrap_or_default());
        }
    }
    true
}

/// Crashes if a child or body inside these nodes is missing.
pub(crate) fn ensure_whole(graphs: &Graphs, nodes: Vec<u64>, what: &str) {
    if !are_whole(graphs, nodes) {
        crash(&format!("{what}, and a capture into a body or child in it has failed"));
    }
}
