//! Executables: instantiated, launched, updated.
//!
//! [`instantiable`] checks the graph, `compile` copies it into a `Program` whose levels `order`
//! sorts, [`instantiate`] creates the executable. [`launch`] plans the memory (`memory_plan`,
//! [`lifetimes`]) at the call and enqueues a `Run` (`run`), which the stream executes. Kernels
//! behind programmatic edges begin early, in the order of `early_order`; `early_level` runs them,
//! and `access_log` finds those that do not wait.

mod access_log;
pub(crate) mod compile;
pub(crate) mod driver_bugs;
mod early_level;
mod early_order;
pub(crate) mod instantiable;
pub(crate) mod instantiate;
pub(crate) mod launch;
pub(crate) mod lifetimes;
pub(crate) mod memory_plan;
mod order;
pub(crate) mod run;
pub(crate) mod set_params;
pub(crate) mod update;
pub(crate) mod update_rules;
