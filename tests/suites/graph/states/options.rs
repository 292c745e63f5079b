//! Options of executables, attributes of nodes, and pictures.

use cuda_graph::{
    AccessPolicyWindow, CacheUse, ClusterScheduling, ContextExt, DebugDotFlags, EdgeKind, Graph, GraphExec,
    InstantiateOptions, KernelNode, NodeAttribute, NodeAttributeKind,
};
use cuda_launch::{LaunchConfig, MemorySyncDomain, params, per};
use cuda_tests::states::{CALLS, LEN, PERMITTED, PURE, Refusal, Row, Things, done, drops, prepared};

use super::{N, drawn, increment};

/// A graph that kernels may launch: without the empty node of the other graphs here.
fn launchable(things: &Things) -> Result<(Graph, KernelNode), Refusal> {
    let graph = things.context.graph()?;
    let fill = graph.root().fill(&things.buffer, 1)?;
    let params = params![&things.buffer, N];
    // SAFETY: the arguments are the kernel's, and the count is the buffer's.
    let kernel = unsafe { fill.then().launch_untyped(&things.increment, per(LEN, 32), params) }?;
    Ok((graph, kernel))
}

fn typed(things: &Things) -> Result<(Graph, increment, KernelNode), Refusal> {
    let (graph, increment) = (things.context.graph()?, increment::load(&things.context)?);
    let node = graph.root().launch(&increment, per(LEN, 32), (&things.buffer, N))?;
    Ok((graph, increment, node))
}

fn for_devices(things: &Things) -> Result<GraphExec, Refusal> {
    Ok(launchable(things)?.0.instantiate_with(InstantiateOptions::new().device_launch())?)
}

pub(crate) fn rows() -> Vec<Row> {
    [executables(), attributes(), launches(), pictures()].into_iter().flatten().collect()
}

fn executables() -> Vec<Row> {
    vec![
        prepared("Graph::instantiate_with node priorities", CALLS, drawn, |_, graph| {
            done(graph.instantiate_with(InstantiateOptions::new().node_priorities())?)
        }),
        prepared("Graph::instantiate_with an upload", CALLS, drawn, |things, graph| {
            done(graph.instantiate_with(InstantiateOptions::new().upload_on(&things.home))?)
        }),
        prepared("Graph::instantiate_with launches by kernels", CALLS, launchable, |_, (graph, _)| {
            done(graph.instantiate_with(InstantiateOptions::new().device_launch())?)
        }),
        prepared(
            "Graph::instantiate_with all that goes together",
            CALLS,
            launchable,
            |things, (graph, _)| {
                let options = InstantiateOptions::new().node_priorities().device_launch();
                done(graph.instantiate_with(options.upload_on(&things.home))?)
            },
        ),
        prepared("GraphExec::upload of one for kernels", PERMITTED, for_devices, |things, mut exec| {
            Ok(exec.upload(&things.home)?)
        }),
        prepared("GraphExec::launch of one for kernels", PERMITTED, for_devices, |things, mut exec| {
            Ok(exec.launch(&things.home)?)
        }),
        prepared("GraphExec::options, graph, as_raw", PURE, for_devices, |_, exec| {
            assert!(exec.options().is_for_device_launch() && !exec.as_raw().is_null());
            done(exec.graph())
        }),
        drops("drop of an executable for kernels", for_devices),
    ]
}

fn attributes() -> Vec<Row> {
    vec![
        prepared("KernelNode::attribute of every kind", CALLS, launchable, |_, (_graph, node)| {
            use NodeAttributeKind as Of;
            let kinds = [
                Of::Cluster,
                Of::Cooperative,
                Of::Priority,
                Of::MemorySyncDomain,
                Of::MemorySyncDomainMap,
                Of::SharedCarveout,
                Of::AccessPolicyWindow,
                Of::ClusterScheduling,
            ];
            kinds.into_iter().try_for_each(|kind| done(node.attribute(kind)?))
        }),
        prepared("KernelNode::set_attribute: memory domains", CALLS, launchable, |_, (_graph, node)| {
            node.set_attribute(NodeAttribute::MemorySyncDomain(MemorySyncDomain::Remote))?;
            Ok(node.set_attribute(NodeAttribute::MemorySyncDomainMap { default: 1, remote: 0 })?)
        }),
        prepared("KernelNode::set_attribute: clusters' places", CALLS, launchable, |_, (_graph, node)| {
            Ok(node.set_attribute(NodeAttribute::ClusterScheduling(ClusterScheduling::Spread))?)
        }),
        prepared("KernelNode::set_attribute: a window", CALLS, launchable, |things, (_graph, node)| {
            let window = AccessPolicyWindow::of(&things.buffer, CacheUse::Streaming);
            Ok(node.set_attribute(NodeAttribute::AccessPolicyWindow(window))?)
        }),
        prepared(
            "KernelNode::copy_attributes_from another graph",
            CALLS,
            |things| {
                let ((first, from), (second, to)) = (launchable(things)?, launchable(things)?);
                from.set_attribute(NodeAttribute::Priority(-1))?;
                Ok((first, second, from, to))
            },
            |_, (_first, _second, from, to)| {
                // SAFETY: the kernel has no clusters.
                Ok(unsafe { to.copy_attributes_from(&from) }?)
            },
        ),
    ]
}

fn launches() -> Vec<Row> {
    vec![
        prepared(
            "KernelNode::set",
            CALLS,
            |things| Ok((increment::load(&things.context)?, launchable(things)?.1)),
            |things, (increment, node)| Ok(node.set(&increment, per(LEN, 16), (&things.buffer, N))?),
        ),
        prepared("KernelNode::set_argument", CALLS, typed, |_, (_graph, increment, node)| {
            Ok(node.set_argument(&increment, "n", N)?)
        }),
        prepared("KernelNode::set_config", CALLS, typed, |_, (_graph, increment, node)| {
            Ok(node.set_config(&increment, per(LEN, 16))?)
        }),
        prepared("KernelNode::set_kernel", CALLS, typed, |_, (_graph, increment, node)| {
            Ok(node.set_kernel(&increment)?)
        }),
        prepared(
            "|node| node.then_with(cuda_graph::EdgeKind::Programmatic)",
            CALLS,
            launchable,
            |things, (_graph, node)| {
                let params = params![&things.buffer, N];
                let config = LaunchConfig::new(2, 32);
                // SAFETY: the graph is never launched.
                done(unsafe {
                    node.then_with(cuda_graph::EdgeKind::Programmatic).launch_untyped(
                        &things.increment,
                        config,
                        params,
                    )
                }?)
            },
        ),
        prepared("Frontier::copy_peer", CALLS, drawn, |things, graph| {
            done(graph.root().copy_peer(things.buffer.slice(..8)?, things.buffer.slice(8..16)?)?)
        }),
        prepared(
            "MemcpyNode::set_peer",
            CALLS,
            |things| Ok(super::nodes(things)?.2),
            |things, copy| Ok(copy.set_peer(things.buffer.slice(8..16)?, things.buffer.slice(..8)?)?),
        ),
        prepared(
            "add in an edge",
            CALLS,
            |things| {
                let graph = things.context.graph()?;
                let first = graph.root().empty()?;
                let second = first.then().empty()?;
                Ok((graph, first, second))
            },
            |_, (graph, first, second)| done(graph.between(&first, &second)?.empty()?),
        ),
        prepared(
            "add before others by an edge of another kind",
            CALLS,
            launchable,
            |things, (graph, node)| {
                let at = graph.root().before_all([(&*node, EdgeKind::Programmatic)])?;
                let params = params![&things.buffer, N];
                // SAFETY: the graph is never launched.
                done(unsafe { at.launch_untyped(&things.increment, per(LEN, 32), params) }?)
            },
        ),
    ]
}

fn pictures() -> Vec<Row> {
    vec![
        prepared("Graph::to_svg", CALLS, drawn, |_, graph| done(graph.to_svg()?)),
        prepared("Graph::debug_dot", PERMITTED, drawn, |_, graph| {
            let path = std::env::temp_dir().join(format!("cuda-graph-states-{}.dot", std::process::id()));
            let written = graph.debug_dot(&path, DebugDotFlags::default());
            let _ = std::fs::remove_file(&path);
            Ok(written?)
        }),
    ]
}
