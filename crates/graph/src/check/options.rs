//! The limits of a check.

/// The limits of [`Graph::check_with`](crate::Graph::check_with).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub struct CheckOptions {
    pub(crate) steps: u64,
    pub(crate) races: usize,
}

impl Default for CheckOptions {
    fn default() -> Self {
        Self { steps: 50_000_000, races: 1000 }
    }
}

impl CheckOptions {
    /// The limits of [`Graph::check`](crate::Graph::check): 50 million steps, which take about a
    /// second, and a thousand races.
    pub fn new() -> Self {
        Self::default()
    }

    /// Stops the search for data races after this many comparisons of accesses and steps from node
    /// to node. The [report](crate::Report::stopped) says so then.
    pub fn steps(self, steps: u64) -> Self {
        Self { steps, ..self }
    }

    /// Stops the search after this many racing pairs of nodes. The [report](crate::Report::stopped)
    /// says so then.
    pub fn races(self, races: usize) -> Self {
        Self { races, ..self }
    }
}
