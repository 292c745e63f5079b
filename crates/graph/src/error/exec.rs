//! Errors about executables.

use crate::error::instantiate::InstantiateError;
use crate::node_name::NodeName;
use crate::wording::{At, Found};

/// There is no executable of the graph, or it cannot be launched so.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ExecError {
    /// The graph cannot be instantiated for launches by kernels.
    #[error("the graph cannot be launched by kernels{}: {why}", At(node.as_deref()))]
    DeviceLaunch {
        /// The node that prevents it, by name.
        node: Option<NodeName>,
        /// The reason.
        why: &'static str,
    },
    /// A graph that other code may have changed has a structure that drivers refuse to instantiate;
    /// see [`Graph::check`](crate::Graph::check).
    #[error("the graph cannot be instantiated: {}", Found(findings))]
    Unsound {
        /// The defects found.
        findings: Vec<String>,
    },
    /// The driver could not instantiate the graph.
    #[error(transparent)]
    Instantiate(Box<InstantiateError>),
    /// The graph allows one executable at a time, and there is one.
    #[error("a graph with {of} has one executable at a time, and there is one; drop it first")]
    OneExecutable {
        /// The part of the graph that limits it.
        of: &'static str,
    },
    /// The executable could not be updated, and was given up to be made again, since its graph has
    /// one executable at a time; see [`GraphExec::update_or_rebuild`]. That failed.
    ///
    /// [`GraphExec::update_or_rebuild`]: crate::GraphExec::update_or_rebuild
    #[error(
        "the executable was given up to be made again, and that failed ({cause}); call update_or_rebuild again"
    )]
    NotRebuilt {
        /// The reason, in words.
        cause: String,
    },
    /// The stream captures, and launches of executables cannot be captured. The capture goes on.
    #[error(
        "the launch of an executable graph cannot be captured, and the stream is capturing; add its graph to the \
         capture (GraphBuilder::embed), or launch it after the capture or on a stream that is in none"
    )]
    Captured,
    /// The driver answered the launch with `CUDA_ERROR_UNKNOWN`. Driver 580 does so although it
    /// enqueues the launch, if the graph has user objects, as [lent](crate::Graph::lend) graphs
    /// have, and another thread waits for the same stream at that moment.
    #[error(
        "cuGraphLaunch answered CUDA_ERROR_UNKNOWN (999), as drivers do for graphs that other code knows if another \
         thread waits for the stream at that moment, although they enqueue the launch: it may run; let other \
         threads wait for events instead"
    )]
    MayRun,
}

shown!(ExecError);
