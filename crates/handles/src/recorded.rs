//! Where an event was recorded last.

/// Where an event was recorded last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Recorded {
    /// Nobody here knows: the event is not ours.
    Unknown,
    /// Nowhere.
    Never,
    /// In the work of a stream.
    Plain,
    /// In the capture of this number.
    Captured(u64),
    /// In a capture that somebody else began.
    Foreign,
}
