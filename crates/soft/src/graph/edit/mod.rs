//! Changes to graphs.

pub(crate) mod add;
pub(crate) mod child;
pub(crate) mod clone;
pub(crate) mod conditional;
pub(crate) mod edge;
pub(crate) mod insert;
pub(crate) mod memory_node;
pub(crate) mod remove;
