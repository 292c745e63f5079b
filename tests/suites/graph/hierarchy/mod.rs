//! Graphs in graphs: child nodes, clones, moves.

pub(crate) mod children;
mod clones;
mod depth;
mod large_moves;
