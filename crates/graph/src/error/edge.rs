//! Errors about edges.

use crate::edge_kind::EdgeKind;
use crate::node_name::NodeName;
use crate::wording::A;
use crate::wording::Path;

/// Edges cannot be added, removed or changed as asked.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EdgeError {
    /// An edge would lead from a node to itself.
    #[error("an edge from node `{node}` to itself would make it wait for its own end")]
    SelfEdge {
        /// The node's name.
        node: NodeName,
    },
    /// An edge exists already.
    #[error("there is already an edge from `{from}` to `{to}`")]
    DuplicateEdge {
        /// The node that the edge leaves.
        from: NodeName,
        /// The node that the edge enters.
        to: NodeName,
    },
    /// An edge to remove or to change does not exist.
    #[error("there is no edge from `{from}` to `{to}`")]
    NoEdge {
        /// The node that the edge would leave.
        from: NodeName,
        /// The node that the edge would enter.
        to: NodeName,
    },
    /// An edge would close a cycle.
    #[error("the edge would close a cycle: {}", Path(path))]
    Cycle {
        /// The nodes of the cycle: each has an edge to the next. The new edge leads from the last
        /// to the first.
        path: Vec<String>,
    },
    /// An edge of this kind must lead from a kernel to a kernel.
    #[error("{} from `{from}` to another node needs kernels at both ends; use a full edge", A(format_args!("{kind} edge")))]
    EdgeKind {
        /// The kind of the edge.
        kind: EdgeKind,
        /// The node that the edge would leave.
        from: NodeName,
    },
    /// An edge was given twice in one call.
    #[error("the edge from `{from}` to `{to}` is given twice")]
    EdgeTwice {
        /// The node that the edge leaves.
        from: NodeName,
        /// The node that the edge enters.
        to: NodeName,
    },
    /// A graph cannot be moved into a node before other nodes: if adding the edges to them failed,
    /// it could not be moved back.
    #[error(
        "a graph cannot be moved into a node before others: should the edges to them fail, it could not be given back; add the node without \
         them, and the edges after it"
    )]
    MovesBefore,
    /// Something with an order of its own was to be added to a dataflow.
    #[error(
        "{what} has an order of its own, which a dataflow does not know; add it at another frontier of the graph: the \
         dataflow takes in what is there with the next node"
    )]
    Dataflow {
        /// The thing.
        what: &'static str,
    },
}

shown!(EdgeError);
