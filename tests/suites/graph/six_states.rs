//! Every operation of the crate in each of the six states.

use cuda_graph::{ContextExt, EmptyNode, Graph, GraphExec};
use cuda_launch::{params, per};
use cuda_tests::states::{CALLS, LEN, PURE, Refusal, Row, Things, done, drops, prepared, row};

cuda_tests::six_states!(rows);

const N: u32 = LEN as u32;

fn empty(things: &Things) -> Result<(Graph, EmptyNode, EmptyNode), Refusal> {
    let graph = things.context.graph()?;
    let (first, second) = (graph.root().empty()?, graph.root().empty()?);
    Ok((graph, first, second))
}

/// A graph with one node of each kind.
fn drawn(things: &Things) -> Result<Graph, Refusal> {
    let graph = things.context.graph()?;
    let fill = graph.root().fill(&things.buffer, 1)?;
    let copy = fill.then().copy(things.buffer.slice(..8)?, things.buffer.slice(8..16)?)?;
    // SAFETY: the arguments are the kernel's, and the count is the buffer's.
    unsafe { copy.then().launch_untyped(&things.increment, per(LEN, 32), params![&things.buffer, N]) }?
        .then()
        .empty()?;
    Ok(graph)
}

fn executable(things: &Things) -> Result<GraphExec, Refusal> {
    Ok(drawn(things)?.instantiate()?)
}

/// An executable with memory that its first launch elsewhere has to wait for.
fn unsettled(things: &Things) -> Result<GraphExec, Refusal> {
    let graph = things.context.graph()?;
    graph.root().fill(&things.home.zeros::<u32>(LEN)?, 1)?;
    Ok(graph.instantiate()?)
}

fn rows() -> Vec<Row> {
    [drawing(), reading(), running()].into_iter().flatten().collect()
}

fn drawing() -> Vec<Row> {
    vec![
        row("Context::graph", CALLS, |things| done(things.context.graph()?)),
        prepared("Frontier::empty", CALLS, empty, |_, (graph, ..)| done(graph.root().empty()?)),
        prepared("Frontier::fill", CALLS, empty, |things, (graph, ..)| {
            done(graph.root().fill(&things.buffer, 1)?)
        }),
        prepared("Frontier::copy", CALLS, empty, |things, (graph, ..)| {
            let (from, to) = (things.buffer.slice(..8)?, things.buffer.slice(8..16)?);
            done(graph.root().copy(from, to)?)
        }),
        prepared("Frontier::launch_untyped", CALLS, empty, |things, (graph, ..)| {
            let params = params![&things.buffer, N];
            // SAFETY: the graph is never launched.
            done(unsafe { graph.root().launch_untyped(&things.increment, per(LEN, 32), params) }?)
        }),
        prepared("Graph::add_edge", CALLS, empty, |_, (graph, first, second)| {
            Ok(graph.add_edge(&first, &second)?)
        }),
        prepared(
            "Graph::remove_edge",
            CALLS,
            |things| {
                let (graph, first, _) = empty(things)?;
                let last = first.then().empty()?;
                Ok((graph, first, last))
            },
            |_, (graph, first, last)| Ok(graph.remove_edge(&first, &last)?),
        ),
        prepared("Node::remove", CALLS, empty, |_, (_, first, _)| Ok(first.remove()?)),
    ]
}

fn reading() -> Vec<Row> {
    vec![
        prepared("Graph::nodes", CALLS, drawn, |_, graph| done(graph.nodes()?)),
        prepared("Graph::edges", CALLS, drawn, |_, graph| done(graph.edges()?)),
        prepared("Graph::to_dot", CALLS, drawn, |_, graph| done(graph.to_dot()?)),
        prepared("Node::predecessors, successors", CALLS, empty, |_, (_, first, _)| {
            drop((first.predecessors()?, first.successors()?));
            Ok(())
        }),
        prepared("Node::name, kind, is_removed, clone", PURE, empty, |_, (_, first, _)| {
            drop((first.name(), first.kind(), first.is_removed(), first.clone()));
            Ok(())
        }),
        prepared("Graph::keep, clone, root", PURE, drawn, |things, graph| {
            graph.keep(&things.buffer);
            drop((graph.clone(), graph.root()));
            Ok(())
        }),
    ]
}

fn running() -> Vec<Row> {
    vec![
        prepared("Graph::instantiate", CALLS, drawn, |_, graph| done(graph.instantiate()?)),
        prepared("GraphExec::launch", CALLS, executable, |things, mut exec| Ok(exec.launch(&things.home)?)),
        prepared("GraphExec::launch that has to wait", CALLS, unsettled, |things, mut exec| {
            Ok(exec.launch(&things.other)?)
        }),
        prepared("GraphExec::upload", CALLS, executable, |things, mut exec| Ok(exec.upload(&things.home)?)),
        drops("drop of a graph", drawn),
        drops("drop of an executable", executable),
        drops("drop of an executable that has run", |things| {
            let mut exec = executable(things)?;
            exec.launch(&things.home)?;
            Ok(exec)
        }),
        drops("drop of an executable with the only owner of its memory", unsettled),
    ]
}
