//! Rows: for each node, the first node on each chain that it leads to.
//!
//! A row has no entries beyond the [horizons](super::horizon), behind which no edge to test leads,
//! and is dropped once all predecessors of its node are done. So graphs with short edges, such as
//! layers, have few and short rows at a time. If rows would still need too much memory or time,
//! they are cut: each keeps the nearest nodes only.

use super::chains::Chains;
use super::horizon::Horizons;
use crate::toposort::Successors;

/// How much memory and time a reduction may take.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Entries of rows at one time, of 32 bits each.
    pub(super) entries: usize,
    /// Entries that are looked at, besides one for each edge.
    pub(super) steps: usize,
    /// Numbers of 32 bits for hubs.
    pub(super) hubs: usize,
}

impl Limits {
    /// 16 M numbers of 32 bits in all. Graphs of 100 000 nodes and 1 000 000 edges take up to 0.4
    /// s.
    pub(super) const DEFAULT: Self = Self { entries: 12 << 20, steps: 48 << 20, hubs: 4 << 20 };
}

/// The first node of each chain that the node at hand leads to.
pub(super) struct Reached {
    chains: Chains,
    horizons: Horizons,
    /// By chain.
    first: Vec<u32>,
    /// The chains that are reached.
    reached: Vec<u32>,
}

const NONE: u32 = u32::MAX;

impl Reached {
    pub(super) fn new(successors: &Successors) -> Self {
        let chains = Chains::new(successors);
        let horizons = Horizons::new(successors, &chains);
        Self { first: vec![NONE; chains.count()], chains, horizons, reached: Vec::new() }
    }

    /// Whether the node at hand leads to a node.
    #[inline]
    pub(super) fn has(&self, node: u32) -> bool {
        self.first[self.chains.of(node) as usize] <= node
    }

    /// Adds a node that the node at hand leads to.
    #[inline]
    pub(super) fn add(&mut self, node: u32) {
        let chain = self.chains.of(node);
        let first = &mut self.first[chain as usize];
        if *first == NONE {
            self.reached.push(chain);
        }
        *first = node.min(*first);
    }

    fn clear(&mut self) {
        self.reached.drain(..).for_each(|chain| self.first[chain as usize] = NONE);
    }

    /// The row of the node at hand, with at most so many entries; and whether it has all.
    ///
    /// The node's own chain needs no entry: the node itself comes first there.
    fn row(&self, node: u32, most: usize) -> (Vec<u32>, bool) {
        let Self { first, horizons, chains, .. } = self;
        let own = chains.of(node);
        let useful = |chain: &u32| *chain != own && horizons.has(*chain, first[*chain as usize]);
        let mut chains: Vec<u32> = self.reached.iter().copied().filter(useful).collect();
        let is_whole = chains.len() <= most;
        if !is_whole {
            chains.select_nth_unstable_by_key(most, |chain| first[*chain as usize]);
            chains.truncate(most);
        }
        chains.iter_mut().for_each(|entry| *entry = first[*entry as usize]);
        chains.shrink_to_fit();
        (chains, is_whole)
    }
}

/// The rows of nodes whose predecessors are not all done.
pub(super) struct Rows {
    rows: Vec<Vec<u32>>,
    /// For each node, how many predecessors are not done.
    waiting: Vec<u32>,
    /// The most entries that a row gets, for the sake of memory.
    most: usize,
    /// How many entries may still be looked at, besides those that the rows will need.
    steps: usize,
    /// How many edges are not done.
    edges: usize,
    was_cut: bool,
}

/// How many times its share of the steps left a row may take. Rows are of different lengths, and
/// redundant edges need no steps.
const SHARES: usize = 8;

impl Rows {
    pub(super) fn new(successors: &Successors, limits: Limits) -> Self {
        let (nodes, edges) = (successors.len(), successors.targets().len());
        let mut waiting = vec![0; nodes];
        successors.targets().iter().for_each(|to| waiting[*to as usize] += 1);
        let most = limits.entries / most_rows(successors, waiting.clone()).max(1);
        Self { rows: vec![Vec::new(); nodes], waiting, most, steps: limits.steps, edges, was_cut: false }
    }

    /// The row of a node, but for the entry of its own chain.
    pub(super) fn of(&self, node: u32) -> &[u32] {
        &self.rows[node as usize]
    }

    /// Gives back the steps for an edge to a node, of which the row is not needed.
    pub(super) fn skip(&mut self, node: u32) {
        self.steps += self.of(node).len();
    }

    /// Whether a row was cut.
    pub(super) fn were_cut(&self) -> bool {
        self.was_cut
    }

    /// Takes the row of a node, and drops those that no node needs any more.
    pub(super) fn finish(&mut self, node: u32, next: &[u32], reached: &mut Reached) {
        for &next in next {
            self.waiting[next as usize] -= 1;
            if self.waiting[next as usize] == 0 {
                self.rows[next as usize] = Vec::new();
            }
        }
        self.edges -= next.len();
        reached.horizons.finish(node);
        let uses = self.waiting[node as usize] as usize;
        if uses > 0 && !next.is_empty() {
            let share = SHARES.saturating_mul(self.steps) / self.edges.max(1);
            let (row, is_whole) = reached.row(node, self.most.min(share).min(self.steps / uses));
            self.steps -= row.len() * uses;
            self.rows[node as usize] = row;
            if !is_whole && !self.was_cut {
                // Rows that are cut find few of the edges that hubs do not find.
                self.steps /= 4;
                self.was_cut = true;
            }
        }
        reached.clear();
    }
}

/// How many rows there are at one time, at most. `waiting` has the number of predecessors.
fn most_rows(successors: &Successors, mut waiting: Vec<u32>) -> usize {
    let (mut rows, mut most) = (0_usize, 0);
    for node in (0..successors.len() as u32).rev() {
        for &next in successors.of(node) {
            waiting[next as usize] -= 1;
            rows -= usize::from(waiting[next as usize] == 0 && !successors.of(next).is_empty());
        }
        rows += usize::from(waiting[node as usize] > 0 && !successors.of(node).is_empty());
        most = most.max(rows);
    }
    most
}
