//! Errors about arguments of contexts that the graph does not span.

use std::borrow::Cow;

use cuda_handles::{Context, WrongContext};

use crate::error::{Error, Result};

/// What lets a graph have things of another context.
pub(crate) const SPANNING: &str = "make the graph for both (`Graph::spanning`)";

/// Something whose nodes are of one context, mostly, and of some others beside it.
pub(crate) trait Spans {
    /// The context that it was made for.
    fn home(&self) -> &Context;

    /// The contexts beside its home; mostly none.
    fn others(&self) -> &[Context];

    /// Whether its nodes may be of the context.
    #[inline]
    fn covers(&self, context: &Context) -> bool {
        self.home().is_same(context) || self.covers_beside_home(context)
    }

    /// [`covers`](Self::covers) for another context than its home.
    #[cold]
    fn covers_beside_home(&self, context: &Context) -> bool {
        self.others().iter().any(|other| other.is_same(context))
    }

    /// Whether it spans several contexts.
    fn is_wide(&self) -> bool {
        !self.others().is_empty()
    }

    /// The first context of another one that it does not span.
    fn missing_of<'o>(&self, other: &'o impl Spans) -> Option<&'o Context> {
        core::iter::once(other.home()).chain(other.others()).find(|context| !self.covers(context))
    }
}

impl Spans for Context {
    #[inline]
    fn home(&self) -> &Context {
        self
    }

    #[inline]
    fn others(&self) -> &[Context] {
        &[]
    }
}

/// Refuses an argument of a context that the graph does not span. `what` names it.
#[inline]
pub(crate) fn ensure_of_graph<W: Into<Cow<'static, str>>>(
    graph: &impl Spans,
    found: &Context,
    what: impl FnOnce() -> W,
) -> Result<()> {
    let home = graph.home();
    ensure(graph, found, || WrongContext::new(what(), found, "the graph", home))
}

/// Refuses a graph that spans a context which the first one does not, or has another home.
pub(crate) fn ensure_spans<W: Into<Cow<'static, str>>>(
    graph: &impl Spans,
    found: &impl Spans,
    what: impl FnOnce() -> W,
) -> Result<()> {
    let home = graph.home();
    let missing = match home.is_same(found.home()) {
        true => graph.missing_of(found),
        false => Some(found.home()),
    };
    missing.map_or(Ok(()), |found| refused(|| WrongContext::new(what(), found, "the graph", home)))
}

/// [`ensure_of_graph`] for memory.
#[inline]
pub(crate) fn ensure_memory(
    graph: &impl Spans,
    found: &Context,
    what: &'static str,
    advice: &'static str,
) -> Result<()> {
    let home = graph.home();
    ensure(graph, found, || WrongContext::new(what, found, "the graph", home).advise(advice))
}

/// Refuses an argument of another context with the given error.
#[inline]
pub(crate) fn ensure(
    needed: &impl Spans,
    found: &Context,
    error: impl FnOnce() -> WrongContext,
) -> Result<()> {
    if needed.covers(found) { Ok(()) } else { refused(error) }
}

#[cold]
#[inline(never)]
fn refused(error: impl FnOnce() -> WrongContext) -> Result<()> {
    Err(Error::Handles(error().into()))
}
