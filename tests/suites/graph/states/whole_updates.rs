//! Updates of whole executables.

use cuda_graph::{ContextExt, Fallback, Graph, GraphExec, HostLoopExec, InstantiateOptions, MemsetNode};
use cuda_tests::states::{CALLS, CHECKS, Refusal, Row, Things, done, drops, prepared};

use super::{drawn, executable, nodes};

/// An executable, and another graph with the same structure.
fn alike(things: &Things) -> Result<(GraphExec, Graph), Refusal> {
    Ok((executable(things)?, drawn(things)?))
}

/// An executable, and a graph with another structure.
fn unlike(things: &Things) -> Result<(GraphExec, Graph), Refusal> {
    let graph = things.context.graph()?;
    graph.root().fill(&things.buffer, 1)?;
    Ok((executable(things)?, graph))
}

/// An executable that was updated from a graph, with a node of that.
fn updated(things: &Things) -> Result<(GraphExec, MemsetNode), Refusal> {
    let (mut exec, (graph, fill, ..)) = (executable(things)?, nodes(things)?);
    assert!(exec.update(&graph)?.is_updated());
    Ok((exec, fill))
}

/// An executable of a graph that can have no other.
fn only_one(things: &Things) -> Result<(GraphExec, Graph), Refusal> {
    let graph = things.context.graph()?;
    let (node, memory) = graph.root().alloc::<u32>(8)?;
    node.then().fill(&memory, 1)?.then().free(&memory)?;
    Ok((graph.instantiate()?, graph))
}

fn on_host(things: &Things) -> Result<(HostLoopExec, Graph), Refusal> {
    let graph = things.context.graph()?;
    graph.root().fill(&things.buffer, 1)?;
    Ok((graph.instantiate_with_fallback(Fallback::HostLoopAlways, InstantiateOptions::new())?, graph))
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        prepared("GraphExec::update", CALLS, alike, |_, (mut exec, graph)| {
            assert!(exec.update(&graph)?.is_updated());
            Ok(())
        }),
        prepared("GraphExec::update that is refused", CALLS, unlike, |_, (mut exec, graph)| {
            assert!(!exec.update(&graph)?.is_updated());
            Ok(())
        }),
        prepared("GraphExec::update_or_rebuild", CALLS, unlike, |_, (mut exec, graph)| {
            assert!(exec.update_or_rebuild(&graph)?.is_some());
            Ok(())
        }),
        prepared("Graph::check_update", CALLS, alike, |_, (exec, graph)| {
            let own = exec.graph();
            own.iter().try_for_each(|own| done(own.check_update(&graph)?))
        }),
        prepared("GraphExec::check_update", CALLS, unlike, |_, (exec, graph)| {
            assert!(!exec.check_update(&graph)?.is_empty());
            Ok(())
        }),
        prepared("GraphExec::update_or_rebuild that updates", CALLS, alike, |_, (mut exec, graph)| {
            assert!(exec.update_or_rebuild(&graph)?.is_none());
            Ok(())
        }),
        prepared(
            "GraphExec::update_or_rebuild of the only executable",
            CALLS,
            only_one,
            |_, (mut exec, graph)| {
                assert!(exec.update_or_rebuild(&graph)?.is_some());
                Ok(())
            },
        ),
        prepared("ExecNode::set_enabled that finds counterparts", CALLS, updated, |_, (mut exec, fill)| {
            Ok(exec.node(&fill).set_enabled(false)?)
        }),
        prepared("HostLoopExec::update", CHECKS, on_host, |_, (mut exec, graph)| {
            assert!(!exec.update(&graph)?.is_updated());
            Ok(())
        }),
        prepared("HostLoopExec::check_update", CHECKS, on_host, |_, (exec, graph)| {
            assert!(!exec.check_update(&graph)?.is_empty());
            Ok(())
        }),
        prepared("HostLoopExec::update_or_rebuild", CALLS, on_host, |_, (mut exec, graph)| {
            assert!(exec.update_or_rebuild(&graph)?.is_some());
            Ok(())
        }),
        prepared(
            "HostLoopExec::update_or_rebuild, HostLoop",
            CALLS,
            |things| {
                let (fallback, options) = (Fallback::HostLoop, InstantiateOptions::new());
                Ok((drawn(things)?.instantiate_with_fallback(fallback, options)?, drawn(things)?))
            },
            |_, (mut exec, graph)| {
                assert!(exec.check_update(&graph)?.is_empty());
                assert!(exec.update_or_rebuild(&graph)?.is_none());
                Ok(())
            },
        ),
        drops("drop of an executable that was updated", updated),
        drops("drop of an executable that ran and was updated", |things| {
            let (mut exec, graph) = alike(things)?;
            exec.launch(&things.home)?;
            assert!(exec.update(&graph)?.is_updated());
            Ok(exec)
        }),
    ]
}
