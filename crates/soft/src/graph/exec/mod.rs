//! Executables: instantiated, launched, updated.
//!
//! [`instantiable`] checks the graph, `compile` copies it into a `Program` whose levels `order`
//! sorts, [`instantiate`] creates the executable. [`launch`] plans the memory (`memory_plan`,
//! [`lifetimes`]) at the call and enqueues a `Run` (`run`), which the stream executes.

pub(crate) mod compile;
pub(crate) mod driver_bugs;
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
