//! Executables.

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
