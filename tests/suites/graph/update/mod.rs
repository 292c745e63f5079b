//! Updates: executables changed without a new one.

use cuda_handles::{Error, Event};

mod costs;
mod inside;
mod kept;
mod kinds;
mod model;
mod nodes;
mod pairing;
mod params;
mod rebuild;
mod refused;
mod sweep;
mod whole;
mod whole_owners;
mod whole_table;

/// Whether an event was recorded in a capture last, as far as this library knows.
fn is_captured(event: &Event) -> bool {
    event.query() == Err(Error::CapturedEvent)
}
