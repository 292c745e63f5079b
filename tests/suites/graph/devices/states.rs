//! The calls for several devices, in each of the six states.

use cuda_graph::{ContextExt, Graph, GraphExec};
use cuda_handles::{Buffer, Context, Stream};
use cuda_tests::other_device;
use cuda_tests::states::{CALLS, CHECKS, LEN, PERMITTED, PURE, Refusal, Row, Things, done, drops, prepared};

cuda_tests::six_states!(rows, devices: 2);

/// A context of the second device with a stream and settled memory.
type There = (Context, Stream, Buffer<u32>);

fn there(_: &Things) -> Result<There, Refusal> {
    let context = other_device().context()?;
    let (stream, memory) = (context.stream()?, context.alloc_blocking::<u32>(LEN)?);
    stream.fill(&memory, 0)?;
    stream.synchronize_blocking()?;
    Ok((context, stream, memory))
}

fn graph(things: &Things) -> Result<(Graph, There), Refusal> {
    let there = there(things)?;
    let graph = things.context.graph_spanning(&[&there.0])?;
    graph.root().fill(&there.2, 1)?;
    Ok((graph, there))
}

fn exec(things: &Things) -> Result<(GraphExec, There), Refusal> {
    let (graph, there) = graph(things)?;
    let mut exec = graph.instantiate()?;
    exec.launch(&there.1)?;
    there.1.synchronize_blocking()?;
    Ok((exec, there))
}

fn rows() -> Vec<Row> {
    vec![
        prepared("Context::enable_peer_access", CALLS, there, |things, (there, ..)| {
            Ok(things.context.enable_peer_access(&there)?)
        }),
        prepared("Context::has_peer_access", PURE, there, |things, (there, ..)| {
            done(things.context.has_peer_access(&there))
        }),
        prepared("Graph::spanning", CALLS, there, |things, (there, ..)| {
            done(Graph::spanning(&things.context, &[&there])?)
        }),
        prepared("Graph::contexts", PURE, graph, |_, (graph, _)| done(graph.contexts().count())),
        prepared("Frontier::fill of the other device", CALLS, graph, |_, (graph, (_, _, memory))| {
            done(graph.root().fill(&memory, 2)?)
        }),
        prepared("Frontier::copy between devices", CALLS, graph, |things, (graph, (_, _, memory))| {
            done(graph.root().copy(&memory, &things.buffer)?)
        }),
        prepared("Graph::condition where it spans several", CHECKS, graph, |_, (graph, _)| {
            match graph.condition() {
                Err(cuda_graph::Error::Condition(cuda_graph::ConditionError::SeveralContexts)) => Ok(()),
                Err(error) => Err(error.into()),
                Ok(_) => panic!("conditions are refused"),
            }
        }),
        prepared(
            "GraphExec::launch on the other device",
            PERMITTED,
            exec,
            |_, (mut exec, (_, stream, _))| Ok(exec.launch(&stream)?),
        ),
        prepared("GraphExec::launch of two devices here", PERMITTED, exec, |things, (mut exec, _)| {
            Ok(exec.launch(&things.home)?)
        }),
        drops("drop of a graph of two devices", graph),
        drops("drop of an executable of two devices", exec),
    ]
}
