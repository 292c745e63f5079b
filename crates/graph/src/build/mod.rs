//! Adding nodes: the frontier, and the one transaction behind every add.
//!
//! A caller picks a position with a [`Frontier`](frontier::Frontier). The methods that add nodes
//! lie in the rooms of their node types, and all end in [`insertion`].

pub(crate) mod frontier;
pub(crate) mod insertion;
