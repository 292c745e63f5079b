//! The order of opaque nodes.

use std::rc::Rc;

use super::parts::{Part, Parts};
use crate::check::reachability::{Budget, Reachability};
use crate::toposort::Successors;

/// Finds the opaque nodes before each node, and what comes before an opaque one.
#[derive(Debug)]
pub(super) struct Barriers<'d> {
    parts: &'d Parts,
    predecessors: &'d Successors,
    /// For each node that was taken and is not opaque, the last opaque ones before it.
    last: Vec<Rc<[u32]>>,
    /// The opaque node for which each node was looked at last.
    seen: Vec<u32>,
}

/// How many opaque nodes are compared with each other, to leave out those that others come after.
const MOST_COMPARED: usize = 32;

impl<'d> Barriers<'d> {
    pub(super) fn new(parts: &'d Parts, predecessors: &'d Successors) -> Self {
        let nodes = predecessors.len();
        Self { parts, predecessors, last: vec![Rc::from([]); nodes], seen: vec![u32::MAX; nodes] }
    }

    /// The last opaque nodes before a node that is not opaque. Called once for each, in order.
    pub(super) fn before(
        &mut self,
        node: u32,
        reachability: &mut Reachability,
        budget: &mut Budget,
    ) -> Option<Rc<[u32]>> {
        let before = self.predecessors.of(node);
        budget.take(before.len() as u64)?;
        let of = |before: u32| match self.parts.of_node(before) {
            Part::Opaque => Rc::from([before]),
            Part::Transparent | Part::Passes => Rc::clone(&self.last[before as usize]),
        };
        let last = match before {
            [] => Rc::from([]),
            [only] => of(*only),
            many => {
                let mut all: Vec<u32> = Vec::new();
                for &before in many {
                    let some = of(before);
                    budget.take(some.len() as u64)?;
                    all.extend_from_slice(&some);
                }
                all.sort_unstable();
                all.dedup();
                last_of(all, reachability, budget)?.into()
            }
        };
        self.last[node as usize] = Rc::clone(&last);
        Some(last)
    }

    /// The nodes that need an edge to an opaque one. `needed` has the needed edges so far, by the
    /// nodes that they leave.
    pub(super) fn before_opaque(
        &mut self,
        node: u32,
        needed: &[Vec<u32>],
        budget: &mut Budget,
    ) -> Option<Vec<u32>> {
        let mut waiting: Vec<u32> = self.predecessors.of(node).to_vec();
        let mut found = Vec::new();
        while let Some(before) = waiting.pop() {
            budget.step()?;
            if core::mem::replace(&mut self.seen[before as usize], node) == node {
                continue;
            }
            let part = self.parts.of_node(before);
            if part != Part::Passes {
                found.push(before);
            }
            if part != Part::Opaque {
                waiting.extend_from_slice(self.predecessors.of(before));
            }
        }
        // The others lead there by one of these.
        let mut lacking = Vec::new();
        for before in found {
            let next = &needed[before as usize];
            budget.take(next.len() as u64)?;
            if !next.iter().any(|next| self.seen[*next as usize] == node) {
                lacking.push(before);
            }
        }
        Some(lacking)
    }
}

/// The nodes that lead to none of the others, as far as they are few.
fn last_of(mut nodes: Vec<u32>, reachability: &mut Reachability, budget: &mut Budget) -> Option<Vec<u32>> {
    if nodes.len() > MOST_COMPARED {
        return Some(nodes);
    }
    let all = nodes.clone();
    let mut is_last = Vec::with_capacity(all.len());
    for &node in &all {
        let mut leads = false;
        for &other in all.iter().filter(|other| **other != node) {
            leads = leads || reachability.leads(node, other, budget)?;
        }
        is_last.push(!leads);
    }
    let mut is_last = is_last.into_iter();
    nodes.retain(|_| is_last.next().unwrap_or(true));
    Some(nodes)
}
