//! The report of a check: its findings, what it could not look into, where it stopped.

mod finding;
mod json;
mod node;
mod race;
mod sentence;

use core::fmt;

use super::model::Opaqueness;
pub use finding::Finding;
pub use node::FoundNode;
pub use race::{Race, RacingAccess, RacingMemory};

use crate::wording::Count;

/// The report of [`Graph::check`](crate::Graph::check).
///
/// - `Display` prints a line for each finding.
/// - [`findings`](Self::findings) lists them, and [`to_json`](Self::to_json) writes them, for
///   programs.
/// - `Graph::to_svg_with` draws them into a picture of the graph.
///
/// It holds handles of nodes, and so keeps the graph alive.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    pub(crate) findings: Vec<Finding>,
    pub(crate) left_out: usize,
    pub(crate) opaque: Vec<OpaqueNode>,
    pub(crate) stopped: Option<Stopped>,
}

impl Report {
    /// Whether all findings are [notes](Severity::Note), or there are none.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity() == Severity::Note)
    }

    /// The findings, the most severe first, and otherwise in the order of the graph.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// How many findings were left out: the report has at most a thousand of each class. Data races
    /// have a limit of their own, see [`stopped`](Self::stopped).
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// The nodes whose memory accesses are unknown. No data race is found for them.
    #[must_use]
    pub fn opaque(&self) -> &[OpaqueNode] {
        &self.opaque
    }

    /// Why the search for data races stopped early, and what it left out; `None` if it compared all
    /// accesses.
    #[must_use]
    pub fn stopped(&self) -> Option<&Stopped> {
        self.stopped.as_ref()
    }
}

/// How severe a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Severity {
    /// Whether it is an error is not visible from here.
    Note,
    /// It may go wrong.
    Warning,
    /// It is an error.
    Error,
}

impl fmt::Display for Severity {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Error => "error",
        })
    }
}

/// A node whose memory accesses are unknown.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct OpaqueNode {
    /// The node.
    pub node: FoundNode,
    /// Why.
    pub why: Opaqueness,
}

impl Opaqueness {
    /// The reason, in words.
    #[must_use]
    pub fn reason(self) -> &'static str {
        match self {
            Self::Kernel => "its kernel has no declaration (kernel!)",
            Self::Changed => "its arguments are not those that it was given, as other code changed them",
            Self::Host => "it calls a function of the host",
            Self::Foreign => "other code made it, and the driver does not tell enough",
        }
    }
}

impl fmt::Display for OpaqueNode {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.node, self.why.reason())
    }
}

/// Why a check stopped before it had compared all accesses.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Stopped {
    /// The graph has a cycle, so its nodes have no order.
    Cycle,
    /// The search took as many steps as allowed; see
    /// [`CheckOptions::steps`](crate::CheckOptions::steps).
    Steps(NotCompared),
    /// The search found as many races as allowed; see
    /// [`CheckOptions::races`](crate::CheckOptions::races).
    Races(NotCompared),
}

/// The accesses that were not compared.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct NotCompared {
    /// How many ranges of memory several nodes access, one of them writing.
    pub of: usize,
    /// How many of these were not compared, or only in part.
    pub ranges: usize,
    /// The memory that the first of these is in, if known.
    pub first: Option<RacingMemory>,
}

impl fmt::Display for NotCompared {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} of {} ranges of memory were not compared, or not wholly",
            self.ranges, self.of
        )?;
        match &self.first {
            Some(memory) => write!(formatter, "; the first is in {memory}"),
            None => Ok(()),
        }
    }
}

impl fmt::Display for Stopped {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cycle => formatter.write_str(
                "no data races and no disorder of memory were looked for, as the graph has a cycle",
            ),
            Self::Steps(left) => {
                write!(
                    formatter,
                    "the search for data races took as many steps as it may (CheckOptions::steps): {left}"
                )
            }
            Self::Races(left) => {
                write!(
                    formatter,
                    "as many data races were found as were asked for (CheckOptions::races): {left}"
                )
            }
        }
    }
}

/// How many opaque nodes are printed one by one.
const SHOWN: usize = 20;

impl fmt::Display for Report {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.findings.is_empty() {
            writeln!(formatter, "nothing found")?;
        }
        for finding in &self.findings {
            writeln!(formatter, "{}: {finding}", finding.severity())?;
        }
        if self.left_out > 0 {
            writeln!(
                formatter,
                "not told: {}, as of each kind a thousand are",
                Count(self.left_out, "more finding")
            )?;
        }
        if let Some(stopped) = &self.stopped {
            writeln!(formatter, "stopped: {stopped}")?;
        }
        for node in self.opaque.iter().take(SHOWN) {
            writeln!(formatter, "not looked into: {node}")?;
        }
        match self.opaque.len().saturating_sub(SHOWN) {
            0 => Ok(()),
            more => writeln!(formatter, "not looked into: {}", Count(more, "more node")),
        }
    }
}
