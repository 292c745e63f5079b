//! Graphs in graphs.

mod clones;
mod depth;
