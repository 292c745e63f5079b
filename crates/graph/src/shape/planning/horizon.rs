//! Horizons: how far along each chain edges lead that are not done yet.

use super::chains::Chains;
use crate::toposort::Successors;

/// For each chain, the last node that an edge of a node which is not done leads to.
///
/// Nodes are done from the last to the first. Of the nodes that a node leads to, those behind the
/// horizons are of no use any more.
#[derive(Debug)]
pub(super) struct Horizons {
    /// By chain; 0 if no edge leads there.
    last: Vec<u32>,
    /// For each edge that moved a horizon: its node, its chain, and the horizon without it.
    moves: Vec<(u32, u32, u32)>,
}

impl Horizons {
    /// The horizons while no node is done. Takes linear time.
    pub(super) fn new(successors: &Successors, chains: &Chains) -> Self {
        let mut last = vec![0; chains.count()];
        let mut moves = Vec::new();
        for node in 0..successors.len() as u32 {
            for &next in successors.of(node) {
                let chain = chains.of(next);
                let before = &mut last[chain as usize];
                if next > *before {
                    moves.push((node, chain, *before));
                    *before = next;
                }
            }
        }
        Self { last, moves }
    }

    /// Takes the edges of a node out. It is the last that is not done.
    pub(super) fn finish(&mut self, node: u32) {
        while let Some((_, chain, before)) = self.moves.pop_if(|(from, ..)| *from == node) {
            self.last[chain as usize] = before;
        }
    }

    /// Whether a node is not behind the horizon of its chain.
    #[inline]
    pub(super) fn has(&self, chain: u32, node: u32) -> bool {
        node <= self.last[chain as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn horizons_come_closer_as_nodes_are_done() {
        // Two chains: 0, 1, 3 and 2, 4.
        let successors = Successors::new(5, [(0, 1), (0, 2), (1, 3), (2, 4), (1, 4)].into_iter());
        let chains = Chains::new(&successors);
        let mut horizons = Horizons::new(&successors, &chains);
        let seen = |horizons: &Horizons| {
            (0..5).filter(|node| horizons.has(chains.of(*node), *node)).collect::<Vec<_>>()
        };
        assert_eq!(seen(&horizons), [0, 1, 2, 3, 4]);
        horizons.finish(4);
        horizons.finish(3);
        horizons.finish(2);
        assert_eq!(seen(&horizons), [0, 1, 2, 3, 4]);
        horizons.finish(1);
        assert_eq!(seen(&horizons), [0, 1, 2]);
        horizons.finish(0);
        assert_eq!(seen(&horizons), [0]);
    }
}
