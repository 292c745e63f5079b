//! Adding nodes: the frontier, and the one transaction behind every add.
//!
//! A caller picks a position with a [`Frontier`](frontier::Frontier). The methods that add nodes
//! lie in the rooms of their node types, and all end in [`insertion`]. A [`dataflow`] is a frontier
//! that finds the position of each node by its accesses.

pub(crate) mod dataflow;
pub(crate) mod frontier;
pub(crate) mod insertion;
