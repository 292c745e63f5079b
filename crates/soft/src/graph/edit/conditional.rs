//! Conditional handles and conditional nodes.

use crate::graph::edit::insert;
use crate::graph::model::hierarchy;
use cuda_sys::{CUDA_CONDITIONAL_NODE_PARAMS, CUgraphConditionalNodeType, Version};

use crate::device::context;
use crate::driver;
use crate::driver::handle::number;
use crate::driver::result_code::{Answer, INVALID_CONTEXT, INVALID_VALUE};
use crate::graph::model::edge::Edge;
use crate::graph::model::graph::Condition;
use crate::graph::model::graph::Owner;
use crate::graph::model::graphs::Graphs;
use crate::graph::model::payload::{ConditionalKind, ConditionalNode, Payload};

/// The real driver accepts at least 10 000. The limit keeps a senseless number from exhausting host
/// memory.
const MOST_BODIES: u32 = 1 << 20;

fn condition(raw: &CUDA_CONDITIONAL_NODE_PARAMS) -> Answer<ConditionalKind> {
    let newer = driver::version() >= Version::new(12, 8);
    match (raw.type_, raw.size) {
        (CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF, 1) => Ok(ConditionalKind::If),
        (CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF, 2) if newer => Ok(ConditionalKind::If),
        (CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_WHILE, 1) => Ok(ConditionalKind::While),
        (CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_SWITCH, 1..=MOST_BODIES) if newer => {
            Ok(ConditionalKind::Switch)
        }
        _ => Err(INVALID_VALUE),
    }
}

/// Creates a conditional handle of the root of a graph.
pub(crate) fn create_condition(
    graphs: &mut Graphs,
    graph: u64,
    context: u64,
    default: Option<u32>,
) -> Answer<u64> {
    if context == 0 || context::get(context).is_err() {
        return Err(INVALID_CONTEXT);
    }
    graphs.graph(graph)?;
    let root = hierarchy::root(graphs, graph);
    let root = graphs.graph_mut(root)?;
    let handle = root.next_condition;
    root.next_condition += 1;
    root.conditions.insert(handle, Condition { default, context, node: None });
    Ok(handle)
}

/// Adds a conditional node with empty bodies.
pub(crate) fn add_conditional(
    graphs: &mut Graphs,
    graph: u64,
    dependencies: &[(u64, Edge)],
    raw: &CUDA_CONDITIONAL_NODE_PARAMS,
) -> Answer<u64> {
    // Older drivers lack this type of node.
    if driver::version() < Version::new(12, 3) {
        return Err(INVALID_VALUE);
    }
    let condition = condition(raw)?;
    if raw.ctx.is_null() {
        return Err(INVALID_CONTEXT);
    }
    graphs.graph(graph)?;
    let root = hierarchy::root(graphs, graph);
    let known = graphs.graph(root)?.conditions.get(&raw.handle).copied().ok_or(INVALID_VALUE)?;
    if is_used(graphs, &known) || number(raw.ctx) != known.context {
        return Err(INVALID_VALUE);
    }
    let bodies: Box<[u64]> = (0..raw.size).map(|_| graphs.create(Owner::User)).collect();
    let payload =
        ConditionalNode { handle: raw.handle, condition, bodies: bodies.clone(), context: known.context };
    let node = insert::insert(graphs, graph, dependencies, Payload::Conditional(payload))?;
    for body in bodies {
        graphs.graph_mut(body)?.owner = Owner::Body { node };
    }
    let uid = graphs.node(node)?.uid;
    if let Some(condition) = graphs.graph_mut(root)?.conditions.get_mut(&raw.handle) {
        condition.node = Some((node, uid));
    }
    Ok(node)
}

/// Whether a live node uses the condition.
pub(crate) fn is_used(graphs: &Graphs, condition: &Condition) -> bool {
    condition.node.is_some_and(|(node, uid)| graphs.node(node).is_ok_and(|node| node.uid == uid))
}

/// The driver's array of a conditional node's bodies.
pub(crate) fn body_array(graphs: &mut Graphs, node: u64) -> Answer<*mut cuda_sys::CUgraph> {
    match &mut graphs.node_mut(node)?.payload {
        Payload::Conditional(conditional) => Ok(conditional.bodies.as_mut_ptr().cast()),
        Payload::Task(_) | Payload::Child(_) => Err(INVALID_VALUE),
    }
}
