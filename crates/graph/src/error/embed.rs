//! Errors about graphs in nodes of other graphs.

use crate::node_name::NodeName;

/// A graph cannot be embedded, moved or cloned as asked.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum EmbedError {
    /// A graph would be embedded in itself, or in a graph embedded in it.
    #[error(
        "a graph cannot be embedded in itself or in a graph that lies in it; embed a clone of it (Graph::clone_graph)"
    )]
    EmbedsItself,
    /// The embedded graph of a node would be replaced by a graph inside it, which goes with it.
    #[error(
        "the graph of node `{node}` cannot be replaced by one that lies in it; take a clone of that (Graph::clone_graph)"
    )]
    ReplacesItself {
        /// The node's name.
        node: NodeName,
    },
    /// An embedded graph cannot do what only a root graph can.
    #[error(
        "a graph that is embedded in a node cannot be {what}; make a graph of its own of it first (Graph::clone_graph)"
    )]
    Embedded {
        /// The operation, as in `instantiated`.
        what: &'static str,
    },
    /// The driver refused to clone an embedded graph that has child graph nodes itself.
    #[error(
        "this driver does not clone a graph alone that is embedded in a node and has child graph nodes itself; clone the whole \
         (Graph::clone_graph of the graph that it lies in), or remove those nodes first"
    )]
    HoldsChildren,
    /// A graph of other code cannot be moved.
    #[error(
        "a graph of other code cannot be moved into a node, as that code would still destroy it; embed a clone of it (Frontier::child)"
    )]
    NotOwned,
    /// The driver is too old to move graphs; it can only clone them.
    #[error(
        "moving a graph into a node needs a CUDA driver of version {} or newer; this one is {found}. Embed a clone of it (Frontier::child)",
        cuda_sys::Feature::ChildGraphMove.since()
    )]
    CannotMove {
        /// The version of the driver.
        found: cuda_sys::Version,
    },
}

shown!(EmbedError);
