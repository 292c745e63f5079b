//! The topological order of the steps of a level, and the cycle if there is none.

use std::collections::{BTreeSet, HashMap};

use crate::graph::model::program::Step;

/// A cycle, with one of its nodes.
#[derive(Debug)]
pub(crate) struct Cycle {
    pub(crate) node: u64,
}

/// A pseudorandom number (splitmix64).
pub(super) fn mix(seed: u64, index: usize) -> u64 {
    let mut word = seed.wrapping_add((index as u64 + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// The steps of a level, each after its dependencies; otherwise in the order of creation, or in a
/// pseudorandom order if there is a seed.
pub(super) fn topological_order(
    created: &[usize],
    steps: &[Step],
    seed: Option<u64>,
) -> Result<Vec<usize>, Cycle> {
    let place = |index: usize| (seed.map_or(0, |seed| mix(seed, index)), index);
    let mut waiting: HashMap<usize, usize> = HashMap::with_capacity(created.len());
    let mut dependents: HashMap<usize, Vec<usize>> = HashMap::with_capacity(created.len());
    let mut ready = BTreeSet::new();
    for index in created {
        let Some(step) = steps.get(*index) else { continue };
        waiting.insert(*index, step.dependencies.len());
        if step.dependencies.is_empty() {
            ready.insert(place(*index));
        }
        for (dependency, _) in &step.dependencies {
            dependents.entry(*dependency).or_default().push(*index);
        }
    }
    let mut order = Vec::with_capacity(created.len());
    while let Some((_, index)) = ready.pop_first() {
        order.push(index);
        for dependent in dependents.get(&index).into_iter().flatten() {
            if let Some(count) = waiting.get_mut(dependent) {
                *count -= 1;
                if *count == 0 {
                    ready.insert(place(*dependent));
                }
            }
        }
    }
    if order.len() == created.len() {
        return Ok(order);
    }
    let is_stuck = |index: usize| waiting.get(&index).is_some_and(|count| *count > 0);
    Err(find_cycle(created, steps, is_stuck))
}

/// Finds a cycle: every step that the sort leaves over leads back into one.
fn find_cycle(created: &[usize], steps: &[Step], is_stuck: impl Fn(usize) -> bool) -> Cycle {
    let mut at = created.iter().copied().find(|index| is_stuck(*index)).unwrap_or(0);
    let before = |at: usize| {
        let dependencies = steps.get(at).map(|step| &step.dependencies[..]).unwrap_or_default();
        dependencies.iter().map(|(from, _)| *from).find(|from| is_stuck(*from)).unwrap_or(at)
    };
    for _ in 0..created.len() {
        at = before(at);
    }
    // Now on the cycle. The driver names the node that was created last.
    let (first, mut last) = (at, at);
    loop {
        at = before(at);
        last = last.max(at);
        if at == first {
            break;
        }
    }
    Cycle { node: steps.get(last).map_or(0, |step| step.node) }
}
