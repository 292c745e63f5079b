//! Changes of edges and neighbours, and removal of nodes.

use cuda_graph::{ContextExt, EdgeKind, EmptyNode, Frontier, Graph, KernelNode};
use cuda_launch::{params, per};
use cuda_tests::states::{CALLS, LEN, PERMITTED, PURE, Refusal, Row, Things, done, prepared};

use super::{N, empty};

/// A graph with three nodes in a row.
type Chain = (Graph, [EmptyNode; 3]);

fn chain(things: &Things) -> Result<Chain, Refusal> {
    let graph = things.context.graph()?;
    let first = graph.root().empty()?;
    let second = first.then().empty()?;
    let third = second.then().empty()?;
    Ok((graph, [first, second, third]))
}

fn kernels(things: &Things) -> Result<(Graph, [KernelNode; 2]), Refusal> {
    let graph = things.context.graph()?;
    let launch = |at: Frontier<'_>| {
        // SAFETY: the arguments are the kernel's; the graph is never launched.
        unsafe { at.launch_untyped(&things.increment, per(LEN, 32), params![&things.buffer, N]) }
    };
    let first = launch(graph.root())?;
    let second = launch(first.then())?;
    Ok((graph, [first, second]))
}

pub(crate) fn rows() -> Vec<Row> {
    [edges(), neighbours(), frontiers(), removals()].into_iter().flatten().collect()
}

fn edges() -> Vec<Row> {
    vec![
        prepared("Graph::add_edges", PERMITTED, chain, |_, (graph, [first, _, third])| {
            Ok(graph.add_edges(&[(&first, &third, EdgeKind::Full)])?)
        }),
        prepared("Graph::remove_edges", CALLS, chain, |_, (graph, [first, second, third])| {
            Ok(graph.remove_edges(&[(&first, &second), (&second, &third)])?)
        }),
        prepared("Graph::edge_kind", CALLS, chain, |_, (graph, [first, second, _])| {
            done(graph.edge_kind(&first, &second)?)
        }),
        prepared("Graph::set_edge_kind", CALLS, kernels, |_, (graph, [first, second])| {
            Ok(graph.set_edge_kind(&first, &second, EdgeKind::Programmatic)?)
        }),
        prepared("Node::in_edges", CALLS, chain, |_, (_, [_, second, _])| done(second.in_edges()?)),
        prepared("Node::out_edges", CALLS, chain, |_, (_, [_, second, _])| done(second.out_edges()?)),
    ]
}

fn neighbours() -> Vec<Row> {
    vec![
        prepared("Node::set_in_edges", CALLS, chain, |_, (_, [first, _, third])| {
            Ok(third.set_in_edges(&[(&first, EdgeKind::Full)])?)
        }),
        prepared("Node::set_out_edges", CALLS, chain, |_, (_, [first, _, third])| {
            Ok(first.set_out_edges(&[(&third, EdgeKind::Full)])?)
        }),
    ]
}

fn frontiers() -> Vec<Row> {
    vec![
        prepared("Frontier::before, before_all", PURE, empty, |_, (graph, first, second)| {
            let _ =
                graph.after_all([(&*first, EdgeKind::Full)])?.before([&*second])?.before_all([&*second])?;
            done(graph.root().before_all([(&*second, EdgeKind::Full)])?)
        }),
        prepared("Graph::between", CALLS, chain, |_, (graph, [first, second, _])| {
            done(graph.between(&first, &second)?)
        }),
        // The node itself is permitted inside a host function, its edges are not.
        prepared("add at a frontier with nodes before it", PERMITTED, empty, |_, (_, first, second)| {
            done(first.then().before([&*second])?.empty()?)
        }),
    ]
}

fn removals() -> Vec<Row> {
    vec![
        prepared("Graph::remove_nodes", CALLS, chain, |_, (graph, [first, second, _])| {
            Ok(graph.remove_nodes(&[&first, &second])?)
        }),
        prepared("Node::remove_bridging", CALLS, chain, |_, (_, [_, second, _])| {
            Ok(second.remove_bridging()?)
        }),
    ]
}
