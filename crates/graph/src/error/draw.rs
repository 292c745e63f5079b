//! Errors about pictures and dumps.

use crate::wording::{Count, Named};

/// A picture or a dump cannot be made.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum DrawError {
    /// A graph is too large to be drawn.
    #[error(
        "a graph with {} and {} is too large for a picture; take one of an embedded graph, or Graph::to_dot for other tools",
        Count(*nodes, "node"), Count(*edges, "edge")
    )]
    PictureTooLarge {
        /// The number of nodes.
        nodes: usize,
        /// The number of edges.
        edges: usize,
    },
    /// A file path contains a NUL byte, which no system call accepts.
    #[error("the path `{}` has a NUL byte in it", Named(path))]
    PathWithNul {
        /// The path.
        path: Box<str>,
    },
}

shown!(DrawError);
