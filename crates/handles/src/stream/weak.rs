//! Streams that may be gone.

use core::fmt;
use std::sync::Weak;

use super::handle::{Stream, StreamBox};

/// A stream that may be gone.
#[doc(hidden)]
#[derive(Clone)]
pub struct WeakStream(pub(super) Weak<StreamBox>);

impl WeakStream {
    /// A handle, if there is one still.
    #[must_use]
    pub fn upgrade(&self) -> Option<Stream> {
        self.0.upgrade().map(Stream)
    }
}

impl fmt::Debug for WeakStream {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("WeakStream")
    }
}
