//! The part of each node in the order: transparent, opaque, or only passing order on.

use crate::footprint::Footprint;
use crate::shape::planning::drawn::{Drawn, DrawnEdge, Role};
use crate::toposort::Successors;

/// The part of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Part {
    /// Its accesses say which order it needs.
    Transparent,
    /// It needs its order with all nodes.
    Opaque,
    /// It is empty, and orders those before it and those behind it.
    Passes,
}

/// The parts of all nodes.
#[derive(Debug)]
pub(super) struct Parts {
    parts: Vec<Part>,
    /// The nodes that keep their edges as drawn.
    keeps_edges: Vec<bool>,
}

impl Parts {
    pub(super) fn of(
        drawn: &Drawn,
        footprints: &[Footprint],
        order: &[u32],
        successors: &Successors,
        predecessors: &Successors,
    ) -> Self {
        let part = |(node, footprint): (usize, &Footprint)| match (drawn.nodes[node].role, footprint) {
            (_, Footprint::Opaque(_)) => Part::Opaque,
            (Role::Empty, Footprint::Known(_)) => Part::Passes,
            (_, Footprint::Known(_)) => Part::Transparent,
        };
        let mut parts = Self {
            parts: footprints.iter().enumerate().map(part).collect(),
            keeps_edges: vec![false; drawn.nodes.len()],
        };
        parts.keep_edges(drawn, successors, predecessors);
        parts.keep_joins(order, predecessors);
        parts.keep_joins(order.iter().rev(), successors);
        parts
    }

    pub(super) fn of_node(&self, node: u32) -> Part {
        self.parts[node as usize]
    }

    /// Whether a full edge stays as it is drawn.
    pub(super) fn keeps_edge(&self, edge: &DrawnEdge) -> bool {
        self.keeps_edges[edge.from as usize] || self.keeps_edges[edge.to as usize]
    }

    /// Nodes at edges that are not full keep their edges, and so do empty nodes beside them.
    fn keep_edges(&mut self, drawn: &Drawn, successors: &Successors, predecessors: &Successors) {
        let special = drawn.edges.iter().filter(|edge| !edge.is_full);
        let mut waiting: Vec<u32> = special.flat_map(|edge| [edge.from, edge.to]).collect();
        while let Some(node) = waiting.pop() {
            if core::mem::replace(&mut self.keeps_edges[node as usize], true) {
                continue;
            }
            self.parts[node as usize] = Part::Opaque;
            let beside = successors.of(node).iter().chain(predecessors.of(node));
            waiting.extend(beside.filter(|node| self.parts[**node as usize] == Part::Passes));
        }
    }

    /// Makes empty nodes opaque whose neighbours on one side are: that orders nothing anew.
    fn keep_joins<'o>(&mut self, order: impl IntoIterator<Item = &'o u32>, neighbours: &Successors) {
        for &node in order {
            let mut beside = neighbours.of(node).iter().peekable();
            if self.parts[node as usize] == Part::Passes
                && beside.peek().is_some()
                && beside.all(|node| self.parts[*node as usize] == Part::Opaque)
            {
                self.parts[node as usize] = Part::Opaque;
            }
        }
    }
}
