//! Wrapped driver calls: they see what an observer of calls cannot, such as arguments and
//! destructors.

pub(crate) mod created;
pub(crate) mod graph_memory;
pub(crate) mod moved;
pub(crate) mod user_object;

pub use created::last_graph;
pub use user_object::allocations_in_destructors;
