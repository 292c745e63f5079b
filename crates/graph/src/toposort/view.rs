//! The graph as the search sees it.

/// A node, as its place in the table.
pub(crate) type Index = u32;

/// The graph as the search sees it, without the new edges.
pub(crate) trait Neighbours {
    /// Why a neighbour cannot be told.
    type Error;

    fn label(&self, node: Index) -> u64;
    fn successors(&mut self, node: Index) -> Result<Vec<Index>, Self::Error>;
    fn predecessors(&mut self, node: Index) -> Result<Vec<Index>, Self::Error>;
}

pub(crate) type Pair = (Index, Index);
