//! Updates: executables changed without a new one.

use cuda_handles::{Error, Event};

mod captured_params;
mod check;
mod costs;
mod event_params;
mod inside;
mod kept;
mod kinds;
mod loop_params;
mod model;
mod nodes;
mod pairing;
mod params;
mod params_hostile;
mod params_lifetimes;
mod params_model;
mod params_owners;
mod params_rules;
mod rebuild;
mod refused;
mod scratch;
mod sweep;
mod whole;
mod whole_owners;
mod whole_table;

/// Whether an event was recorded in a capture last, as far as this library knows.
fn is_captured(event: &Event) -> bool {
    event.query() == Err(Error::CapturedEvent)
}
