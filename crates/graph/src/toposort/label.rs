//! Labels: numbers that every edge goes up along.

/// The distance of labels that nothing was put between.
pub(crate) const STEP: i64 = 1 << 16;

/// The label before that of the first node. As much lies below, for nodes put before others, and
/// above is room for more nodes than a process has time to make.
const BASE: u64 = 1 << 62;

/// The label of a new node that is above all others, the `newest`-th.
#[inline]
pub(crate) fn fresh(newest: u64) -> u64 {
    BASE + newest * STEP as u64
}

/// A number of nodes with which the next new one is above this label.
pub(crate) fn rank(label: u64) -> u64 {
    label.saturating_sub(BASE) / STEP as u64
}
