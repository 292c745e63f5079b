//! What a check found, for people.

use core::fmt;

use super::found::FoundNode;
use super::race::{Race, RacingMemory};
use super::subject::Opaqueness;
use crate::error::memory_order::Disorder;
use crate::node_kind::NodeKind;
use crate::wording::{A, Count, Names};

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

/// Something that is wrong with a graph, or may be.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Finding {
    /// Nodes wait for each other.
    Cycle {
        /// Each leads to the next, and the last one to the first.
        nodes: Vec<FoundNode>,
    },
    /// A node is in the body of a conditional node, where the driver does not run it.
    NotInBody {
        /// The node.
        node: FoundNode,
        /// What it is.
        kind: NodeKind,
        /// Whether it is a copy that would be possible of other memory: it is of pageable memory of
        /// the host.
        pageable: bool,
        /// The conditional node.
        conditional: FoundNode,
    },
    /// A kernel in the body of a conditional node is of another context than the node.
    MixedContexts {
        /// The kernel node.
        node: FoundNode,
        /// The conditional node.
        conditional: FoundNode,
    },
    /// A condition is used by no conditional node.
    UnusedCondition {
        /// Its number.
        number: u64,
        /// Its default.
        default: Option<u32>,
        /// The kernel nodes that set it, by name.
        setters: Vec<String>,
    },
    /// A kernel that may set a condition is in no order with the node that goes by it, so that it
    /// may come too late.
    UnorderedCondition {
        /// The condition's number.
        number: u64,
        /// The kernel node.
        setter: FoundNode,
        /// The conditional node.
        conditional: FoundNode,
        /// An edge that would put them in order: from the first to the second of these, which are
        /// the nodes themselves or those that they are in.
        edge: Box<(FoundNode, FoundNode)>,
        /// As for [`Race::may_wait`].
        may_wait: bool,
    },
    /// A node that uses memory of the graph may run before it is allocated or after it is freed, or
    /// it may be freed before it is allocated. There is no [executable](crate::Graph::instantiate)
    /// of such a graph.
    MemoryOrder {
        /// What is wrong.
        what: Disorder,
        /// The allocation node.
        allocation: FoundNode,
        /// The node that has to end first.
        first: FoundNode,
        /// The node that has to start after that.
        second: FoundNode,
        /// As for [`Race::edge`]; `None` if it would close a cycle, or may.
        edge: Option<Box<(FoundNode, FoundNode)>>,
    },
    /// No node frees the memory of an allocation node, so that each launch leaves it.
    NeverFreed {
        /// The allocation node.
        allocation: FoundNode,
        /// How many bytes it allocates.
        bytes: u64,
    },
    /// Two nodes without a path between them touch the same bytes, and one of them writes. In a
    /// graph with edges that order only kernels that wait for it (see [`Race::may_wait`]), a path
    /// of these makes it a note.
    Race(Box<Race>),
}

impl Finding {
    /// How grave it is.
    #[must_use]
    pub fn severity(&self) -> Severity {
        match self {
            Self::Race(race) if race.may_wait => Severity::Note,
            Self::UnorderedCondition { may_wait: true, .. } | Self::NeverFreed { .. } => Severity::Note,
            _ => Severity::Error,
        }
    }

    /// A word or two that name the kind of finding, the same in every form of a report.
    #[must_use]
    pub fn class(&self) -> &'static str {
        match self {
            Self::Cycle { .. } => "cycle",
            Self::NotInBody { .. } => "not in a body",
            Self::MixedContexts { .. } => "mixed contexts",
            Self::UnusedCondition { .. } => "unused condition",
            Self::UnorderedCondition { .. } => "unordered condition",
            Self::MemoryOrder { .. } => "memory order",
            Self::NeverFreed { .. } => "never freed",
            Self::Race(_) => "data race",
        }
    }

    /// The nodes that it is about.
    #[must_use]
    pub fn nodes(&self) -> Vec<&FoundNode> {
        match self {
            Self::Cycle { nodes } => nodes.iter().collect(),
            Self::NotInBody { node, conditional, .. } | Self::MixedContexts { node, conditional } => {
                vec![node, conditional]
            }
            Self::UnusedCondition { .. } => Vec::new(),
            Self::UnorderedCondition { setter, conditional, .. } => vec![setter, conditional],
            Self::MemoryOrder { allocation, first, second, .. } => {
                let mut nodes = vec![allocation];
                nodes.extend([first, second].into_iter().filter(|node| node.node != allocation.node));
                nodes
            }
            Self::NeverFreed { allocation, .. } => vec![allocation],
            Self::Race(race) => vec![&race.first.node, &race.second.node],
        }
    }

    /// What would mend it, in words.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Cycle { .. } => "remove one of these edges (Graph::remove_edges)".to_owned(),
            Self::NotInBody { pageable: true, .. } => {
                "pin the memory (Context::pinned_zeros), or copy before or after the conditional node".to_owned()
            }
            Self::NotInBody { conditional, .. } => {
                format!("move it out of there: before or after {conditional}")
            }
            Self::MixedContexts { .. } => {
                "load the kernel in the context of the graph, or move it out of there".to_owned()
            }
            Self::UnusedCondition { .. } => "add its conditional node, or use it for another one (a new condition with the same default takes its place once \
                 its handles are gone)"
                .to_owned(),
            Self::UnorderedCondition { edge, .. } => {
                let (from, to) = &**edge;
                format!("an edge from {from} to {to} lets it come in time")
            }
            Self::MemoryOrder { edge: Some(edge), .. } => {
                let (from, to) = &**edge;
                format!("an edge from {from} to {to} puts them in order")
            }
            Self::MemoryOrder { first, second, edge: None, .. } => {
                format!("have {first} come before {second}, which may come first now")
            }
            Self::NeverFreed { .. } => "free it in the graph before its first executable (Graph::free), or take it after each launch (GraphExec::launch_with_outputs)".to_owned(),
            Self::Race(race) => race.remedy(),
        }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cycle { nodes } => {
                formatter.write_str("cycle: ")?;
                let (head, more, tail) = ends(nodes);
                head.iter().try_for_each(|node| write!(formatter, "{node} -> "))?;
                if more > 0 {
                    write!(formatter, "{more} more -> ")?;
                }
                tail.iter().try_for_each(|node| write!(formatter, "{node} -> "))?;
                match nodes.first() {
                    Some(first) => write!(formatter, "{first}")?,
                    None => formatter.write_str("?")?,
                }
                formatter.write_str(" wait for each other")?;
            }
            Self::NotInBody { node, pageable: true, conditional, .. } => write!(
                formatter,
                "not in a body: {node} copies pageable memory of the host, which the driver does not do in a body, here of {conditional}"
            )?,
            Self::NotInBody { node, kind, conditional, .. } => {
                write!(
                    formatter,
                    "not in a body: {} as {node} cannot be in a body, here of {conditional}",
                    A(format_args!("{kind} node"))
                )?;
            }
            Self::MixedContexts { node, conditional } => write!(
                formatter,
                "mixed contexts: {node} launches a kernel of another context than that of {conditional}, in whose body it is; all kernels of a \
                 body are of one context"
            )?,
            Self::UnusedCondition { number, default, setters } => {
                write!(formatter, "unused condition: condition {number}")?;
                if let Some(default) = default {
                    write!(formatter, " with default {default}")?;
                }
                formatter.write_str(" is used by no conditional node")?;
                if !setters.is_empty() {
                    let set = if setters.len() == 1 { "sets" } else { "set" };
                    write!(formatter, " ({} {set} it)", Names(setters))?;
                }
                formatter.write_str(", and the driver makes no executable of such a graph")?;
            }
            Self::UnorderedCondition { number, setter, conditional, may_wait, .. } => {
                write!(
                    formatter,
                    "unordered condition: {setter} may set condition {number}, and {conditional} goes by it, with no path between them"
                )?;
                if *may_wait {
                    formatter.write_str(" but one that does not wait for the end of each kernel on it")?;
                }
            }
            Self::MemoryOrder { what, allocation, first, second, .. } => {
                let does = if *what == Disorder::UseBeforeAllocation { "uses" } else { "frees" };
                write!(
                    formatter,
                    "memory order: {second} {does} the memory that {allocation} allocates, and does not wait for "
                )?;
                match what {
                    Disorder::UseAfterFree => write!(formatter, "the end of {first}, which uses it")?,
                    _ => formatter.write_str("that")?,
                }
            }
            Self::NeverFreed { allocation, bytes } => write!(
                formatter,
                "never freed: no node frees the memory of {bytes} bytes that {allocation} allocates, so that each launch leaves it"
            )?,
            Self::Race(race) => race.fmt(formatter)?,
        }
        write!(formatter, "; {}", self.remedy())
    }
}

/// The first and the last of many, and how many lie between.
fn ends<T>(all: &[T]) -> (&[T], usize, &[T]) {
    const SHOWN: usize = 12;
    let more = all.len().saturating_sub(SHOWN);
    let (head, tail) = all.split_at(if more > 0 { SHOWN / 2 } else { all.len() });
    (head, more, tail.get(more..).unwrap_or(tail))
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
    /// [`CheckOptions::steps`](super::CheckOptions::steps).
    Steps(NotCompared),
    /// As many races were found as were asked for; see
    /// [`CheckOptions::races`](super::CheckOptions::races).
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
