//! Figures of a graph on which its speed depends.

use super::sketch::Sketch;

/// The figures of a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Figures {
    pub(crate) nodes: usize,
    /// Nodes without predecessors, or behind empty nodes alone: the driver dissolves those. Empty
    /// nodes themselves are none.
    pub(crate) roots: usize,
    pub(crate) edges: usize,
    /// The most nodes with the same length of the longest path to them.
    pub(crate) widest_level: usize,
    /// The nodes that the host submits.
    pub(crate) host_submitted: usize,
}

impl Figures {
    /// The figures of a sketch.
    pub(super) fn of(sketch: &Sketch<'_>) -> Self {
        let edges = sketch.all_edges();
        let mut levels = vec![0_usize; sketch.nodes.len()];
        for &(from, to) in &edges {
            levels[to as usize] = levels[to as usize].max(levels[from as usize] + 1);
        }
        let mut widths = vec![0; sketch.nodes.len()];
        sketch.numbers().for_each(|node| widths[levels[node as usize]] += 1);
        Self {
            nodes: sketch.numbers().count(),
            roots: sketch.roots().into_iter().filter(|is_root| *is_root).count(),
            edges: edges.len(),
            widest_level: widths.into_iter().max().unwrap_or(0),
            host_submitted: sketch.numbers().filter(|node| sketch.host_submitted(*node).is_some()).count(),
        }
    }
}
