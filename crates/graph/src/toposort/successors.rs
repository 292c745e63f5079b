//! The edges of a graph by the nodes they leave, in compressed sparse row form.

/// The edges of a graph whose nodes are the numbers from 0 to `len`.
///
/// The successors of a node lie side by side in one array, in the order in which the edges were
/// given: two allocations for the whole graph.
#[derive(Clone, Debug)]
pub(crate) struct Successors {
    /// Position of each node's first successor in `targets`, and the end of the last node's.
    starts: Vec<u32>,
    targets: Vec<u32>,
}

impl Successors {
    /// Sorts edges by the nodes they leave (a counting sort). Goes through the edges twice.
    pub(crate) fn new(nodes: usize, edges: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut starts = vec![0_u32; nodes + 1];
        edges.clone().for_each(|(from, _)| starts[from as usize + 1] += 1);
        for node in 0..nodes {
            starts[node + 1] += starts[node];
        }
        let mut next = starts.clone();
        let mut targets = vec![0; starts[nodes] as usize];
        for (from, to) in edges {
            let position = &mut next[from as usize];
            targets[*position as usize] = to;
            *position += 1;
        }
        Self { starts, targets }
    }

    /// The number of nodes.
    pub(crate) fn len(&self) -> usize {
        self.starts.len() - 1
    }

    /// The successors of a node.
    #[inline]
    pub(crate) fn of(&self, node: u32) -> &[u32] {
        &self.targets[self.starts[node as usize] as usize..self.starts[node as usize + 1] as usize]
    }

    /// The successors of all nodes, one node after the other.
    pub(crate) fn targets(&self) -> &[u32] {
        &self.targets
    }
}
