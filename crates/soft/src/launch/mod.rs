//! Kernel launches: checks, arguments, occupancy, and the run on the interpreter.

mod arguments;
mod check;
pub(crate) mod declared;
mod occupancy;
mod run;

pub(crate) use arguments::{Arguments, PACKED_TOO_LARGE, read_arguments};
pub(crate) use check::{Sizes, check, check_cluster, most_cluster};
pub(crate) use occupancy::blocks_per_sm;
pub(crate) use run::{ConditionSetter, KernelRun, Watch};
