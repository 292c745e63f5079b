//! Owners of the driver's graphs, and of everything that graphs keep alive.

mod graph_handle;
mod owner;
mod user_object;

pub use graph_handle::{ExecEnd, GraphExecHandle, GraphHandle};
pub use owner::Owner;
pub use user_object::UserObject;
