//! Whether the kernels of a library wait at their entry, in words.

use core::fmt;

/// The outcome of [`Library::load_waiting`](crate::Library::load_waiting).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EntryWait {
    /// Every kernel of the library waits at its entry.
    Waiting,
    /// The library was loaded from the image as it is, as by
    /// [`Library::load`](crate::Library::load).
    AsItIs {
        /// The reason, for example `the PTX is for sm_50, and waits are put into PTX for sm_70 or
        /// later`.
        why: Box<str>,
    },
}

impl EntryWait {
    /// Whether the kernels wait.
    #[must_use]
    pub fn is_waiting(&self) -> bool {
        *self == Self::Waiting
    }
}

impl fmt::Display for EntryWait {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Waiting => formatter.write_str("the kernels wait at their entry"),
            Self::AsItIs { why } => write!(formatter, "loaded as it is: {why}"),
        }
    }
}
