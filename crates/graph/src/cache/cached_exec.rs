//! An executable that a call has taken from a cache.

use core::fmt;
use core::hash::Hash;
use core::mem::ManuallyDrop;
use std::sync::Arc;

use cuda_handles::internal::Lock;

use crate::cache::entries::{Made, State};
use crate::cache::executable::{Executable, LastStream};
use crate::cache::keys::CacheKey;
use crate::cache::statistics::CachePath;
use crate::exec::GraphExec;
use crate::graph::Graph;

/// An executable of a [`GraphCache`](crate::GraphCache), until this is dropped.
#[must_use = "the executable goes back to the cache at once"]
pub struct CachedExec<'c, K: Hash + Eq, P, S: PartialEq = u64, E: Executable = GraphExec> {
    state: &'c Lock<State<K, P, S, E>>,
    key: Arc<CacheKey<K>>,
    number: u64,
    path: CachePath,
    /// Taken in the drop alone.
    made: ManuallyDrop<Box<Made<P, S, E>>>,
}

impl<'c, K: Hash + Eq, P, S: PartialEq, E: Executable> CachedExec<'c, K, P, S, E> {
    pub(super) fn new(
        state: &'c Lock<State<K, P, S, E>>,
        key: Arc<CacheKey<K>>,
        number: u64,
        made: Box<Made<P, S, E>>,
    ) -> Self {
        Self { state, key, number, path: CachePath::Hit, made: ManuallyDrop::new(made) }
    }

    pub(super) fn made(&mut self) -> &mut Made<P, S, E> {
        &mut self.made
    }

    /// Notes the way to it, and what it is.
    pub(super) fn called(&mut self, path: CachePath) {
        self.path = path;
        let size = self.made.size;
        let mut state = self.state.lock();
        state.called(path, size);
        if path != CachePath::Hit {
            let is_one_line = self.made.is_one_line;
            state.note_size(&self.key, size, is_one_line);
        }
    }

    /// The executable, and what `build` returned with its graph.
    pub fn parts(&mut self) -> (&mut E, &P) {
        let Made { exec, params, .. } = &mut **self.made;
        (exec, params)
    }

    /// The graph that it was made of, or updated from.
    #[must_use]
    pub fn graph(&self) -> &Graph {
        &self.made.graph
    }

    /// The way in which it was found.
    #[must_use]
    pub fn path(&self) -> CachePath {
        self.path
    }
}

impl<K: Hash + Eq, P, S: PartialEq, E: Executable> Drop for CachedExec<'_, K, P, S, E> {
    fn drop(&mut self) {
        // SAFETY: nothing else takes it, and it is not used afterwards.
        let made = unsafe { ManuallyDrop::take(&mut self.made) };
        // An executable that was given up, for another one that could not be made, goes.
        let last_run = made.exec.is_live().then(|| made.exec.last_stream());
        let last_run = last_run.map(|LastStream(last_run)| last_run);
        let left = self.state.lock().put(&self.key, self.number, made, last_run);
        drop(left);
    }
}

impl<K: Hash + Eq, P, S: PartialEq, E: Executable> fmt::Debug for CachedExec<'_, K, P, S, E> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CachedExec")
            .field("exec", &self.made.exec)
            .field("path", &self.path)
            .finish_non_exhaustive()
    }
}
