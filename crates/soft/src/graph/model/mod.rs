//! The data of graphs, nodes and executables, and queries of it. Changes are in `edit` and `exec`.

pub(crate) mod address_space;
pub(crate) mod condition_values;
pub(crate) mod copied_declaration;
pub(crate) mod edge;
pub(crate) mod executable;
pub(crate) mod graph;
pub(crate) mod graphs;
pub(crate) mod hierarchy;
pub(crate) mod limiting_nodes;
pub(crate) mod node;
pub(crate) mod node_limits;
pub(crate) mod node_memory;
pub(crate) mod ordered_map;
pub(crate) mod param_block;
pub(crate) mod payload;
pub(crate) mod program;
pub(crate) mod store;
pub(crate) mod task;
pub(crate) mod user_object;
