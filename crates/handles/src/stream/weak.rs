//! Streams that may be gone.

use core::fmt;
use std::sync::{Arc, Weak};

use super::handle::{Stream, StreamBox};

/// A stream that may be gone.
#[doc(hidden)]
#[derive(Clone)]
pub struct WeakStream(pub(super) Weak<StreamBox>);

impl WeakStream {
    /// Whether no handle is left.
    pub(crate) fn is_gone(&self) -> bool {
        self.0.strong_count() == 0
    }

    /// A handle, if there is one still.
    #[must_use]
    pub fn upgrade(&self) -> Option<Stream> {
        self.0.upgrade().map(Stream)
    }
}

impl Stream {
    /// It, without keeping it.
    #[doc(hidden)]
    #[must_use]
    pub fn downgrade(&self) -> WeakStream {
        WeakStream(Arc::downgrade(&self.0))
    }
}

impl fmt::Debug for WeakStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("WeakStream")
    }
}
