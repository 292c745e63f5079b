//! Promises that every operation keeps: nothing is left behind, whatever call fails and in whatever
//! state the context is.

mod all_contexts;
mod leaks;
pub mod states;
mod sweep;

pub use all_contexts::{all_contexts, other_context};
pub use leaks::{every_failure, no_leaks, settle};
pub use sweep::{sweep, used_stream};
