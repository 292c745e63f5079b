//! Graphs shared with other code.

mod adopted;
mod changed_elsewhere;
mod conditionals;
pub(crate) mod lent;
mod round_trips;
