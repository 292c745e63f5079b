//! Which nodes of a graph come before which.
//!
//! Questions are mostly answered by comparing a few numbers: two orders of the nodes that all edges
//! go along, one that prefers the first successors and one that prefers the last, tell most nodes
//! apart that have no path between them; and two forests of edges, in which every node has one
//! predecessor, or one successor, tell most of those that have one. What is left is a search, in
//! which these numbers close most ways and lines without branches are one step. Searches take from
//! a budget.

/// Steps that may still be taken.
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

/// The edges of a graph whose nodes are numbered from 0, by the nodes that they leave.
#[derive(Debug)]
pub(crate) struct Successors {
    first: Vec<u32>,
    next: Vec<u32>,
}

impl Successors {
    pub(crate) fn new(nodes: usize, edges: impl Iterator<Item = (u32, u32)> + Clone) -> Self {
        let mut first = vec![0_u32; nodes + 1];
        edges.clone().for_each(|(from, _)| first[from as usize + 1] += 1);
        for node in 0..nodes {
            first[node + 1] += first[node];
        }
        let mut place = first.clone();
        let mut next = vec![0; first[nodes] as usize];
        for (from, to) in edges {
            let at = &mut place[from as usize];
            next[*at as usize] = to;
            *at += 1;
        }
        Self { first, next }
    }

    pub(crate) fn len(&self) -> usize {
        self.first.len() - 1
    }

    pub(crate) fn of(&self, node: u32) -> &[u32] {
        &self.next[self.first[node as usize] as usize..self.first[node as usize + 1] as usize]
    }

    /// The nodes in an order that the edges go along, lines one after the other as far as can be,
    /// and else as they are numbered; `None` if there is a cycle.
    pub(crate) fn in_order(&self) -> Option<Vec<u32>> {
        if !self.has_order() {
            return None;
        }
        let mut order = vec![0; self.len()];
        for (node, place) in self.places(false).into_iter().enumerate() {
            order[place as usize] = node as u32;
        }
        Some(order)
    }

    fn has_order(&self) -> bool {
        let mut waits_for = vec![0_u32; self.len()];
        self.next.iter().for_each(|to| waits_for[*to as usize] += 1);
        let mut order: Vec<u32> =
            (0..self.len() as u32).filter(|node| waits_for[*node as usize] == 0).collect();
        let mut done = 0;
        while let Some(&node) = order.get(done) {
            done += 1;
            for &to in self.of(node) {
                waits_for[to as usize] -= 1;
                if waits_for[to as usize] == 0 {
                    order.push(to);
                }
            }
        }
        done == self.len()
    }

    /// The nodes of a cycle, in its order, if there is one.
    pub(crate) fn cycle(&self) -> Option<Vec<u32>> {
        const NEW: u8 = 0;
        const OPEN: u8 = 1;
        const DONE: u8 = 2;
        let mut state = vec![NEW; self.len()];
        for root in 0..self.len() as u32 {
            if state[root as usize] != NEW {
                continue;
            }
            state[root as usize] = OPEN;
            let mut path = vec![(root, 0_usize)];
            while let Some((node, tried)) = path.last_mut() {
                let node = *node;
                match self.of(node).get(*tried) {
                    None => {
                        state[node as usize] = DONE;
                        path.pop();
                    }
                    Some(&to) => {
                        *tried += 1;
                        match state[to as usize] {
                            NEW => {
                                state[to as usize] = OPEN;
                                path.push((to, 0));
                            }
                            OPEN => {
                                let from = path.iter().position(|(node, _)| *node == to)?;
                                return Some(path[from..].iter().map(|(node, _)| *node).collect());
                            }
                            _ => {}
                        }
                    }
                }
            }
        }
        None
    }

    /// Where each node stands in an order that all edges go along; of nodes without a path between
    /// them, the order differs with `backwards`.
    fn places(&self, backwards: bool) -> Vec<u32> {
        let nodes = self.len();
        let mut place = vec![u32::MAX; nodes];
        let mut seen = vec![false; nodes];
        let mut left = nodes as u32;
        for root in 0..nodes as u32 {
            let root = if backwards { root } else { nodes as u32 - 1 - root };
            if seen[root as usize] {
                continue;
            }
            seen[root as usize] = true;
            let mut path = vec![(root, 0_usize)];
            while let Some((node, tried)) = path.last_mut() {
                let (node, successors) = (*node, self.of(*node));
                let at = if backwards { Some(*tried) } else { successors.len().checked_sub(*tried + 1) };
                match at.and_then(|at| successors.get(at)) {
                    Some(&to) => {
                        *tried += 1;
                        if !seen[to as usize] {
                            seen[to as usize] = true;
                            path.push((to, 0));
                        }
                    }
                    None => {
                        left -= 1;
                        place[node as usize] = left;
                        path.pop();
                    }
                }
            }
        }
        place
    }
}

/// Answers whether there is a path between nodes.
#[derive(Debug)]
pub(crate) struct Reach {
    successors: Successors,
    about: Vec<SubgraphFacts>,
    /// The number of the search that a node was seen in last.
    seen: Vec<u32>,
    search: u32,
    waiting: Vec<u32>,
}

/// What is known of a node.
#[derive(Clone, Copy, Debug, Default)]
struct SubgraphFacts {
    /// Its places in two orders, and the longest path that leads to it.
    places: [u32; 2],
    level: u32,
    /// In the forest where each node has one predecessor: the nodes below have numbers in this
    /// range.
    below: Span,
    /// In the forest where each node has one successor: the nodes that lead to it have numbers in
    /// this range.
    before: Span,
    /// Where the line without branches that begins here ends.
    line: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Span {
    own: u32,
    end: u32,
}

impl Span {
    fn has(self, other: Self) -> bool {
        self.own <= other.own && other.own < self.end
    }
}

impl Reach {
    /// The order is one that the edges go along.
    pub(crate) fn new(successors: Successors, order: &[u32]) -> Self {
        let nodes = successors.len();
        let mut about = vec![SubgraphFacts::default(); nodes];
        let places = [successors.places(false), successors.places(true)];
        let (mut before, mut after) = (vec![None; nodes], vec![None; nodes]);
        for &node in order {
            let level = about[node as usize].level;
            for &to in successors.of(node) {
                let next = &mut about[to as usize];
                // The deepest predecessor, so that the trees are deep.
                if before[to as usize].is_none() || level + 1 > next.level {
                    before[to as usize] = Some(node);
                }
                next.level = next.level.max(level + 1);
            }
        }
        for &node in order.iter().rev() {
            let next = successors.of(node);
            after[node as usize] = next.iter().copied().min_by_key(|to| about[*to as usize].level);
            about[node as usize].line = match next {
                [one] => about[*one as usize].line,
                _ => node,
            };
        }
        for (node, span) in spans(&before, order.iter().copied(), order.iter().rev().copied()) {
            about[node as usize].below = span;
        }
        for (node, span) in spans(&after, order.iter().rev().copied(), order.iter().copied()) {
            about[node as usize].before = span;
        }
        for (node, about) in about.iter_mut().enumerate() {
            about.places = [places[0][node], places[1][node]];
        }
        Self { successors, about, seen: vec![0; nodes], search: 0, waiting: Vec::new() }
    }

    /// Whether a path leads from one node to another; `None` if the budget does not suffice to find
    /// out.
    pub(crate) fn leads(&mut self, from: u32, to: u32, budget: &mut Budget) -> Option<bool> {
        budget.step()?;
        match self.at_once(from, to) {
            Some(answer) => Some(answer),
            None => self.search(from, to, budget),
        }
    }

    /// The answer, if a few numbers tell it.
    fn at_once(&self, from: u32, to: u32) -> Option<bool> {
        let (one, two) = (&self.about[from as usize], &self.about[to as usize]);
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
        // Nothing on a line leads to the node unless its end does: it would be before it in a
        // forest.
        self.waiting.push(self.about[from as usize].line);
        while let Some(node) = self.waiting.pop() {
            for &next in self.successors.of(node) {
                budget.step()?;
                match self.at_once(next, to) {
                    _ if next == to => return Some(true),
                    Some(true) => return Some(true),
                    Some(false) => {}
                    None => {
                        let end = self.about[next as usize].line;
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

/// The spans of nodes in the forest in which each has the parent given. The first order has parents
/// before children, the second after.
fn spans(
    parents: &[Option<u32>],
    down: impl Iterator<Item = u32>,
    up: impl Iterator<Item = u32>,
) -> Vec<(u32, Span)> {
    let mut sizes = vec![1_u32; parents.len()];
    for node in up {
        if let Some(parent) = parents[node as usize] {
            sizes[parent as usize] += sizes[node as usize];
        }
    }
    let mut free = vec![0_u32; parents.len()];
    let mut roots = 0;
    let mut spans = Vec::with_capacity(parents.len());
    for node in down {
        let size = sizes[node as usize];
        let place = parents[node as usize].map_or(&mut roots, |parent| &mut free[parent as usize]);
        let own = *place;
        *place += size;
        free[node as usize] = own + 1;
        spans.push((node, Span { own, end: own + size }));
    }
    spans
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reach(nodes: usize, edges: &[(u32, u32)]) -> Reach {
        let successors = Successors::new(nodes, edges.iter().copied());
        let order = successors.in_order().unwrap();
        Reach::new(successors, &order)
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
            let mut reach = reach(nodes, &edges);
            for (from, row) in closure.iter().enumerate() {
                for (to, wanted) in row.iter().enumerate() {
                    let found = reach.leads(from as u32, to as u32, &mut Budget(1000));
                    prop_assert_eq!(found, Some(*wanted), "{} {} {:?}", from, to, edges);
                }
            }
        }

        #[test]
        fn a_cycle_is_one(
            nodes in 1..10_usize,
            ends in prop::collection::vec((0..10_u32, 0..10_u32), 0..14),
        ) {
            let edges: Vec<(u32, u32)> = ends
                .into_iter()
                .filter(|(from, to)| (*from as usize) < nodes && (*to as usize) < nodes && from != to)
                .collect();
            let successors = Successors::new(nodes, edges.iter().copied());
            let cycle = successors.cycle();
            prop_assert_eq!(cycle.is_some(), successors.in_order().is_none());
            for (place, node) in cycle.iter().flatten().enumerate() {
                let cycle = cycle.as_deref().unwrap_or(&[]);
                prop_assert!(edges.contains(&(*node, cycle[(place + 1) % cycle.len()])));
            }
        }
    }

    #[test]
    fn long_lines_and_wide_joins_are_few_steps() {
        // As many nodes again as lead to one, each read at some place of a line behind it.
        const MANY: u32 = 20_000;
        let into = (0..MANY).map(|node| (node, MANY));
        let line = (MANY..2 * MANY).map(|node| (node, node + 1));
        let edges: Vec<(u32, u32)> = into.chain(line).collect();
        let mut reach = reach(2 * MANY as usize + 1, &edges);
        let mut budget = Budget(10 * u64::from(MANY));
        for node in 0..MANY {
            assert_eq!(reach.leads(node, MANY + 1 + node, &mut budget), Some(true));
            assert_eq!(reach.leads(node, (node + 1) % MANY, &mut budget), Some(false));
        }
        // Lines beside each other that are joined at their ends.
        let lines: Vec<(u32, u32)> =
            (0..100 * 100).map(|node| (node, if node % 100 == 99 { 10_000 } else { node + 1 })).collect();
        let mut reach = self::reach(10_001, &lines);
        let mut budget = Budget(40_000);
        for node in 0..10_000 {
            assert_eq!(reach.leads(node, 10_000, &mut budget), Some(true));
            assert_eq!(reach.leads(node, (node + 100) % 10_000, &mut budget), Some(false));
        }
    }

    #[test]
    fn a_budget_ends() {
        let edges: Vec<(u32, u32)> = (0..40).flat_map(|node| [(node, node + 1), (node, node + 2)]).collect();
        let mut reach = reach(43, &edges);
        assert_eq!(reach.leads(0, 1, &mut Budget(0)), None);
    }
}
