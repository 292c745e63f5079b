//! A failed call leaves everything as it was.

mod all_or_nothing;
pub(crate) mod broken;
mod failed_launches;
mod fault_sweep;
mod params;
mod reading_sweep;
mod refusals;
mod whole_updates;
