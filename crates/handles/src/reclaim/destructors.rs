//! Runs of destructors of other code, and whether a value is on its way into one.
//!
//! A value that was dropped moves from place to place until its destructor runs: the driver owes
//! it, a list has it, a thread takes it out and drops it. The drop may put further values at the
//! beginning of the way. No lock spans the way, so [`Destructors::are_coming`] follows it.

use crate::sync::{AtomicU64, Ordering};

/// The runs of destructors of other code.
pub(crate) struct Destructors {
    begun: AtomicU64,
    ended: AtomicU64,
}

impl Destructors {
    /// With these counts, which are equal.
    pub(crate) const fn starting_with(begun: AtomicU64, ended: AtomicU64) -> Self {
        Self { begun, ended }
    }

    /// Begins a run, which lasts until the result is dropped. A thread begins before it takes the
    /// values out of where they wait.
    pub(crate) fn begin(&self) -> Destroying<'_> {
        self.begun.fetch_add(1, Ordering::AcqRel);
        Destroying(&self.ended)
    }

    /// Whether a thread is running destructors, or is about to.
    pub(crate) fn are_running(&self) -> bool {
        self.are_coming(|| false)
    }

    /// Whether the destructor of a value runs, or is about to. `waits` looks at the places where
    /// values wait, in the order in which they move: in any other order, it may miss a value that
    /// moves meanwhile.
    pub(crate) fn are_coming(&self, waits: impl FnOnce() -> bool) -> bool {
        // First: a run that ends meanwhile may have left a value in a place that was empty.
        let ended = self.ended.load(Ordering::Acquire);
        waits() || self.begun.load(Ordering::Acquire) != ended
    }
}

/// A run of destructors of other code.
#[must_use]
pub(crate) struct Destroying<'a>(&'a AtomicU64);

impl Drop for Destroying<'_> {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::AcqRel);
    }
}
