//! Memory of graphs.

use cuda_graph::{AllocNode, ContextExt, FreeNode, Graph, GraphExec, InstantiateOptions};
use cuda_handles::GraphBuffer;
use cuda_launch::{params, per};
use cuda_tests::states::{CALLS, LEN, PERMITTED, PURE, Refusal, Row, State, Things, done, drops, prepared};

use super::{N, increment};

type Allocated = (Graph, AllocNode, GraphBuffer<u32>);

fn allocated(things: &Things) -> Result<Allocated, Refusal> {
    let graph = things.context.graph()?;
    let (node, memory) = graph.root().alloc(LEN)?;
    Ok((graph, node, memory))
}

fn freed(things: &Things) -> Result<(Allocated, FreeNode), Refusal> {
    let (graph, node, memory) = allocated(things)?;
    let fill = node.then().fill(&memory, 1)?;
    let free = fill.then().free(&memory)?;
    Ok(((graph, node, memory), free))
}

fn leaving(things: &Things, options: InstantiateOptions) -> Result<(GraphExec, GraphBuffer<u32>), Refusal> {
    let (graph, node, memory) = allocated(things)?;
    node.then().fill(&memory, 1)?;
    Ok((graph.instantiate_with(options)?, memory))
}

fn executable(things: &Things) -> Result<(GraphExec, GraphBuffer<u32>), Refusal> {
    leaving(things, InstantiateOptions::new())
}

fn freeing_itself(things: &Things) -> Result<(GraphExec, GraphBuffer<u32>), Refusal> {
    leaving(things, InstantiateOptions::new().auto_free())
}

/// One that was launched, and has what that left.
fn launched(things: &Things) -> Result<(GraphExec, GraphBuffer<u32>), Refusal> {
    let (mut exec, memory) = freeing_itself(things)?;
    exec.launch(&things.home)?;
    Ok((exec, memory))
}

/// A launch, its output used on another stream, and all let go of.
fn used_elsewhere(things: &Things, exec: &mut GraphExec, memory: &GraphBuffer<u32>) -> Result<(), Refusal> {
    let output = exec.launch_with_outputs(&things.home)?.take(memory)?;
    Ok(things.other.fill(&output, 2)?)
}

pub(crate) fn rows() -> Vec<Row> {
    [nodes(), launches()].into_iter().flatten().collect()
}

fn nodes() -> Vec<Row> {
    vec![
        prepared("Frontier::alloc", CALLS, super::empty, |_, (graph, ..)| {
            done(graph.root().alloc::<u32>(LEN)?)
        }),
        prepared("Frontier::free", CALLS, allocated, |_, (_graph, node, memory)| {
            done(node.then().free(&memory)?)
        }),
        prepared("Graph::free", CALLS, allocated, |_, (graph, _, memory)| done(graph.free(&memory)?)),
        prepared("Frontier::fill of a graph's memory", CALLS, allocated, |_, (_graph, node, memory)| {
            done(node.then().fill(&memory, 1)?)
        }),
        prepared(
            "Frontier::launch with a graph's memory",
            CALLS,
            |things| Ok((allocated(things)?, increment::load(&things.context)?)),
            |_, ((_graph, node, memory), kernel)| {
                done(node.then().launch(&kernel, per(LEN, 32), (&memory, N))?)
            },
        ),
        prepared(
            "Frontier::launch_untyped with a graph's memory",
            CALLS,
            allocated,
            |things, (_graph, node, memory)| {
                // SAFETY: the graph is never launched.
                done(unsafe {
                    node.then().launch_untyped(&things.increment, per(LEN, 32), params![&memory, N])
                }?)
            },
        ),
        prepared("AllocNode and FreeNode, read", PURE, freed, |_, ((_graph, node, memory), free)| {
            assert_eq!((node.address()?, node.bytes()?), (memory.address(), 4 * LEN));
            assert_eq!((node.freed_by()?, free.allocation()?), (Some(free.clone()), Some(node.clone())));
            done((node.options()?, node.describe()?))
        }),
        prepared("Graph::instantiate with memory", CALLS, freed, |_, ((graph, ..), _)| {
            done(graph.instantiate()?)
        }),
        drops("drop of a graph with memory", freed),
    ]
}

fn launches() -> Vec<Row> {
    vec![
        prepared("GraphExec::launch that leaves memory", PERMITTED, executable, |things, (mut exec, _)| {
            Ok(exec.launch(&things.home)?)
        }),
        prepared(
            "GraphExec::launch that frees memory itself",
            PERMITTED,
            launched,
            |things, (mut exec, _memory)| Ok(exec.launch(&things.home)?),
        ),
        prepared("GraphExec::launch_with_outputs", PERMITTED, executable, |things, (mut exec, memory)| {
            let mut outputs = exec.launch_with_outputs(&things.home)?;
            done(outputs.take(&memory)?)
        }),
        prepared(
            "GraphExec::launch after its output was used elsewhere",
            CALLS.but(State::Callback, cuda_tests::states::Expected::Works),
            |things| {
                // The first wait for a stream makes the event that it keeps for this.
                things.other.wait_for(&things.home)?;
                executable(things)
            },
            |things, (mut exec, memory)| {
                used_elsewhere(things, &mut exec, &memory)?;
                // Inside a host function nobody frees it before the next launch.
                drop(exec.launch(&things.home));
                Ok(())
            },
        ),
        drops("drop of an executable with memory", launched),
    ]
}
