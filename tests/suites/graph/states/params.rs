//! Graph parameters.

use cuda_graph::capture::{AnyThread, Capturing};
use cuda_graph::{
    ByValue, ContextExt, Fallback, Graph, GraphBuilder, GraphExec, GraphParam, HostLoopExec,
    InstantiateOptions, MemsetNode, StreamExt, Test,
};
use cuda_handles::{Buffer, Event, Image};
use cuda_launch::{LaunchConfig, kernel, per};
use cuda_tests::SMALL;
use cuda_tests::states::{CALLS, CHECKS, LEN, PERMITTED, PURE, Refusal, Row, Things, done, drops, prepared};

kernel! {
    // SAFETY: the kernel in the image has these parameters, and each thread touches the element of
    // its own number, if that is below `n`.
    unsafe in Image::Ptx(SMALL);

    fn increment(values: InOut<u32>, n: u32) where values.len() >= n;
}

struct Bound {
    graph: Graph,
    exec: GraphExec,
    memory: GraphParam<[u32]>,
    value: GraphParam<u32>,
    flag: GraphParam<bool>,
    event: GraphParam<Event>,
    config: GraphParam<LaunchConfig>,
    fill: MemsetNode,
    increment: increment,
    other: Buffer<u32>,
}

/// A kernel, a copy and a fill of a parameter, with memory for another value.
fn bound(things: &Things) -> Result<Bound, Refusal> {
    let graph = things.context.graph()?;
    let (memory, flag, value) = (graph.param(&things.buffer)?, graph.param(true)?, graph.param(1_u32)?);
    let (event, config) = (graph.param(&things.event)?, graph.param(per(LEN, 32))?);
    let increment = increment::load(&things.context)?;
    let launch = graph.root().launch(&increment, per(memory.len(), 32), (&memory, memory.len()))?;
    let target = things.home.zeros::<u32>(LEN)?;
    let copy = launch.then().copy(&memory, &target)?;
    let fill = copy.then().fill(&memory, &value)?;
    fill.enabled_by(&flag)?;
    let other = things.home.zeros::<u32>(LEN)?;
    let mut exec = graph.instantiate()?;
    exec.launch(&things.home)?;
    things.home.synchronize_blocking()?;
    Ok(Bound { graph, exec, memory, value, flag, event, config, fill, increment, other })
}

/// A branch that the host decides about by a parameter, and a fill of another one.
fn on_host(things: &Things, fallback: Fallback) -> Result<Hosted, Refusal> {
    let graph = things.context.graph()?;
    let (tested, target) = (graph.param(&things.buffer)?, graph.param(&things.plain)?);
    let fill = graph.root().fill(&target, 1)?;
    fill.then().if_then(Test::nonzero(&tested), |body| body.root().fill(&target, 2).map(drop))?;
    let other = things.home.zeros::<u32>(LEN)?;
    let mut exec = graph.instantiate_with_fallback(fallback, InstantiateOptions::new())?;
    exec.run_blocking(&things.home)?;
    Ok(Hosted { exec, tested, target, other })
}

struct Hosted {
    exec: HostLoopExec,
    tested: GraphParam<[u32]>,
    target: GraphParam<[u32]>,
    other: Buffer<u32>,
}

fn by_host(things: &Things) -> Result<Hosted, Refusal> {
    on_host(things, Fallback::HostLoopAlways)
}

struct Captured {
    capture: GraphBuilder<AnyThread, Capturing>,
    memory: GraphParam<[u32]>,
    value: GraphParam<u32>,
    increment: increment,
}

fn captured(things: &Things) -> Result<Captured, Refusal> {
    let increment = increment::load(&things.context)?;
    let capture = things.context.stream()?.graph_builder().begin_on_any_thread()?;
    let (memory, value) = (capture.param(&things.buffer)?, capture.param(1_u32)?);
    Ok(Captured { capture, memory, value, increment })
}

pub(crate) fn rows() -> Vec<Row> {
    [adding(), setting(), capturing(), deciding(), dropped()].into_iter().flatten().collect()
}

fn adding() -> Vec<Row> {
    vec![
        prepared("Graph::param", CHECKS, bound, |things, Bound { graph, .. }| {
            drop((graph.param(&things.buffer)?, graph.param(ByValue((1_u8, 2_u64)))?));
            drop((graph.param(&things.event)?, graph.param(true)?));
            done(graph.param(per(1, 1))?)
        }),
        prepared("Frontier::launch with parameters", CALLS, bound, |_, bound| {
            let arguments = (&bound.memory, bound.memory.len());
            done(bound.graph.root().launch(&bound.increment, &bound.config, arguments)?)
        }),
        prepared("Frontier::fill of a parameter", CALLS, bound, |_, bound| {
            done(bound.graph.root().fill(&bound.memory, &bound.value)?)
        }),
        prepared("Frontier::clear of a parameter", CALLS, bound, |_, bound| {
            done(bound.graph.root().clear(&bound.memory)?)
        }),
        prepared("Frontier::copy of a parameter", CALLS, bound, |_, bound| {
            done(bound.graph.root().copy(&bound.memory, &bound.other)?)
        }),
        prepared("Frontier::record, wait of a parameter", PERMITTED, bound, |_, bound| {
            let record = bound.graph.root().record(&bound.event)?;
            done(record.then().wait(&bound.event)?)
        }),
        prepared("Frontier::if_then by a parameter", CALLS, bound, |_, bound| {
            let test = Test::nonzero(&bound.memory);
            done(bound.graph.root().if_then(test, |body| body.root().fill(&bound.memory, 2))?)
        }),
        prepared("*Node::enabled_by", CHECKS, bound, |_, Bound { fill, flag, .. }| {
            Ok(fill.enabled_by(&flag)?)
        }),
    ]
}

fn setting() -> Vec<Row> {
    vec![
        prepared("GraphExec::set", PURE, bound, |things, bound| {
            let Bound { mut exec, memory, value, flag, event, config, other, .. } = bound;
            exec.set(&memory, &other)?;
            exec.set(&value, 2)?;
            exec.set(&flag, false)?;
            exec.set(&event, &things.start)?;
            Ok(exec.set(&config, per(LEN, 64))?)
        }),
        prepared("GraphExec::launch_with a new value", CALLS, bound, |things, bound| {
            let Bound { mut exec, memory, flag, other, .. } = bound;
            Ok(exec.launch_with(&things.home, ((&memory, &other), (&flag, false)))?)
        }),
        prepared("GraphExec::launch_with the same value", PERMITTED, bound, |things, bound| {
            let Bound { mut exec, memory, value, .. } = bound;
            Ok(exec.launch_with(&things.home, ((&memory, &things.buffer), (&value, 1)))?)
        }),
        prepared("GraphExec::launch_bound", CALLS, bound, |things, bound| {
            let Bound { mut exec, memory, value, flag, event, config, other, .. } = bound;
            let values = (
                (&memory, &other),
                (&value, 3),
                (&flag, true),
                (&event, &things.event),
                (&config, per(LEN, 32)),
            );
            Ok(exec.launch_bound(&things.home, values)?)
        }),
        prepared(
            "GraphExec::launch with a value that was set",
            CALLS,
            |things| {
                let mut bound = bound(things)?;
                bound.exec.set(&bound.value, 4)?;
                Ok(bound)
            },
            |things, mut bound| Ok(bound.exec.launch(&things.other)?),
        ),
        prepared(
            "GraphExec::update from a graph with parameters",
            CALLS,
            |things| Ok((bound(things)?.exec, bound(things)?)),
            |_, (mut exec, bound)| {
                assert!(exec.update(&bound.graph)?.is_updated());
                Ok(exec.set(&bound.value, 5)?)
            },
        ),
    ]
}

fn capturing() -> Vec<Row> {
    vec![
        prepared("GraphBuilder::param", CHECKS, captured, |things, Captured { capture, .. }| {
            done((capture.param(&things.buffer)?, capture.param(1_u32)?))
        }),
        prepared("GraphBuilder::launch with parameters", CALLS, captured, |_, captured| {
            let Captured { capture, memory, increment, .. } = &captured;
            Ok(capture.launch(increment, per(memory.len(), 32), (memory, memory.len()))?)
        }),
        prepared("GraphBuilder::fill, clear of a parameter", PERMITTED, captured, |_, captured| {
            captured.capture.fill(&captured.memory, &captured.value)?;
            Ok(captured.capture.clear(&captured.memory)?)
        }),
        prepared("GraphBuilder::copy of a parameter", CALLS, captured, |things, captured| {
            Ok(captured.capture.copy(&captured.memory, &things.plain)?)
        }),
        prepared(
            "GraphBuilder::end with parameters",
            CALLS,
            |things| {
                let captured = captured(things)?;
                captured.capture.fill(&captured.memory, &captured.value)?;
                captured.capture.clear(&captured.memory)?;
                Ok(captured)
            },
            |_, captured| done(captured.capture.end()?),
        ),
    ]
}

fn deciding() -> Vec<Row> {
    let by_device = |things: &Things| on_host(things, Fallback::HostLoop);
    vec![
        prepared("HostLoopExec::set", PURE, by_host, |things, mut hosted| {
            hosted.exec.set(&hosted.tested, &things.plain)?;
            Ok(hosted.exec.set(&hosted.target, &hosted.other)?)
        }),
        prepared("HostLoopExec::run_blocking_with", CALLS, by_host, |things, hosted| {
            let Hosted { mut exec, tested, target, other } = hosted;
            Ok(exec.run_blocking_with(&things.home, ((&tested, &things.plain), (&target, &other)))?)
        }),
        prepared("HostLoopExec::run_blocking_with, HostLoop", CALLS, by_device, |things, hosted| {
            let Hosted { mut exec, tested, target, other } = hosted;
            Ok(exec.run_blocking_with(&things.home, ((&tested, &things.plain), (&target, &other)))?)
        }),
        prepared(
            "HostLoopExec::run_blocking with a value that was set",
            CALLS,
            |things| {
                let mut hosted = by_host(things)?;
                hosted.exec.set(&hosted.target, &hosted.other)?;
                Ok(hosted)
            },
            |things, mut hosted| Ok(hosted.exec.run_blocking(&things.other)?),
        ),
    ]
}

fn dropped() -> Vec<Row> {
    vec![
        drops("drop of an executable with parameters", bound),
        drops("drop of an executable with a value to come", |things| {
            let mut bound = bound(things)?;
            bound.exec.set(&bound.memory, &bound.other)?;
            Ok(bound)
        }),
        drops("drop of a capture with parameters", |things| {
            let captured = captured(things)?;
            captured.capture.fill(&captured.memory, &captured.value)?;
            Ok(captured)
        }),
        drops("drop of a host loop with another value", |things| {
            let mut hosted = by_host(things)?;
            hosted.exec.run_blocking_with(&things.home, ((&hosted.target, &hosted.other),))?;
            hosted.exec.set(&hosted.target, &things.plain)?;
            Ok(hosted)
        }),
    ]
}
