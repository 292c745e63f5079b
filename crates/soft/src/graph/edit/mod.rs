//! Changes to graphs.

pub(crate) mod add;
pub(crate) mod child;
pub(crate) mod clone;
pub(crate) mod conditional;
pub(crate) mod edge;
