//! The drawing of a graph, as plain data. It knows nothing of drivers, and the writers of pictures
//! know nothing else.

use core::fmt;

/// A graph to draw. Writers recurse into child drawings, so whoever makes drawings limits their
/// depth.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Drawing {
    pub(crate) title: String,
    pub(crate) nodes: Vec<DrawnNode>,
    /// Edges between the nodes; others are not drawn.
    pub(crate) edges: Vec<DrawnEdge>,
}

/// A node to draw.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct DrawnNode {
    /// Unique among the nodes of its drawing.
    pub(crate) id: u32,
    pub(crate) kind: DrawnKind,
    pub(crate) name: String,
    /// Its parameters, a line each.
    pub(crate) details: Vec<String>,
    /// The graphs in it, each under a label, which may be empty.
    pub(crate) children: Vec<(String, Drawing)>,
    /// Marks: a word or two each, such as `lent`.
    pub(crate) marks: Vec<String>,
}

/// The type of a node.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct DrawnKind {
    /// Its look, and its place in the legend.
    pub(crate) family: Family,
    /// The name of the type, such as `memcpy` or `event wait`.
    pub(crate) label: String,
}

/// Types of nodes that look alike.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Family {
    Kernel,
    Copy,
    Fill,
    Host,
    /// Events and semaphores, which order work beyond the graph.
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

/// The kind of an edge.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum DrawnEdgeKind {
    Full,
    Programmatic,
    LaunchOrder,
    ProgrammaticLaunchOrder,
    /// Any other kind, in words.
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
