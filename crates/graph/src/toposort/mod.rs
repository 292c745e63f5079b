//! An order of the nodes that all edges go along, and what new edges do to it.
//!
//! Each node has a label; every edge goes from a lower label to a higher one. A new node gets the
//! highest, so that the edges made with it cost nothing, and neither does any other edge that goes
//! along the labels. Edges against them need a search for the cycle that they may close, and new
//! labels for some nodes:
//!
//! - The search goes backwards from the starts of those edges and forwards from their ends at the
//!   same time, one node each in turn, among the nodes whose labels lie between. It is over as soon
//!   as one of both has seen everything: all cycles are in there, and its nodes alone get new
//!   labels, beyond the other end. So it costs about twice the smaller side. A chain built in
//!   reverse, edge by edge, takes one or two queries an edge, and one built in any order some n log
//!   n. What stays dear is edge after edge between parts of a graph that are both large: each costs
//!   a search of the smaller one.
//! - Edges given together are searched together, in groups whose ranges of labels do not touch.
//!   However many go against the order, no more is looked at than the nodes and edges that there
//!   are, about twice.
//! - Labels lie a step apart at first, so that there is room for nodes in between. Where it is used
//!   up, the nodes that are in the way give way, and with them those that are in theirs, until
//!   there is more than enough: some log n for each node put there.

mod admit;
mod label;
mod plan;
mod side;
mod view;

#[cfg(test)]
mod tests;

pub(crate) use admit::{Verdict, admit};
pub(crate) use label::{fresh, rank};
pub(crate) use view::{Index, Neighbours};
