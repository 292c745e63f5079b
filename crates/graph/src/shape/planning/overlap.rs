//! Programmatic edges in place of full ones.
//!
//! Behind a programmatic edge, the device sets up the blocks of a kernel while the last ones of the
//! kernel in front of it drain. The kernel itself begins with a wait until all kernels in front
//! have ended and their writes are visible. So the edge orders what a full one does, as long as
//! *every* kernel at such edges waits: then a path of both kinds of edges orders its ends, too.
//!
//! Nothing holds a multiprocessor for long behind such an edge. Each kernel in front waits for no
//! other kernel, and none of its blocks still has to begin when those behind are set up. So no
//! promise of the kernels beside is needed.
//!
//! Not every edge gains. Measured on an H200 (`docs/shapes.md`): chains run 11 % faster, and joins
//! of up to four kernels run as fast or faster. Joins of 64 and forks of 4 or 64 run up to 12 %
//! slower. So an edge becomes programmatic only if it is the only one from its kernel, and leads to
//! a kernel with few edges.

use super::drawn::{Overlap, Role};
use super::sketch::{Sketch, SketchNode};

/// The most edges to a kernel at a programmatic one.
pub(super) const WIDEST_JOIN: usize = 4;

/// What became of the full edges between kernels.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Overlapped {
    /// Became programmatic.
    pub(super) edges: usize,
    /// Stay full, since a kernel does not permit another kind.
    pub(super) not_permitted: usize,
    /// Stay full, since they would gain nothing.
    pub(super) forked: usize,
}

/// Makes full edges programmatic where both ends permit it and it gains. Edges of fixed nodes stay.
/// This is the last step, since the others know full edges alone.
pub(super) fn overlap(sketch: &mut Sketch<'_>, no_ops: Overlap) -> Overlapped {
    let overlaps: Vec<Overlap> = (0..sketch.nodes.len() as u32)
        .map(|node| if sketch.is_fixed[node as usize] { Overlap::Never } else { of(sketch, node, no_ops) })
        .collect();
    let (mut from_it, mut to_it) = (vec![0_usize; sketch.nodes.len()], vec![0_usize; sketch.nodes.len()]);
    for (from, to) in sketch.all_edges() {
        from_it[from as usize] += 1;
        to_it[to as usize] += 1;
    }
    let mut outcome = Overlapped::default();
    let is_programmatic = |(from, to): &(u32, u32)| {
        let (before, behind) = (*from as usize, *to as usize);
        let is_permitted = overlaps[before] == Overlap::Both && overlaps[behind] != Overlap::Never;
        let gains = from_it[before] == 1 && to_it[behind] <= WIDEST_JOIN;
        match (is_permitted, gains) {
            (true, true) => outcome.edges += 1,
            (true, false) => outcome.forked += 1,
            (false, _) if sketch.is_kernel(*from) && sketch.is_kernel(*to) => outcome.not_permitted += 1,
            (false, _) => {}
        }
        is_permitted && gains
    };
    let (programmatic, full) = sketch.edges.iter().copied().partition(is_programmatic);
    (sketch.edges, sketch.programmatic) = (full, programmatic);
    outcome
}

fn of(sketch: &Sketch<'_>, node: u32, no_ops: Overlap) -> Overlap {
    match sketch.role(node) {
        Some(Role::Kernel { overlap, .. }) => overlap,
        Some(Role::Waits | Role::Empty | Role::HostSubmitted(_) | Role::Other) => Overlap::Never,
        None if sketch.nodes[node as usize] == SketchNode::NoOp => no_ops,
        None => Overlap::Never,
    }
}
