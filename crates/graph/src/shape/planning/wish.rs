//! What the user wishes of the shape.

use super::drawn::Overlap;

/// How far the plan may go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Wish {
    /// The graph as drawn.
    AsBuilt,
    /// Without edges that follow from others, and without empty nodes where that makes no more
    /// edges.
    FewerEdges,
    /// Fewer edges, roots and empty nodes, and no new order between nodes of the user.
    Reduced,
    /// As `Reduced`, with sets of [twins](super::twins) threaded through so many lanes.
    Lanes(u16),
    /// As `Reduced`, with lanes where they were measured to win.
    Auto,
}

/// All wishes for a plan.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wishes {
    pub(crate) shape: Wish,
    /// Whether every kernel counts as one that waits for no other.
    pub(crate) assume_progress: bool,
    /// Whether full edges become programmatic where both kernels permit it.
    pub(crate) programmatic: bool,
    /// The overlap of kernels that do nothing.
    pub(crate) no_ops: Overlap,
}
