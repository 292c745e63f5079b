//! Allocation and free nodes.

pub(crate) mod alloc;
pub(crate) mod free;
