//! Reads the graph of an executable into a drawing.

use crate::draw::collect::{DEEPEST, collect, edge_kind, kind, labelled, node_alone};
use crate::draw::drawing::{Drawing, DrawnEdge, DrawnNode};
use crate::error::{Error, NodeError, Result};
use crate::exec::GraphExec;
use crate::node_kind::NodeKind;
use crate::shape::made::Item;
use crate::shape::shaped::ShapedGraph;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;

/// The drawing of the graph that an executable was made of.
pub(super) fn drawing_of(exec: &GraphExec) -> Result<Drawing> {
    let graph = exec.graph().ok_or(Error::Node(NodeError::GraphRemoved))?;
    let mut guard = graph.enter()?;
    match exec.shaped() {
        Some(shaped) => Ok(level(&guard, shaped, 0, "shaped CUDA graph".to_owned(), 0)),
        None => collect(&mut guard),
    }
}

/// One graph of a shaped one: the graph itself, or a body.
fn level(guard: &GraphGuard<'_>, shaped: &ShapedGraph, place: usize, title: String, depth: usize) -> Drawing {
    let (mut nodes, mut edges) = (Vec::new(), Vec::new());
    let made = shaped.graphs().get(place).map_or(&[][..], Vec::as_slice);
    for (number, made) in (0..).zip(made) {
        let drawn = match made.item {
            Item::Copy(id) => of_node(guard, id),
            Item::Substitute(id) => {
                let drawn = of_node(guard, id);
                let mark = format!("in place of a {}", drawn.kind.label);
                DrawnNode { kind: kind(NodeKind::Kernel), marks: vec![mark], ..drawn }
            }
            Item::Conditional { id, first, count } => {
                let mut drawn = of_node(guard, id);
                let bodies = guard.record(id).map(|record| labelled(&record.node_params));
                for ((label, _), body) in bodies.into_iter().flatten().zip((first..).take(count)) {
                    if depth < DEEPEST {
                        let inside = level(guard, shaped, body, drawn.name.clone(), depth + 1);
                        drawn.children.push((label, inside));
                    }
                }
                drawn
            }
            Item::Empty => of_shaping(NodeKind::Empty, "empty"),
            Item::Nothing => of_shaping(NodeKind::Kernel, "nothing"),
        };
        nodes.push(DrawnNode { id: number, ..drawn });
        edges.extend(made.after.iter().map(|&(from, kind)| DrawnEdge {
            from,
            to: number,
            kind: edge_kind(kind),
        }));
    }
    Drawing { title, nodes, edges }
}

/// A node of the user, as its graph has it now.
fn of_node(guard: &GraphGuard<'_>, id: NodeId) -> DrawnNode {
    node_alone(guard, id).unwrap_or_else(|| of_shaping(NodeKind::Empty, "removed"))
}

/// A node that the user has not drawn.
fn of_shaping(node: NodeKind, name: &str) -> DrawnNode {
    DrawnNode {
        id: 0,
        kind: kind(node),
        name: name.to_owned(),
        details: Vec::new(),
        children: Vec::new(),
        marks: Vec::new(),
    }
}
