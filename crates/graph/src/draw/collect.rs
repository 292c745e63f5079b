//! Reads a graph into a drawing.

use crate::draw::drawing::{Drawing, DrawnEdge, DrawnEdgeKind, DrawnKind, DrawnNode, Family};
use crate::edge_kind::EdgeKind;
use crate::error::Result;
use crate::error::wrong_context::Spans;
use crate::node_kind::NodeKind;
use crate::state::guard::GraphGuard;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::params::NodeParams;

/// Graphs nested deeper than this are marked, not drawn: writers of pictures recurse into them.
pub(super) const DEEPEST: usize = 32;

/// The drawing of the locked graph.
pub(crate) fn collect(guard: &mut GraphGuard<'_>) -> Result<Drawing> {
    let subgraph = guard.subgraph();
    let node = guard.embedded(subgraph).map(|graph| graph.node);
    let title = match node {
        Some(node) => guard.name(node).into_string(),
        None => "CUDA graph".to_owned(),
    };
    drawing(guard, subgraph, title, 0)
}

fn drawing(guard: &mut GraphGuard<'_>, subgraph: SubgraphId, title: String, depth: usize) -> Result<Drawing> {
    let raw = guard.graph_at(subgraph)?;
    let mut nodes = Vec::new();
    for raw in guard.raw_nodes_of(raw)? {
        let index = guard.index_in(subgraph, raw)?;
        if let Some(id) = guard.id(index) {
            nodes.extend(node(guard, id, depth)?);
        }
    }
    let mut edges = Vec::new();
    for (from, to, kind) in guard.raw_edges_of(raw)? {
        let (from, to) = (guard.index_in(subgraph, from)?, guard.index_in(subgraph, to)?);
        edges.push(DrawnEdge { from, to, kind: edge_kind(kind) });
    }
    Ok(Drawing { title, nodes, edges })
}

/// A node without the graphs in it.
pub(super) fn node_alone(guard: &GraphGuard<'_>, id: NodeId) -> Option<DrawnNode> {
    let record = guard.record(id)?;
    Some(DrawnNode {
        id: id.index,
        kind: kind(record.node_params.kind()),
        name: record.display_name(id),
        details: details(guard, id, &record.node_params, record.name.is_some()),
        children: Vec::new(),
        marks: Vec::new(),
    })
}

fn node(guard: &mut GraphGuard<'_>, id: NodeId, depth: usize) -> Result<Option<DrawnNode>> {
    let Some((mut node, record)) = node_alone(guard, id).zip(guard.record(id)) else { return Ok(None) };
    for (label, subgraph) in labelled(&record.node_params) {
        if guard.facts(subgraph).is_some_and(|facts| facts.lent.is_some()) {
            node.marks.push("lent".to_owned());
        }
        if depth < DEEPEST {
            node.children.push((label, drawing(guard, subgraph, node.name.clone(), depth + 1)?));
        } else {
            node.marks.push("more inside".to_owned());
        }
    }
    Ok(Some(node))
}

/// The graphs in a node, each with its label.
pub(super) fn labelled(node_params: &NodeParams) -> Vec<(String, SubgraphId)> {
    let label = |index| {
        if let NodeParams::Conditional(conditional) = node_params {
            conditional.kind.body_name(index)
        } else {
            String::new()
        }
    };
    node_params.subgraphs().iter().enumerate().map(|(index, subgraph)| (label(index), *subgraph)).collect()
}

pub(super) fn kind(kind: NodeKind) -> DrawnKind {
    let known = if let NodeKind::Other(raw) = kind { NodeKind::of(raw) } else { kind };
    let family = match known {
        NodeKind::Empty => Family::Empty,
        NodeKind::Kernel => Family::Kernel,
        NodeKind::Memcpy => Family::Copy,
        NodeKind::Memset => Family::Fill,
        NodeKind::ChildGraph => Family::Child,
        NodeKind::HostCallback => Family::Host,
        NodeKind::EventRecord | NodeKind::EventWait => Family::Signal,
        NodeKind::SemaphoreSignal | NodeKind::SemaphoreWait => Family::Signal,
        NodeKind::Batch => Family::Batch,
        NodeKind::Alloc | NodeKind::Free => Family::Memory,
        NodeKind::If | NodeKind::IfElse | NodeKind::While | NodeKind::Switch => Family::Conditional,
        NodeKind::Other(_) => Family::Other,
    };
    DrawnKind { family, label: kind.to_string() }
}

pub(super) fn edge_kind(kind: EdgeKind) -> DrawnEdgeKind {
    match kind {
        EdgeKind::Full => DrawnEdgeKind::Full,
        EdgeKind::Programmatic => DrawnEdgeKind::Programmatic,
        EdgeKind::LaunchOrder => DrawnEdgeKind::LaunchOrder,
        EdgeKind::ProgrammaticLaunchOrder => DrawnEdgeKind::ProgrammaticLaunchOrder,
        EdgeKind::Other { .. } => DrawnEdgeKind::Other(kind.to_string()),
    }
}

/// The conditions that a kernel sets: those whose handles it has, since it can do nothing else with
/// them.
fn conditions(guard: &GraphGuard<'_>, id: NodeId) -> Option<String> {
    let numbers: Vec<String> = guard.conditions.of_kernel(id.index).iter().map(u64::to_string).collect();
    let plural = if numbers.len() == 1 { "" } else { "s" };
    (!numbers.is_empty()).then(|| format!("sets condition{plural} {}", numbers.join(", ")))
}

/// The parameters that the name does not contain: the default name of a kernel node contains the
/// kernel's.
fn details(guard: &GraphGuard<'_>, id: NodeId, node_params: &NodeParams, is_named: bool) -> Vec<String> {
    let mut lines = Vec::new();
    match node_params {
        NodeParams::Kernel { kernel, config, .. } => {
            lines.extend(is_named.then(|| kernel.name().to_string()));
            lines.push(config.get().to_string());
            lines.extend(conditions(guard, id));
        }
        NodeParams::Free { address, .. } => lines.push(match guard.memory.freed_by(*address, id) {
            Some(life) => format!("frees {}", guard.name(life.alloc)),
            None => node_params.summary(),
        }),
        other => lines.push(other.summary()),
    }
    lines.extend(device(guard, id, node_params));
    lines.retain(|line| !line.is_empty());
    lines
}

/// The device of a node, in a graph that spans several contexts.
fn device(guard: &GraphGuard<'_>, id: NodeId, node_params: &NodeParams) -> Option<String> {
    let has_one = matches!(
        node_params,
        NodeParams::Kernel { .. }
            | NodeParams::Memcpy(_)
            | NodeParams::Memset(_)
            | NodeParams::EventRecord(_)
            | NodeParams::Batch(_)
    );
    let shows = has_one && guard.is_wide();
    shows.then(|| format!("on device {}", guard.context_of(id).device().ordinal()))
}
