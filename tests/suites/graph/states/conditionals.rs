//! Conditions, conditional nodes, and kernels that set conditions.

use cuda_graph::{Condition, ContextExt, Graph, IfNode};
use cuda_launch::per;
use cuda_tests::states::{CALLS, PERMITTED, PURE, Refusal, Row, Things, done, prepared};

use crate::conditions::branches_and_loops::set_to;

fn with_condition(things: &Things) -> Result<(Graph, Condition), Refusal> {
    let graph = things.context.graph()?;
    let condition = graph.condition_with_default(1)?;
    Ok((graph, condition))
}

/// A branch, and a condition that its body has no node for yet.
fn branch(things: &Things) -> Result<(Graph, IfNode, Condition), Refusal> {
    let (graph, condition) = with_condition(things)?;
    let node = graph.root().if_node(&condition)?;
    let inner = graph.condition()?;
    Ok((graph, node, inner))
}

fn complete(things: &Things) -> Result<(Graph, IfNode), Refusal> {
    let (graph, condition) = with_condition(things)?;
    let node = graph.root().if_node(&condition)?;
    node.body()?.root().fill(&things.buffer, 1)?;
    Ok((graph, node))
}

fn deciding(things: &Things) -> Result<(set_to, Graph, Condition), Refusal> {
    let kernel = set_to::load(&things.context)?;
    let (graph, condition) = with_condition(things)?;
    Ok((kernel, graph, condition))
}

pub(crate) fn rows() -> Vec<Row> {
    vec![
        prepared("Graph::condition", PERMITTED, super::drawn, |_, graph| done(graph.condition()?)),
        prepared("Frontier::if_node", PERMITTED, with_condition, |_, (graph, condition)| {
            done(graph.root().if_node(&condition)?)
        }),
        prepared("Frontier::if_else_node", PERMITTED, with_condition, |_, (graph, condition)| {
            done(graph.root().if_else_node(&condition)?)
        }),
        prepared("Frontier::while_node", PERMITTED, with_condition, |_, (graph, condition)| {
            done(graph.root().while_node(&condition)?)
        }),
        prepared("Frontier::switch_node", PERMITTED, with_condition, |_, (graph, condition)| {
            done(graph.root().switch_node(&condition, 3)?)
        }),
        prepared("Frontier::if_node in a body", PERMITTED, branch, |_, (_graph, node, inner)| {
            done(node.body()?.root().if_node(&inner)?)
        }),
        prepared("Frontier::fill in a body", CALLS, branch, |things, (_graph, node, _inner)| {
            done(node.body()?.root().fill(&things.buffer, 1)?)
        }),
        prepared("Frontier::launch with a condition", CALLS, deciding, |_, (kernel, graph, condition)| {
            done(graph.root().launch(&kernel, per(1, 1), (1, &condition))?)
        }),
        prepared("bodies, Condition::node", PURE, branch, |_, (graph, node, inner)| {
            assert!(inner.node()?.is_none() && inner.graph() == &graph);
            done((node.body()?, node.all_bodies()?))
        }),
        prepared("Graph::instantiate with a conditional", CALLS, complete, |_, (graph, _)| {
            done({ graph }.instantiate()?)
        }),
        prepared(
            "GraphExec::launch with a conditional",
            PERMITTED,
            |things| Ok(complete(things)?.0.instantiate()?),
            |things, mut exec| Ok(exec.launch(&things.home)?),
        ),
        prepared("Node::remove of a conditional", CALLS, complete, |_, (_graph, node)| Ok(node.remove()?)),
    ]
}
