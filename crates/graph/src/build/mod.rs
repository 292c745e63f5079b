//! Adding nodes: the frontier, and the one transaction behind it.

pub(crate) mod frontier;
pub(crate) mod insertion;
