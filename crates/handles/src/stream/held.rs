//! Streams that live on while something waits for their work.

use std::sync::Arc;

use super::handle::Stream;
use crate::context::Context;
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

    /// All streams of a context that this library knows.
    #[must_use]
    pub fn all_of(context: &Context) -> Vec<Self> {
        raw_stream::all_of(context).iter().map(Self::of_raw).collect()
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

    pub(crate) fn raw_stream(&self) -> &Arc<RawStream> {
        &self.0
    }
}
