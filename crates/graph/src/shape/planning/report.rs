//! The report of a plan: figures before and after, and what was done and left, and why.

use core::fmt;

use super::drawn::HostSubmittedKind;
use super::figures::Figures;

/// What a plan did.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct PlanReport {
    pub(crate) before: Figures,
    pub(crate) after: Figures,
    /// In the order of the steps.
    pub(crate) actions: Vec<Action>,
}

/// Something that was done, or left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// Redundant edges went.
    EdgesReduced {
        before: usize,
        after: usize,
    },
    /// A limit of memory or time was met, so redundant edges may be left.
    ReducedInPart,
    /// Nodes at programmatic edges kept all of their edges.
    FixedLeft {
        nodes: usize,
    },
    /// Kernels took the place of nodes that the host submits.
    HostSubmittedReplaced {
        kind: HostSubmittedKind,
        nodes: usize,
    },
    HostSubmittedLeft {
        kind: HostSubmittedKind,
        nodes: usize,
        why: Obstacle,
    },
    /// Empty nodes went; edges lead past them.
    EmptiesDissolved {
        empties: usize,
        edges_before: usize,
        edges_after: usize,
    },
    /// Empty nodes became kernels that do nothing.
    EmptiesReplaced {
        empties: usize,
    },
    EmptiesLeft {
        empties: usize,
        why: Obstacle,
    },
    /// Redundant edges stay, so that nodes behind empty ones that are left do not count as roots.
    EdgesPutBack {
        edges: usize,
    },
    /// A kernel that does nothing is in front of roots.
    RootsFronted {
        roots: usize,
    },
    RootsLeft {
        roots: usize,
        why: Obstacle,
    },
    /// Sets of twins were threaded through lanes.
    SetsThreaded {
        sets: usize,
        nodes: usize,
        lanes: usize,
    },
    SetsLeft {
        sets: usize,
        why: Obstacle,
    },
    /// No set of twins is wider than the lanes.
    NoSets {
        lanes: usize,
    },
    /// Full edges became programmatic.
    EdgesOverlapped {
        edges: usize,
    },
    /// Edges between kernels stay full.
    EdgesLeftFull {
        edges: usize,
        why: Obstacle,
    },
    /// Redundant edges stay, since they are few.
    RedundantLeft {
        edges: usize,
    },
    /// The drawing has a cycle.
    CycleLeft,
}

impl Action {
    /// Whether it was done because kernels beside promise progress.
    pub(crate) fn relies_on_progress(&self) -> bool {
        matches!(
            self,
            Self::EmptiesReplaced { .. }
                | Self::RootsFronted { .. }
                | Self::HostSubmittedReplaced { .. }
                | Self::SetsThreaded { .. }
        )
    }

    /// Whether something was done, and not left.
    pub(crate) fn is_change(&self) -> bool {
        match self {
            Self::EdgesReduced { .. }
            | Self::EmptiesDissolved { .. }
            | Self::EmptiesReplaced { .. }
            | Self::RootsFronted { .. }
            | Self::HostSubmittedReplaced { .. }
            | Self::SetsThreaded { .. }
            | Self::EdgesOverlapped { .. } => true,
            Self::ReducedInPart
            | Self::FixedLeft { .. }
            | Self::EmptiesLeft { .. }
            | Self::EdgesPutBack { .. }
            | Self::RootsLeft { .. }
            | Self::HostSubmittedLeft { .. }
            | Self::SetsLeft { .. }
            | Self::NoSets { .. }
            | Self::EdgesLeftFull { .. }
            | Self::RedundantLeft { .. }
            | Self::CycleLeft => false,
        }
    }
}

/// Why something was left.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Obstacle {
    /// Some of the kernels that do not promise progress run beside it, and may wait for others.
    Progress { kernels: usize },
    /// So many kernels do not promise progress that it is unknown which run beside it.
    ProgressUnknown { kernels: usize },
    /// Something that runs beside the conditional node of the body may wait for kernels.
    AroundBody,
    /// It is beside nodes at programmatic edges.
    ProgrammaticEdges,
    /// In a body, a kernel would take longer than the edges that an empty node stands for.
    NarrowJoin,
    /// It is not certain that a kernel of the library reaches the memory.
    OtherMemory(HostSubmittedKind),
    /// A copy engine is as fast as a kernel.
    Large,
    /// The roots, or all but one, are no kernels.
    NoKernels,
    /// A kernel does not wait at its entry, or the first may write memory of the host.
    NoOverlap,
    /// Several edges leave the first kernel, or many lead to the second.
    WideFork,
    /// The set consists of roots, or is behind a root that is no kernel.
    NoKernelRoot,
}

impl fmt::Display for Action {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nodes = |count| Count(count, "node");
        let empties = |count| Count(count, "empty node");
        match *self {
            Self::EdgesReduced { before, after } => {
                write!(formatter, "{} became {after}: the others follow from them", Count(before, "edge"))
            }
            Self::ReducedInPart => {
                formatter.write_str("redundant edges may be left: the graph is too large to find all")
            }
            Self::FixedLeft { nodes: count } => {
                write!(formatter, "left all edges of {}: programmatic edges lead there", nodes(count))
            }
            Self::HostSubmittedReplaced { kind, nodes } => {
                write!(formatter, "put kernels in place of {}", kind.count(nodes))
            }
            Self::HostSubmittedLeft { kind, nodes, why } => {
                write!(formatter, "left {}: {why}", kind.count(nodes))
            }
            Self::EmptiesDissolved { empties: count, edges_before, edges_after } => {
                let edges = Count(edges_before, "edge");
                write!(formatter, "dissolved {}: {edges} became {edges_after}", empties(count))
            }
            Self::EmptiesReplaced { empties: count } => {
                write!(formatter, "put kernels that do nothing in place of {}", empties(count))
            }
            Self::EmptiesLeft { empties: count, why } => {
                write!(formatter, "left {}: {why}", empties(count))
            }
            Self::EdgesPutBack { edges } => {
                let edges = Count(edges, "redundant edge");
                write!(formatter, "left {edges}: nodes behind empty ones alone would be roots")
            }
            Self::RootsFronted { roots } => {
                write!(formatter, "put a kernel that does nothing in front of {}", Count(roots, "root"))
            }
            Self::RootsLeft { roots, why } => write!(formatter, "left {}: {why}", Count(roots, "root")),
            Self::SetsThreaded { sets, nodes: count, lanes } => {
                let (nodes, sets) = (nodes(count), Count(sets, "set"));
                write!(formatter, "threaded {nodes} in {sets} through {}", Count(lanes, "lane"))
            }
            Self::SetsLeft { sets, why } => write!(formatter, "left {}: {why}", Count(sets, "wide set")),
            Self::NoSets { lanes } => {
                let more = Count(lanes, "node");
                write!(
                    formatter,
                    "made no lanes: looked for sets of more than {more}, alike and free to run at the same time; \
                     there is none, so lanes would gain nothing"
                )
            }
            Self::EdgesOverlapped { edges } => {
                let edges = Count(edges, "edge");
                write!(formatter, "made {edges} programmatic: the kernels there wait at their entry")
            }
            Self::EdgesLeftFull { edges, why } => {
                write!(formatter, "left {} between kernels full: {why}", Count(edges, "edge"))
            }
            Self::RedundantLeft { edges } => {
                write!(formatter, "left {}: so few cost nothing", Count(edges, "redundant edge"))
            }
            Self::CycleLeft => formatter.write_str("left the graph as drawn: it has a cycle"),
        }
    }
}

impl fmt::Display for Obstacle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Progress { kernels: 1 } => formatter
                .write_str("a kernel that may wait for another runs beside (1 does not promise progress)"),
            Self::Progress { kernels } => write!(
                formatter,
                "kernels beside may wait for each other ({kernels} do not promise progress)"
            ),
            Self::ProgressUnknown { kernels } => {
                write!(
                    formatter,
                    "too many kernels, {kernels}, do not promise progress to see which run beside"
                )
            }
            Self::AroundBody => {
                formatter.write_str("what runs beside the conditional node may wait for a kernel")
            }
            Self::ProgrammaticEdges => formatter.write_str("programmatic edges lead to their neighbours"),
            Self::NarrowJoin => {
                formatter.write_str("in a body, a kernel in their place saves time only between wide layers")
            }
            Self::OtherMemory(HostSubmittedKind::Fill) => {
                formatter.write_str("kernels fill device memory and pinned memory of this library alone")
            }
            Self::OtherMemory(HostSubmittedKind::Copy) => formatter
                .write_str("kernels copy between device memory and pinned memory of this library alone"),
            Self::Large => formatter.write_str("a kernel copies so much no faster"),
            Self::NoKernels => formatter.write_str("a kernel in front saves time only for several kernels"),
            Self::NoOverlap => formatter.write_str(
                "one of the two does not wait at its entry, or the first may use memory of the host",
            ),
            Self::WideFork => {
                formatter.write_str("programmatic edges save time only in chains and small joins")
            }
            Self::NoKernelRoot => formatter.write_str("lanes save time only behind roots that are kernels"),
        }
    }
}

impl HostSubmittedKind {
    fn count(self, nodes: usize) -> impl fmt::Display {
        match self {
            Self::Fill => Count(nodes, "fill"),
            Self::Copy => Count(nodes, "copy"),
        }
    }
}

/// A number of things.
struct Count(usize, &'static str);

impl fmt::Display for Count {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(count, thing) = self;
        match (count, thing.strip_suffix('y')) {
            (1, _) => write!(formatter, "{count} {thing}"),
            (_, Some(stem)) => write!(formatter, "{count} {stem}ies"),
            (_, None) => write!(formatter, "{count} {thing}s"),
        }
    }
}
