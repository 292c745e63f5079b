//! The shapes that an executable can be made in.

use core::num::NonZeroU16;

/// The shape of an executable: how its nodes and edges differ from those of the graph as drawn.
///
/// A driver runs a graph as it was drawn, and some drawings cost much more than others that order
/// the same work: many nodes without predecessors, edges that follow from other edges, empty nodes
/// between wide layers. With a shape,
/// [`instantiate_with`](crate::Graph::instantiate_with) makes the executable of a graph of its own,
/// which does the same work in the same order. The graph itself stays as it is, and updates,
/// parameters and errors go by its nodes as ever.
///
/// Bodies of conditional nodes are shaped as the graph around them is, each by itself. They get no
/// kernel in front of their roots, none in place of fills and copies, and no programmatic edges. A
/// loop counts as a kernel that [may wait](crate::InstantiateOptions::assume_progress) for another,
/// whatever is assumed of kernels, and so does a branch with such a kernel or a loop in it. A body
/// is not ordered anew if a node beside its conditional node may wait.
///
/// A graph that cannot be shaped is instantiated as drawn, without an error.
/// [`GraphExec::shape_report`](crate::GraphExec::shape_report) says what was done, what was left,
/// and why.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Shape {
    /// As the graph was drawn.
    #[default]
    AsBuilt,
    /// Without edges that follow from others; with a kernel that does nothing in front of many
    /// roots, and in place of empty nodes between wide layers. Nodes that are in no order stay in
    /// none.
    Reduced,
    /// As [`Reduced`](Self::Reduced), and wide sets of nodes that are in no order run in this many
    /// lanes: each node waits for the one before it in its lane.
    ///
    /// A device runs at most some number of kernels at once (128 on an H100), so more lanes take no
    /// concurrency away. Fewer lanes cost less to launch, but hold long kernels back.
    Lanes(NonZeroU16),
    /// As [`Reduced`](Self::Reduced), and wide sets of launches of one kernel with one
    /// configuration, behind a kernel, run in 37 lanes. Kernels take the place of nodes that the
    /// host submits at every launch
    /// ([`fills_by_kernels`](crate::InstantiateOptions::fills_by_kernels),
    /// [`copies_by_kernels`](crate::InstantiateOptions::copies_by_kernels)).
    Auto,
}
