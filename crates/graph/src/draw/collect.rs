//! From a graph to its drawing.

use crate::draw::drawing::{Drawing, DrawnEdge, DrawnEdgeKind, DrawnKind, DrawnNode, Family};
use crate::edge_kind::EdgeKind;
use crate::error::Result;
use crate::graph::Locked;
use crate::node_kind::NodeKind;
use crate::state::ids::{NodeId, Place};
use crate::state::params::Detail;

/// Graphs in graphs deeper than this are said to be there, not drawn: who writes pictures goes down
/// by recursion.
const DEEPEST: usize = 32;

/// The drawing of the locked graph, taken in one look at it.
pub(crate) fn collect(locked: &mut Locked<'_>) -> Result<Drawing> {
    let place = locked.place();
    let node = locked.embedded(place).map(|graph| graph.node);
    let title = match node {
        Some(node) => locked.name(node).into_string(),
        None => "CUDA graph".to_owned(),
    };
    drawing(locked, place, title, 0)
}

fn drawing(locked: &mut Locked<'_>, place: Place, title: String, depth: usize) -> Result<Drawing> {
    let raw = locked.graph_at(place)?;
    let mut nodes = Vec::new();
    for raw in locked.raw_nodes_of(raw)? {
        let index = locked.index_in(place, raw)?;
        if let Some(id) = locked.id(index) {
            nodes.extend(node(locked, id, depth)?);
        }
    }
    let mut edges = Vec::new();
    for (from, to, kind) in locked.raw_edges_of(raw)? {
        let (from, to) = (locked.index_in(place, from)?, locked.index_in(place, to)?);
        edges.push(DrawnEdge { from, to, kind: edge_kind(kind) });
    }
    Ok(Drawing { title, nodes, edges })
}

fn node(locked: &mut Locked<'_>, id: NodeId, depth: usize) -> Result<Option<DrawnNode>> {
    locked.inside(id)?;
    let Some(row) = locked.row(id) else { return Ok(None) };
    let mut node = DrawnNode {
        id: id.index,
        kind: kind(row.detail.kind()),
        name: row.display_name(id),
        details: details(locked, id, &row.detail, row.name.is_some()),
        children: Vec::new(),
        marks: Vec::new(),
    };
    for (label, place) in labelled(&row.detail) {
        if locked.about(place).is_some_and(|about| about.lent.is_some()) {
            node.marks.push("lent".to_owned());
        }
        if depth < DEEPEST {
            node.children.push((label, drawing(locked, place, node.name.clone(), depth + 1)?));
        } else {
            node.marks.push("more inside".to_owned());
        }
    }
    Ok(Some(node))
}

/// The graphs in a node, and what they are called there.
fn labelled(detail: &Detail) -> Vec<(String, Place)> {
    let label = |index| match detail {
        Detail::Conditional(conditional) => conditional.class.body_name(index),
        _ => String::new(),
    };
    detail.inside().iter().enumerate().map(|(index, place)| (label(index), *place)).collect()
}

fn kind(kind: NodeKind) -> DrawnKind {
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

fn edge_kind(kind: EdgeKind) -> DrawnEdgeKind {
    match kind {
        EdgeKind::Full => DrawnEdgeKind::Full,
        EdgeKind::Programmatic => DrawnEdgeKind::Programmatic,
        EdgeKind::LaunchOrder => DrawnEdgeKind::LaunchOrder,
        EdgeKind::ProgrammaticLaunchOrder => DrawnEdgeKind::ProgrammaticLaunchOrder,
        EdgeKind::Other { .. } => DrawnEdgeKind::Other(kind.to_string()),
    }
}

/// The conditions whose handles a kernel has, which it can do nothing with but set them.
fn conditions(locked: &Locked<'_>, id: NodeId) -> Option<String> {
    let numbers: Vec<String> = locked.conditions.of_kernel(id.index).iter().map(u64::to_string).collect();
    let plural = if numbers.len() == 1 { "" } else { "s" };
    (!numbers.is_empty()).then(|| format!("sets condition{plural} {}", numbers.join(", ")))
}

/// What the name does not say: the default name of a kernel node has the kernel's in it.
fn details(locked: &Locked<'_>, id: NodeId, detail: &Detail, is_named: bool) -> Vec<String> {
    let mut lines = Vec::new();
    match detail {
        Detail::Kernel { kernel, config, .. } => {
            lines.extend(is_named.then(|| kernel.name().to_string()));
            lines.push(config.get().to_string());
            lines.extend(conditions(locked, id));
        }
        Detail::Free { address, .. } => lines.push(match locked.memory.freed_by(*address, id) {
            Some(life) => format!("frees {}", locked.name(life.alloc)),
            None => detail.summary(),
        }),
        other => lines.push(other.summary()),
    }
    lines.retain(|line| !line.is_empty());
    lines
}
