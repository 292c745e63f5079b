//! Twins: nodes with the same predecessors and the same successors.
//!
//! Twins are unordered. An order among them orders no other nodes: what is in front of one is in
//! front of all, and what is behind one is behind all.

use std::collections::HashMap;

use super::drawn::Role;
use super::sketch::Sketch;

/// Which twins make a set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sameness {
    /// Twins of any type.
    Any,
    /// Kernels with the same kernel and configuration.
    SameKernel,
}

/// All sets of more than `least` twins, each in ascending order. Fixed nodes, empty ones and
/// kernels that do nothing are in none.
pub(super) fn sets(sketch: &Sketch<'_>, sameness: Sameness, least: usize) -> Vec<Vec<u32>> {
    let (successors, predecessors) = (sketch.successors(), sketch.predecessors());
    let mut sets: Vec<Vec<u32>> = Vec::new();
    let mut numbers = HashMap::new();
    for node in sketch.numbers().filter(|node| !sketch.is_fixed[*node as usize]) {
        let kernel = match (sketch.role(node), sameness) {
            (Some(Role::Kernel { like, .. }), Sameness::SameKernel) => Some(like),
            (Some(Role::Empty) | None, _) => continue,
            (Some(_), Sameness::Any) => None,
            (Some(_), Sameness::SameKernel) => continue,
        };
        let key = (kernel, predecessors.of(node), successors.of(node));
        let number = *numbers.entry(key).or_insert_with(|| {
            sets.push(Vec::new());
            sets.len() - 1
        });
        sets[number].push(node);
    }
    sets.retain(|set| set.len() > least);
    sets
}
