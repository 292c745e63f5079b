//! Executables.

pub(crate) mod compile;
pub(crate) mod driver_bugs;
pub(crate) mod exec;
pub(crate) mod instantiable;
pub(crate) mod memory_plan;
pub(crate) mod run;
pub(crate) mod update;
pub(crate) mod update_rules;
