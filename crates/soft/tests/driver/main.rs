//! The raw calls of the driver against the answers of a real one.
#![allow(missing_docs, clippy::undocumented_unsafe_blocks, clippy::unwrap_used, clippy::manual_dangling_ptr)]

mod attributes;
mod batch;
mod branches;
mod callbacks;
mod captures;
mod common;
mod conditionals;
mod copies;
mod devices;
mod execs;
mod graphs;
mod links;
mod loss;
mod node_kinds;
mod pools;
mod processes;
mod raw;
mod semaphores;
