//! Programmatic edges in place of full ones.
//!
//! Behind a programmatic edge, the device sets up the blocks of a kernel while the last ones of the
//! kernel in front of it drain. The kernel itself begins with a wait until all kernels in front have
//! ended and their writes are visible. So the edge orders what a full one does, as long as *every*
//! kernel at such edges waits: then a path of both kinds of edges orders its ends, too.
//!
//! Nothing holds a multiprocessor for long behind such an edge. Each kernel in front waits for no
//! other kernel, and none of its blocks still has to begin when those behind are set up. So no
//! promise of the kernels beside is needed.

use super::drawn::{Overlap, Role};
use super::sketch::{Sketch, SketchNode};

/// What became of the full edges between kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Overlapped {
    /// Became programmatic.
    pub(super) edges: usize,
    /// Stay full.
    pub(super) left: usize,
}

/// Makes full edges programmatic where both ends permit it. Edges of fixed nodes stay. This is the
/// last step, since the others know full edges alone.
pub(super) fn overlap(sketch: &mut Sketch<'_>, no_ops: Overlap) -> Overlapped {
    let overlaps: Vec<Overlap> = (0..sketch.nodes.len() as u32)
        .map(|node| if sketch.is_fixed[node as usize] { Overlap::Never } else { of(sketch, node, no_ops) })
        .collect();
    let is_possible = |(from, to): &(u32, u32)| {
        overlaps[*from as usize] == Overlap::Both && overlaps[*to as usize] != Overlap::Never
    };
    let (programmatic, full): (Vec<_>, Vec<_>) = sketch.edges.iter().copied().partition(is_possible);
    let is_between_kernels = |(from, to): &&(u32, u32)| sketch.is_kernel(*from) && sketch.is_kernel(*to);
    let left = full.iter().filter(is_between_kernels).count();
    let outcome = Overlapped { edges: programmatic.len(), left };
    (sketch.edges, sketch.programmatic) = (full, programmatic);
    outcome
}

fn of(sketch: &Sketch<'_>, node: u32, no_ops: Overlap) -> Overlap {
    match sketch.role(node) {
        Some(Role::Kernel { overlap, .. }) => overlap,
        Some(Role::Waits | Role::Empty | Role::Other) => Overlap::Never,
        None if sketch.nodes[node as usize] == SketchNode::NoOp => no_ops,
        None => Overlap::Never,
    }
}
