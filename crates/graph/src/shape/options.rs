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
/// Bodies of conditional nodes are shaped as the graph around them is, each by itself. The device
/// starts their nodes, so they get no kernel in front of their roots, none in place of fills and
/// copies, and none between narrow layers, and [`Auto`](Self::Auto) makes no lanes in them: none of
/// that gains there. A loop counts as a kernel that [may
/// wait](crate::InstantiateOptions::assume_progress) for another, whatever is assumed of kernels,
/// and so does a branch with such a kernel or a loop in it. A body is not ordered anew if a node
/// beside its conditional node may wait.
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
    /// [`copies_by_kernels`](crate::InstantiateOptions::copies_by_kernels)). Edges in chains of
    /// kernels that wait at their entry become programmatic
    /// ([`programmatic_edges`](crate::InstantiateOptions::programmatic_edges)).
    Auto,
}

/// The order of nodes in an executable.
///
/// Work that was written as a sequence, such as the calls of a captured stream, is drawn as a
/// chain: each node waits for the one before. Much of that order is an accident of the writing. By
/// its data alone, a node has to wait for another one only if both touch a byte, and one of them
/// writes it.
///
/// # By data
///
/// With [`ByData`](Self::ByData), an executable keeps of the drawn order what declared accesses
/// need: read after write, write after read and write after write, by bytes. Everything else runs
/// side by side. The results are the same.
///
/// Which order is needed is known for *transparent* nodes:
/// - copies and fills;
/// - kernels that were declared as `fn` by [`kernel!`](cuda_launch::kernel), if the image is a PTX
///   text without variables that kernels can write, and without functions from elsewhere, such as
///   `printf` and `malloc` ([`Library::is_stateless`](cuda_handles::Library::is_stateless)).
///
/// All memory that they touch has to be pooled, plain or pinned memory that this library allocated.
///
/// Every other node is *opaque*, and keeps its order with all nodes: untyped kernels and those
/// declared as `unsafe fn`, kernels of cubins, everything with managed, registered, imported or
/// foreign memory or with variables of libraries, host functions, events, batches, semaphores. To
/// make a kernel transparent, declare it as `fn` and load it from PTX, and keep variables and
/// `printf` in an image apart. If the arguments prepared for one typed kernel are launched with
/// another kernel ([`launch_untyped`](crate::Frontier::launch_untyped)), the declaration of the
/// first counts.
///
/// Child graphs are ordered node by node, and so is each body of a conditional node. Nodes at
/// [edges that are not full](crate::EdgeKind) keep all of their order. Nodes that the drawing does
/// not order stay unordered.
///
/// [`ShapeReport::dropped_edges`](crate::ShapeReport::dropped_edges) lists the edges that nothing
/// needs.
///
/// # Memory that others read meanwhile
///
/// The results are the same once the run has ended. Code beside the graph that looks at memory
/// while it runs, as a wait of a [`Batch`](cuda_handles::Batch) on a flag does, may see writes in
/// another order: a fill of the flag waits for no node that touches other memory. Let a
/// [batch](crate::Frontier::batch) write the flag, which keeps its order with all nodes.
///
/// # Later values
///
/// Nodes that ran one after the other as drawn may now be in no order. If a later value (an
/// [update of a node](crate::GraphExec::node), a [graph parameter](crate::GraphParam), an [update
/// of the whole](crate::GraphExec::update)) would make two of them touch the same byte, it is
/// refused with the names of both ([`UpdateError::Meets`](crate::UpdateError::Meets)). Another
/// executable, which orders them, is the answer. Two nodes change places by two parameters in one
/// [`launch_with`](crate::GraphExec::launch_with); of two node updates the first would be refused.
/// A [cache](crate::GraphCache) whose calls sometimes pass the same memory twice is better off
/// with [`AsDrawn`](Self::AsDrawn).
///
/// # Example
///
/// ```no_run
/// # use cuda_graph::{InstantiateOptions, Order, Result};
/// # fn example(
/// #     graph: &cuda_graph::Graph, x: &cuda_handles::Buffer<f32>, y: &cuda_handles::Buffer<f32>
/// # ) -> Result<()> {
/// let first = graph.root().fill(x, 1.0)?;
/// // The fills have no byte in common.
/// first.then().fill(y, 2.0)?;
/// let exec = graph.instantiate_with(InstantiateOptions::new().order(Order::ByData))?;
/// if let Some(report) = exec.shape_report() {
///     println!("{report}");
/// }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[non_exhaustive]
pub enum Order {
    /// As the graph was drawn.
    #[default]
    AsDrawn,
    /// The part of the drawn order that declared accesses need.
    ByData,
}
