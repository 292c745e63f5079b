//! Whether two objects are of one context.

use std::borrow::Cow;

use super::handle::Context;
use super::primary;
use crate::error::{ContextName, Error, Result, WrongContext};

impl ContextName {
    /// The name of a context.
    #[must_use]
    pub fn of(context: &Context) -> Self {
        let (device, raw) = (context.device(), context.as_raw());
        Self { device: device.ordinal(), is_primary: primary::is_primary(context), raw: raw.addr() }
    }
}

impl WrongContext {
    /// An error: `what` belongs to the context `found`, but `with` needs the context `needed`.
    #[must_use]
    pub fn new(
        what: impl Into<Cow<'static, str>>,
        found: &Context,
        with: &'static str,
        needed: &Context,
    ) -> Self {
        let (found, needed) = (ContextName::of(found), ContextName::of(needed));
        Self { what: what.into(), found, with, needed, advice: "" }
    }
}

impl From<WrongContext> for Error {
    fn from(error: WrongContext) -> Self {
        Self::WrongContext(Box::new(error))
    }
}

impl Context {
    /// `Ok` if `other` is this context; otherwise an error that names `what` and both contexts.
    ///
    /// # Errors
    /// [`Error::WrongContext`](crate::Error::WrongContext).
    #[inline]
    pub fn ensure_same(&self, other: &Self, what: &'static str) -> Result<()> {
        if self.is_same(other) { Ok(()) } else { Err(wrong(self, other, what)) }
    }

    /// Whether both are handles of one context of the driver.
    #[inline]
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        // The same handle, mostly.
        self == other || self.as_raw() == other.as_raw()
    }
}

#[cold]
fn wrong(needed: &Context, found: &Context, what: &'static str) -> Error {
    WrongContext::new(what, found, "", needed).into()
}
