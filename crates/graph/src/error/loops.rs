//! Errors about ready-made loops and branches.

use crate::node_name::NodeName;

/// A loop or branch cannot be built or run as asked.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum LoopError {
    /// A graph with a ready-made loop or branch for which the driver has no conditional node cannot
    /// be instantiated or lent.
    #[error(
        "node `{node}` goes by a test, which needs a CUDA driver of version {needs} or newer; this one is {found}. The host can decide in its place, and wait for each \
         test: Graph::instantiate_with_fallback with Fallback::HostLoop"
    )]
    NeedsHost {
        /// The loop or branch, by name.
        node: NodeName,
        /// The first version that has such nodes.
        needs: cuda_sys::Version,
        /// The version of the driver.
        found: cuda_sys::Version,
    },
    /// A conditional node with a condition cannot be in a body for which the host decides.
    #[error(
        "a node of kind {kind} that goes by a condition cannot be in a body of node `{node}`, as the driver has no node for that one, so that it and all in it are for the host to \
         decide; add a ready-made loop or branch (Frontier::while_loop, Frontier::if_then)"
    )]
    HostDecides {
        /// The kind of the new node.
        kind: crate::node_kind::NodeKind,
        /// The loop or branch, by name.
        node: NodeName,
    },
    /// The host cannot run a graph, since something in it needs the driver's own decision.
    #[error("the host cannot run this graph because of node `{node}`: {why}")]
    NotOnHost {
        /// The node, by name.
        node: NodeName,
        /// The reason.
        why: &'static str,
    },
    /// A do-while loop runs its body at least once, so its limit cannot be 0.
    #[error(
        "a do-while loop runs its body at least once, so its limit is 1 or more, not 0; for a loop that may run no round, use Frontier::while_loop"
    )]
    NoRounds,
    /// A loop or branch cannot test memory without elements.
    #[error("a test needs a number to look at, and the memory given has no elements; give it a slice of one")]
    NothingToTest,
    /// The closure that fills the body of a loop or branch failed. Its own error is lost, since the
    /// nodes that were added before could not be removed again.
    #[error("the closure that fills the body failed")]
    NotFilled,
}

shown!(LoopError);
