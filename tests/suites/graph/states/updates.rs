//! Updates of nodes of executables.

use cuda_graph::{ChildGraphNode, GraphExec, HostCallbackNode, KernelNode, MemcpyNode, MemsetNode};
use cuda_graph::{ContextExt, EventRecordNode, EventWaitNode, InstantiateOptions, Shape};
use cuda_handles::Owner;
use cuda_launch::{params, per};
use cuda_tests::states::{CALLS, LEN, PURE, Refusal, Row, Things, done, prepared};

use super::{CHECKS, N, drawn, nodes};

type Nodes = (GraphExec, MemsetNode, MemcpyNode, KernelNode);

/// An executable that has run, with its nodes.
fn launched(things: &Things) -> Result<Nodes, Refusal> {
    let (graph, fill, copy, kernel) = nodes(things)?;
    let mut exec = graph.instantiate()?;
    exec.launch(&things.home)?;
    Ok((exec, fill, copy, kernel))
}

type Calls = (GraphExec, HostCallbackNode, EventRecordNode, EventWaitNode);

fn calls(things: &Things) -> Result<Calls, Refusal> {
    let graph = things.context.graph()?;
    let (record, wait) = (graph.root().record(&things.event)?, graph.root().wait(&things.event)?);
    let host = record.then().host(|| ())?;
    Ok((graph.instantiate()?, host, record, wait))
}

fn nested(things: &Things) -> Result<(GraphExec, ChildGraphNode, cuda_graph::Graph), Refusal> {
    let (graph, inner) = (things.context.graph()?, drawn(things)?);
    let child = graph.root().child(&inner)?;
    // Shaping expands child graphs.
    let as_drawn = InstantiateOptions::new().shape(Shape::AsBuilt);
    Ok((graph.instantiate_with(as_drawn)?, child, inner))
}

unsafe extern "C" fn nothing(_data: *mut core::ffi::c_void) {}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        prepared("ExecNode::set of a kernel", CALLS, launched, |things, (mut exec, .., kernel)| {
            let params = params![&things.buffer, N];
            // SAFETY: the arguments are the kernel's, and the count is the buffer's.
            Ok(unsafe { exec.node(&kernel).set_untyped(&things.increment, per(LEN, 16), params) }?)
        }),
        prepared("ExecNode::set of a fill", CALLS, launched, |things, (mut exec, fill, ..)| {
            exec.node(&fill).set(&things.buffer, 2)?;
            Ok(exec.node(&fill).set_clear(&things.buffer)?)
        }),
        prepared("ExecNode::set of a copy", CALLS, launched, |things, (mut exec, _, copy, _)| {
            Ok(exec.node(&copy).set(things.buffer.slice(..4)?, things.buffer.slice(4..8)?)?)
        }),
        prepared("ExecNode::set of a host function", CALLS, calls, |_, (mut exec, host, ..)| {
            exec.node(&host).set(|| ())?;
            // SAFETY: the function does nothing.
            unsafe {
                exec.node(&host).set_function(nothing, 1_u32)?;
                Ok(exec.node(&host).set_raw(nothing, core::ptr::null_mut(), Owner::other(()))?)
            }
        }),
        prepared("ExecNode::set_event", CALLS, calls, |things, (mut exec, _, record, wait)| {
            exec.node(&record).set_event(&things.event)?;
            Ok(exec.node(&wait).set_event(&things.event)?)
        }),
        prepared("ExecNode::set_graph", CALLS, nested, |_, (mut exec, child, inner)| {
            Ok(exec.node(&child).set_graph(&inner)?)
        }),
        prepared("ExecNode::set_enabled", CALLS, launched, |_, (mut exec, .., kernel)| {
            exec.node(&kernel).set_enabled(false)?;
            Ok(exec.node(&kernel).set_enabled(true)?)
        }),
        prepared("ExecNode::is_enabled", CHECKS, launched, |_, (mut exec, fill, ..)| {
            done(exec.node(&fill).is_enabled()?)
        }),
        prepared(
            "GraphExec::release",
            PURE,
            |things| {
                let (mut exec, fill, ..) = launched(things)?;
                exec.node(&fill).set(&things.buffer, 2)?;
                exec.launch(&things.home)?;
                exec.node(&fill).set(&things.buffer, 3)?;
                Ok(exec)
            },
            |_, mut exec| {
                exec.release();
                Ok(())
            },
        ),
    ]
}
