//! Conditional nodes and the values of their conditions.

pub(crate) mod branches_and_loops;
mod nested;
mod values;
