//! Words that several errors have.

use core::fmt;

/// The first findings, and how many more.
pub(crate) struct Found<'a>(pub(crate) &'a [String]);

impl fmt::Display for Found<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 3;
        for (number, finding) in self.0.iter().take(SHOWN).enumerate() {
            write!(formatter, "{}{finding}", if number > 0 { "; " } else { "" })?;
        }
        More(self.0.len().saturating_sub(SHOWN)).fmt(formatter)
    }
}

/// How many more there are, if any.
pub(crate) struct More(pub(crate) usize);

impl fmt::Display for More {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 > 0 { write!(formatter, "; and {} more", self.0) } else { Ok(()) }
    }
}

/// Because of which node, if that is known.
pub(crate) struct At<'a>(pub(crate) Option<&'a str>);

impl fmt::Display for At<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |node| write!(formatter, " because of node `{node}`"))
    }
}
