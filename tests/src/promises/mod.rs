//! Promises that every operation keeps: nothing is left behind, whatever call fails and in whatever
//! state the context is, and the cost does not grow.

mod leaks;
mod scale;
pub mod states;
mod sweep;

pub use leaks::{every_failure, no_leaks, settle};
pub use scale::{Scale, scale};
pub use sweep::{sweep, used_stream};
