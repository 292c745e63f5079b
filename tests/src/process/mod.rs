//! Tests in processes of their own.

mod child;
#[cfg(unix)]
mod fork;

pub use child::{printed_by_child, ran_as_child};
#[cfg(unix)]
pub use fork::in_forked_child;
