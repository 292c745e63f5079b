//! The raw calls of the driver against the answers of a real one.
#![allow(missing_docs, clippy::undocumented_unsafe_blocks, clippy::unwrap_used, clippy::manual_dangling_ptr)]

mod attributes;
mod batch;
mod body_captures;
mod branches;
mod callbacks;
mod calls;
mod captures;
mod children;
mod common;
mod conditional_poses;
mod conditionals;
mod copies;
mod devices;
mod edges;
mod execs;
mod graph_memory;
mod graphs;
mod imports;
mod instantiating;
mod links;
mod loss;
mod many_nodes;
mod memory_nodes;
mod node_kinds;
mod node_params;
mod node_runs;
mod pools;
mod processes;
mod raw;
mod semaphores;
