//! An order of the nodes that all edges go along, and what a new edge does to it.
//!
//! Each node has a label, at first its number of creation. Every edge goes from a lower label to a higher one, which holds by itself for the
//! edges made with a node. An edge added later that goes along costs nothing; one that goes against the labels needs a search, but only
//! among the nodes whose labels lie between those of its ends (the algorithm of Pearce and Kelly).

use std::collections::HashMap;

/// A node, as its place in the table.
pub(crate) type Index = u32;

/// What a new edge means for the order.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It closes no cycle. These nodes get new labels once the edge is there; none if the edge goes along the order.
    Fits(Vec<(Index, u64)>),
    /// It closes this cycle: each node has an edge to the next, the last one would get one to the first.
    Cycle(Vec<Index>),
}

/// The graph as the search sees it.
pub(crate) trait Neighbours {
    /// Why a neighbour cannot be told.
    type Error;

    fn label(&self, node: Index) -> u64;
    fn successors(&mut self, node: Index) -> Result<Vec<Index>, Self::Error>;
    fn predecessors(&mut self, node: Index) -> Result<Vec<Index>, Self::Error>;
}

/// What an edge from `from` to another node, `to`, means for the order.
pub(crate) fn admit<N: Neighbours>(graph: &mut N, from: Index, to: Index) -> Result<Verdict, N::Error> {
    let (low, high) = (graph.label(to), graph.label(from));
    if high < low {
        return Ok(Verdict::Fits(Vec::new()));
    }
    let after = search(to, |node| {
        let mut next = graph.successors(node)?;
        next.retain(|&node| graph.label(node) <= high);
        Ok(next)
    })?;
    if after.contains_key(&from) {
        return Ok(Verdict::Cycle(path(&after, to, from)));
    }
    let before = search(from, |node| {
        let mut next = graph.predecessors(node)?;
        next.retain(|&node| graph.label(node) >= low);
        Ok(next)
    })?;
    Ok(Verdict::Fits(relabel(graph, before.into_keys().collect(), after.into_keys().collect())))
}

/// Everything reached from `start`, each node with the one it was reached from.
fn search<E>(
    start: Index,
    mut next: impl FnMut(Index) -> Result<Vec<Index>, E>,
) -> Result<HashMap<Index, Index>, E> {
    let mut reached = HashMap::from([(start, start)]);
    let mut waiting = vec![start];
    while let Some(node) = waiting.pop() {
        for neighbour in next(node)? {
            reached.entry(neighbour).or_insert_with(|| {
                waiting.push(neighbour);
                node
            });
        }
    }
    Ok(reached)
}

/// The way from `from` to `to` that the search found.
fn path(reached: &HashMap<Index, Index>, from: Index, to: Index) -> Vec<Index> {
    let step = |node: &Index| if *node == from { None } else { reached.get(node).copied() };
    let mut path: Vec<Index> = core::iter::successors(Some(to), step).collect();
    path.reverse();
    path
}

/// Deals the labels of both sets out anew: first to those before the edge, then to those after it, each set in its old order.
fn relabel<N: Neighbours>(graph: &N, mut before: Vec<Index>, mut after: Vec<Index>) -> Vec<(Index, u64)> {
    before.sort_unstable_by_key(|&node| graph.label(node));
    after.sort_unstable_by_key(|&node| graph.label(node));
    before.extend(after);
    let mut labels: Vec<u64> = before.iter().map(|&node| graph.label(node)).collect();
    labels.sort_unstable();
    before.into_iter().zip(labels).collect()
}

#[cfg(test)]
mod tests {
    use core::convert::Infallible;

    use proptest::prelude::*;

    use super::*;

    #[derive(Default)]
    struct Model {
        labels: Vec<u64>,
        edges: Vec<(Index, Index)>,
        searched: usize,
    }

    impl Neighbours for Model {
        type Error = Infallible;

        fn label(&self, node: Index) -> u64 {
            self.labels[node as usize]
        }

        fn successors(&mut self, node: Index) -> Result<Vec<Index>, Infallible> {
            self.searched += 1;
            Ok(self.edges.iter().filter(|edge| edge.0 == node).map(|edge| edge.1).collect())
        }

        fn predecessors(&mut self, node: Index) -> Result<Vec<Index>, Infallible> {
            self.searched += 1;
            Ok(self.edges.iter().filter(|edge| edge.1 == node).map(|edge| edge.0).collect())
        }
    }

    impl Model {
        fn with(nodes: u64) -> Self {
            Self { labels: (0..nodes).collect(), ..Self::default() }
        }

        /// Adds the edge if it fits, and tells the cycle otherwise.
        fn add(&mut self, from: Index, to: Index) -> Option<Vec<Index>> {
            match admit(self, from, to).unwrap() {
                Verdict::Cycle(path) => Some(path),
                Verdict::Fits(moved) => {
                    moved.into_iter().for_each(|(node, label)| self.labels[node as usize] = label);
                    self.edges.push((from, to));
                    None
                }
            }
        }

        fn reaches(&self, from: Index, to: Index) -> bool {
            from == to || self.edges.iter().any(|&(a, b)| a == from && self.reaches(b, to))
        }
    }

    #[test]
    fn an_edge_along_the_order_needs_no_search() {
        let mut model = Model::with(3);
        assert_eq!(model.add(0, 2), None);
        assert_eq!(model.searched, 0);
    }

    #[test]
    fn a_cycle_is_told_by_its_path() {
        let mut model = Model::with(5);
        assert_eq!(model.add(1, 2), None);
        assert_eq!(model.add(2, 4), None);
        assert_eq!(model.add(4, 1), Some(vec![1, 2, 4]));
    }

    #[test]
    fn an_edge_against_the_order_changes_labels_between_its_ends_alone() {
        let mut model = Model::with(100);
        (1..99).for_each(|node| assert_eq!(model.add(node, 99), None));
        assert_eq!(model.add(60, 50), None);
        assert!(model.labels[60] < model.labels[50]);
        assert!((0..100).filter(|&node| model.labels[node] != node as u64).count() == 2);
    }

    proptest! {
        #[test]
        fn the_order_holds_after_every_edge(edges in prop::collection::vec((0_u32..12, 0_u32..12), 0..60)) {
            let mut model = Model::with(12);
            for (from, to) in edges.into_iter().filter(|(from, to)| from != to) {
                let closes = model.reaches(to, from);
                let cycle = model.add(from, to);
                prop_assert_eq!(cycle.is_some(), closes);
                if let Some(path) = cycle {
                    prop_assert_eq!((path.first(), path.last()), (Some(&to), Some(&from)));
                    prop_assert!(path.windows(2).all(|pair| model.edges.contains(&(pair[0], pair[1]))));
                }
                prop_assert!(model.edges.iter().all(|&(a, b)| model.label(a) < model.label(b)));
                let mut labels = model.labels.clone();
                labels.sort_unstable();
                prop_assert_eq!(labels, (0..12).collect::<Vec<u64>>());
            }
        }
    }
}
