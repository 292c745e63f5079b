//! What graphs, nodes and executables are.

pub(crate) mod address_space;
pub(crate) mod census;
pub(crate) mod condition_values;
pub(crate) mod edge;
pub(crate) mod executable;
pub(crate) mod node_limits;
pub(crate) mod node_memory;
pub(crate) mod ordered_map;
pub(crate) mod param_block;
pub(crate) mod payload;
pub(crate) mod program;
pub(crate) mod store;
pub(crate) mod task;
pub(crate) mod user_object;
