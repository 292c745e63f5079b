//! Host nodes, event nodes, and changes of launches.

use cuda_graph::{
    ContextExt, EventRecordNode, EventWaitNode, Graph, HostCallbackNode, KernelNode, NodeAttribute,
    NodeAttributeKind,
};
use cuda_handles::{Owner, SharedHostBuffer};
use cuda_launch::{params, per};
use cuda_tests::states::{CALLS, LEN, PERMITTED, PURE, Refusal, Row, Things, done, drops, prepared};

use super::{N, nodes};

type Calls = (Graph, HostCallbackNode, EventRecordNode, EventWaitNode);

fn calls(things: &Things) -> Result<Calls, Refusal> {
    let graph = things.context.graph()?;
    let (record, wait) = (graph.root().record(&things.event)?, graph.root().wait(&things.event)?);
    let host = record.then().host(|| ())?;
    Ok((graph, host, record, wait))
}

fn looked_at(things: &Things) -> Result<(Calls, SharedHostBuffer<u32>), Refusal> {
    Ok((calls(things)?, things.context.pinned_zeros(LEN)?.share()))
}

unsafe extern "C" fn nothing(_data: *mut core::ffi::c_void) {}

fn kernel_node(things: &Things) -> Result<KernelNode, Refusal> {
    Ok(nodes(things)?.3)
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        prepared("Frontier::host", PERMITTED, calls, |_, (graph, ..)| done(graph.root().host(|| ())?)),
        prepared("Frontier::host_function, host_raw", PERMITTED, calls, |_, (graph, ..)| {
            // SAFETY: the function does nothing.
            unsafe {
                graph.root().host_function(nothing, 1_u32)?;
                done(graph.root().host_raw(nothing, core::ptr::null_mut(), Owner::other(()))?)
            }
        }),
        prepared("Frontier::record", PERMITTED, calls, |things, (graph, ..)| {
            done(graph.root().record(&things.event)?)
        }),
        prepared("Frontier::wait", PERMITTED, calls, |things, (graph, ..)| {
            done(graph.root().wait(&things.event)?)
        }),
        prepared("Frontier::host_with", PERMITTED, looked_at, |_, ((graph, ..), memory)| {
            done(graph.root().host_with(&memory, |view| drop(view.to_vec()))?)
        }),
        prepared("HostCallbackNode::set_with", PERMITTED, looked_at, |_, ((_graph, host, ..), memory)| {
            Ok(host.set_with((&memory, &memory), |(one, other)| drop((one.to_vec(), other.len())))?)
        }),
        prepared("HostCallbackNode::set", PERMITTED, calls, |_, (_, host, ..)| Ok(host.set(|| ())?)),
        prepared("HostCallbackNode::set_function, set_raw", PERMITTED, calls, |_, (_, host, ..)| {
            // SAFETY: the function does nothing.
            unsafe {
                host.set_function(nothing, 1_u32)?;
                Ok(host.set_raw(nothing, core::ptr::null_mut(), Owner::other(()))?)
            }
        }),
        prepared("HostCallbackNode::function, data", PURE, calls, |_, (_, host, ..)| {
            done((host.function()?, host.data()?))
        }),
        prepared("EventRecordNode::set_event", PERMITTED, calls, |things, (_, _, record, _)| {
            Ok(record.set_event(&things.event)?)
        }),
        prepared("EventWaitNode::set_event", PERMITTED, calls, |things, (.., wait)| {
            Ok(wait.set_event(&things.event)?)
        }),
        prepared("EventRecordNode::event, EventWaitNode::event", PURE, calls, |_, (_, _, record, wait)| {
            drop((record.event()?, wait.event()?));
            Ok(())
        }),
        prepared("KernelNode::set_untyped", CALLS, kernel_node, |things, node| {
            let params = params![&things.buffer, N];
            // SAFETY: the graph is never launched.
            Ok(unsafe { node.set_untyped(&things.increment, per(LEN, 16), params) }?)
        }),
        prepared("KernelNode::set_untyped with attributes", CALLS, kernel_node, |things, node| {
            let params = params![&things.buffer, N];
            // SAFETY: as above.
            Ok(unsafe { node.set_untyped(&things.increment, per(LEN, 16).priority(-1), params) }?)
        }),
        prepared("KernelNode::attribute", CALLS, kernel_node, |_, node| {
            done(node.attribute(NodeAttributeKind::Priority)?)
        }),
        prepared("KernelNode::set_attribute", CALLS, kernel_node, |_, node| {
            Ok(node.set_attribute(NodeAttribute::Priority(-1))?)
        }),
        prepared("KernelNode::copy_attributes_from", CALLS, kernel_node, |_, node| {
            // SAFETY: they are its own.
            Ok(unsafe { node.copy_attributes_from(&node) }?)
        }),
        prepared(
            "GraphExec::launch of callbacks and events",
            PERMITTED,
            |things| Ok(calls(things)?.0.instantiate()?),
            |things, mut exec| Ok(exec.launch(&things.home)?),
        ),
        drops("drop of a graph with callbacks and events", |things| Ok(calls(things)?.0)),
    ]
}
