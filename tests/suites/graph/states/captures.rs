//! Captures: builders in every state, forks, bodies, and captures into graphs.

use cuda_graph::capture::{AnyThread, Body, Capturing, Ended, Fork};
use cuda_graph::{Error, Graph, GraphBuilder, IfNode, StreamExt, Test};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Owner, Stream};
use cuda_launch::per;
use cuda_tests::states::{CALLS, CHECKS, LEN, PERMITTED, PURE, Refusal, Row, Things, done, drops, prepared};

use super::{N, drawn, increment};
use crate::capture::set_to;

const LOCAL: CaptureMode = CaptureMode::ThreadLocal;

type Builder = GraphBuilder<AnyThread, Capturing>;

/// A builder that may be used on every thread.
fn begun(things: &Things) -> Result<Builder, Refusal> {
    Ok(things.context.stream()?.graph_builder().begin_on_any_thread()?)
}

fn ended(things: &Things) -> Result<GraphBuilder<AnyThread, Ended>, Refusal> {
    let capture = begun(things)?;
    capture.fill(&things.buffer, 1)?;
    Ok(capture.end()?)
}

fn forked(things: &Things) -> Result<(Builder, GraphBuilder<Fork, Capturing>), Refusal> {
    let capture = begun(things)?;
    let [fork] = capture.split()?;
    fork.fill(&things.buffer, 1)?;
    Ok((capture, fork))
}

fn branched(things: &Things) -> Result<(Builder, IfNode), Refusal> {
    let capture = begun(things)?;
    let always = capture.condition_with_default(1)?;
    let node = capture.if_node(&always, |body| body.fill(&things.buffer, 1))?;
    Ok((capture, node))
}

/// A capture with the next branch's condition.
fn with_condition(things: &Things) -> Result<(Builder, cuda_graph::Condition), Refusal> {
    let capture = begun(things)?;
    let always = capture.condition_with_default(1)?;
    Ok((capture, always))
}

/// The body's builder begins and ends on one thread.
fn in_body((capture, node): &(Builder, IfNode)) -> Result<GraphBuilder<Body, Capturing>, Error> {
    capture.capture_body(&node.body()?)
}

fn idle(things: &Things) -> Result<Stream, Refusal> {
    Ok(things.context.stream()?)
}

pub(crate) fn rows() -> Vec<Row> {
    [begin_and_end(), work(), by_hand(), bodies(), dropped()].into_iter().flatten().collect()
}

fn begin_and_end() -> Vec<Row> {
    vec![
        prepared("StreamExt::capture", CALLS, idle, |things, stream| {
            done(stream.capture(LOCAL, |capture| capture.fill(&things.buffer, 1))?)
        }),
        prepared("StreamExt::capture in global mode", CALLS, idle, |things, stream| {
            done(stream.capture(CaptureMode::Global, |capture| capture.fill(&things.buffer, 1))?)
        }),
        prepared("StreamExt::graph_builder, mode", PURE, idle, |_, stream| {
            done(stream.graph_builder().mode(CaptureMode::Relaxed))
        }),
        prepared("GraphBuilder::begin", PERMITTED, idle, |_, stream| done(stream.graph_builder().begin()?)),
        prepared("GraphBuilder::end", CALLS, begun, |_, capture| done(capture.end()?)),
        prepared("GraphBuilder::end with work", CALLS, forked, |_, (capture, fork)| {
            capture.join([fork])?;
            done(capture.end()?)
        }),
        prepared("GraphBuilder::graph, into_graph", PURE, ended, |_, ended| {
            done((ended.graph().clone(), ended.into_graph()))
        }),
        prepared("GraphBuilder::unmatched", CALLS, ended, |_, ended| {
            assert_eq!(ended.unmatched()?, 0);
            done(ended)
        }),
        prepared("GraphBuilder::instantiate", CALLS, ended, |_, ended| done(ended.instantiate()?)),
        prepared("GraphBuilder::split", CALLS, begun, |_, capture| done(capture.split::<2>()?)),
        prepared("GraphBuilder::join", CALLS, forked, |_, (capture, fork)| Ok(capture.join([fork])?)),
        prepared("GraphBuilder::info", PERMITTED, begun, |_, capture| done(capture.info()?)),
        prepared("Stream::discard_capture", PERMITTED, begun, |_, capture| {
            done(capture.stream().discard_capture()?)
        }),
        prepared("Frontier::capture", CALLS, drawn, |things, graph| {
            let stream = things.context.stream()?;
            Ok(graph.root().capture(&stream, LOCAL, |capture| capture.fill(&things.buffer, 2))?)
        }),
    ]
}

fn work() -> Vec<Row> {
    vec![
        prepared(
            "GraphBuilder::launch",
            CALLS,
            |things| Ok((begun(things)?, increment::load(&things.context)?)),
            |things, (capture, kernel)| Ok(capture.launch(&kernel, per(LEN, 32), (&things.buffer, N))?),
        ),
        prepared("GraphBuilder::fill, copy", CALLS, begun, |things, capture| {
            capture.fill(&things.buffer, 1)?;
            Ok(capture.copy(things.buffer.slice(..8)?, things.buffer.slice(8..16)?)?)
        }),
        prepared("GraphBuilder::write", CALLS, begun, |things, capture| {
            Ok(capture.write(things.buffer.slice(..2)?, &[1, 2])?)
        }),
        // More than the cache of pinned memory has.
        prepared("GraphBuilder::copy_of", CALLS, begun, |_, capture| {
            done(capture.copy_of(&vec![1_u8; (3 << 20) + 1])?)
        }),
        prepared("GraphBuilder::zeros", CALLS, begun, |_, capture| done(capture.zeros::<u32>(4)?)),
        prepared("GraphBuilder::callback", PERMITTED, begun, |_, capture| Ok(capture.callback(|| ())?)),
        prepared("GraphBuilder::keep", CHECKS, begun, |_, capture| Ok(capture.keep(Owner::other(()))?)),
        prepared("GraphBuilder::foreign", PURE, begun, |_, capture| {
            // SAFETY: nothing is done.
            done(unsafe { capture.foreign(|stream| stream.is_null(), []) }?)
        }),
    ]
}

fn by_hand() -> Vec<Row> {
    vec![
        prepared("GraphBuilder::condition", CALLS, begun, |_, capture| {
            done((capture.condition()?, capture.condition_with_default(1)?))
        }),
        prepared(
            "GraphBuilder::launch with a condition",
            CALLS,
            |things| {
                let kernel = set_to::load(&things.context)?;
                let (capture, condition) = with_condition(things)?;
                Ok((capture, condition, kernel))
            },
            |_, (capture, condition, kernel)| Ok(capture.launch(&kernel, per(1, 1), (1, &condition))?),
        ),
        prepared("GraphBuilder::add", CALLS, begun, |_, capture| done(capture.add(|at| at.empty())?)),
        prepared(
            "GraphBuilder::embed",
            CALLS,
            |things| Ok((begun(things)?, drawn(things)?)),
            |_, (capture, graph)| done(capture.embed(&graph)?),
        ),
        prepared("GraphBuilder::alloc, free", CALLS, begun, |_, capture| {
            let memory = capture.alloc::<u32>(4)?;
            done(capture.free(&memory)?)
        }),
        prepared("GraphBuilder::embed_foreign, ForeignNode::set", CALLS, begun, |_, capture| {
            // SAFETY: nothing is done.
            let node = unsafe { capture.embed_foreign(1_u32, |_, _| Ok(Vec::new())) }?;
            Ok(node.set(2)?)
        }),
    ]
}

fn bodies() -> Vec<Row> {
    vec![
        prepared("GraphBuilder::if_node", CALLS, with_condition, |things, (capture, condition)| {
            done(capture.if_node(&condition, |body| body.fill(&things.buffer, 1))?)
        }),
        prepared("GraphBuilder::if_else_node", CALLS, with_condition, |things, (capture, condition)| {
            let fill = |body: &GraphBuilder<Body, Capturing>| body.fill(&things.buffer, 1);
            done(capture.if_else_node(&condition, fill, fill)?)
        }),
        prepared("GraphBuilder::while_node", CALLS, with_condition, |things, (capture, condition)| {
            done(capture.while_node(&condition, |body| body.fill(&things.buffer, 1))?)
        }),
        prepared("GraphBuilder::switch_node", CALLS, with_condition, |things, (capture, condition)| {
            done(capture.switch_node(&condition, 2, |_, body| body.fill(&things.buffer, 1))?)
        }),
        prepared("GraphBuilder::while_loop, do_while_loop", CALLS, begun, |things, capture| {
            let test = || Test::nonzero(&things.buffer);
            capture.while_loop(test(), |body| body.fill(&things.buffer, 0))?;
            done(capture.do_while_loop(test(), |body| body.fill(&things.buffer, 0))?)
        }),
        prepared("GraphBuilder::if_then, if_then_else", CALLS, begun, |things, capture| {
            let test = || Test::nonzero(&things.buffer);
            let fill = |body: &GraphBuilder<Body, Capturing>| body.fill(&things.buffer, 0);
            capture.if_then(test(), fill)?;
            done(capture.if_then_else(test(), fill, fill)?)
        }),
        prepared("GraphBuilder::capture_body, end of a body", CALLS, branched, |things, branched| {
            let body = in_body(&branched)?;
            body.fill(&things.buffer, 1)?;
            done(body.end()?)
        }),
        prepared("drop of a body's builder", PERMITTED, branched, |things, branched| {
            let body = in_body(&branched)?;
            body.fill(&things.buffer, 1)?;
            done(body)
        }),
    ]
}

fn dropped() -> Vec<Row> {
    vec![
        drops("drop of a builder that captures", begun),
        drops("drop of a builder with forks", forked),
        drops("drop of a builder with a branch", branched),
        drops("drop of an ended builder", ended),
        drops("drop of a captured graph", |things| -> Result<Graph, Refusal> {
            Ok(ended(things)?.into_graph())
        }),
    ]
}
