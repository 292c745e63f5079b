//! Errors about updates of executables.

use core::fmt;
use std::borrow::Cow;

use crate::node_name::NodeName;

/// A node of an executable cannot be updated as asked. The executable is unchanged.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UpdateError {
    /// The node was not in the graph when the executable was made of it.
    #[error(
        "node `{node}` is not in the executable: it was not in the graph when the executable was made; \
         update the nodes of that graph, or instantiate this one"
    )]
    NotInExecutable {
        /// The node's name.
        node: NodeName,
    },
    /// The executable was updated from another graph, and it is not known which nodes of the two
    /// graphs stand for the same node.
    #[error("the nodes of the executable cannot be updated: {why}; instantiate the graph again")]
    Unpaired {
        /// The reason.
        why: &'static str,
    },
    /// Other code or kernels may launch the executable at any time, so it is not known which of its
    /// runs use the old parameters.
    #[error(
        "the nodes of the executable cannot be updated, since its raw handle was given to other code, or \
         kernels launch it; instantiate the graph again"
    )]
    Lent,
    /// The executable runs two nodes in no order, since edges between them were left out
    /// ([`Order::ByData`](crate::Order::ByData)), and the new value would need one.
    #[error(
        "node `{node}` of the executable cannot be updated so: {why} node `{other}`, and the executable orders the \
         two no more, since nothing needed it (Order::ByData); instantiate again"
    )]
    Meets {
        /// The node's name.
        node: NodeName,
        /// The name of the other node.
        other: NodeName,
        /// How it would meet the other one.
        why: Meeting,
    },
    /// The driver cannot give an executable's node these parameters.
    #[error("node `{node}` of the executable cannot be updated so: {why}")]
    NotPossible {
        /// The node's name.
        node: NodeName,
        /// The reason, and the way that works.
        why: Cow<'static, str>,
    },
}

/// How two nodes of an executable would meet that it runs in no order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Meeting {
    /// They would touch the same bytes, and one of them would write.
    Conflict,
    /// It is not known which bytes the first would touch.
    Unknown,
    /// There are too many accesses to see whether they conflict.
    TooMany,
}

impl fmt::Display for Meeting {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Conflict => "it would touch bytes of",
            Self::Unknown => "it would touch unknown bytes, maybe those of",
            Self::TooMany => "there are too many accesses to see whether it would touch bytes of",
        })
    }
}

shown!(UpdateError);
