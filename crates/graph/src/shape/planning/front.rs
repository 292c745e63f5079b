//! One kernel that does nothing in front of many roots.
//!
//! The driver submits each root at every launch. If a kernel is the only root, the device starts
//! the others. Roots that are no kernels, such as fills, gain nothing from a kernel in front.

use super::progress::Concerned;
use super::sketch::{FRONT, Sketch, SketchNode};

/// What became of the roots, if there is more than one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Fronted {
    /// Are behind the new kernel.
    pub(super) behind: usize,
    /// Stay roots, since kernels beside them may wait for each other.
    pub(super) left_for_progress: usize,
    /// Stay roots, since fewer than two of them are kernels.
    pub(super) left_as_no_kernels: usize,
}

/// Puts a kernel in front of the roots, if two of them are kernels.
pub(super) fn put_in_front(sketch: &mut Sketch<'_>, concerned: &Concerned) -> Fronted {
    let roots = sources(sketch);
    if roots.len() < 2 {
        return Fronted::default();
    }
    let kernels = |roots: &[u32]| roots.iter().filter(|root| sketch.is_kernel(**root)).count();
    let behind: Vec<u32> = roots.iter().copied().filter(|root| !concerned.has(*root)).collect();
    if kernels(&roots) < 2 {
        return Fronted { left_as_no_kernels: roots.len(), ..Fronted::default() };
    }
    if kernels(&behind) < 2 {
        return Fronted { left_for_progress: roots.len(), ..Fronted::default() };
    }
    let left_for_progress = roots.len() - behind.len();
    sketch.nodes[FRONT as usize] = SketchNode::NoOp;
    sketch.edges.splice(0..0, behind.iter().map(|root| (FRONT, *root)));
    Fronted { behind: behind.len(), left_for_progress, left_as_no_kernels: 0 }
}

/// The nodes without any edge to them, but for empty ones.
fn sources(sketch: &Sketch<'_>) -> Vec<u32> {
    let mut is_source = vec![true; sketch.nodes.len()];
    let edges = sketch.edges.iter().chain(&sketch.other_edges);
    edges.for_each(|(_, to)| is_source[*to as usize] = false);
    sketch.numbers().filter(|node| is_source[*node as usize] && !sketch.is_empty(*node)).collect()
}
