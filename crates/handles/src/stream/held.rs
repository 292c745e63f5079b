//! Streams that live on while something waits for their work.

use std::sync::Arc;

use super::handle::Stream;
use crate::context::Context;
use crate::error::Result;
use crate::raw_stream::{self, RawStream};

/// A stream whose work can be waited for, also once it has no handle: the driver's stream is
/// destroyed later. An adopted stream may be gone then; the end of its work is recorded with its
/// last handle.
#[doc(hidden)]
#[derive(Clone, Debug)]
pub struct HeldStream(Arc<RawStream>);

impl HeldStream {
    /// Holds a stream.
    #[must_use]
    pub fn of(stream: &Stream) -> Self {
        Self::of_raw(stream.raw_stream())
    }

    /// All streams of a context that this library knows, but for adopted ones without a handle the
    /// end of whose work is unknown: whatever waited for them would wait for ever.
    #[must_use]
    pub fn all_of(context: &Context) -> Vec<Self> {
        let all = raw_stream::all_of(context);
        all.iter().filter(|stream| !stream.is_unmarked()).map(Self::of_raw).collect()
    }

    /// Whether the end of its work is unknown for good. It is an adopted stream then, without a
    /// handle.
    #[must_use]
    pub fn has_unknown_end(&self) -> bool {
        self.0.is_unmarked()
    }

    fn of_raw(stream: &Arc<RawStream>) -> Self {
        // So that the end of the work on a stream of other code is recorded with its last handle.
        stream.set_home();
        Self(Arc::clone(stream))
    }

    /// Whether all work enqueued there is done. False where that cannot be asked.
    pub(crate) fn is_idle_soon(&self) -> bool {
        self.0.is_idle_soon()
    }

    /// The number of the stream.
    #[must_use]
    pub fn id(&self) -> u64 {
        self.0.id()
    }

    /// Makes work that is enqueued on another stream from now on wait for all that is enqueued here
    /// so far. Refused while either of the two is capturing.
    ///
    /// # Errors
    /// As [`Stream::wait_for_uncaptured`].
    pub fn order_before(&self, waiter: &Stream) -> Result<()> {
        waiter.context().ensure_usable()?;
        if self.0.id() == waiter.id() {
            return Ok(());
        }
        let (what, waiting) = ("being waited for by another stream", "waiting for another stream");
        self.0.order_both_uncaptured(waiter.raw_stream(), what, waiting)
    }

    pub(crate) fn raw_stream(&self) -> &Arc<RawStream> {
        &self.0
    }
}
