//! Where an executable ran last.

use cuda_handles::Stream;
use cuda_handles::internal::{HeldStream, WeakStream};
use smallvec::SmallVec;

/// Where an executable ran last. All its runs are over once the work on these streams is: it does
/// not overlap itself.
#[derive(Default)]
pub(crate) struct LastRun {
    /// The number of the stream; 0 if there was no run, or the runs may be on several streams.
    id: u64,
    /// Held, so that it is known when the run is over, also once the stream has no handle.
    streams: SmallVec<[HeldStream; 1]>,
    handle: Option<WeakStream>,
}

impl LastRun {
    /// Whether there was no run, or it is known to be over.
    #[inline]
    pub(crate) fn is_none(&self) -> bool {
        self.streams.is_empty()
    }

    /// Notes a run that follows all runs before.
    #[inline]
    pub(crate) fn note(&mut self, stream: &Stream) {
        if self.id != stream.id() {
            self.change(stream);
        }
    }

    #[cold]
    fn change(&mut self, stream: &Stream) {
        self.id = stream.id();
        self.streams.clear();
        self.streams.push(HeldStream::of(stream));
        self.handle = Some(stream.downgrade());
    }

    /// Notes a run that may not follow the runs before.
    #[cold]
    pub(crate) fn add(&mut self, stream: &Stream) {
        self.id = 0;
        self.handle = None;
        if !self.streams.iter().any(|known| known.id() == stream.id()) {
            self.streams.push(HeldStream::of(stream));
        }
    }

    /// The streams, which may have no handles.
    pub(crate) fn streams(&self) -> &[HeldStream] {
        &self.streams
    }

    /// The stream, if there is one.
    pub(crate) fn only_stream(&self) -> Option<&HeldStream> {
        match self.streams.as_slice() {
            [only] => Some(only),
            _ => None,
        }
    }

    /// The stream's number and its handle, which may be gone, if there is one stream.
    pub(crate) fn only_handle(&self) -> Option<(u64, &WeakStream)> {
        self.handle.as_ref().map(|handle| (self.id, handle))
    }
}
