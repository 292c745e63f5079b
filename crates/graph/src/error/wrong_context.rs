//! Errors about arguments of another context than the graph's.

use std::borrow::Cow;

use cuda_handles::{Context, WrongContext};

use crate::error::{Error, Result};

/// Refuses an argument of another context than the graph's. `what` names it.
#[inline]
pub(crate) fn ensure_of_graph<W: Into<Cow<'static, str>>>(
    graph: &Context,
    found: &Context,
    what: impl FnOnce() -> W,
) -> Result<()> {
    ensure(graph, found, || WrongContext::new(what(), found, "the graph", graph))
}

/// [`ensure_of_graph`] for memory.
#[inline]
pub(crate) fn ensure_memory(
    graph: &Context,
    found: &Context,
    what: &'static str,
    advice: &'static str,
) -> Result<()> {
    ensure(graph, found, || WrongContext::new(what, found, "the graph", graph).advise(advice))
}

/// Refuses an argument of another context with the given error.
#[inline]
pub(crate) fn ensure(needed: &Context, found: &Context, error: impl FnOnce() -> WrongContext) -> Result<()> {
    if needed.is_same(found) { Ok(()) } else { refused(error) }
}

#[cold]
#[inline(never)]
fn refused(error: impl FnOnce() -> WrongContext) -> Result<()> {
    Err(Error::Handles(error().into()))
}
