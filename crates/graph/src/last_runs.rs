//! Where executables of a graph ran last that can have one at a time.

use std::sync::{Arc, Mutex, PoisonError};

use cuda_handles::Stream;

/// The streams of the last runs. A dropped executable still runs, on the memory and the conditions that are those of the next one as well: so that waits.
#[derive(Clone, Debug, Default)]
pub(crate) struct LastRuns(Arc<Mutex<Vec<Stream>>>);

impl LastRuns {
    pub(crate) fn streams(&self) -> Vec<Stream> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// A run comes behind all that are known.
    pub(crate) fn follow(&self, stream: &Stream) {
        self.replace(vec![stream.clone()]);
    }

    /// All have ended.
    pub(crate) fn end(&self) {
        self.replace(Vec::new());
    }

    /// Adds those of another graph, which is moved into this one.
    pub(crate) fn take_in(&self, other: &Self) {
        let more = other.streams();
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(more);
    }

    fn replace(&self, streams: Vec<Stream>) {
        // The ones before go after the lock.
        let _before =
            core::mem::replace(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner), streams);
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
