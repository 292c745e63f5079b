//! What an executable has of the owners of its graph.

use std::sync::atomic::{AtomicBool, Ordering};

use cuda_handles::{Stream, UserObject, WeakStream};

use crate::state::last_runs::LastRuns;

/// The share of the owners that an executable has. Beside the driver's own references it is held
/// here, so that the drop lets the owners go by itself where the runs are over: the driver takes a
/// while, and destroys nothing any more once the context is lost.
pub(crate) struct ExecResources {
    owners: Option<UserObject>,
    ran: Ran,
    /// Whether other code, or a kernel, may launch the executable.
    lent: AtomicBool,
    /// Where executables of the graph ran last, if it can have one at a time.
    last: Option<LastRuns>,
    /// Whether the driver's own references stay after the last run is over, as its end is put off.
    put_off: bool,
}

impl ExecResources {
    pub(crate) fn new(owners: UserObject, last: Option<LastRuns>, put_off: bool) -> Self {
        Self { owners: Some(owners), ran: Ran::new(), lent: AtomicBool::new(false), last, put_off }
    }

    /// The executable was enqueued there just now.
    #[inline]
    pub(crate) fn note(&mut self, stream: &Stream) {
        if self.ran.on != stream.id() {
            self.ran.change(stream);
        }
    }

    /// From now on nobody knows where the executable runs.
    pub(crate) fn lend(&self) {
        self.lent.store(true, Ordering::Relaxed);
    }

    /// The streams whose work may be runs of the executable; `None` if that is not known. With
    /// those whose end is put off other code has to be through by now.
    fn runs(&self) -> Option<Vec<Stream>> {
        if self.lent.load(Ordering::Relaxed) && !self.put_off {
            return None;
        }
        self.last.as_ref().map_or_else(|| self.ran.last(), |last| Some(last.streams()))
    }
}

impl Drop for ExecResources {
    fn drop(&mut self) {
        if let Some(owners) = self.owners.take() {
            // SAFETY: an executable does not overlap itself: all runs ended where the last one did.
            // Those of executables that other code may launch are not known.
            unsafe { owners.end(self.runs().as_deref(), self.put_off) };
        }
    }
}

/// Where an executable ran.
struct Ran {
    /// The stream of the last run, by its number; 0 for none.
    on: u64,
    /// That stream and some of those before, so that going back and forth counts no references.
    streams: Vec<(u64, WeakStream)>,
}

impl Ran {
    const MOST: usize = 4;

    /// A launch allocates nothing.
    fn new() -> Self {
        Self { on: 0, streams: Vec::with_capacity(Self::MOST) }
    }

    #[cold]
    fn change(&mut self, stream: &Stream) {
        self.on = stream.id();
        if self.streams.iter().any(|(id, _)| *id == stream.id()) {
            return;
        }
        if self.streams.len() == Self::MOST {
            self.streams.remove(0);
        }
        self.streams.push((stream.id(), stream.downgrade()));
    }

    /// The stream of the last run, or none if there was none; `None` if it is gone.
    fn last(&self) -> Option<Vec<Stream>> {
        if self.on == 0 {
            return Some(Vec::new());
        }
        let found = self.streams.iter().find(|(id, _)| *id == self.on);
        found.and_then(|(_, stream)| stream.upgrade()).map(|stream| vec![stream])
    }
}
