//! Reachability: whether a path leads from one node of a graph to another.
//!
//! Each node carries a few numbers, computed once in linear time, that answer most questions:
//!
//! - **No path**, by two topological orders, one that prefers the first successor of a node and one
//!   that prefers the last, and by the length of the longest path to each node: a path leads only
//!   to a node that is later in all three.
//! - **A path**, by two spanning forests. In one, each node keeps one predecessor: a path leads
//!   from a node to every node of its subtree. In the other, each node keeps one successor: a path
//!   leads to a node from every node of its subtree.
//!
//! The remaining questions take a search. The same numbers cut most of its branches, and a chain
//! without branches counts as one step. Searches draw on a [`Budget`].

use crate::toposort::Successors;
use crate::toposort::cycle::{Mark, depth_first};

/// The steps that a check may still take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Budget(pub(crate) u64);

impl Budget {
    /// Takes a step; `None` if there is none left.
    #[inline]
    pub(crate) fn step(&mut self) -> Option<()> {
        self.take(1)
    }

    /// Takes some steps at once.
    #[inline]
    pub(crate) fn take(&mut self, steps: u64) -> Option<()> {
        self.0 = self.0.checked_sub(steps)?;
        Some(())
    }
}

/// The nodes in a topological order, chains one after the other as far as possible, and otherwise
/// by number; `None` if the graph has a cycle.
pub(crate) fn order(successors: &Successors) -> Option<Vec<u32>> {
    depth_first_order(successors, Preference::FirstSuccessor)
}

/// Which of several successors comes first in a depth-first order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Preference {
    FirstSuccessor,
    LastSuccessor,
}

/// A topological order in which the preferred successor of a node comes before the others.
fn depth_first_order(successors: &Successors, preference: Preference) -> Option<Vec<u32>> {
    let nodes = successors.len() as u32;
    let mut marks = vec![Mark::New; successors.len()];
    // Among nodes without a path between them, the one that the search reaches first comes last.
    match preference {
        Preference::FirstSuccessor => {
            let successor = |node, number: usize| successors.of(node).iter().rev().nth(number).copied();
            depth_first((0..nodes).rev(), successor, &mut marks).ok()
        }
        Preference::LastSuccessor => {
            let successor = |node, number: usize| successors.of(node).get(number).copied();
            depth_first(0..nodes, successor, &mut marks).ok()
        }
    }
}

/// The place of each node in an order.
fn places(order: &[u32]) -> Vec<u32> {
    let mut places = vec![0; order.len()];
    for (place, node) in (0..).zip(order) {
        places[*node as usize] = place;
    }
    places
}

/// Answers whether a path leads from one node to another.
#[derive(Clone, Debug)]
pub(crate) struct Reachability {
    successors: Successors,
    labels: Vec<NodeLabels>,
    /// The number of the search that reached each node last.
    seen: Vec<u32>,
    search: u32,
    waiting: Vec<u32>,
}

/// The numbers that answer questions about a node.
#[derive(Clone, Copy, Debug, Default)]
struct NodeLabels {
    /// Its places in the two orders.
    places: [u32; 2],
    /// The length of the longest path that leads to it.
    level: u32,
    /// Its subtree in the forest where each node keeps one predecessor.
    below: Interval,
    /// Its subtree in the forest where each node keeps one successor: nodes that lead to it.
    before: Interval,
    /// The end of the chain without branches that begins here.
    chain_end: u32,
}

/// The numbers of a subtree in a forest numbered in preorder; the root has the first.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    own: u32,
    end: u32,
}

impl Interval {
    fn has(self, other: Self) -> bool {
        self.own <= other.own && other.own < self.end
    }
}

impl Reachability {
    /// `order` is a topological order of the graph.
    pub(crate) fn new(successors: Successors, order: &[u32]) -> Self {
        let nodes = successors.len();
        let mut labels = vec![NodeLabels::default(); nodes];
        let preferences = [Preference::FirstSuccessor, Preference::LastSuccessor];
        let places = preferences
            .map(|preference| places(&depth_first_order(&successors, preference).unwrap_or_default()));
        let (mut before, mut after) = (vec![None; nodes], vec![None; nodes]);
        for &node in order {
            let level = labels[node as usize].level;
            for &to in successors.of(node) {
                let next = &mut labels[to as usize];
                // The deepest predecessor, so that the trees are deep.
                if before[to as usize].is_none() || level + 1 > next.level {
                    before[to as usize] = Some(node);
                }
                next.level = next.level.max(level + 1);
            }
        }
        for &node in order.iter().rev() {
            let next = successors.of(node);
            after[node as usize] = next.iter().copied().min_by_key(|to| labels[*to as usize].level);
            labels[node as usize].chain_end = match next {
                [one] => labels[*one as usize].chain_end,
                _ => node,
            };
        }
        for (node, subtree) in subtrees(&before, order.iter().copied(), order.iter().rev().copied()) {
            labels[node as usize].below = subtree;
        }
        for (node, subtree) in subtrees(&after, order.iter().rev().copied(), order.iter().copied()) {
            labels[node as usize].before = subtree;
        }
        for (node, labels) in labels.iter_mut().enumerate() {
            labels.places = [places[0][node], places[1][node]];
        }
        Self { successors, labels, seen: vec![0; nodes], search: 0, waiting: Vec::new() }
    }

    /// Whether a path leads from one node to another; `None` if the budget is used up first.
    pub(crate) fn leads(&mut self, from: u32, to: u32, budget: &mut Budget) -> Option<bool> {
        budget.step()?;
        match self.at_once(from, to) {
            Some(answer) => Some(answer),
            None => self.search(from, to, budget),
        }
    }

    /// The answer, if the labels give it.
    fn at_once(&self, from: u32, to: u32) -> Option<bool> {
        let (one, two) = (&self.labels[from as usize], &self.labels[to as usize]);
        if one.places[0] >= two.places[0] || one.places[1] >= two.places[1] || one.level >= two.level {
            return Some(false);
        }
        (one.below.has(two.below) || two.before.has(one.before)).then_some(true)
    }

    fn search(&mut self, from: u32, to: u32, budget: &mut Budget) -> Option<bool> {
        self.search = self.search.wrapping_add(1);
        if self.search == 0 {
            self.seen.fill(0);
            self.search = 1;
        }
        self.waiting.clear();
        // A node within a chain leads to `to` only if the end of the chain does: otherwise `to`
        // would be on the chain, which the forests would have answered.
        self.waiting.push(self.labels[from as usize].chain_end);
        while let Some(node) = self.waiting.pop() {
            for &next in self.successors.of(node) {
                budget.step()?;
                match self.at_once(next, to) {
                    _ if next == to => return Some(true),
                    Some(true) => return Some(true),
                    Some(false) => {}
                    None => {
                        let end = self.labels[next as usize].chain_end;
                        if self.seen[end as usize] != self.search {
                            self.seen[end as usize] = self.search;
                            self.waiting.push(end);
                        }
                    }
                }
            }
        }
        Some(false)
    }
}

/// The subtrees of a forest, given each node's parent. `down` has parents before children, `up` has
/// them after.
fn subtrees(
    parents: &[Option<u32>],
    down: impl Iterator<Item = u32>,
    up: impl Iterator<Item = u32>,
) -> Vec<(u32, Interval)> {
    let mut sizes = vec![1_u32; parents.len()];
    for node in up {
        if let Some(parent) = parents[node as usize] {
            sizes[parent as usize] += sizes[node as usize];
        }
    }
    let mut free = vec![0_u32; parents.len()];
    let mut roots = 0;
    let mut subtrees = Vec::with_capacity(parents.len());
    for node in down {
        let size = sizes[node as usize];
        let place = parents[node as usize].map_or(&mut roots, |parent| &mut free[parent as usize]);
        let own = *place;
        *place += size;
        free[node as usize] = own + 1;
        subtrees.push((node, Interval { own, end: own + size }));
    }
    subtrees
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reachability(nodes: usize, edges: &[(u32, u32)]) -> Reachability {
        let successors = Successors::new(nodes, edges.iter().copied());
        let order = order(&successors).unwrap();
        Reachability::new(successors, &order)
    }

    proptest! {
        #[test]
        fn paths_are_those_of_a_closure(
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
            let mut closure = vec![vec![false; nodes]; nodes];
            for &(from, to) in &edges {
                closure[from as usize][to as usize] = true;
            }
            for middle in 0..nodes {
                for from in 0..nodes {
                    for to in 0..nodes {
                        closure[from][to] |= closure[from][middle] && closure[middle][to];
                    }
                }
            }
            let mut reachability = reachability(nodes, &edges);
            for (from, row) in closure.iter().enumerate() {
                for (to, wanted) in row.iter().enumerate() {
                    let found = reachability.leads(from as u32, to as u32, &mut Budget(1000));
                    prop_assert_eq!(found, Some(*wanted), "{} {} {:?}", from, to, edges);
                }
            }
        }
    }

    #[test]
    fn long_chains_and_wide_joins_are_few_steps() {
        // Many nodes lead to one, and a chain of as many follows it.
        const MANY: u32 = 20_000;
        let into = (0..MANY).map(|node| (node, MANY));
        let line = (MANY..2 * MANY).map(|node| (node, node + 1));
        let edges: Vec<(u32, u32)> = into.chain(line).collect();
        let mut reachability = reachability(2 * MANY as usize + 1, &edges);
        let mut budget = Budget(10 * u64::from(MANY));
        for node in 0..MANY {
            assert_eq!(reachability.leads(node, MANY + 1 + node, &mut budget), Some(true));
            assert_eq!(reachability.leads(node, (node + 1) % MANY, &mut budget), Some(false));
        }
        // Parallel chains that are joined at their ends.
        let lines: Vec<(u32, u32)> =
            (0..100 * 100).map(|node| (node, if node % 100 == 99 { 10_000 } else { node + 1 })).collect();
        let mut reachability = self::reachability(10_001, &lines);
        let mut budget = Budget(40_000);
        for node in 0..10_000 {
            assert_eq!(reachability.leads(node, 10_000, &mut budget), Some(true));
            assert_eq!(reachability.leads(node, (node + 100) % 10_000, &mut budget), Some(false));
        }
    }

    #[test]
    fn a_budget_ends() {
        let edges: Vec<(u32, u32)> = (0..40).flat_map(|node| [(node, node + 1), (node, node + 2)]).collect();
        let mut reachability = reachability(43, &edges);
        assert_eq!(reachability.leads(0, 1, &mut Budget(0)), None);
    }
}
