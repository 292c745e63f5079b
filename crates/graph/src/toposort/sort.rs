//! Kahn's algorithm: a topological order of a whole graph.

use core::cmp::Reverse;
use std::collections::BinaryHeap;

use super::successors::Successors;

/// All nodes in an order in which every edge leads forwards, otherwise by number; `None` if the
/// graph has a cycle.
pub(crate) fn sort(successors: &Successors) -> Option<Vec<u32>> {
    let Sorted { order, missing: _ } = Sorted::new(successors);
    (order.len() == successors.len()).then_some(order)
}

/// As [`sort`], for a graph that may have cycles: their nodes, and all nodes behind them, come
/// last, by number.
pub(crate) fn sort_cyclic(successors: &Successors) -> Vec<u32> {
    let Sorted { mut order, missing } = Sorted::new(successors);
    order.extend((0..).zip(missing).filter(|(_, missing)| *missing > 0).map(|(node, _)| node));
    order
}

/// The outcome of Kahn's algorithm.
struct Sorted {
    /// The nodes that lie neither in a cycle nor behind one.
    order: Vec<u32>,
    /// For each node, how many edges lead to it from nodes that are not in the order; none if it is
    /// in the order.
    missing: Vec<u32>,
}

impl Sorted {
    /// Takes the lowest node, again and again, of those whose predecessors are all in the order.
    fn new(successors: &Successors) -> Self {
        let nodes = successors.len();
        let mut missing = vec![0_u32; nodes];
        successors.targets().iter().for_each(|node| missing[*node as usize] += 1);
        let free = (0..nodes as u32).filter(|node| missing[*node as usize] == 0);
        let mut free: BinaryHeap<Reverse<u32>> = free.map(Reverse).collect();
        let mut order = Vec::with_capacity(nodes);
        while let Some(Reverse(node)) = free.pop() {
            order.push(node);
            for &next in successors.of(node) {
                let left = &mut missing[next as usize];
                *left -= 1;
                if *left == 0 {
                    free.push(Reverse(next));
                }
            }
        }
        Self { order, missing }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn every_edge_leads_forwards(
            nodes in 1..24_usize,
            ends in prop::collection::vec((0..24_u32, 0..24_u32), 0..60),
            names in Just((0..24_u32).collect::<Vec<_>>()).prop_shuffle(),
        ) {
            let names: Vec<u32> = names.into_iter().filter(|name| (*name as usize) < nodes).collect();
            let edges: Vec<(u32, u32)> = ends
                .into_iter()
                .filter(|(from, to)| from < to && (*to as usize) < nodes)
                .map(|(from, to)| (names[from as usize], names[to as usize]))
                .collect();
            let order = sort(&Successors::new(nodes, edges.iter().copied())).unwrap();
            let mut places = vec![None; nodes];
            for (place, node) in order.iter().enumerate() {
                prop_assert_eq!(places[*node as usize].replace(place), None);
            }
            prop_assert_eq!(order.len(), nodes);
            prop_assert!(edges.iter().all(|edge| places[edge.0 as usize] < places[edge.1 as usize]));
        }

        #[test]
        fn there_is_no_order_exactly_if_there_is_a_cycle(
            nodes in 1..10_u32,
            edges in prop::collection::vec((0..10_u32, 0..10_u32), 0..14),
        ) {
            let edges = edges.into_iter().map(|(from, to)| (from % nodes, to % nodes));
            let successors = Successors::new(nodes as usize, edges.clone());
            // A node that reaches itself, by the closure of the edges.
            let mut closure = vec![vec![false; nodes as usize]; nodes as usize];
            edges.for_each(|(from, to)| closure[from as usize][to as usize] = true);
            for middle in 0..nodes as usize {
                for from in 0..nodes as usize {
                    for to in 0..nodes as usize {
                        closure[from][to] |= closure[from][middle] && closure[middle][to];
                    }
                }
            }
            let is_cyclic = (0..nodes as usize).any(|node| closure[node][node]);
            prop_assert_eq!(sort(&successors).is_none(), is_cyclic);
            prop_assert_eq!(super::super::cycle(&successors).is_some(), is_cyclic);
        }
    }

    #[test]
    fn independent_nodes_keep_the_order_of_their_numbers() {
        let sorted = |nodes, edges: &[(u32, u32)]| sort(&Successors::new(nodes, edges.iter().copied()));
        assert_eq!(sorted(0, &[]), Some(vec![]));
        assert_eq!(sorted(3, &[]), Some(vec![0, 1, 2]));
        assert_eq!(sorted(4, &[(3, 0), (3, 0), (1, 0)]), Some(vec![1, 2, 3, 0]));
        assert_eq!(sorted(4, &[(0, 2)]), Some(vec![0, 1, 2, 3]));
        assert_eq!(sorted(2, &[(1, 1)]), None);
    }

    #[test]
    fn nodes_of_a_cycle_and_behind_it_come_last() {
        let sorted =
            |nodes, edges: &[(u32, u32)]| sort_cyclic(&Successors::new(nodes, edges.iter().copied()));
        assert_eq!(sorted(3, &[]), [0, 1, 2]);
        assert_eq!(sorted(3, &[(2, 0), (0, 1)]), [2, 0, 1]);
        assert_eq!(sorted(4, &[(1, 2), (2, 1), (3, 0)]), [3, 0, 1, 2]);
        assert_eq!(sorted(4, &[(3, 3), (3, 0)]), [1, 2, 0, 3]);
    }
}
