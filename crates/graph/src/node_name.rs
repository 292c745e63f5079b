//! The names of nodes in errors.

use core::fmt;
use core::ops::Deref;

use crate::wording::Named;

/// The name of a node, as an error contains it.
///
/// It derefs to the full name. Its `Display` form, which error messages use, is one line of bounded
/// length: control characters are escaped, and the middle of a very long name is left out.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeName(Box<str>);

impl NodeName {
    /// The full name.
    #[must_use]
    pub fn into_string(self) -> String {
        self.0.into_string()
    }
}

impl Deref for NodeName {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for NodeName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        Named(&self.0).fmt(formatter)
    }
}

impl fmt::Debug for NodeName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

impl From<&str> for NodeName {
    fn from(name: &str) -> Self {
        Self(name.into())
    }
}

impl From<String> for NodeName {
    fn from(name: String) -> Self {
        Self(name.into())
    }
}

impl From<Box<str>> for NodeName {
    fn from(name: Box<str>) -> Self {
        Self(name)
    }
}

impl PartialEq<str> for NodeName {
    fn eq(&self, other: &str) -> bool {
        *self.0 == *other
    }
}

impl PartialEq<&str> for NodeName {
    fn eq(&self, other: &&str) -> bool {
        *self.0 == **other
    }
}
