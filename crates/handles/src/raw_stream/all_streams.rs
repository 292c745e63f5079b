//! The list of all streams, and which of them have work: some driver calls would wait for it.

use std::sync::{Arc, Weak};

use super::owner::RawStream;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::sync::{Lock, Rank};

/// Every stream that has a handle, or had one and is not destroyed, once. Nothing is dropped under
/// the lock.
static STREAMS: Lock<Vec<Weak<RawStream>>> = Lock::new(Rank::AllStreams, Vec::new());

/// Enters a new one.
pub(crate) fn note(stream: &Arc<RawStream>) {
    let mut streams = STREAMS.lock();
    if streams.len() == streams.capacity() {
        streams.retain(|stream| stream.strong_count() > 0);
    }
    streams.push(Arc::downgrade(stream));
}

/// The streams of a context.
pub(crate) fn all_of(context: &Context) -> Vec<Arc<RawStream>> {
    let all: Vec<Arc<RawStream>> = STREAMS.lock().iter().filter_map(Weak::upgrade).collect();
    // After the lock, as a stream of another context may be dropped here.
    all.into_iter().filter(|stream| stream.context().as_raw() == context.as_raw()).collect()
}

/// An error with a stream of the context that has work, or is capturing. Work on streams that were
/// dropped, or that this library does not know, is not seen.
pub(crate) fn ensure_idle(context: &Context, what: &'static str) -> Result<()> {
    match all_of(context).iter().find(|stream| stream.has_work()) {
        Some(stream) => Err(Error::StillRunning { what, running: stream.name().into() }),
        None => Ok(()),
    }
}
