//! `Sketch`: the graph while it is shaped, with nodes numbered along the edges.

use super::drawn::{Drawn, HostSubmitted, Role, Substitute};
use crate::toposort::{Successors, sort};

/// The number of the kernel that is put in front of roots, if one is.
pub(super) const FRONT: u32 = 0;

/// A graph in which every edge leads from a lower number to a higher one.
#[derive(Clone, Debug)]
pub(super) struct Sketch<'a> {
    drawn: &'a Drawn,
    /// [`FRONT`], then the drawn nodes in a topological order.
    pub(super) nodes: Vec<SketchNode>,
    /// The full edges, sorted and distinct.
    pub(super) edges: Vec<(u32, u32)>,
    /// All other edges, sorted.
    pub(super) other_edges: Vec<(u32, u32)>,
    /// The edges that were full and became programmatic, sorted. Made last.
    pub(super) programmatic: Vec<(u32, u32)>,
    /// For each node, whether it is at an edge that is not full, and so keeps all of its edges.
    pub(super) is_fixed: Vec<bool>,
    /// For each node, the last node that is not empty and has a full edge to it as drawn; [`FRONT`]
    /// if there is none.
    pub(super) anchors: Vec<u32>,
}

/// What a number of a sketch stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum SketchNode {
    /// A drawn node, by its number in the drawing.
    Drawn(u32),
    /// A kernel of the library in place of a drawn node, by the number of that.
    Substitute(u32),
    /// A kernel that does nothing.
    NoOp,
    /// No node; no edge leads from or to it.
    Absent,
}

impl<'a> Sketch<'a> {
    /// The graph as drawn; `None` if it has a cycle.
    pub(super) fn new(drawn: &'a Drawn) -> Option<Self> {
        let ends = drawn.edges.iter().map(|edge| (edge.from, edge.to));
        let order = sort(&Successors::new(drawn.nodes.len(), ends))?;
        let mut numbers = vec![FRONT; order.len()];
        (1..).zip(&order).for_each(|(number, node)| numbers[*node as usize] = number);
        let edges_of = |is_full| {
            let edges = drawn.edges.iter().filter(|edge| edge.is_full == is_full);
            let mut edges: Vec<(u32, u32)> =
                edges.map(|edge| (numbers[edge.from as usize], numbers[edge.to as usize])).collect();
            edges.sort_unstable();
            edges
        };
        let (mut edges, other_edges) = (edges_of(true), edges_of(false));
        edges.dedup();
        let mut is_fixed = vec![false; order.len() + 1];
        for &(from, to) in &other_edges {
            is_fixed[from as usize] = true;
            is_fixed[to as usize] = true;
        }
        let anchors = vec![FRONT; order.len() + 1];
        let nodes = order.into_iter().map(SketchNode::Drawn);
        let nodes = core::iter::once(SketchNode::Absent).chain(nodes).collect();
        let mut sketch =
            Self { drawn, nodes, edges, other_edges, programmatic: Vec::new(), is_fixed, anchors };
        sketch.anchor();
        Some(sketch)
    }

    fn anchor(&mut self) {
        for number in 0..self.edges.len() {
            let (from, to) = self.edges[number];
            if !self.is_empty(from) {
                self.anchors[to as usize] = from;
            }
        }
    }

    /// The numbers of all nodes that are not absent.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        let nodes = (0..).zip(&self.nodes);
        nodes.filter(|(_, node)| **node != SketchNode::Absent).map(|(number, _)| number)
    }

    /// The role of a node that is as drawn, or of the kernel in its place.
    pub(super) fn role(&self, node: u32) -> Option<Role> {
        match self.nodes[node as usize] {
            SketchNode::Drawn(number) => Some(self.drawn.nodes[number as usize].role),
            SketchNode::Substitute(number) => match self.drawn.nodes[number as usize].role {
                Role::HostSubmitted(HostSubmitted {
                    substitute: Substitute::Kernel { like, overlap },
                    ..
                }) => Some(Role::Kernel { like, promises_progress: true, overlap }),
                role => Some(role),
            },
            SketchNode::NoOp | SketchNode::Absent => None,
        }
    }

    /// The node as one that the host submits, if it is one.
    pub(super) fn host_submitted(&self, node: u32) -> Option<HostSubmitted> {
        match self.role(node) {
            Some(Role::HostSubmitted(submitted)) => Some(submitted),
            _ => None,
        }
    }

    /// Puts the kernel of the library in place of a node that the host submits.
    pub(super) fn substitute(&mut self, node: u32) {
        if let SketchNode::Drawn(number) = self.nodes[node as usize] {
            self.nodes[node as usize] = SketchNode::Substitute(number);
        }
    }

    /// Whether a node is an empty one, as drawn.
    pub(super) fn is_empty(&self, node: u32) -> bool {
        self.role(node) == Some(Role::Empty)
    }

    /// Whether a node is a kernel, of the user or of the library.
    pub(super) fn is_kernel(&self, node: u32) -> bool {
        match self.role(node) {
            Some(Role::Kernel { .. }) => true,
            Some(Role::Empty | Role::HostSubmitted(_) | Role::Other | Role::Waits) => false,
            None => self.nodes[node as usize] == SketchNode::NoOp,
        }
    }

    /// Whether a full edge has to stay.
    pub(super) fn is_fixed_edge(&self, (from, to): (u32, u32)) -> bool {
        self.is_fixed[from as usize] || self.is_fixed[to as usize]
    }

    /// For each node, whether it is a root: not empty, and with none but empty nodes in front of
    /// it.
    pub(super) fn roots(&self) -> Vec<bool> {
        let mut is_root = vec![false; self.nodes.len()];
        self.numbers().for_each(|node| is_root[node as usize] = !self.is_empty(node));
        let edges = self.edges.iter().chain(&self.other_edges).chain(&self.programmatic);
        edges.for_each(|(from, to)| is_root[*to as usize] &= self.is_empty(*from));
        is_root
    }

    /// The edges of all kinds, by the node they leave.
    pub(super) fn all_edges(&self) -> Vec<(u32, u32)> {
        let mut edges = [self.edges.as_slice(), &self.other_edges, &self.programmatic].concat();
        edges.sort_unstable();
        edges
    }

    /// The nodes behind each node, in ascending order, by full edges.
    pub(super) fn successors(&self) -> Successors {
        Successors::new(self.nodes.len(), self.edges.iter().copied())
    }

    /// The nodes in front of each node, in ascending order, by full edges.
    pub(super) fn predecessors(&self) -> Successors {
        Successors::new(self.nodes.len(), self.edges.iter().map(|(from, to)| (*to, *from)))
    }
}
