//! Refusals: why an executable cannot be updated from a graph.

use core::fmt;

use cuda_sys::CUgraphExecUpdateResult as UpdateResult;

use crate::node_name::NodeName;
use crate::wording::{At, Named};

/// Why an executable cannot be updated from a graph, so that the graph has to be instantiated. The
/// executable is unchanged.
///
/// It reads as a sentence, with the names of the nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[doc(alias = "CUgraphExecUpdateResultInfo")]
#[doc(alias = "cudaGraphExecUpdateResultInfo")]
pub struct Refusal {
    /// The kind of reason, for statistics and decisions.
    pub reason: RefusalReason,
    /// The node of the graph that is the reason, by name.
    #[doc(alias = "errorNode")]
    pub node: Option<NodeName>,
    /// The node that an edge to [`node`](Self::node) leaves, if that edge is the reason.
    #[doc(alias = "errorFromNode")]
    pub from_node: Option<NodeName>,
    /// The reason in words.
    pub why: String,
}

/// The kind of reason for a [`Refusal`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
#[non_exhaustive]
#[doc(alias = "CUgraphExecUpdateResult")]
#[doc(alias = "cudaGraphExecUpdateResult")]
pub enum RefusalReason {
    /// There are other nodes or edges, in the graph or in a graph in one of its nodes.
    #[doc(alias = "CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED")]
    Topology,
    /// A node is of another kind.
    #[doc(alias = "CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED")]
    NodeKind,
    /// A node has parameters that an executable's node cannot get.
    #[doc(alias = "CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED")]
    Parameters,
    /// A kernel node has a kernel that an executable's node cannot get.
    #[doc(alias = "CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE")]
    #[doc(alias = "CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED")]
    Kernel,
    /// A kernel node has attributes that an executable's node cannot get.
    #[doc(alias = "CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED")]
    Attributes,
    /// A conditional node is of another kind, or has another condition or number of bodies.
    #[doc(alias = "CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED")]
    Conditional,
    /// The graph has allocation or free nodes.
    MemoryNodes,
    /// Kernels may launch the executable.
    DeviceLaunch,
    /// The host decides in the executable.
    HostDecides,
    /// A node is disabled in the executable that would decide about a condition. Or a graph
    /// parameter has disabled a fill, and the graph has no parameter for it.
    Disabled,
    /// The executable was [shaped](crate::InstantiateOptions::shape), and the graph has other nodes
    /// or edges than the one that it was made of had then, or parameters that the shape does not
    /// permit, or values with which nodes would [meet](crate::UpdateError::Meets).
    Shaped,
    /// The graph has graph parameters, and it is not known which nodes of the executable take them.
    Unpaired,
    /// The driver gives no reason that this library knows.
    #[doc(alias = "CU_GRAPH_EXEC_UPDATE_ERROR")]
    Other,
}

impl Refusal {
    pub(crate) fn new(reason: RefusalReason, why: impl Into<String>) -> Self {
        Self { reason, node: None, from_node: None, why: why.into() }
    }

    pub(crate) fn at(mut self, node: NodeName) -> Self {
        self.node = Some(node);
        self
    }

    pub(crate) fn from(mut self, node: NodeName) -> Self {
        self.from_node = Some(node);
        self
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the executable cannot be updated from the graph")?;
        match (&self.from_node, &self.node) {
            (Some(from), Some(to)) => {
                write!(
                    formatter,
                    " because of the edge from node `{}` to node `{}`",
                    Named(from),
                    Named(to)
                )?;
            }
            (_, node) => At(node.as_deref()).fmt(formatter)?,
        }
        write!(formatter, ": {}", self.why)
    }
}

impl RefusalReason {
    /// The reason behind the driver's result, and a sentence about it.
    pub(crate) fn of(result: UpdateResult) -> (Self, &'static str) {
        match result {
            UpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_TOPOLOGY_CHANGED => {
                (Self::Topology, "its nodes or edges, or the order in which they were added, are others")
            }
            UpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED => {
                (Self::NodeKind, "its counterpart in the executable is of another kind")
            }
            UpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED => (
                Self::Parameters,
                "a copy keeps its direction, its shape and memory of a pool or of none; a fill of a rectangle keeps \
                 its shape, a batch the kinds of its operations",
            ),
            UpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_FUNCTION_CHANGED
            | UpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE => {
                (Self::Kernel, "an executable's node cannot get this kernel")
            }
            UpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED => {
                (Self::Attributes, "a launch stays cooperative or not")
            }
            UpdateResult::CU_GRAPH_EXEC_UPDATE_ERROR_NOT_SUPPORTED => (
                Self::Conditional,
                "a conditional node keeps its kind, its bodies and the number of its condition, which counts the \
                 conditions of its graph in the order in which they were made",
            ),
            _ => (Self::Other, "the driver gives no closer reason"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_a_sentence_with_names() {
        let refusal = Refusal::new(RefusalReason::Topology, "it is full");
        assert_eq!(refusal.to_string(), "the executable cannot be updated from the graph: it is full");
        let refusal = refusal.at("b\n".into());
        let sentence = "the executable cannot be updated from the graph because of node `b\\n`: it is full";
        assert_eq!(refusal.to_string(), sentence);
        let sentence = refusal.from("a".into()).to_string();
        assert!(sentence.contains("because of the edge from node `a` to node `b\\n`: "), "{sentence}");
    }
}
