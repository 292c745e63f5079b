//! The closure of full edges, by trying everything.

/// For each node, the nodes that paths of edges lead to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Closure(Vec<Vec<bool>>);

impl Closure {
    pub(super) fn of(nodes: usize, edges: &[(u32, u32)]) -> Self {
        let mut leads = vec![vec![false; nodes]; nodes];
        for &(from, to) in edges {
            leads[from as usize][to as usize] = true;
        }
        for middle in 0..nodes {
            let behind = leads[middle].clone();
            for row in leads.iter_mut().filter(|row| row[middle]) {
                row.iter_mut().zip(&behind).for_each(|(leads, behind)| *leads |= behind);
            }
        }
        Self(leads)
    }

    pub(super) fn leads(&self, from: u32, to: u32) -> bool {
        self.0[from as usize][to as usize]
    }

    /// Whether two nodes are the same one, or ordered.
    pub(super) fn are_ordered(&self, one: u32, two: u32) -> bool {
        one == two || self.leads(one, two) || self.leads(two, one)
    }

    /// Whether a node lies on a path from one node to another.
    pub(super) fn has_between(&self, from: u32, to: u32) -> bool {
        (0..self.0.len() as u32).any(|node| self.leads(from, node) && self.leads(node, to))
    }
}
