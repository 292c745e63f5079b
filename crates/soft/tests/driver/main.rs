//! Raw calls of the software driver alone, against results observed on a GPU. Raw calls
//! that are tested on both are in `tests/suites/driver`.
#![allow(missing_docs, clippy::undocumented_unsafe_blocks, clippy::unwrap_used, clippy::manual_dangling_ptr)]

mod attributes;
mod basics;
mod body_captures;
mod branch_order;
mod callbacks;
mod calls;
mod captures;
mod clones_and_children;
mod common;
mod conditionals;
mod copies;
mod device_heap;
mod devices;
mod edges;
mod executables;
mod foreign_handles;
mod graph_memory;
mod graphs;
mod instantiation;
mod interprocess;
mod links;
mod lost_devices;
mod many_nodes;
mod mem_ops;
mod memory_node_rules;
mod node_execution;
mod node_params;
mod node_types;
mod older_conditionals;
mod pool_destruction;
mod semaphores;
mod tensor_maps;
mod textures;
