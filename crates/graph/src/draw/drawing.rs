//! What is drawn of a graph, as plain data: it knows nothing of drivers, and the writers of
//! pictures know nothing else.

use core::fmt;

/// A graph to draw. Those who draw go down into graphs in graphs by recursion; who makes drawings
/// limits how deep.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Drawing {
    pub(crate) title: String,
    pub(crate) nodes: Vec<DrawnNode>,
    /// Edges whose ends are among the nodes; others are not drawn.
    pub(crate) edges: Vec<DrawnEdge>,
}

/// A node to draw.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DrawnNode {
    /// Unique among the nodes of its drawing.
    pub(crate) id: u32,
    pub(crate) kind: DrawnKind,
    pub(crate) name: String,
    /// What it does, a line each.
    pub(crate) details: Vec<String>,
    /// Graphs that it runs, each under a label that may be empty.
    pub(crate) children: Vec<(String, Drawing)>,
    /// A word or two each on what is special about it.
    pub(crate) marks: Vec<String>,
}

/// What a node does, in words.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct DrawnKind {
    /// What it looks like, and where it stands in the legend.
    pub(crate) family: Family,
    /// As `memcpy` or `event wait`.
    pub(crate) label: String,
}

/// Kinds of nodes that look alike.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Family {
    Kernel,
    Copy,
    Fill,
    Host,
    /// What orders work beyond the graph: events and semaphores.
    Signal,
    Batch,
    /// Allocations and frees.
    Memory,
    Child,
    /// Branches and loops.
    Conditional,
    Empty,
    Other,
}

/// An edge to draw.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DrawnEdge {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) kind: DrawnEdgeKind,
}

/// What an edge makes its second node wait for.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum DrawnEdgeKind {
    Full,
    Programmatic,
    LaunchOrder,
    ProgrammaticLaunchOrder,
    /// In words.
    Other(String),
}

impl fmt::Display for DrawnEdgeKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Full => "full",
            Self::Programmatic => "programmatic",
            Self::LaunchOrder => "launch order",
            Self::ProgrammaticLaunchOrder => "programmatic launch order",
            Self::Other(words) => words,
        })
    }
}
