//! Findings: errors in a graph, and what may be errors.

use super::{FoundNode, Race, Severity};
use crate::error::memory_order::Disorder;
use crate::node_kind::NodeKind;

/// An error in a graph, or a possible one.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Finding {
    /// Nodes wait for each other in a cycle.
    Cycle {
        /// The nodes of the cycle: each has an edge to the next, and the last one to the first.
        nodes: Vec<FoundNode>,
    },
    /// A node is in the body of a conditional node, and the driver does not allow it there.
    NotInBody {
        /// The node.
        node: FoundNode,
        /// The type of the node.
        kind: NodeKind,
        /// Whether it is a copy of pageable host memory. Copies of other memory are allowed.
        pageable: bool,
        /// The conditional node.
        conditional: FoundNode,
    },
    /// A kernel in the body of a conditional node is of another context than that node.
    MixedContexts {
        /// The kernel node.
        node: FoundNode,
        /// The conditional node.
        conditional: FoundNode,
    },
    /// No conditional node uses a condition.
    UnusedCondition {
        /// The condition's number.
        number: u64,
        /// The condition's default value.
        default: Option<u32>,
        /// The kernel nodes that set it, by name.
        setters: Vec<String>,
    },
    /// A kernel that may set a condition and the conditional node that reads it have no order, so
    /// the kernel may come too late.
    UnorderedCondition {
        /// The condition's number.
        number: u64,
        /// The kernel node.
        setter: FoundNode,
        /// The conditional node.
        conditional: FoundNode,
        /// The edge that would fix it: from the first to the second of these nodes, which are the
        /// two nodes themselves or nodes around them.
        edge: Box<(FoundNode, FoundNode)>,
        /// As for [`Race::may_wait`].
        may_wait: bool,
    },
    /// No kernel in the body of a loop has the handle of its condition, so the loop does not end
    /// once it begins. Everything in the body is known.
    EndlessLoop {
        /// The condition's number.
        number: u64,
        /// The loop's node.
        conditional: FoundNode,
    },
    /// A node may use memory of the graph before it is allocated or after it is freed, or memory
    /// may be freed before it is allocated. The graph cannot be
    /// [instantiated](crate::Graph::instantiate).
    MemoryOrder {
        /// The disorder.
        what: Disorder,
        /// The allocation node.
        allocation: FoundNode,
        /// The node that has to end first.
        first: FoundNode,
        /// The node that has to start after that end.
        second: FoundNode,
        /// The edge that would fix it, as for [`Race::edge`]; `None` if it would close a cycle, or
        /// might.
        edge: Option<Box<(FoundNode, FoundNode)>>,
    },
    /// No node frees the memory of an allocation node. Each launch leaves it.
    NeverFreed {
        /// The allocation node.
        allocation: FoundNode,
        /// How many bytes it allocates.
        bytes: u64,
    },
    /// Two nodes without a path between them access the same bytes, and one of them writes. It is a
    /// note if there is a path that orders them only if kernels wait (see [`Race::may_wait`]).
    Race(Box<Race>),
}

impl Finding {
    /// How severe it is.
    #[must_use]
    pub fn severity(&self) -> Severity {
        match self {
            Self::Race(race) if race.may_wait => Severity::Note,
            Self::UnorderedCondition { may_wait: true, .. } | Self::NeverFreed { .. } => Severity::Note,
            Self::Cycle { .. }
            | Self::NotInBody { .. }
            | Self::MixedContexts { .. }
            | Self::UnusedCondition { .. }
            | Self::UnorderedCondition { may_wait: false, .. }
            | Self::EndlessLoop { .. }
            | Self::MemoryOrder { .. }
            | Self::Race(_) => Severity::Error,
        }
    }

    /// The class of the finding in a word or two, the same in all forms of a report.
    #[must_use]
    pub fn class(&self) -> &'static str {
        match self {
            Self::Cycle { .. } => "cycle",
            Self::NotInBody { .. } => "not in a body",
            Self::MixedContexts { .. } => "mixed contexts",
            Self::UnusedCondition { .. } => "unused condition",
            Self::UnorderedCondition { .. } => "unordered condition",
            Self::EndlessLoop { .. } => "endless loop",
            Self::MemoryOrder { .. } => "memory order",
            Self::NeverFreed { .. } => "never freed",
            Self::Race(_) => "data race",
        }
    }

    /// The nodes that the finding is about.
    #[must_use]
    pub fn nodes(&self) -> Vec<&FoundNode> {
        match self {
            Self::Cycle { nodes } => nodes.iter().collect(),
            Self::NotInBody { node, conditional, .. } | Self::MixedContexts { node, conditional } => {
                vec![node, conditional]
            }
            Self::UnusedCondition { .. } => Vec::new(),
            Self::UnorderedCondition { setter, conditional, .. } => vec![setter, conditional],
            Self::EndlessLoop { conditional, .. } => vec![conditional],
            Self::MemoryOrder { allocation, first, second, .. } => {
                let mut nodes = vec![allocation];
                nodes.extend([first, second].into_iter().filter(|node| node.node != allocation.node));
                nodes
            }
            Self::NeverFreed { allocation, .. } => vec![allocation],
            Self::Race(race) => vec![&race.first.node, &race.second.node],
        }
    }

    /// How to fix it, in words.
    #[must_use]
    pub fn remedy(&self) -> String {
        match self {
            Self::Cycle { .. } => "remove one of these edges (Graph::remove_edges)".to_owned(),
            Self::NotInBody { pageable: true, .. } => {
                "pin the memory (Context::pinned_zeros), or copy before or after the conditional node"
                    .to_owned()
            }
            Self::NotInBody { conditional, .. } => {
                format!("move it out of there: before or after {conditional}")
            }
            Self::MixedContexts { .. } => {
                "load the kernel in the context of the graph, or move it out of there".to_owned()
            }
            Self::UnusedCondition { .. } => {
                "add its conditional node, or use it for another one (a new condition \
                 with the same default takes its place once its handles are gone)"
                    .to_owned()
            }
            Self::UnorderedCondition { edge, .. } => {
                let (from, to) = &**edge;
                format!("an edge from {from} to {to} lets it come in time")
            }
            Self::EndlessLoop { .. } => {
                "add a kernel to its body that gets the condition as an argument, and sets it to 0 in the last \
                 round"
                    .to_owned()
            }
            Self::MemoryOrder { edge: Some(edge), .. } => {
                let (from, to) = &**edge;
                format!("an edge from {from} to {to} puts them in order")
            }
            Self::MemoryOrder { first, second, edge: None, .. } => {
                format!("have {first} come before {second}, which may come first now")
            }
            Self::NeverFreed { .. } => "free it in the graph before its first executable (Graph::free), or \
                 take it after each launch (GraphExec::launch_with_outputs)"
                .to_owned(),
            Self::Race(race) => race.remedy(),
        }
    }
}
