//! Depth-first search: a topological order of what it reaches, or the cycle it meets.

use super::successors::Successors;

/// The nodes of a cycle: each has an edge to the next, and the last to the first. `None` if the
/// graph has no cycle. Takes time linear in nodes and edges.
pub(crate) fn cycle(successors: &Successors) -> Option<Vec<u32>> {
    let nodes = successors.len();
    let successor = |node, number: usize| successors.of(node).get(number).copied();
    depth_first(0..nodes as u32, successor, &mut vec![Mark::New; nodes]).err()
}

/// How far a depth-first search is with a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Mark {
    /// Not reached yet.
    New,
    /// On the path from the start to the node the search is at.
    OnPath,
    /// It and all that it leads to are in the order; or it takes no part in the search.
    Done,
}

/// The marks of nodes, by their numbers.
pub(crate) trait Marks {
    fn get(&self, node: u32) -> Mark;
    fn set(&mut self, node: u32, mark: Mark);
}

impl Marks for Vec<Mark> {
    fn get(&self, node: u32) -> Mark {
        self[node as usize]
    }

    fn set(&mut self, node: u32, mark: Mark) {
        self[node as usize] = mark;
    }
}

/// Searches depth-first from each start in turn. Returns the nodes reached, each before its
/// successors (the reverse postorder), or the nodes of the first cycle met, in its direction.
///
/// `successor` returns a node's successor by number, from 0 up, and `None` behind the last. Looks
/// at every node and edge once. The path is kept on the heap.
pub(crate) fn depth_first(
    starts: impl IntoIterator<Item = u32>,
    successor: impl Fn(u32, usize) -> Option<u32>,
    marks: &mut impl Marks,
) -> Result<Vec<u32>, Vec<u32>> {
    let mut order = Vec::new();
    // Nodes on the path, each with the number of the successor to try next.
    let mut path: Vec<(u32, usize)> = Vec::new();
    for start in starts {
        if marks.get(start) != Mark::New {
            continue;
        }
        marks.set(start, Mark::OnPath);
        path.push((start, 0));
        while let Some((node, next)) = path.last_mut() {
            let Some(to) = successor(*node, *next) else {
                marks.set(*node, Mark::Done);
                order.push(*node);
                path.pop();
                continue;
            };
            *next += 1;
            match marks.get(to) {
                Mark::Done => {}
                Mark::OnPath => {
                    let nodes = path.iter().map(|(node, _)| *node);
                    return Err(nodes.skip_while(|node| *node != to).collect());
                }
                Mark::New => {
                    marks.set(to, Mark::OnPath);
                    path.push((to, 0));
                }
            }
        }
    }
    order.reverse();
    Ok(order)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_search_returns_an_order_or_a_cycle(
            nodes in 1..10_u32,
            edges in prop::collection::vec((0..10_u32, 0..10_u32), 0..14),
        ) {
            let edges: Vec<_> = edges.into_iter().map(|(from, to)| (from % nodes, to % nodes)).collect();
            let successors = Successors::new(nodes as usize, edges.iter().copied());
            let successor = |node, number: usize| successors.of(node).get(number).copied();
            match depth_first(0..nodes, successor, &mut vec![Mark::New; nodes as usize]) {
                Ok(order) => {
                    let place = |node: u32| order.iter().position(|one| *one == node);
                    prop_assert_eq!(order.len(), nodes as usize);
                    prop_assert!(edges.iter().all(|(from, to)| place(*from) < place(*to)));
                    prop_assert_eq!(cycle(&successors), None);
                }
                Err(found) => {
                    for (place, node) in found.iter().enumerate() {
                        prop_assert!(edges.contains(&(*node, found[(place + 1) % found.len()])));
                    }
                    prop_assert_eq!(cycle(&successors), Some(found));
                }
            }
        }
    }

    #[test]
    fn only_what_the_starts_lead_to_is_searched() {
        let successors = Successors::new(5, [(0, 1), (2, 3), (3, 2), (1, 4)].into_iter());
        let successor = |node, number: usize| successors.of(node).get(number).copied();
        assert_eq!(depth_first([1], successor, &mut vec![Mark::New; 5]), Ok(vec![1, 4]));
        assert_eq!(depth_first([1, 0], successor, &mut vec![Mark::New; 5]), Ok(vec![0, 1, 4]));
        assert_eq!(depth_first([3], successor, &mut vec![Mark::New; 5]), Err(vec![3, 2]));
        assert_eq!(cycle(&Successors::new(2, [(1, 1)].into_iter())), Some(vec![1]));
    }

    #[test]
    fn a_long_chain_needs_no_stack() {
        const NODES: u32 = 1_000_000;
        let chain = Successors::new(NODES as usize, (1..NODES).map(|node| (node, node - 1)));
        assert_eq!(cycle(&chain), None);
        assert_eq!(super::super::sort(&chain).map(|order| order[0]), Some(NODES - 1));
    }
}
