//! A topological order that is kept while edges are added, after Pearce and Kelly.
//!
//! Each node has a label; every edge leads from a lower label to a higher one. The labels are the
//! order, so an edge that goes up along them closes no cycle and costs nothing. A new node gets the
//! highest label: edges added together with it are of that kind.
//!
//! An edge that goes down, against the order, may close a cycle, and moves nodes:
//!
//! 1. Two searches run in turn, one node each: backwards from the edge's start and forwards from
//!    its end, among the nodes whose labels lie between the two. A cycle lies wholly within either.
//! 2. The search that ends first decides. If its nodes contain a cycle, the edge is refused.
//!    Otherwise its nodes alone get new labels, beyond the other end of the edge.
//!
//! Rules, with their costs:
//!
//! - **The smaller side pays.** An edge costs about twice the smaller of the two searches. A chain
//!   built in reverse takes one or two queries an edge; a chain of `n` nodes built in any order
//!   takes about `n log n` together. Edges between parts of a graph that are both large stay
//!   expensive: each costs a search of the smaller part.
//! - **Edges given together are searched together**, in groups whose ranges of labels do not touch.
//!   However many go against the order, each node and edge is looked at about twice at most.
//! - **Labels lie 65 536 apart at first**, which leaves room for nodes in between. Where the room
//!   is used up, the nodes in the way move too, and those in their way, until there is more room
//!   than needed: about `log n` moves for each node put there.
//!
//! | File | Contents |
//! | --- | --- |
//! | [`label`] | Labels of new nodes |
//! | [`neighbours`] | `Neighbours`: the graph as the search sees it |
//! | [`admit`](mod@admit) | `admit`: whether edges fit, group by group |
//! | [`plan`] | The graph with the new edges and labels so far |
//! | [`search`] | One of the two searches, and new labels for its nodes |

mod admit;
mod label;
mod neighbours;
mod plan;
mod search;

#[cfg(test)]
mod tests;

pub(crate) use admit::{Verdict, admit};
pub(crate) use label::{fresh, rank};
pub(crate) use neighbours::{Index, Neighbours};
