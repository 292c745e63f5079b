//! Transitive reduction: edges that follow from other edges go.
//!
//! The algorithm is the one of chain decompositions: K. Simon, "An improved algorithm for
//! transitive closure on acyclic digraphs", Theoretical Computer Science 58 (1988), 325–346, with
//! rows after H. V. Jagadish, ACM Transactions on Database Systems 15 (1990), 558–598. The graph is
//! divided into [chains](super::chains). The [row](super::rows) of a node has the first node on
//! each chain that the node leads to; the node leads to all nodes behind that one, too. Nodes are
//! taken from the last to the first. The edge from a node to a successor is redundant if an earlier
//! successor, of which the row is known, leads to that successor.
//!
//! If rows would need too much memory or time ([`Limits`]), they are cut. Then
//! [hubs](super::hubs) find edges, too. Edges that neither finds stay.

use super::hubs::Hubs;
use super::rows::{Limits, Reached, Rows};
use super::sketch::Sketch;
use crate::toposort::Successors;

/// What a reduction did.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Reduction {
    /// How many edges went.
    pub(super) removed: usize,
    /// Whether a limit was met, so that redundant edges may be left.
    pub(super) is_partial: bool,
}

/// Removes the redundant edges of a sketch, but for those of fixed nodes.
pub(super) fn reduce(sketch: &mut Sketch<'_>, limits: Limits) -> Reduction {
    let before = sketch.edges.len();
    let (mut redundant, is_partial) = redundant_edges(&sketch.successors(), limits);
    // The marks are in the order of the edges, since these are sorted.
    let mut marks = redundant.drain(..);
    let edges = core::mem::take(&mut sketch.edges);
    let is_kept = |edge: &(u32, u32)| !marks.next().unwrap_or(false) || sketch.is_fixed_edge(*edge);
    sketch.edges = edges.into_iter().filter(is_kept).collect();
    Reduction { removed: before - sketch.edges.len(), is_partial }
}

/// For each edge, whether it is redundant; and whether a limit was met, so that more edges may be.
fn redundant_edges(successors: &Successors, limits: Limits) -> (Vec<bool>, bool) {
    let mut rows = Rows::new(successors, limits);
    let mut reached = Reached::new(successors);
    let mut hubs = None;
    let mut redundant = vec![false; successors.targets().len()];
    let mut end = redundant.len();
    for node in (0..successors.len() as u32).rev() {
        let next = successors.of(node);
        let start = end - next.len();
        for (&next, redundant) in next.iter().zip(&mut redundant[start..end]) {
            let has_hub = || hubs.as_ref().is_some_and(|hubs: &Hubs| hubs.lie_between(node, next));
            *redundant = reached.has(next) || has_hub();
            match *redundant {
                true => rows.skip(next),
                false => {
                    reached.add(next);
                    rows.of(next).iter().for_each(|first| reached.add(*first));
                }
            }
        }
        rows.finish(node, next, &mut reached);
        if rows.were_cut() && hubs.is_none() {
            hubs = Some(Hubs::new(successors, limits.hubs));
        }
        end = start;
    }
    (redundant, rows.were_cut())
}
