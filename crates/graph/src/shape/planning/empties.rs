//! Empty nodes are dissolved, or become kernels that do nothing.
//!
//! The driver dissolves empty nodes itself, and then takes each node that was behind empty nodes
//! alone for a root.

use super::progress::Concerned;
use super::sketch::{FRONT, Sketch, SketchNode};

/// How many empty nodes were dissolved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Dissolved {
    pub(super) empties: usize,
    /// Whether there are edges that were not there before. Some may be redundant.
    pub(super) made_edges: bool,
}

/// Dissolves each empty node for which an edge from each node in front of it to each node behind it
/// is no more edges than it has. Those beside fixed nodes stay.
pub(super) fn dissolve(sketch: &mut Sketch<'_>) -> Dissolved {
    let (successors, predecessors) = (sketch.successors(), sketch.predecessors());
    let is_beside_fixed = beside_fixed(sketch);
    // For each node, the nodes in front of empty ones that were dissolved in front of it.
    let mut inherited: Vec<Vec<u32>> = vec![Vec::new(); sketch.nodes.len()];
    let mut dissolved = Dissolved::default();
    for node in 0..sketch.nodes.len() as u32 {
        if !sketch.is_empty(node) || is_beside_fixed[node as usize] {
            continue;
        }
        let behind = successors.of(node);
        let mut before = core::mem::take(&mut inherited[node as usize]);
        let is_there = |before: &u32| sketch.nodes[*before as usize] != SketchNode::Absent;
        before.extend(predecessors.of(node).iter().copied().filter(is_there));
        if behind.len() > 1 {
            before.sort_unstable();
            before.dedup();
            if before.len() * behind.len() > before.len() + behind.len() {
                inherited[node as usize] = before;
                continue;
            }
        }
        sketch.nodes[node as usize] = SketchNode::Absent;
        dissolved.empties += 1;
        dissolved.made_edges |= !before.is_empty() && !behind.is_empty();
        pass_on(before, behind, &mut inherited);
    }
    if dissolved.empties > 0 {
        rebuild(sketch, inherited);
    }
    dissolved
}

/// Gives the nodes in front of a dissolved node to those behind it.
fn pass_on(mut before: Vec<u32>, behind: &[u32], inherited: &mut [Vec<u32>]) {
    match behind {
        // The list can be long, and can go through many nodes: it moves.
        [only] => {
            let inherited = &mut inherited[*only as usize];
            if inherited.len() < before.len() {
                core::mem::swap(inherited, &mut before);
            }
            inherited.append(&mut before);
        }
        // The list has at most two nodes.
        behind => behind.iter().for_each(|node| inherited[*node as usize].extend_from_slice(&before)),
    }
}

/// Takes the edges of absent nodes out, and those that the others inherited in.
fn rebuild(sketch: &mut Sketch<'_>, inherited: Vec<Vec<u32>>) {
    let nodes = &sketch.nodes;
    let is_there = |node: u32| nodes[node as usize] != SketchNode::Absent;
    sketch.edges.retain(|(from, to)| is_there(*from) && is_there(*to));
    for (to, before) in (0..).zip(inherited) {
        sketch.edges.extend(before.into_iter().map(|from| (from, to)));
    }
    sketch.edges.sort_unstable();
    sketch.edges.dedup();
}

/// For each node, whether a full edge leads between it and a fixed node.
fn beside_fixed(sketch: &Sketch<'_>) -> Vec<bool> {
    let mut beside = vec![false; sketch.nodes.len()];
    for &(from, to) in &sketch.edges {
        beside[from as usize] |= sketch.is_fixed[to as usize];
        beside[to as usize] |= sketch.is_fixed[from as usize];
    }
    beside
}

/// What became of the empty nodes that were not dissolved.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Replaced {
    /// Became kernels that do nothing.
    pub(super) replaced: usize,
    /// Stay, since kernels beside them may wait for each other.
    pub(super) left_for_progress: usize,
    /// Stay, since they are beside fixed nodes, and a kernel would save no root.
    pub(super) left_beside_fixed: usize,
    /// Stay, since the edges that they stand for take the device less time than a kernel.
    pub(super) left_as_narrow: usize,
}

/// The edges for which the device takes as long as for a kernel that does nothing. Measured in
/// loops on an H200: a kernel between layers of 4 takes 0.5 µs longer than the 16 edges, one
/// between layers of 8 takes 0.3 µs less than the 64.
const WORTH_A_KERNEL: usize = 48;

/// Makes kernels that do nothing of the empty nodes that were not dissolved. In a body, roots cost
/// no more than other nodes, so only edges are saved.
pub(super) fn replace(sketch: &mut Sketch<'_>, is_body: bool, concerned: &Concerned) -> Replaced {
    let (successors, predecessors) = (sketch.successors(), sketch.predecessors());
    let mut is_root = sketch.roots();
    // These get an edge back.
    is_root.iter_mut().zip(&sketch.anchors).for_each(|(is_root, anchor)| *is_root &= *anchor == FRONT);
    let mut outcome = Replaced::default();
    for node in 0..sketch.nodes.len() as u32 {
        if !sketch.is_empty(node) {
            continue;
        }
        let (before, behind) = (predecessors.of(node), successors.of(node));
        let roots = behind.iter().filter(|node| is_root[**node as usize]).count();
        if is_body && before.len() * behind.len() < WORTH_A_KERNEL {
            outcome.left_as_narrow += 1;
            continue;
        }
        let is_of_use = match before.iter().all(|node| sketch.is_empty(*node)) {
            // The kernel is a root itself.
            true => roots > 1,
            false => roots > 0 || before.len() * behind.len() > before.len() + behind.len(),
        };
        if !is_of_use {
            outcome.left_beside_fixed += 1;
        } else if concerned.has(node) {
            outcome.left_for_progress += 1;
        } else {
            sketch.nodes[node as usize] = SketchNode::NoOp;
            behind.iter().for_each(|node| is_root[*node as usize] = false);
            outcome.replaced += 1;
        }
    }
    outcome
}

/// Puts an edge back to each node that the reduction left behind empty nodes alone.
///
/// The edge follows from a path through an empty node that stays. Without it, the node would count
/// as a root. Returns how many edges are put back.
pub(super) fn anchor(sketch: &mut Sketch<'_>) -> usize {
    let is_root = sketch.roots();
    let anchors =
        (0..).zip(&sketch.anchors).filter(|(node, from)| **from != FRONT && is_root[*node as usize]);
    let edges: Vec<(u32, u32)> = anchors.map(|(node, from)| (*from, node)).collect();
    sketch.edges.extend(&edges);
    sketch.edges.sort_unstable();
    edges.len()
}
