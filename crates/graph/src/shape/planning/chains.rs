//! Chains: the nodes of a graph, divided into paths.

use core::cmp::Reverse;

use crate::toposort::Successors;

/// Each node is on one chain, and an edge leads from each node of a chain to the next one.
#[derive(Debug)]
pub(super) struct Chains {
    /// The chain of each node. The longest chain is number 0, and so on.
    of: Vec<u32>,
    count: usize,
}

const NONE: u32 = u32::MAX;

impl Chains {
    /// Divides a graph whose edges lead to higher numbers. Greedy, after Simon (1988): each chain
    /// goes on with the first successor that is on no chain yet. Takes linear time.
    pub(super) fn new(successors: &Successors) -> Self {
        let mut of = vec![NONE; successors.len()];
        let mut lengths: Vec<u32> = Vec::new();
        for node in 0..of.len() {
            if of[node] == NONE {
                of[node] = lengths.len() as u32;
                lengths.push(0);
            }
            let chain = of[node];
            lengths[chain as usize] += 1;
            let next = successors.of(node as u32).iter().find(|next| of[**next as usize] == NONE);
            if let Some(next) = next {
                of[*next as usize] = chain;
            }
        }
        let mut by_length: Vec<u32> = (0..lengths.len() as u32).collect();
        by_length.sort_by_key(|chain| Reverse(lengths[*chain as usize]));
        let mut ranks = vec![0; lengths.len()];
        (0..).zip(&by_length).for_each(|(rank, chain)| ranks[*chain as usize] = rank);
        of.iter_mut().for_each(|chain| *chain = ranks[*chain as usize]);
        Self { of, count: lengths.len() }
    }

    /// The chain of a node.
    #[inline]
    pub(super) fn of(&self, node: u32) -> u32 {
        self.of[node as usize]
    }

    /// The number of chains.
    pub(super) fn count(&self) -> usize {
        self.count
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_chain_comes_first() {
        let chains = Chains::new(&Successors::new(6, [(0, 1), (0, 2), (2, 3), (3, 4)].into_iter()));
        assert_eq!(chains.count(), 3);
        assert_eq!((0..6).map(|node| chains.of(node)).collect::<Vec<_>>(), [1, 1, 0, 0, 0, 2]);
    }
}
