//! Phrases that several sentences of errors share.

use core::fmt;

use cuda_sys::PrintableLog;

use super::near::Near;

/// A number with its noun, in singular and plural.
pub(super) struct Count(pub(super) usize, pub(super) &'static str, pub(super) &'static str);

impl fmt::Display for Count {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{} {}", self.0, if self.0 == 1 { self.1 } else { self.2 })
    }
}

/// The log of a compiler, if it is not empty.
pub(super) struct Log<'a>(pub(super) &'a str);

impl fmt::Display for Log<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            Ok(())
        } else {
            write!(formatter, ". The compiler's log:\n{}", PrintableLog(self.0))
        }
    }
}

/// Similar names, if there are some.
pub(super) struct Names<'a>(pub(super) Option<&'a Near>);

impl fmt::Display for Names<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |names| write!(formatter, "; {names}"))
    }
}
