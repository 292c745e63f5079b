//! How much a check does.

/// How much [`Graph::check_with`](crate::Graph::check_with) does.
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
    /// What [`Graph::check`](crate::Graph::check) does: 50 million steps, which take about a
    /// second, and a thousand races.
    pub fn new() -> Self {
        Self::default()
    }

    /// After how many comparisons of accesses and steps from node to node the search for data races
    /// ends. The [report](crate::Report::stopped) says so then.
    pub fn steps(self, steps: u64) -> Self {
        Self { steps, ..self }
    }

    /// After how many racing pairs of nodes the search ends. The [report](crate::Report::stopped)
    /// says so then.
    pub fn races(self, races: usize) -> Self {
        Self { races, ..self }
    }
}
