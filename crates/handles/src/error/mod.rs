//! The errors of this crate: one enum, with a sentence for each case.

mod advice;
mod capture_end;
mod cause;
mod kinds;
mod memory_kind;
mod near;
mod no_time;
mod phrases;
mod wrong_context;
mod wrong_variable;

pub use cause::Cause;
pub use kinds::{Error, Result};
pub use memory_kind::MemoryKind;
pub use near::Near;
pub use no_time::{NoTime, Which};
pub use wrong_context::{ContextName, WrongContext};
pub use wrong_variable::WrongVariable;
