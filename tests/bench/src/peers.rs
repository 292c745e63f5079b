//! Other projects that are measured in the same process.

use crate::Outcome;
use crate::bench::Bench;
use crate::measure::Way;

/// Makes a way of doing an operation.
pub type WayOf = for<'a> fn(&'a Bench) -> Outcome<Way<'a>>;

/// Another project.
#[derive(Clone, Copy, Debug)]
pub struct Peer {
    /// Its name, the head of its column.
    pub name: &'static str,
    /// Its version.
    pub version: &'static str,
    /// The operations that it has, by the names of rows.
    pub operations: &'static [(&'static str, WayOf)],
}

impl Peer {
    pub(crate) fn way(&self, operation: &str) -> Option<WayOf> {
        self.operations.iter().find(|(name, _)| *name == operation).map(|(_, way)| *way)
    }
}
