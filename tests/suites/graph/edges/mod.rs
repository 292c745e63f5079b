//! Edges are what was asked for, and a graph never has a cycle.

pub(crate) mod changes;
mod insertion;
mod neighbours;
mod random_edits;
mod waiting;
