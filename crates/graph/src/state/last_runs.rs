//! The last runs of the executables of a graph that allows one executable at a time.

use std::sync::Arc;

use cuda_handles::Stream;
use cuda_handles::internal::{Lock, LockGuard, Rank};

/// The streams of the last runs. A dropped executable may still run on the memory and conditions
/// that the next executable uses, so the next one waits for these streams.
#[derive(Clone, Debug)]
pub(crate) struct LastRuns(Arc<Lock<Runs>>);

impl Default for LastRuns {
    fn default() -> Self {
        Self(Arc::new(Lock::new(Rank::LastRuns, Runs::default())))
    }
}

#[derive(Debug, Default)]
struct Runs {
    /// The streams that runs of the newest executable follow.
    followed: Vec<Stream>,
    /// The streams of graphs that were moved into this one after the newest executable was made.
    /// Its runs do not wait for them.
    merged_in: Vec<Stream>,
}

impl LastRuns {
    pub(crate) fn streams(&self) -> Vec<Stream> {
        let runs = self.lock();
        runs.followed.iter().chain(&runs.merged_in).cloned().collect()
    }

    /// Notes that an executable is made while there is no other: its runs wait for all streams.
    pub(crate) fn begin(&self) {
        let mut runs = self.lock();
        let Runs { followed, merged_in } = &mut *runs;
        followed.append(merged_in);
    }

    /// Notes a run that follows everything that its executable waited for.
    pub(crate) fn follow(&self, stream: &Stream) {
        self.replace(vec![stream.clone()]);
    }

    /// Notes a run beside those that were noted before.
    fn add(&self, stream: &Stream) {
        let mut runs = self.lock();
        if !runs.followed.contains(stream) {
            runs.followed.push(stream.clone());
        }
    }

    /// Notes that the runs of the executable, and all runs that it waited for, have ended.
    pub(crate) fn end(&self) {
        self.replace(Vec::new());
    }

    /// Adds the streams of another graph, which is moved into this one.
    pub(crate) fn merge(&self, other: &Self) {
        let more = other.streams();
        let mut runs = self.lock();
        for stream in more {
            if !runs.merged_in.iter().any(|known| known.id() == stream.id()) {
                runs.merged_in.push(stream);
            }
        }
    }

    fn replace(&self, streams: Vec<Stream>) {
        // The previous streams are dropped after the lock.
        let _before = core::mem::replace(&mut self.lock().followed, streams);
    }

    fn lock(&self) -> LockGuard<'_, Runs> {
        self.0.lock()
    }
}

/// The runs of one executable, the first of which waits for the previous executable's runs.
#[derive(Debug)]
pub(crate) struct OwnRuns {
    runs: LastRuns,
    /// The id of the stream of the last run; 0 for none.
    on: u64,
}

impl OwnRuns {
    pub(crate) fn new(runs: &LastRuns) -> Self {
        runs.begin();
        Self { runs: runs.clone(), on: 0 }
    }

    /// Notes a run that was just enqueued.
    #[inline]
    pub(crate) fn note(&mut self, stream: &Stream) {
        if self.on != stream.id() {
            self.on = stream.id();
            self.runs.follow(stream);
        }
    }

    /// Notes a run that was perhaps enqueued, on a stream that does not follow the runs before.
    #[cold]
    pub(crate) fn note_possible(&mut self, stream: &Stream) {
        self.on = 0;
        self.runs.add(stream);
    }
}
