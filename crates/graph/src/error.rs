//! What can be wrong with a graph.

use core::fmt;

use cuda_sys::{CUgraphInstantiateResult, CUresult};

use crate::edge::EdgeKind;

/// The result of this crate's functions.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Why an operation on a graph failed. The graph is as it was before.
///
/// Nodes are named as in [`Node::name`](crate::Node::name).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The driver refused, or a handle does not fit.
    #[error(transparent)]
    Handles(#[from] cuda_handles::Error),
    /// The configuration or the arguments of a kernel node are not what the kernel takes.
    #[error(transparent)]
    Launch(#[from] cuda_launch::Error),
    /// A node of another graph was given.
    #[error("node `{node}` belongs to another graph; edges connect nodes of one graph only")]
    Foreign {
        /// The node's name.
        node: Box<str>,
    },
    /// A node was given that is no longer in its graph.
    #[error("node `{node}` has been removed from its graph")]
    Removed {
        /// What the node was called by default.
        node: Box<str>,
    },
    /// A graph was used whose node, in which it was embedded, has been removed.
    #[error("the graph was embedded in a node that has been removed; a removed node takes its graph with it")]
    GraphRemoved,
    /// An edge from a node to itself was asked for.
    #[error("an edge from node `{node}` to itself would make it wait for its own end")]
    SelfEdge {
        /// The node's name.
        node: Box<str>,
    },
    /// The edge is there already.
    #[error("there is already an edge from `{from}` to `{to}`")]
    DuplicateEdge {
        /// The node that the edge leaves.
        from: Box<str>,
        /// The node that the edge enters.
        to: Box<str>,
    },
    /// The edge to remove is not there.
    #[error("there is no edge from `{from}` to `{to}`")]
    NoEdge {
        /// The node that the edge would leave.
        from: Box<str>,
        /// The node that the edge would enter.
        to: Box<str>,
    },
    /// The edge would close a cycle.
    #[error("the edge would close a cycle: {}", Path(path))]
    Cycle {
        /// The nodes of the cycle: each has an edge to the next. The edge asked for leads from the last to the first.
        path: Vec<String>,
    },
    /// A memcpy or memset node over no bytes was asked for; the driver has no such nodes.
    #[error(
        "a {what} node needs at least one element; for a slice of none, leave the node out or add an empty one"
    )]
    NoElements {
        /// The kind of node.
        what: &'static str,
    },
    /// The driver could not make an executable.
    #[error(transparent)]
    Instantiate(Box<InstantiateError>),
    /// An edge of this kind can lead from a kernel to a kernel only.
    #[error("a {kind} edge from `{from}` to another node needs kernels at both ends; use a full edge")]
    EdgeKind {
        /// What was asked for.
        kind: EdgeKind,
        /// The node that the edge would leave.
        from: Box<str>,
    },
    /// The driver named a node that is not in the graph's table: somebody changed the raw graph.
    #[error("the driver's graph has a node ({raw:#x}) that was not added through this library")]
    UnknownNode {
        /// The raw node.
        raw: usize,
    },
}

/// Why the driver could not make an executable of a graph.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("the graph cannot be instantiated{}: {}{}", At(node.as_deref()), reason(*result), Code(*code, *result))]
#[non_exhaustive]
pub struct InstantiateError {
    /// What `cuGraphInstantiateWithParams` answered.
    pub code: CUresult,
    /// The kind of failure that it reported.
    pub result: CUgraphInstantiateResult,
    /// The node that it reported, by name.
    pub node: Option<String>,
}

fn reason(result: CUgraphInstantiateResult) -> &'static str {
    match result {
        CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE => {
            "its structure is not valid, as with a cycle"
        }
        CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_NODE_OPERATION_NOT_SUPPORTED => {
            "the node does something that is not possible where it stands (host functions, events, allocations and frees in a body or in a \
             graph for launches from the device)"
        }
        CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_MULTIPLE_CTXS_NOT_SUPPORTED => {
            "its nodes belong to several contexts, or a copy in a body uses pageable memory"
        }
        CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_CONDITIONAL_HANDLE_UNUSED => {
            "a condition was made for which there is no conditional node"
        }
        _ => "the driver gives no closer reason",
    }
}

struct At<'a>(Option<&'a str>);

impl fmt::Display for At<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |node| write!(formatter, " because of node `{node}`"))
    }
}

struct Code(CUresult, CUgraphInstantiateResult);

impl fmt::Display for Code {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            " (cuGraphInstantiateWithParams answered {} with instantiate result {})",
            self.0, self.1.0
        )
    }
}

struct Path<'a>(&'a [String]);

impl fmt::Display for Path<'_> {
    /// Long cycles are told by their ends.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 12;
        let left_out = self.0.len().saturating_sub(SHOWN);
        let ends = SHOWN / 2;
        for (index, node) in self.0.iter().enumerate() {
            match index {
                _ if left_out == 0 || index < ends || index >= ends + left_out => {
                    write!(formatter, "`{node}` -> ")?;
                }
                _ if index == ends => write!(formatter, "{left_out} more -> ")?,
                _ => {}
            }
        }
        self.0.first().map_or(Ok(()), |first| write!(formatter, "`{first}`"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(nodes: usize) -> String {
        Error::Cycle { path: (0..nodes).map(|node| format!("n{node}")).collect() }.to_string()
    }

    #[test]
    fn a_cycle_reads_as_a_path() {
        assert_eq!(cycle(2), "the edge would close a cycle: `n0` -> `n1` -> `n0`");
        let long = cycle(1000);
        assert!(long.contains("`n5` -> 988 more -> `n994`"), "{long}");
        assert!(long.ends_with("`n999` -> `n0`"));
    }

    #[test]
    fn a_failed_instantiation_names_reason_node_and_code() {
        let error = InstantiateError {
            code: CUresult::CUDA_ERROR_INVALID_VALUE,
            result: CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE,
            node: Some("step".to_owned()),
        };
        assert_eq!(
            error.to_string(),
            "the graph cannot be instantiated because of node `step`: its structure is not valid, as with a cycle \
             (cuGraphInstantiateWithParams answered CUDA_ERROR_INVALID_VALUE (1) with instantiate result 2)"
        );
    }

    #[test]
    fn errors_are_small() {
        assert!(size_of::<Error>() <= 64);
    }
}
