//! Plans of random graphs against the closures of their edges, and plans of small known graphs.

mod bodies;
mod closure;
mod known;
mod limits;
mod random;

use super::drawn::{
    Drawn, DrawnEdge, DrawnNode, HostSubmitted, HostSubmittedKind, Overlap, Role, Substitute,
};
use super::plan::{PlannedEdge, PlannedNode, ShapePlan, plan};
use super::wish::{Wish, Wishes};

fn kernel(like: u32) -> Role {
    Role::Kernel { like, promises_progress: true, overlap: Overlap::Never }
}

fn waiting_kernel() -> Role {
    Role::Kernel { like: 1000, promises_progress: false, overlap: Overlap::Never }
}

fn submitted(kind: HostSubmittedKind, substitute: Substitute) -> Role {
    Role::HostSubmitted(HostSubmitted { kind, substitute })
}

/// A fill that a kernel can take the place of.
fn small_fill() -> Role {
    submitted(HostSubmittedKind::Fill, Substitute::Kernel { like: 2000, overlap: Overlap::Both })
}

/// A graph with full edges.
fn drawn(roles: impl IntoIterator<Item = Role>, edges: impl IntoIterator<Item = (u32, u32)>) -> Drawn {
    let edges = edges.into_iter().map(|(from, to)| DrawnEdge { from, to, is_full: true });
    Drawn { nodes: roles.into_iter().map(|role| DrawnNode { role }).collect(), edges: edges.collect() }
}

fn wishes(shape: Wish) -> Wishes {
    Wishes { shape, assume_progress: false, programmatic: false, no_ops: Overlap::Never }
}

fn planned(drawn: &Drawn, shape: Wish) -> ShapePlan {
    plan(drawn, wishes(shape))
}

impl ShapePlan {
    fn no_ops(&self) -> usize {
        self.nodes.iter().filter(|node| **node == PlannedNode::NoOp).count()
    }

    /// The actions, in words.
    fn words(&self) -> Vec<String> {
        self.report.actions.iter().map(ToString::to_string).collect()
    }
}
