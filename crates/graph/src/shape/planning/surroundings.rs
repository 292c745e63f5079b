//! Where a graph runs: by itself, or as a body of a conditional node.
//!
//! Each body gets a plan of its own. For the graph around it, the conditional node is one node that
//! does it all.

use super::drawn::{Drawn, DrawnNode, Role};
use super::progress::Concerned;
use super::sketch::{Sketch, SketchNode};

/// What is around a graph.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum Surroundings {
    /// Nothing: it is launched.
    #[default]
    None,
    /// It is a body. The device starts its nodes, so their roots and fills cost the host nothing.
    Body {
        /// Whether something may wait for a kernel that runs beside the conditional node, or beside
        /// one around that. Then the same holds for every node of the body.
        is_beside_waiting: bool,
    },
}

impl Surroundings {
    pub(super) fn is_body(self) -> bool {
        matches!(self, Self::Body { .. })
    }

    /// The nodes of a graph that run beside others which may wait for kernels.
    pub(super) fn concerned(self, sketch: &Sketch<'_>, assume_progress: bool) -> Concerned {
        match self {
            Self::Body { is_beside_waiting: true } => Concerned::ALL,
            Self::Body { .. } | Self::None => Concerned::of(sketch, assume_progress),
        }
    }
}

/// For each node of a graph, whether something beside it may wait for a kernel.
pub(crate) fn beside_waiting(drawn: &Drawn, assume_progress: bool) -> Vec<bool> {
    let Some(sketch) = Sketch::new(drawn) else { return vec![true; drawn.nodes.len()] };
    let concerned = Concerned::of(&sketch, assume_progress);
    let mut beside = vec![false; drawn.nodes.len()];
    for (place, node) in (0..).zip(&sketch.nodes) {
        if let SketchNode::Drawn(number) = node {
            beside[*number as usize] = concerned.has(place);
        }
    }
    beside
}

impl DrawnNode {
    /// Whether it may wait for what runs beside it.
    pub(crate) fn may_wait(self, assume_progress: bool) -> bool {
        match self.role {
            Role::Kernel { promises_progress, .. } => !promises_progress && !assume_progress,
            Role::Waits => true,
            Role::Empty | Role::HostSubmitted(_) | Role::Other => false,
        }
    }
}
