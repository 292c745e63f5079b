//! Loops by the host in the six states, on a driver that has no conditional nodes.

use cuda_graph::{ContextExt, Error, Fallback, Graph, HostLoopExec, InstantiateOptions, Loop, Test};
use cuda_tests::alone;
use cuda_tests::states::{CALLS, Refusal, Row, Things, done, drops, prepared};

cuda_tests::six_states!(
    rows,
    {
        alone!("CUDA_SOFT_VERSION" = "12.2", "CUDA_TEST_DRIVER" = "soft");
    },
    {}
);

fn looping(things: &Things) -> Result<(Graph, Loop), Refusal> {
    let graph = things.context.graph()?;
    let rounds = graph.root().while_loop(Test::zero(&things.buffer).limit(2), |body| {
        body.root().fill(things.buffer.slice(1..)?, 1).map(drop)
    })?;
    Ok((graph, rounds))
}

fn by_host(things: &Things) -> Result<HostLoopExec, Refusal> {
    Ok(looping(things)?.0.instantiate_with_fallback(Fallback::HostLoopAlways, InstantiateOptions::new())?)
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        prepared(
            "Frontier::while_loop",
            CALLS,
            |things| Ok(things.context.graph()?),
            |things, graph| {
                done(
                    graph
                        .root()
                        .while_loop(cuda_graph::Test::nonzero(&things.buffer), |_| Ok::<_, Error>(()))?,
                )
            },
        ),
        prepared(
            "Frontier::if_then_else",
            CALLS,
            |things| Ok(things.context.graph()?),
            |things, graph| {
                let test = Test::nonzero(&things.buffer);
                done(graph.root().if_then_else(test, |_| Ok::<_, Error>(()), |_| Ok(()))?)
            },
        ),
        prepared("Loop::remove", CALLS, looping, |_, (_graph, rounds)| Ok(rounds.remove()?)),
        prepared("Graph::instantiate_with_fallback", CALLS, looping, |_, (graph, _)| {
            done(graph.instantiate_with_fallback(Fallback::HostLoopAlways, InstantiateOptions::new())?)
        }),
        prepared("HostLoopExec::run_blocking", CALLS, by_host, |things, mut exec| {
            Ok(exec.run_blocking(&things.home)?)
        }),
        drops("drop of a graph with a loop", looping),
        drops("drop of an executable of which the host decides", by_host),
        drops("drop of one that has run", |things| {
            let mut exec = by_host(things)?;
            exec.run_blocking(&things.home)?;
            Ok(exec)
        }),
    ]
}
