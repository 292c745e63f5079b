//! Kahn's algorithm: a topological order of a whole graph.

use super::successors::Successors;

/// All nodes in an order in which every edge leads forwards; `None` if the graph has a cycle.
///
/// Kahn's algorithm with a first-in, first-out queue: nodes without predecessors come first, by
/// number; every other node comes once the last of its predecessors is in the order. Takes time
/// linear in nodes and edges.
pub(crate) fn sort(successors: &Successors) -> Option<Vec<u32>> {
    let nodes = successors.len();
    let mut missing = vec![0_u32; nodes];
    successors.targets().iter().for_each(|node| missing[*node as usize] += 1);
    // The order is its own queue: what lies behind `done` still has to release its successors.
    let mut order = Vec::with_capacity(nodes);
    order.extend((0..nodes as u32).filter(|node| missing[*node as usize] == 0));
    let mut done = 0;
    while let Some(&node) = order.get(done) {
        done += 1;
        for &next in successors.of(node) {
            let left = &mut missing[next as usize];
            *left -= 1;
            if *left == 0 {
                order.push(next);
            }
        }
    }
    (order.len() == nodes).then_some(order)
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
        assert_eq!(sorted(2, &[(1, 1)]), None);
    }
}
