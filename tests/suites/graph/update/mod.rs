//! Updates: executables changed without a new one.

mod nodes;
pub(crate) mod params;
mod params_hostile;
mod params_lifetimes;
mod params_model;
mod params_rules;
