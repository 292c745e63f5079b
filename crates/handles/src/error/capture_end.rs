//! Why a capture has ended without a graph.

use core::fmt;

use super::cause::Cause;

/// The sentence of a capture that a call has invalidated.
pub(super) struct InvalidatedBy<'e>(pub(super) Option<&'e Cause>);

impl fmt::Display for InvalidatedBy<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(cause) => write!(
                formatter,
                "the capture was invalidated, and what it had captured is thrown away: {cause}. Correct that call and capture again"
            ),
            None => formatter.write_str(
                "the capture was invalidated, and what it had captured is thrown away. No call of this library in it was refused, so other code did it: \
                 mostly by an allocation, a synchronisation or a query on the thread that captures (in GLOBAL mode, on any thread), by a launch with a bad \
                 configuration, or by work on the legacy stream while a blocking stream captures. Do that before or after the capture, or capture in \
                 RELAXED mode",
            ),
        }
    }
}

/// The sentence of a capture for whose other streams the first one does not wait.
pub(super) struct Unjoined<'e>(pub(super) u64, pub(super) &'e [u64]);

impl fmt::Display for Unjoined<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(origin, others) = self;
        write!(
            formatter,
            "the capture ended before the stream number {origin} (`Stream::id`), on which it began, had waited for "
        )?;
        match others {
            [] => formatter.write_str("a stream that other code drew into it")?,
            [one] => write!(formatter, "the stream number {one}")?,
            [first, rest @ ..] => {
                write!(formatter, "all of its other streams, number {first}")?;
                rest.iter().try_for_each(|other| write!(formatter, ", {other}"))?;
            }
        }
        formatter.write_str(
            ". What it had captured is thrown away; make the first stream wait for each of the others at the end (`Stream::wait_for`)",
        )
    }
}
