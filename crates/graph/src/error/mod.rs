//! The errors of this crate.
//!
//! [`Error`] has a variant for each group of errors, and those that contain another [`Error`] for
//! themselves. The files of the groups know nothing of it.

/// Shows an error's sentence where it is debug-printed, as by `main`.
macro_rules! shown {
    ($error:ty) => {
        impl core::fmt::Debug for $error {
            fn fmt(&self, formatter: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                core::fmt::Display::fmt(self, formatter)
            }
        }
    };
}

pub(crate) mod cache;
pub(crate) mod capture;
pub(crate) mod condition;
pub(crate) mod draw;
pub(crate) mod edge;
pub(crate) mod embed;
pub(crate) mod exec;
pub(crate) mod instantiate;
pub(crate) mod interop;
pub(crate) mod loops;
pub(crate) mod memory;
pub(crate) mod memory_order;
pub(crate) mod node;
pub(crate) mod param;
pub(crate) mod refusal;
pub(crate) mod update;
pub(crate) mod wrong_context;

pub use cache::{CacheError, StaleConstant};
pub use capture::CaptureError;
pub use condition::ConditionError;
pub use draw::DrawError;
pub use edge::EdgeError;
pub use embed::EmbedError;
pub use exec::ExecError;
pub use interop::InteropError;
pub use loops::LoopError;
pub use memory::MemoryError;
pub use node::NodeError;
pub use param::ParamError;
pub use refusal::{Refusal, RefusalReason};
pub use update::{Meeting, UpdateError};

use core::fmt;

use crate::wording::{Listed, Named};

/// The result of this crate's functions.
pub type Result<T, E = Error> = core::result::Result<T, E>;

/// Why an operation on a graph failed.
///
/// After an error the graph is as it was before, except after [`Broken`](Self::Broken) and
/// [`RemovedSome`](Self::RemovedSome). (The order in which the driver lists edges may differ.)
///
/// Nodes are given by [name](crate::Node::name). In an error message a name is one line of bounded
/// length, and a long list is cut after a dozen entries.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The driver failed, or an argument such as a stream or a buffer does not fit.
    #[error(transparent)]
    Handles(#[from] cuda_handles::Error),
    /// The configuration or the arguments of a kernel node do not match the kernel.
    #[error(transparent)]
    Launch(#[from] cuda_launch::Error),
    /// A change failed, now or earlier, and so did undoing it. The contents of the driver's graph
    /// are unknown, so the graph and all graphs embedded in its nodes refuse every further use.
    /// Executables made before still work.
    #[error(transparent)]
    Broken(Box<Broken>),
    /// The driver failed to remove a node after others were removed in the same call.
    #[error("{}, then the driver failed: {cause}", Listed(removed))]
    RemovedSome {
        /// The removed nodes, in words.
        removed: Vec<String>,
        /// Why the next node could not be removed.
        cause: Box<Error>,
    },
    /// A run in which the host decides failed on its way.
    #[error(transparent)]
    HostLoop(Box<HostLoopError>),
    /// The driver is too old for something in a graph.
    #[error(transparent)]
    TooOld(#[from] cuda_sys::DriverTooOld),
    /// An operation on a node, or with the parameters of one, is not possible.
    #[error(transparent)]
    Node(#[from] NodeError),
    /// Edges cannot be added, removed or changed as asked.
    #[error(transparent)]
    Edge(#[from] EdgeError),
    /// A graph cannot be embedded, moved or cloned as asked.
    #[error(transparent)]
    Embed(#[from] EmbedError),
    /// A graph of other code cannot be used as asked.
    #[error(transparent)]
    Interop(#[from] InteropError),
    /// A condition or a body cannot be used as asked.
    #[error(transparent)]
    Condition(#[from] ConditionError),
    /// A capture cannot go on or end as asked.
    #[error(transparent)]
    Capture(#[from] CaptureError),
    /// Memory of a graph cannot be used as asked.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// There is no executable of the graph, or it cannot be launched so.
    #[error(transparent)]
    Exec(#[from] ExecError),
    /// A node of an executable cannot be updated as asked.
    #[error(transparent)]
    Update(#[from] UpdateError),
    /// A graph parameter cannot be used or set as asked.
    #[error(transparent)]
    Param(#[from] ParamError),
    /// A pool or cache of executables cannot be made or used as asked.
    #[error(transparent)]
    Cache(#[from] CacheError),
    /// A loop or branch cannot be built or run as asked.
    #[error(transparent)]
    Loop(#[from] LoopError),
    /// A picture or a dump cannot be made.
    #[error(transparent)]
    Draw(#[from] DrawError),
}

shown!(Error);

/// Why a graph is [broken](Error::Broken).
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error(
    "the graph cannot be used any more, as a change of it failed ({cause}) and could not be undone ({undo}); build a new graph"
)]
#[non_exhaustive]
pub struct Broken {
    /// Why the change failed.
    pub cause: Error,
    /// Why the change could not be undone.
    pub undo: Error,
}

/// Where and why a run failed in which the host decides. Work enqueued before has run or still
/// runs; the next run starts anew.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("the run failed {}{doing}: {cause}", Rounds(within))]
#[non_exhaustive]
pub struct HostLoopError {
    /// The reason.
    pub cause: Error,
    /// The loops and branches around the failure, from the outside in.
    pub within: Vec<HostRound>,
    /// The failed step, as in `launching what comes next`.
    pub doing: Box<str>,
}

/// A loop in progress with the current round, or a branch.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct HostRound {
    /// The loop or branch, by name.
    pub node: String,
    /// The round, counted from 1; `None` for a branch.
    pub round: Option<u64>,
}

struct Rounds<'a>(&'a [HostRound]);

impl fmt::Display for Rounds<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|HostRound { node, round }| match round {
            Some(round) => write!(formatter, "in round {round} of `{}`, ", Named(node)),
            None => write!(formatter, "in `{}`, ", Named(node)),
        })
    }
}

#[cfg(test)]
mod tests;
