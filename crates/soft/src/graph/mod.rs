//! Graphs: their nodes and edges, the executables made of them, and user objects.

pub(crate) mod build;
pub(crate) mod capture;
pub(crate) mod census;
pub(crate) mod change;
pub(crate) mod check;
pub(crate) mod clone;
pub(crate) mod compile;
pub(crate) mod condition;
pub(crate) mod dot;
pub(crate) mod edge;
pub(crate) mod edge_data;
pub(crate) mod embed;
pub(crate) mod exec;
pub(crate) mod executable;
pub(crate) mod generic;
pub(crate) mod memory_node;
pub(crate) mod ordered;
pub(crate) mod param_block;
pub(crate) mod payload;
pub(crate) mod program;
pub(crate) mod read;
pub(crate) mod read_back;
pub(crate) mod run;
pub(crate) mod store;
pub(crate) mod task;
pub(crate) mod update;
pub(crate) mod user_object;
pub(crate) mod values;

pub(crate) use memory_node::may_free;
