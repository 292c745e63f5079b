//! Memory nodes: allocate and free memory of the graph.

pub(crate) mod alloc;
pub(crate) mod free;
