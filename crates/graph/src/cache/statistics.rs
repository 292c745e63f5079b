//! Statistics of a cache.

use std::collections::BTreeMap;

use crate::error::RefusalReason;
use crate::graph::Graph;

/// What a [`GraphCache`](crate::GraphCache) has done since it was made or
/// [reset](crate::GraphCache::reset).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
#[non_exhaustive]
pub struct CacheStatistics {
    /// Graphs that were built, without those that only verified a hit.
    pub builds: u64,
    /// Calls that found an executable with the key and the stamp.
    pub hits: u64,
    /// Hits that were [verified](crate::GraphCache::verify) by a build.
    pub verified: u64,
    /// Executables that were updated to another stamp.
    pub updates: u64,
    /// Executables that were instantiated again for another stamp, by the reason for which their
    /// updates were refused.
    pub rebuilds: BTreeMap<RefusalReason, u64>,
    /// Executables that were made with the host deciding; see
    /// [`Fallback`](crate::Fallback).
    pub host_fallbacks: u64,
    /// Executables that were dropped to make room for others.
    pub evictions: u64,
    /// Executables that the cache has now, those included that calls have taken.
    pub live: usize,
    /// Dropped executables with conditional nodes that the driver has yet to destroy.
    pub deferred: usize,
    /// The last call.
    pub last: Option<LastCall>,
}

/// The last call of [`GraphCache::get`](crate::GraphCache::get) that returned an executable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct LastCall {
    /// The way to the executable.
    pub path: CachePath,
    /// The nodes of its graph, those in child graphs and bodies included.
    pub nodes: usize,
}

/// The way in which a call found its executable.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum CachePath {
    /// It was there.
    Hit,
    /// It was made.
    Built,
    /// It was there with another stamp, and was updated.
    Updated,
    /// It was there with another stamp, and was instantiated again.
    Rebuilt,
}

/// A key of a [`GraphCache`](crate::GraphCache), and its executables.
#[derive(Clone, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub struct EntryStatistics<K> {
    /// The key.
    pub key: K,
    /// Its executables.
    pub executables: usize,
    /// The nodes of the graph that was built last, those in child graphs and bodies included.
    pub nodes: usize,
    /// The bytes of all memory that this graph kept alive when it was built, each allocation
    /// counted once, whoever else has it.
    pub memory_bytes: usize,
}

/// The size of a graph.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GraphSize {
    pub(crate) nodes: usize,
    pub(crate) memory_bytes: usize,
}

impl GraphSize {
    /// The size of a graph that was just built; zeros if it cannot be looked at here.
    pub(crate) fn of(graph: &Graph) -> Self {
        let Ok(guard) = graph.look() else { return Self::default() };
        let mut memory: Vec<_> = guard.memory().map(|memory| (memory.address(), memory.bytes())).collect();
        memory.sort_unstable();
        memory.dedup();
        let memory_bytes = memory.iter().map(|(_, bytes)| bytes).sum();
        Self { nodes: guard.node_count(), memory_bytes }
    }
}
