//! Where executables of a graph ran last that can have one at a time.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use cuda_handles::Stream;

/// The streams of the last runs. A dropped executable still runs, on the memory and the conditions
/// that are those of the next one as well: so that waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastRuns(Arc<Mutex<Runs>>);

#[derive(Debug, Default)]
struct Runs {
    /// What runs of the newest executable come behind.
    followed: Vec<Stream>,
    /// Those of graphs that were moved into this one after it was made: its runs do not wait for
    /// them.
    beside: Vec<Stream>,
}

impl LastRuns {
    pub(crate) fn streams(&self) -> Vec<Stream> {
        let runs = self.lock();
        runs.followed.iter().chain(&runs.beside).cloned().collect()
    }

    /// An executable is made, and there is no other one: its runs wait for all that are known.
    pub(crate) fn begin(&self) {
        let mut runs = self.lock();
        let Runs { followed, beside } = &mut *runs;
        followed.append(beside);
    }

    /// A run comes behind all that its executable has waited for.
    pub(crate) fn follow(&self, stream: &Stream) {
        self.replace(vec![stream.clone()]);
    }

    /// All that the executable has waited for have ended, and its own runs.
    pub(crate) fn end(&self) {
        self.replace(Vec::new());
    }

    /// Adds those of another graph, which is moved into this one.
    pub(crate) fn merge(&self, other: &Self) {
        let more = other.streams();
        let mut runs = self.lock();
        for stream in more {
            if !runs.beside.iter().any(|known| known.id() == stream.id()) {
                runs.beside.push(stream);
            }
        }
    }

    fn replace(&self, streams: Vec<Stream>) {
        // The ones before go after the lock.
        let _before = core::mem::replace(&mut self.lock().followed, streams);
    }

    fn lock(&self) -> MutexGuard<'_, Runs> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What an executable keeps of it that has waited for the runs before its own.
#[derive(Debug)]
pub(crate) struct OwnRuns {
    runs: LastRuns,
    /// The stream of the last one, by its number; 0 for none.
    on: u64,
}

impl OwnRuns {
    pub(crate) fn new(runs: &LastRuns) -> Self {
        runs.begin();
        Self { runs: runs.clone(), on: 0 }
    }

    /// A run was enqueued just now.
    #[inline]
    pub(crate) fn note(&mut self, stream: &Stream) {
        if self.on != stream.id() {
            self.on = stream.id();
            self.runs.follow(stream);
        }
    }
}
