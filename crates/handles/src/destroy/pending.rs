//! The count of everything that waits.

use std::sync::atomic::{AtomicUsize, Ordering};

static PENDING: AtomicUsize = AtomicUsize::new(0);

/// The number of objects that wait to be freed, destroyed, released or unloaded, including those in
/// progress and those that the driver has yet to give back: an executable that was launched and
/// dropped counts until the driver has released it, some 100 µs after its last run. At 0,
/// everything that was dropped is released.
///
/// It does not count what the driver failed to destroy, which was reported to the
/// [hook](crate::reaper::set_hook), nor what other code keeps: graphs and executables that it made
/// from a lent graph.
#[must_use]
pub fn pending() -> usize {
    PENDING.load(Ordering::Acquire)
}

/// One more thing waits.
pub(crate) fn expect_one() {
    PENDING.fetch_add(1, Ordering::AcqRel);
}

/// One thing waits no more.
pub(crate) fn one_done() {
    PENDING.fetch_sub(1, Ordering::AcqRel);
}
