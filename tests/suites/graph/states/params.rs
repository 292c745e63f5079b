//! Graph parameters.

use cuda_graph::{ByValue, ContextExt, GraphExec, GraphParam, MemsetNode};
use cuda_handles::{Buffer, Image};
use cuda_launch::{kernel, per};
use cuda_tests::SMALL;
use cuda_tests::states::{CALLS, CHECKS, LEN, PURE, Refusal, Row, Things, done, drops, prepared};

kernel! {
    // SAFETY: the kernel in the image has these parameters, and each thread touches the element of
    // its own number, if that is below `n`.
    unsafe in Image::Ptx(SMALL);

    fn increment(values: InOut<u32>, n: u32) where values.len() >= n;
}

struct Bound {
    exec: GraphExec,
    memory: GraphParam<[u32]>,
    flag: GraphParam<bool>,
    fill: MemsetNode,
    other: Buffer<u32>,
}

/// A kernel, a copy and a fill of a parameter, with memory for another value.
fn bound(things: &Things) -> Result<Bound, Refusal> {
    let graph = things.context.graph()?;
    let (memory, flag) = (graph.param(&things.buffer)?, graph.param(true)?);
    let increment = increment::load(&things.context)?;
    let launch = graph.root().launch(&increment, per(memory.len(), 32), (&memory, memory.len()))?;
    let target = things.home.zeros::<u32>(LEN)?;
    let copy = launch.then().copy(&memory, &target)?;
    let fill = copy.then().fill(&memory, 1)?;
    fill.enabled_by(&flag)?;
    let other = things.home.zeros::<u32>(LEN)?;
    let mut exec = graph.instantiate()?;
    exec.launch(&things.home)?;
    things.home.synchronize_blocking()?;
    Ok(Bound { exec, memory, flag, fill, other })
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        prepared("Graph::param", CHECKS, bound, |things, Bound { exec, .. }| {
            let graph = exec.graph().map_or_else(|| things.context.graph(), Ok)?;
            drop((graph.param(&things.buffer)?, graph.param(ByValue((1_u8, 2_u64)))?));
            done(graph.param(per(1, 1))?)
        }),
        prepared("Frontier::fill of a parameter", CALLS, bound, |things, bound| {
            let graph = bound.exec.graph().map_or_else(|| things.context.graph(), Ok)?;
            done(graph.root().fill(&bound.memory, 2)?)
        }),
        prepared("*Node::enabled_by", CHECKS, bound, |_, Bound { fill, flag, .. }| {
            Ok(fill.enabled_by(&flag)?)
        }),
        prepared("GraphExec::set", PURE, bound, |_, Bound { mut exec, memory, other, .. }| {
            Ok(exec.set(&memory, &other)?)
        }),
        prepared("GraphExec::launch_with a new value", CALLS, bound, |things, bound| {
            let Bound { mut exec, memory, flag, other, .. } = bound;
            exec.launch_with(&things.home, ((&memory, &other), (&flag, false)))?;
            Ok(exec.launch_bound(&things.home, ((&memory, &other), (&flag, true)))?)
        }),
        drops("drop of an executable with parameters", bound),
        drops("drop of an executable with a value to come", |things| {
            let mut bound = bound(things)?;
            bound.exec.set(&bound.memory, &bound.other)?;
            Ok(bound)
        }),
    ]
}
