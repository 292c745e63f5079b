//! Findings: errors in a graph, and what may be errors.

use super::{FoundNode, Race, Severity};
use crate::error::memory_order::Disorder;
use crate::node_kind::NodeKind;

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
    /// A kernel node has a part of a launch only, or a loop or a branch was not built to its end;
    /// see [`HalfDone`](crate::HalfDone).
    Incomplete {
        /// The node.
        node: FoundNode,
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
            Self::Cycle { .. }
            | Self::NotInBody { .. }
            | Self::MixedContexts { .. }
            | Self::UnusedCondition { .. }
            | Self::UnorderedCondition { may_wait: false, .. }
            | Self::Incomplete { .. }
            | Self::MemoryOrder { .. }
            | Self::Race(_) => Severity::Error,
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
            Self::Incomplete { .. } => "incomplete",
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
            Self::Incomplete { node } => vec![node],
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
            Self::Cycle { .. } => "remove one of these edges (Graph::remove_edge)".to_owned(),
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
            Self::Incomplete { node } if node.is_conditional() => {
                "remove it (Node::remove), or build the graph anew where the driver removes no nodes"
                    .to_owned()
            }
            Self::Incomplete { .. } => {
                "give it a whole launch (KernelNode::set) or remove it (Node::remove)".to_owned()
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
