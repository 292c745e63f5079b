//! Topological orders and cycles of graphs as plain data.
//!
//! A topological order is a sequence of all nodes in which every edge leads from an earlier node to
//! a later one. It exists exactly if the graph has no cycle.
//!
//! | File | Contents | Cost |
//! | --- | --- | --- |
//! | [`successors`] | `Successors`: the edges of a graph, by the nodes they leave | linear |
//! | [`sort`](mod@sort) | Kahn's algorithm: a topological order, or none | linear, and a logarithm for each node |
//! | [`cycle`](mod@cycle) | Depth-first search: a topological order, or a cycle | linear |
//! | [`incremental`] | An order kept while edges are added, after Pearce and Kelly | see there |
//!
//! The functions know nothing of drivers, locks or node types: nodes are numbers from 0. None of
//! them recurses, so chains of any length fit on the stack.

pub(crate) mod cycle;
mod incremental;
mod sort;
mod successors;

pub(crate) use cycle::cycle;
pub(crate) use incremental::{Index, Neighbours, Verdict, admit, fresh, rank};
pub(crate) use sort::{sort, sort_cyclic};
pub(crate) use successors::Successors;
