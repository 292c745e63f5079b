//! Errors about pools and caches of executables.

use core::fmt;

use crate::node_name::NodeName;
use crate::wording::Named;

/// A pool or cache of executables cannot be made or used as asked.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// A pool without executables.
    #[error("a pool needs at least one executable")]
    NoExecutables,
    /// One graph was to be instantiated several times, and a node writes memory that is no
    /// parameter.
    #[error(
        "parallel runs of one graph would overwrite each other's memory: node `{node}` writes its {what}, which is \
         no graph parameter; make it one (Graph::param), or build a graph for each executable (ExecPool::new)"
    )]
    SharedWrite {
        /// The node's name.
        node: NodeName,
        /// The argument of the kernel, or the side of the copy or fill.
        what: &'static str,
    },
    /// One graph was to be instantiated several times, and it is not known what a node writes.
    #[error(
        "parallel runs of one graph may overwrite each other's memory: it is not known what node `{node}` \
         writes, since {why}; build a graph for each executable (ExecPool::new)"
    )]
    MayWrite {
        /// The node's name.
        node: NodeName,
        /// The reason.
        why: &'static str,
    },
    /// The calling thread itself has all executables, and would wait for itself.
    #[error(
        "this thread has taken every executable that could be used, and a launch inside of another takes one more; drop one first, or \
         have more (CacheOptions::most_per_key, or the number given to the pool)"
    )]
    InUse,
    /// The cache is full, and the calling thread itself has all executables.
    #[error(
        "the cache is full (its bound is {bound}), and this thread has taken every executable in it; drop one, \
         or raise the bound (CacheOptions::most)"
    )]
    Full {
        /// The most executables that the cache may have.
        bound: usize,
    },
    /// A verified hit: a new build has other constants than the executable.
    #[error("the cached executable is stale: {}", Stale(found))]
    Stale {
        /// The constants that differ.
        found: Vec<StaleConstant>,
    },
}

shown!(CacheError);

/// Something in a cached executable that a new build has otherwise, and that is no graph parameter;
/// see [`GraphCache::verify`](crate::GraphCache::verify).
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct StaleConstant {
    /// The node, by name.
    pub node: NodeName,
    /// The argument of the kernel, as in "argument `factor`", or another part of the node. Empty if
    /// one of both graphs lacks the node: they have different numbers of nodes.
    pub what: String,
    /// The value in the executable, in words.
    pub cached: String,
    /// The value in the new build, in words.
    pub now: String,
}

impl fmt::Display for StaleConstant {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, what, cached, now } = self;
        if !what.is_empty() {
            write!(formatter, "{} of ", Named(what))?;
        }
        write!(formatter, "node `{node}` was {cached}, and is {now} now")
    }
}

struct Stale<'a>(&'a [StaleConstant]);

impl fmt::Display for Stale<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 6;
        for (number, constant) in self.0.iter().take(SHOWN).enumerate() {
            write!(formatter, "{}{constant}", if number > 0 { "; " } else { "" })?;
        }
        if let more @ 1.. = self.0.len().saturating_sub(SHOWN) {
            write!(formatter, "; and {more} more")?;
        }
        formatter.write_str(" (make each a graph parameter, or let the stamp or key depend on it)")
    }
}
