//! Errors about graphs shared with other code.

/// A graph of other code cannot be used as asked.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum InteropError {
    /// The driver's graph has a node that this library did not add or read: other code changed the
    /// graph.
    #[error("the driver's graph has a node ({raw:#x}) that was not added through this library")]
    UnknownNode {
        /// The raw node.
        raw: usize,
    },
    /// A graph embedded in a node counts as a root graph, since it was adopted before the graph
    /// around it.
    #[error(
        "graph {raw:#x} lies in a node, and is known as a graph of its own, since it was adopted first; drop all handles of it and of its nodes, \
         adopt the graph that it lies in, and take it from there (ChildGraphNode::embedded)"
    )]
    AdoptedAlone {
        /// The raw graph.
        raw: usize,
    },
    /// A graph cannot be taken over, since this library has it already.
    #[error(
        "graph {raw:#x} cannot be taken over, since it is known here already: by handles that do not own it, as one of this library's own, or as \
         one that lies in a node; only a graph of which there is no handle can"
    )]
    KnownAlready {
        /// The raw graph.
        raw: usize,
    },
}

shown!(InteropError);
