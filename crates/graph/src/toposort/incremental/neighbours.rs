//! The graph as the incremental order sees it.

/// A node, as its index in the table of nodes.
pub(crate) type Index = u32;

/// The graph as the search sees it, without the new edges.
pub(crate) trait Neighbours {
    /// Why the neighbours of a node are unknown.
    type Error;

    fn label(&self, node: Index) -> u64;
    fn successors(&mut self, node: Index) -> Result<Vec<Index>, Self::Error>;
    fn predecessors(&mut self, node: Index) -> Result<Vec<Index>, Self::Error>;
}

/// An edge: the node it leaves, and the node it enters.
pub(crate) type Edge = (Index, Index);
