//! Updates: executables changed without a new one.

use cuda_handles::{Error, Event};

mod costs;
mod inside;
mod kept;
mod kinds;
mod model;
mod nodes;
mod params;
mod params_hostile;
mod params_lifetimes;
mod params_model;
mod params_rules;
mod refused;
mod sweep;

/// Whether an event was recorded in a capture last, as far as this library knows.
fn is_captured(event: &Event) -> bool {
    event.query() == Err(Error::CapturedEvent)
}
