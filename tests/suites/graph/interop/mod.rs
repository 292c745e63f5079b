//! Graphs shared with other code.

mod adopted;
mod conditionals;
pub(crate) mod lent;
mod round_trips;
mod snapshots;
