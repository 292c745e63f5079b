//! Options of a cache.

use crate::loops::host::Fallback;

/// Options of a [`GraphCache`](crate::GraphCache).
///
/// ```
/// use cuda_graph::{CacheOptions, GraphCache};
///
/// let options = CacheOptions::new().most(16).most_per_key(2);
/// let cache: GraphCache<usize, ()> = GraphCache::new(options);
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "options do nothing by themselves"]
pub struct CacheOptions {
    pub(crate) most: usize,
    pub(crate) most_per_key: usize,
    pub(crate) fallback: Fallback,
}

impl CacheOptions {
    /// At most 64 executables, one for each key.
    pub fn new() -> Self {
        Self { most: 64, most_per_key: 1, fallback: Fallback::HostLoop }
    }

    /// The most executables that the cache may have, at least one. Executables whose
    /// [destruction is deferred](crate::GraphExec#dropping-it) count.
    pub fn most(mut self, most: usize) -> Self {
        self.most = most.max(1);
        self
    }

    /// The most executables of one key, at least one. With more than one, launches of a key on
    /// several streams can run in parallel: each executable has a graph of its own, which `build`
    /// makes. Further ones are made if all that there are have runs in flight on other streams.
    pub fn most_per_key(mut self, most: usize) -> Self {
        self.most_per_key = most.max(1);
        self
    }

    /// When the host decides, in a cache of [`HostLoopExec`](crate::HostLoopExec)s. By default, if
    /// the driver has no nodes for loops and branches.
    pub fn fallback(mut self, fallback: Fallback) -> Self {
        self.fallback = fallback;
        self
    }
}

impl Default for CacheOptions {
    fn default() -> Self {
        Self::new()
    }
}
