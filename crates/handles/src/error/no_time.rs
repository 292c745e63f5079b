//! Why there is no time between two events.

use core::fmt;
use core::time::Duration;

/// Why there is no time from one event to another; which of the two it is about is said from the
/// call [`Event::elapsed_since`](crate::Event::elapsed_since): `end.elapsed_since(&start)`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NoTime {
    /// An event keeps no time.
    WithoutTiming(Which),
    /// An event was never recorded.
    NeverRecorded(Which),
    /// An event was last recorded in a capture, where nothing runs.
    Captured(Which),
    /// The work up to one of the events is not done.
    NotReached,
    /// The end came first, by this time. Of two streams it may do so by chance.
    Backwards(Duration),
}

/// One of two events.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Which {
    /// The one that the time is counted from.
    Start,
    /// The one that it is counted to.
    End,
}

impl fmt::Display for Which {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Start => "the starting event",
            Self::End => "the ending event",
        })
    }
}

impl fmt::Display for NoTime {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WithoutTiming(which) => write!(
                formatter,
                "{which} was created without timing; create it with `EventOptions {{ timing: true, .. }}`"
            ),
            Self::NeverRecorded(which) => {
                write!(formatter, "{which} was never recorded; record it (`Stream::record`) first")
            }
            Self::Captured(which) => write!(
                formatter,
                "{which} was last recorded in a capture, where it is never reached; record it anew after the capture"
            ),
            Self::NotReached => formatter.write_str(
                "the work up to one of them is not done; wait for both first (`Event::synchronize_blocking`)",
            ),
            Self::Backwards(by) => write!(
                formatter,
                "the ending event was reached {by:?} before the starting event; ask the other way round"
            ),
        }
    }
}
