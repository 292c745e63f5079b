//! Semaphore nodes; on the software driver only, whose semaphores need no Vulkan.

use cuda_graph::{ContextExt, Graph, SemaphoreSignalNode, SemaphoreWaitNode};
use cuda_handles::{ExternalSemaphore, SemaphoreKind};
use cuda_tests::is_soft;
use cuda_tests::states::{CALLS, PURE, Refusal, Row, Things, done, drops, prepared};

type Nodes = (Graph, ExternalSemaphore, SemaphoreSignalNode, SemaphoreWaitNode);

fn nodes(things: &Things) -> Result<Nodes, Refusal> {
    let outside = cuda_soft::control::ExternalSemaphore::new().unwrap();
    outside.set_value(1);
    let descriptor = outside.descriptor().unwrap();
    // SAFETY: it is of a timeline.
    let semaphore =
        unsafe { ExternalSemaphore::import(&things.context, SemaphoreKind::Timeline, descriptor) }?;
    let graph = things.context.graph()?;
    let wait = graph.root().wait_semaphores([(&semaphore, 1)])?;
    let signal = wait.then().signal([(&semaphore, 2)])?;
    Ok((graph, semaphore, signal, wait))
}

pub(crate) fn rows() -> Vec<Row> {
    // Installs the driver.
    drop(cuda_tests::setup());
    if !is_soft() {
        return Vec::new();
    }
    vec![
        prepared("Frontier::signal", CALLS, nodes, |_, (graph, semaphore, ..)| {
            done(graph.root().signal([(&semaphore, 3)])?)
        }),
        prepared("Frontier::wait_semaphores", CALLS, nodes, |_, (graph, semaphore, ..)| {
            done(graph.root().wait_semaphores([(&semaphore, 1)])?)
        }),
        prepared("SemaphoreSignalNode::set", CALLS, nodes, |_, (_graph, semaphore, signal, _)| {
            Ok(signal.set([(&semaphore, 4)])?)
        }),
        prepared("SemaphoreWaitNode::set", CALLS, nodes, |_, (_graph, semaphore, _, wait)| {
            Ok(wait.set([(&semaphore, 0)])?)
        }),
        prepared("SemaphoreSignalNode::set_value", CALLS, nodes, |_, (_graph, _, signal, _)| {
            Ok(signal.set_value(0, 5)?)
        }),
        prepared("SemaphoreWaitNode::set_value", CALLS, nodes, |_, (_graph, _, _, wait)| {
            Ok(wait.set_value(0, 0)?)
        }),
        prepared("SemaphoreSignalNode::set_semaphore", CALLS, nodes, |_, (_graph, semaphore, signal, _)| {
            Ok(signal.set_semaphore(0, &semaphore)?)
        }),
        prepared("SemaphoreWaitNode::set_semaphore", CALLS, nodes, |_, (_graph, semaphore, _, wait)| {
            Ok(wait.set_semaphore(0, &semaphore)?)
        }),
        prepared("Semaphore*Node::semaphores", PURE, nodes, |_, (_graph, _, signal, wait)| {
            done((signal.semaphores()?, wait.semaphores()?))
        }),
        drops("drop of a graph with semaphores", nodes),
    ]
}
