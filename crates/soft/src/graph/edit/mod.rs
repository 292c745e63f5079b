//! Changes to graphs: adding, connecting, cloning and removing nodes.
//!
//! Every change goes through [`insert`] and [`remove`], which keep edges and counts consistent.
//! [`add`] checks what is common to all types; each special type has a file.

pub(crate) mod add;
pub(crate) mod child;
pub(crate) mod clone;
pub(crate) mod conditional;
pub(crate) mod edge;
pub(crate) mod insert;
pub(crate) mod memory_node;
pub(crate) mod remove;
