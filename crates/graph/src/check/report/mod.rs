//! What a check found, for people.

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

/// What [`Graph::check`](crate::Graph::check) found.
///
/// For people by its `Display`, a line for each finding; for programs by
/// [`findings`](Self::findings) and as [JSON](Self::to_json); and drawn into a picture of the graph
/// by `Graph::to_svg_with`. As handles of nodes do, it keeps the graph alive.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Report {
    pub(crate) findings: Vec<Finding>,
    pub(crate) left_out: usize,
    pub(crate) opaque: Vec<OpaqueNode>,
    pub(crate) stopped: Option<Stopped>,
}

impl Report {
    /// Whether nothing is wrong, as far as was looked: there are no findings but
    /// [notes](Severity::Note).
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.iter().all(|finding| finding.severity() == Severity::Note)
    }

    /// What is wrong, and what may be: the grave first, else in the order of the graph.
    #[must_use]
    pub fn findings(&self) -> &[Finding] {
        &self.findings
    }

    /// How many more findings there are: of each kind a thousand are told. Of data races
    /// [`stopped`](Self::stopped) tells it.
    #[must_use]
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// The nodes of which it is not known what memory they touch. No data race is found for them.
    #[must_use]
    pub fn opaque(&self) -> &[OpaqueNode] {
        &self.opaque
    }

    /// Why accesses were not compared, and which; `None` if all were.
    #[must_use]
    pub fn stopped(&self) -> Option<&Stopped> {
        self.stopped.as_ref()
    }
}

/// How grave a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[non_exhaustive]
pub enum Severity {
    /// It cannot be told from here whether something is wrong.
    Note,
    /// It can go wrong.
    Warning,
    /// It is wrong.
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

/// A node of which it is not known what memory it touches.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct OpaqueNode {
    /// The node.
    pub node: FoundNode,
    /// Why.
    pub why: Opaqueness,
}

impl Opaqueness {
    /// Why, in words.
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

/// Why a check stopped before all accesses were compared.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Stopped {
    /// The graph has a cycle, so that nothing can be said about order.
    Cycle,
    /// Comparing took as many steps as were allowed; see
    /// [`CheckOptions::steps`](crate::CheckOptions::steps).
    Steps(NotCompared),
    /// As many races were found as were asked for; see
    /// [`CheckOptions::races`](crate::CheckOptions::races).
    Races(NotCompared),
}

/// What was not compared.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct NotCompared {
    /// How many ranges of memory are touched by several nodes, one of them writing.
    pub of: usize,
    /// How many of these were not compared, or not wholly.
    pub ranges: usize,
    /// The memory that the first of these is in, where it is known.
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

/// How many opaque nodes are told, one by one.
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
