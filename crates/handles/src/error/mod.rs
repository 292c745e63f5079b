//! The errors of this crate: one enum, with a sentence for each case.

mod advice;
mod kinds;
mod memory_kind;
mod near;
mod no_time;
mod wrong_context;
mod wrong_variable;

pub use kinds::{Cause, Error, Result};
pub use memory_kind::MemoryKind;
pub use near::Near;
pub use no_time::{NoTime, Which};
pub use wrong_context::{ContextName, WrongContext};
pub use wrong_variable::WrongVariable;
