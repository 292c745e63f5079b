//! The raw calls of the driver against the answers of a real one.
#![allow(missing_docs, clippy::undocumented_unsafe_blocks, clippy::unwrap_used, clippy::manual_dangling_ptr)]

mod captures;
mod common;
mod conditionals;
mod execs;
mod graphs;
mod loss;
mod raw;
