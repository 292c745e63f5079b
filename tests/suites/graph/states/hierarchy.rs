//! Child graphs, clones and moved graphs.

use cuda_graph::{ChildGraphNode, ContextExt, Graph};
use cuda_tests::states::{CALLS, CHECKS, PERMITTED, PURE, Refusal, Row, Things, done, drops, prepared};

use super::{drawn, nested};
use crate::common::chains::moves;

/// The graph in a node, with what it lies in.
fn embedded(things: &Things) -> Result<(Graph, ChildGraphNode), Refusal> {
    let (.., child) = nested(things)?;
    Ok((child.embedded()?, child))
}

/// A graph, a clone of it and a clone of that.
fn clones(things: &Things) -> Result<[Graph; 3], Refusal> {
    let graph = drawn(things)?;
    let clone = graph.clone_graph()?;
    let again = clone.clone_graph()?;
    Ok([graph, clone, again])
}

/// A graph in a node, moved there, or a clone where a driver moves none.
fn moved(things: &Things) -> Result<ChildGraphNode, Refusal> {
    let (source, graph) = (drawn(things)?, things.context.graph()?);
    Ok(match moves() {
        true => graph.root().child_moved(source)?,
        false => graph.root().child(&source)?,
    })
}

fn lent(things: &Things) -> Result<(usize, Graph, ChildGraphNode), Refusal> {
    let (graph, child) = embedded(things)?;
    Ok((graph.lend()?.expose_provenance(), graph, child))
}

pub(crate) fn rows() -> Vec<Row> {
    [inside(), cloned(), shared(), ended()].into_iter().flatten().collect()
}

fn inside() -> Vec<Row> {
    vec![
        prepared("add in an embedded graph", PERMITTED, embedded, |_, (graph, _)| {
            done(graph.root().empty()?)
        }),
        prepared("remove in an embedded graph", CALLS, embedded, |_, (graph, _)| {
            graph.nodes()?.iter().try_for_each(|node| Ok(node.remove()?))
        }),
        prepared("Frontier::child in an embedded graph", CALLS, embedded, |things, (graph, _)| {
            done(graph.root().child(&things.context.graph()?)?)
        }),
        prepared("Graph::nodes, edges of an embedded one", CALLS, embedded, |_, (graph, _)| {
            done((graph.nodes()?, graph.edges()?))
        }),
        prepared("Graph::keep of an embedded one", PURE, embedded, |things, (graph, _)| {
            graph.keep(&things.buffer);
            Ok(())
        }),
        prepared("Node::keep with a moved graph", PURE, moved, |things, child| {
            Ok(child.keep(&things.buffer)?)
        }),
        prepared("add in a moved graph", PERMITTED, moved, |_, child| {
            done(child.embedded()?.root().empty()?)
        }),
    ]
}

fn cloned() -> Vec<Row> {
    vec![
        prepared("Graph::clone_graph of an embedded one", CALLS, embedded, |_, (graph, _)| {
            done(graph.clone_graph()?)
        }),
        prepared("Graph::clone_graph of a moved one", CALLS, moved, |_, child| {
            done(child.embedded()?.clone_graph()?)
        }),
        prepared(
            "Graph::find_clone_of through two clones",
            PURE,
            |things| {
                let graphs = clones(things)?;
                Ok((graphs[0].nodes()?, graphs))
            },
            |_, (nodes, [_, clone, again])| {
                nodes.iter().try_for_each(|node| {
                    clone.find_clone_of(node)?;
                    done(again.find_clone_of(node)?)
                })
            },
        ),
        prepared(
            "Graph::find_clone_of what was moved",
            PURE,
            |things| {
                let (source, graph) = (drawn(things)?, things.context.graph()?);
                let nodes = source.nodes()?;
                let child = match moves() {
                    true => graph.root().child_moved(source)?,
                    false => graph.root().child(&source)?,
                };
                Ok((nodes, child))
            },
            |_, (nodes, child)| {
                let embedded = child.embedded()?;
                // Without a move the nodes are those of a graph that is gone with its last handle,
                // but are there.
                nodes.iter().try_for_each(|node| done(embedded.find_clone_of(node)?))
            },
        ),
    ]
}

fn shared() -> Vec<Row> {
    vec![
        prepared("Graph::lend of an embedded one", PERMITTED, embedded, |_, (graph, _)| done(graph.lend()?)),
        prepared("Graph::lend once more", CHECKS, lent, |_, (_, graph, _)| done(graph.lend()?)),
        prepared("Graph::from_raw of an embedded one", CHECKS, lent, |things, (raw, _graph, _child)| {
            let raw = core::ptr::with_exposed_provenance_mut(raw);
            // SAFETY: the graph lives as long as the handle.
            done(unsafe { Graph::from_raw(&things.context, raw) }?)
        }),
        prepared("Frontier::child_moved of a lent one", CALLS, lent, |things, (..)| {
            let (graph, source) = (things.context.graph()?, things.context.graph()?);
            source.lend()?;
            match moves() {
                true => done(graph.root().child_moved(source)?),
                false => done(graph.root().child(&source)?),
            }
        }),
    ]
}

fn ended() -> Vec<Row> {
    vec![
        drops("drop of clones of clones", clones),
        drops("drop of a graph with a moved one in it", moved),
        drops("drop of a lent embedded graph", lent),
    ]
}
