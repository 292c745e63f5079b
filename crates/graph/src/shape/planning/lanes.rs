//! Lanes: sets of twins of which each waits for the one that many places before it.
//!
//! The first twins of a set keep the edges to it and the last ones keep the edges from it, so that
//! a wide set costs as many of those as it has lanes.

use super::kernel_roots::behind_kernels;
use super::progress::Concerned;
use super::sketch::Sketch;
use super::twins::{Sameness, sets};

/// The lanes that `Auto` makes.
///
/// A device runs 128 grids at once; 32 lanes were fastest for sets of 64 to 16 000 kernels. A few
/// long kernels among short ones are often at regular places, such as every 32nd. With a prime
/// number of lanes they do not all wait for each other in one lane.
pub(super) const AUTO_LANES: u16 = 37;

/// Which sets are threaded.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Threading {
    /// All, through so many lanes.
    Lanes(u16),
    /// Those of one kernel behind kernels, through [`AUTO_LANES`].
    Auto,
}

/// What became of the sets that are wider than the lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Threaded {
    pub(super) lanes: usize,
    pub(super) sets: usize,
    /// How many nodes these sets have.
    pub(super) nodes: usize,
    /// Stay, since kernels beside them may wait for each other.
    pub(super) left_for_progress: usize,
    /// Stay, since a root in front of them is no kernel, or they are roots.
    pub(super) left_at_roots: usize,
}

/// Threads wide sets of twins through lanes.
pub(super) fn thread(sketch: &mut Sketch<'_>, threading: Threading, concerned: &Concerned) -> Threaded {
    let (sameness, lanes, behind) = match threading {
        Threading::Lanes(lanes) => (Sameness::Any, lanes.max(1), None),
        Threading::Auto => (Sameness::SameKernel, AUTO_LANES, Some(behind_kernels(sketch))),
    };
    let lanes = usize::from(lanes);
    let mut sets = sets(sketch, sameness, lanes);
    let mut outcome = Threaded { lanes, sets: 0, nodes: 0, left_for_progress: 0, left_at_roots: 0 };
    sets.retain(|set| {
        if behind.as_ref().is_some_and(|behind| !set.iter().all(|node| behind[*node as usize])) {
            outcome.left_at_roots += 1;
            return false;
        }
        if set.iter().any(|node| concerned.has(*node)) {
            outcome.left_for_progress += 1;
            return false;
        }
        outcome.sets += 1;
        outcome.nodes += set.len();
        true
    });
    if !sets.is_empty() {
        rewire(sketch, &sets, lanes);
    }
    outcome
}

/// Adds the edges of the lanes, and removes those that follow from them.
fn rewire(sketch: &mut Sketch<'_>, sets: &[Vec<u32>], lanes: usize) {
    let (mut is_first, mut is_last) = (vec![true; sketch.nodes.len()], vec![true; sketch.nodes.len()]);
    for set in sets {
        set[lanes..].iter().for_each(|node| is_first[*node as usize] = false);
        set[..set.len() - lanes].iter().for_each(|node| is_last[*node as usize] = false);
    }
    let edges = core::mem::take(&mut sketch.edges);
    let is_kept = |edge: &(u32, u32)| {
        is_last[edge.0 as usize] && is_first[edge.1 as usize] || sketch.is_fixed_edge(*edge)
    };
    let mut edges: Vec<(u32, u32)> = edges.into_iter().filter(is_kept).collect();
    for set in sets {
        edges.extend(set.iter().copied().zip(set[lanes..].iter().copied()));
    }
    edges.sort_unstable();
    sketch.edges = edges;
}
