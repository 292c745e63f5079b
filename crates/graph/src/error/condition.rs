//! Errors about conditions and bodies.

use crate::node_name::NodeName;
use crate::wording::A;
use crate::wording::{Default, Setters};

/// A condition or a body cannot be used as asked.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ConditionError {
    /// A condition belongs to another graph, or its graph was moved.
    #[error(
        "node `{node}` was given a condition of another graph; a condition goes by the graph that it was made on (Graph::condition)"
    )]
    ForeignCondition {
        /// The name of the node, or of its kernel.
        node: NodeName,
    },
    /// A condition belongs to another conditional node already.
    #[error(
        "condition {number} is that of node `{node}` already; each conditional node needs one of its own (Graph::condition)"
    )]
    ConditionInUse {
        /// The condition's number.
        number: u64,
        /// The conditional node, by name.
        node: NodeName,
    },
    /// A graph with a condition that no conditional node uses cannot be instantiated: the driver
    /// refuses it.
    #[error(
        "condition {number} ({}) is used by no conditional node{}; the driver makes no executable of such a graph: add the node, or use the condition for \
         another one (a new condition with the same default takes its place once its handles are gone)",
        Default(*default), Setters(setters)
    )]
    UnusedCondition {
        /// The condition's number.
        number: u64,
        /// The condition's default.
        default: Option<u32>,
        /// The kernel nodes that set it, by name.
        setters: Vec<String>,
    },
    /// A body, or a graph embedded in one, cannot contain such a node.
    #[error(
        "{} cannot be in a body, here of node `{conditional}`: there can be kernels, copies and fills of device and pinned memory, empty nodes, \
         conditional nodes, and child graphs of all these",
        A(format_args!("{kind} node"))
    )]
    NotInBody {
        /// The kind of the new node.
        kind: crate::node_kind::NodeKind,
        /// The conditional node, by name.
        conditional: NodeName,
    },
    /// A conditional node with two bodies cannot contain child graphs on this driver, which mixes
    /// them up.
    #[error(
        "node `{conditional}` has two bodies, and CUDA drivers of versions 12.8 and 12.9 mix up child graphs in these; add the nodes of the graph to the body \
         itself, use two if nodes with a condition each, or a newer driver"
    )]
    ChildInTwoBodies {
        /// The conditional node, by name.
        conditional: NodeName,
    },
    /// A graph with conditional nodes or conditions cannot be cloned or embedded.
    #[error(
        "a graph with conditions cannot be {what}: the driver refuses it; build it a second time, or build it where it is to be (a body can hold conditional nodes, and \
         so can a graph that is embedded already)"
    )]
    HasConditions {
        /// The operation, as in `cloned`.
        what: &'static str,
    },
    /// A graph that [spans several contexts](crate::Graph::spanning) has no conditions, loops or
    /// branches.
    #[error(
        "a graph that spans several contexts has no conditions, and no loops or branches: the driver refuses most \
         of them there; put them into a graph of one context, and launch it before or after this one"
    )]
    SeveralContexts,
    /// A switch cannot have this number of branches.
    #[error("a switch has 1 to {} branches, not {branches}", ConditionError::MOST_BRANCHES)]
    Branches {
        /// The number requested.
        branches: usize,
    },
}

shown!(ConditionError);

impl ConditionError {
    /// The most branches of a switch.
    pub(crate) const MOST_BRANCHES: usize = 1000;
}
