//! The graph with the new edges and labels decided so far.

use std::collections::HashMap;

use super::neighbours::{Edge, Index, Neighbours};

/// The direction of a search.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    Forwards = 0,
    Backwards = 1,
}

/// The graph with the new edges looked at so far, and with new labels.
pub(crate) struct Plan<'n, N> {
    pub(crate) graph: &'n mut N,
    pub(crate) labels: HashMap<Index, u64>,
    /// Successors and predecessors by new edges.
    pub(crate) added: HashMap<Index, [Vec<Index>; 2]>,
}

impl<N: Neighbours> Plan<'_, N> {
    pub(crate) fn label(&self, node: Index) -> u64 {
        self.labels.get(&node).copied().unwrap_or_else(|| self.graph.label(node))
    }

    /// Whether an edge goes up along the labels.
    pub(crate) fn is_along(&self, (from, to): Edge) -> bool {
        self.label(from) < self.label(to)
    }

    pub(crate) fn add(&mut self, (from, to): Edge) {
        self.added.entry(from).or_default()[0].push(to);
        self.added.entry(to).or_default()[1].push(from);
    }

    pub(crate) fn neighbours(&mut self, node: Index, direction: Direction) -> Result<Vec<Index>, N::Error> {
        let mut neighbours = match direction {
            Direction::Forwards => self.graph.successors(node)?,
            Direction::Backwards => self.graph.predecessors(node)?,
        };
        if let Some(added) = self.added.get(&node) {
            neighbours.extend(&added[direction as usize]);
        }
        Ok(neighbours)
    }
}
