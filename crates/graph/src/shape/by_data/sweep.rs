//! The sweep: needed edges, found along a topological order.

use super::barriers::Barriers;
use super::parts::{Part, Parts};
use crate::check::reachability::{Budget, Reachability};
use crate::footprint::index::{AccessIndex, Key};
use crate::footprint::{Footprint, Touch};
use crate::toposort::Successors;

/// Takes the nodes in order, and finds the edges to each that it needs.
#[derive(Debug)]
pub(super) struct Sweep<'d> {
    parts: &'d Parts,
    footprints: &'d [Footprint],
    reachability: Reachability,
    barriers: Barriers<'d>,
    accesses: Vec<Access>,
    /// The accesses so far that are under no other, by their numbers.
    index: AccessIndex<u32>,
    /// The needed edges so far, by the nodes that they leave.
    needed: Vec<Vec<u32>>,
    budget: Budget,
    /// How many edges there may still be.
    edges: usize,
}

/// An access of a node that was taken.
#[derive(Debug)]
struct Access {
    node: u32,
    touch: Touch,
    /// Earlier accesses that this one overwrites and comes after, as the drawing says. They matter
    /// only to nodes that do not come after this one.
    under: Vec<u32>,
}

/// How many nodes are asked whether they come after an opaque one.
const FEW: usize = 8;

impl<'d> Sweep<'d> {
    pub(super) fn new(
        parts: &'d Parts,
        footprints: &'d [Footprint],
        reachability: Reachability,
        predecessors: &'d Successors,
        steps: u64,
        edges: usize,
    ) -> Self {
        Self {
            parts,
            footprints,
            reachability,
            barriers: Barriers::new(parts, predecessors),
            accesses: Vec::new(),
            index: AccessIndex::default(),
            needed: vec![Vec::new(); footprints.len()],
            budget: Budget(steps),
            edges,
        }
    }

    /// The needed edges, with the order as drawn; `None` if a limit is met.
    pub(super) fn run(mut self, order: &[u32]) -> Option<(Vec<(u32, u32)>, Reachability)> {
        for &node in order {
            let before = match self.parts.of_node(node) {
                Part::Opaque => self.barriers.before_opaque(node, &self.needed, &mut self.budget)?,
                Part::Transparent => self.before_transparent(node)?,
                Part::Passes => {
                    self.barriers.before(node, &mut self.reachability, &mut self.budget)?;
                    continue;
                }
            };
            self.edges = self.edges.checked_sub(before.len())?;
            before.into_iter().for_each(|before| self.needed[before as usize].push(node));
        }
        let edges = (0..).zip(self.needed);
        let edges = edges.flat_map(|(from, next)| next.into_iter().map(move |to| (from, to)));
        Some((edges.collect(), self.reachability))
    }

    fn before_transparent(&mut self, node: u32) -> Option<Vec<u32>> {
        let mut before = self.conflicting(node)?;
        let barriers = self.barriers.before(node, &mut self.reachability, &mut self.budget)?;
        let conflicting = before.len().min(FEW);
        for &barrier in &*barriers {
            let mut is_implied = false;
            for &other in &before[..conflicting] {
                is_implied = is_implied || self.reachability.leads(barrier, other, &mut self.budget)?;
            }
            if !is_implied {
                before.push(barrier);
            }
        }
        Some(before)
    }

    /// The nodes whose accesses conflict with those of a node that the drawing orders behind them.
    /// Adds the node's accesses.
    fn conflicting(&mut self, node: u32) -> Option<Vec<u32>> {
        let touches = self.footprints[node as usize].touches().unwrap_or_default();
        let (mut before, first) = (Vec::new(), self.accesses.len());
        for touch in touches {
            let under = self.compare(node, touch, &mut before)?;
            self.accesses.push(Access { node, touch: *touch, under });
        }
        for (number, access) in (first as u32..).zip(&self.accesses[first..]) {
            self.index.insert(number, access.touch);
        }
        before.sort_unstable();
        before.dedup();
        Some(before)
    }

    /// Adds the nodes of conflicting accesses to `before`. Returns the accesses that this one
    /// overwrites, which leave the index.
    fn compare(&mut self, node: u32, touch: &Touch, before: &mut Vec<u32>) -> Option<Vec<u32>> {
        let Self { reachability, index, budget, accesses, .. } = self;
        let mut gone: Vec<(Key, u32)> = Vec::new();
        let mut waiting: Vec<u32> = Vec::new();
        for (key, entry) in index.near(touch) {
            budget.step()?;
            if !touch.writes && !entry.touch.writes {
                continue;
            }
            if is_before(&accesses[entry.node as usize], node, touch, before, reachability, budget)? {
                if touch.overwrites(&entry.touch) {
                    gone.push((key, entry.node));
                }
                continue;
            }
            waiting.extend(&accesses[entry.node as usize].under);
        }
        while let Some(number) = waiting.pop() {
            budget.step()?;
            let access = &accesses[number as usize];
            if !is_before(access, node, touch, before, reachability, budget)? {
                waiting.extend(&access.under);
            }
        }
        gone.iter().for_each(|(key, _)| index.remove(*key));
        Some(gone.into_iter().map(|(_, number)| number).collect())
    }
}

/// Whether the drawing orders an access before a node. If it conflicts with one of the node, adds
/// it to `before`.
fn is_before(
    access: &Access,
    node: u32,
    touch: &Touch,
    before: &mut Vec<u32>,
    reachability: &mut Reachability,
    budget: &mut Budget,
) -> Option<bool> {
    if !reachability.leads(access.node, node, budget)? {
        return Some(false);
    }
    budget.take(touch.region.effort(&access.touch.region))?;
    if touch.conflicts(&access.touch) {
        before.push(access.node);
    }
    Some(true)
}
