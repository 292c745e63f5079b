//! Updates: executables changed without a new one.

mod adding;
mod captured_params;
mod check;
mod costs;
mod disabled_fills;
mod disabled_stay;
mod event_params;
mod inside;
mod kept;
mod kinds;
mod loop_params;
mod model;
mod nodes;
mod pairing;
pub(crate) mod params;
mod params_hostile;
mod params_lifetimes;
mod params_model;
mod params_owners;
pub(crate) mod params_rules;
mod rebuild;
mod refused;
mod scratch;
mod sweep;
mod whole;
mod whole_owners;
mod whole_table;
