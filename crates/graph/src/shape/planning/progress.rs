//! Which nodes run beside kernels that may wait for other kernels.
//!
//! A kernel of a collective, or a persistent one, may wait until another kernel has begun. If that
//! one, or a node in front of it, is ordered anew or needs a multiprocessor where it needed none,
//! it may never begin. So the plan leaves every node alone that is unordered with a kernel that
//! does not promise progress.

use super::drawn::DrawnNode;
use super::sketch::Sketch;

/// Kernels are followed 64 at a time, with one step for each node and edge. In a graph of 1 000 000
/// edges, these are steps for about 2 000 kernels; in one of 10 000 nodes and edges, for all.
const STEPS: usize = 32 << 20;

/// The nodes that are unordered with a kernel that does not promise progress.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Concerned {
    nodes: Nodes,
    /// How many kernels do not promise progress.
    kernels: usize,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Nodes {
    None,
    /// By number.
    Some(Vec<bool>),
    /// Too many kernels do not promise progress: each node may be concerned.
    Any,
    /// The graph is a body, and such a kernel runs beside it.
    All,
}

impl Concerned {
    /// No node at all.
    pub(super) const NONE: Self = Self { nodes: Nodes::None, kernels: 0 };

    /// Every node, since the graph is a body and what runs beside it may wait for kernels.
    pub(super) const ALL: Self = Self { nodes: Nodes::All, kernels: 0 };

    /// Looks at a sketch in which every node is as drawn.
    pub(super) fn of(sketch: &Sketch<'_>, assume_progress: bool) -> Self {
        Self::within(sketch, assume_progress, STEPS)
    }

    /// Takes no more than so many steps.
    pub(super) fn within(sketch: &Sketch<'_>, assume_progress: bool, steps: usize) -> Self {
        let promises_none =
            |node: &u32| sketch.role(*node).is_some_and(|role| DrawnNode { role }.may_wait(assume_progress));
        let waiting: Vec<u32> = sketch.numbers().filter(promises_none).collect();
        let step = sketch.nodes.len() + sketch.edges.len();
        if waiting.is_empty() {
            return Self::NONE;
        }
        if waiting.len().div_ceil(64).saturating_mul(step) > steps {
            return Self { nodes: Nodes::Any, kernels: waiting.len() };
        }
        let mut concerned = vec![false; sketch.nodes.len()];
        for kernels in waiting.chunks(64) {
            let ordered = ordered_with(sketch, kernels);
            let all = u64::MAX >> (64 - kernels.len());
            concerned.iter_mut().zip(ordered).for_each(|(concerned, ordered)| *concerned |= ordered != all);
        }
        Self { nodes: Nodes::Some(concerned), kernels: waiting.len() }
    }

    /// Whether a node is among them.
    pub(super) fn has(&self, node: u32) -> bool {
        match &self.nodes {
            Nodes::None => false,
            Nodes::Some(nodes) => nodes[node as usize],
            Nodes::Any | Nodes::All => true,
        }
    }

    /// How many kernels do not promise progress.
    pub(super) fn kernels(&self) -> usize {
        self.kernels
    }

    /// Whether nodes may be among them that are ordered with all those kernels.
    pub(super) fn is_guess(&self) -> bool {
        self.nodes == Nodes::Any
    }

    /// Whether all nodes are among them, for what runs beside the conditional node.
    pub(super) fn is_around(&self) -> bool {
        self.nodes == Nodes::All
    }
}

/// For each node, which of some kernels, at most 64, it is or is ordered with, as bits.
fn ordered_with(sketch: &Sketch<'_>, kernels: &[u32]) -> Vec<u64> {
    let mut own = vec![0_u64; sketch.nodes.len()];
    (0..).zip(kernels).for_each(|(bit, kernel)| own[*kernel as usize] = 1 << bit);
    let (mut behind, mut before) = (own.clone(), own);
    // The edges are sorted, so all edges to a node come before those from it.
    for &(from, to) in &sketch.edges {
        behind[to as usize] |= behind[from as usize];
    }
    for &(from, to) in sketch.edges.iter().rev() {
        before[from as usize] |= before[to as usize];
    }
    behind.into_iter().zip(before).map(|(behind, before)| behind | before).collect()
}
