//! Labels: numbers that go up along every edge.

/// The distance between labels that nothing was put between.
pub(crate) const STEP: i64 = 1 << 16;

/// The label below that of the first node. It leaves as much room below, for nodes put before
/// others, and room above for more nodes than a process has time to add.
const BASE: u64 = 1 << 62;

/// The label of the `newest`-th node, above all others.
#[inline]
pub(crate) fn fresh(newest: u64) -> u64 {
    BASE + newest * STEP as u64
}

/// A number of nodes for which the next [`fresh`] label lies above `label`.
pub(crate) fn rank(label: u64) -> u64 {
    label.saturating_sub(BASE) / STEP as u64
}
