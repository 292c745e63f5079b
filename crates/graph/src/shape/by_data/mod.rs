//! Order by data: of the order that is drawn, the part that declared accesses need.
//!
//! The room is plain data: nodes by number, edges, and the footprint of each node. Two nodes that
//! the drawing orders *need* their order if one of them is opaque, or if their accesses conflict.
//! The result is edges whose paths order exactly the nodes that a path of needed pairs orders.
//!
//! | Step | File |
//! | --- | --- |
//! | which nodes are transparent, which opaque, and which only pass order on | [`parts`] |
//! | the needed pairs of transparent nodes, along a topological order | [`sweep`] |
//! | the needed pairs of opaque nodes | [`barriers`] |
//! | which drawn edges nothing needs, and why | [`dropped`] |
//! | nodes that are apart now, and later values with which they would meet | [`apart`] |
//!
//! # How pairs are found
//!
//! The nodes are taken in a topological order. Each access is compared with the earlier ones near
//! it that still matter; whether the drawing orders the two nodes is a question of
//! [reachability](crate::check::reachability). So a pair is found whatever the path between its
//! nodes leads through, and two nodes that the drawing does not order stay unordered, also if they
//! race.
//!
//! An access that a later one overwrites and comes after is put under that one. A node that comes
//! after the later one is ordered behind both by it, so nothing under it is looked at. Only nodes
//! beside the later one are compared with what is under it.
//!
//! # Opaque nodes
//!
//! An opaque node needs its order with all others. It gets edges from the nodes before it, back to
//! the opaque ones before, as far as no other of them leads there; and each node behind it gets an
//! edge from it, unless another edge leads there already.
//!
//! **Empty nodes** pass on the order of those before them to those behind them, and get no edges
//! themselves. One whose neighbours on one side are all opaque counts as opaque: it keeps few edges
//! in place of many.
//!
//! **Other edges than full ones** are kept. A node at one is opaque, and keeps all of its edges.
//!
//! # Bounds
//!
//! [`Limits`] bound the steps, and the edges: needed edges may be many more than drawn ones where
//! an empty node stood between two wide layers. Beyond a limit there is no result, and the graph
//! keeps its order as drawn.

pub(crate) mod apart;
mod barriers;
pub(crate) mod dropped;
mod parts;
mod sweep;

#[cfg(test)]
mod tests;

use crate::check::reachability::{Reachability, order};
use crate::footprint::Footprint;
use crate::shape::by_data::apart::ApartLevel;
use crate::shape::by_data::parts::Parts;
use crate::shape::by_data::sweep::Sweep;
use crate::shape::planning::drawn::{Drawn, DrawnEdge};
use crate::state::ids::NodeId;
use crate::toposort::Successors;

/// How much work finding an order by data may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Limits {
    /// Comparisons of accesses, and steps from node to node.
    pub(super) steps: u64,
    /// Edges for each node and edge that is drawn.
    pub(super) edges: usize,
}

impl Limits {
    /// Graphs of 100 000 nodes take a fraction of them.
    pub(super) const DEFAULT: Self = Self { steps: 50_000_000, edges: 8 };
}

/// Why a graph keeps its order as drawn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Left {
    /// It has a cycle.
    Cycle,
    /// A limit was met.
    TooLarge,
}

/// The order by data of a graph.
#[derive(Debug)]
pub(super) struct ByData {
    /// The edges, some of which may follow from others: all that are not full as drawn, and the
    /// needed ones.
    pub(super) edges: Vec<DrawnEdge>,
    parts: Parts,
    /// The order as drawn.
    drawn: Reachability,
}

impl ByData {
    /// The nodes that are apart now. `ids` are all nodes, by number.
    pub(super) fn apart(
        self,
        ids: impl Iterator<Item = NodeId>,
        footprints: Vec<Footprint>,
    ) -> Option<ApartLevel> {
        let full = self.edges.iter().filter(|edge| edge.is_full).map(|edge| (edge.from, edge.to));
        let kept = Successors::new(footprints.len(), full);
        let order = order(&kept)?;
        let kept = Reachability::new(kept, &order);
        Some(ApartLevel::new(ids, footprints, &self.parts, self.drawn, kept))
    }
}

/// Leaves out the order that no access needs. `footprints` are those of the nodes, by number.
pub(super) fn order_by_data(drawn: &Drawn, footprints: &[Footprint], limits: Limits) -> Result<ByData, Left> {
    let full = drawn.edges.iter().filter(|edge| edge.is_full).map(|edge| (edge.from, edge.to));
    let successors = Successors::new(drawn.nodes.len(), full.clone());
    let predecessors = Successors::new(drawn.nodes.len(), full.map(|(from, to)| (to, from)));
    let order = order(&successors).ok_or(Left::Cycle)?;
    let parts = Parts::of(drawn, footprints, &order, &successors, &predecessors);
    let reachability = Reachability::new(successors, &order);
    let most_edges = (drawn.nodes.len() + drawn.edges.len()).saturating_mul(limits.edges);
    let sweep = Sweep::new(&parts, footprints, reachability, &predecessors, limits.steps, most_edges);
    let (mut edges, reachability) = sweep.run(&order).ok_or(Left::TooLarge)?;
    let kept = drawn.edges.iter().filter(|edge| edge.is_full && parts.keeps_edge(edge));
    edges.extend(kept.map(|edge| (edge.from, edge.to)));
    edges.sort_unstable();
    edges.dedup();
    let full = edges.into_iter().map(|(from, to)| DrawnEdge { from, to, is_full: true });
    let others = drawn.edges.iter().filter(|edge| !edge.is_full).copied();
    let edges = full.chain(others).collect();
    Ok(ByData { edges, parts, drawn: reachability })
}
