//! Which nodes of a graph surely end before others start.

/// An edge of a graph, by the numbers of its nodes: its second node starts once the first has
/// ended, or, if it is no full one, at some point after that one started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Wait {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) full: bool,
}

/// For each pair of different nodes whether the first ends before the second starts, whatever
/// happens. In a graph with a cycle it is taken to be so for all: that is another fault.
///
/// All pairs with the same first node, or with the same second one, cost a 64th of one walk over
/// the graph: whichever are fewer.
pub(crate) fn ends_before(nodes: usize, waits: &[Wait], pairs: &[(u32, u32)]) -> Vec<bool> {
    let Some(sorted) = sorted(nodes, waits) else { return vec![true; pairs.len()] };
    let distinct = |nodes: &mut dyn Iterator<Item = u32>| {
        let mut nodes: Vec<u32> = nodes.collect();
        nodes.sort_unstable();
        nodes.dedup();
        nodes
    };
    let firsts = distinct(&mut pairs.iter().map(|(first, _)| *first));
    let seconds = distinct(&mut pairs.iter().map(|(_, second)| *second));
    let mut found = vec![false; pairs.len()];
    if firsts.len() <= seconds.len() {
        for some in firsts.chunks(64) {
            let after = starts_after(nodes, &sorted, some);
            note(&mut found, pairs, some, |&(first, second)| (first, after[second as usize]));
        }
    } else {
        for some in seconds.chunks(64) {
            let before = end_before(nodes, &sorted, some);
            note(&mut found, pairs, some, |&(first, second)| (second, before[first as usize]));
        }
    }
    found
}

/// Enters what was found for the pairs with one of `some` nodes. `look` tells that node of a pair,
/// and the bits of the other.
fn note(found: &mut [bool], pairs: &[(u32, u32)], some: &[u32], look: impl Fn(&(u32, u32)) -> (u32, u64)) {
    for (found, pair) in found.iter_mut().zip(pairs) {
        let (node, bits) = look(pair);
        if let Ok(bit) = some.binary_search(&node) {
            *found = bits >> bit & 1 != 0;
        }
    }
}

/// For each node after the end of which of `some` nodes, as bits, it starts.
fn starts_after(nodes: usize, sorted: &[Wait], some: &[u32]) -> Vec<u64> {
    let own = own_bits(nodes, some);
    let mut bits = vec![0_u64; nodes];
    for &Wait { from, to, full } in sorted {
        let more = bits[from as usize] | if full { own[from as usize] } else { 0 };
        bits[to as usize] |= more;
    }
    bits
}

/// For each node before the start of which of `some` nodes, as bits, it ends.
fn end_before(nodes: usize, sorted: &[Wait], some: &[u32]) -> Vec<u64> {
    let (mut starts, mut ends) = (own_bits(nodes, some), vec![0_u64; nodes]);
    for &Wait { from, to, full } in sorted.iter().rev() {
        let more = starts[to as usize];
        if full {
            ends[from as usize] |= more;
        }
        // Whatever the edge says, its second node does not start before the first.
        starts[from as usize] |= more;
    }
    ends
}

fn own_bits(nodes: usize, some: &[u32]) -> Vec<u64> {
    let mut own = vec![0_u64; nodes];
    for (bit, node) in some.iter().enumerate() {
        own[*node as usize] = 1 << bit;
    }
    own
}

/// The edges, those from a node after all those to it; `None` if there is a cycle.
fn sorted(nodes: usize, waits: &[Wait]) -> Option<Vec<Wait>> {
    let mut first = vec![0_usize; nodes + 1];
    for wait in waits {
        first[wait.from as usize + 1] += 1;
    }
    for node in 0..nodes {
        first[node + 1] += first[node];
    }
    let (mut next, mut leaving) = (first.clone(), waits.to_vec());
    for wait in waits {
        let place = &mut next[wait.from as usize];
        leaving[*place] = *wait;
        *place += 1;
    }
    let mut waits_for = vec![0_usize; nodes];
    waits.iter().for_each(|wait| waits_for[wait.to as usize] += 1);
    let mut ready: Vec<u32> = (0..nodes as u32).filter(|node| waits_for[*node as usize] == 0).collect();
    let mut sorted = Vec::with_capacity(waits.len());
    while let Some(node) = ready.pop() {
        for wait in &leaving[first[node as usize]..first[node as usize + 1]] {
            sorted.push(*wait);
            let left = &mut waits_for[wait.to as usize];
            *left -= 1;
            if *left == 0 {
                ready.push(wait.to);
            }
        }
    }
    (sorted.len() == waits.len()).then_some(sorted)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By its definition: a way from the first that begins with a full edge.
    fn walked(waits: &[Wait], (first, second): (u32, u32)) -> bool {
        let start = waits.iter().filter(|wait| wait.from == first && wait.full).map(|wait| wait.to);
        let (mut waiting, mut seen) = (start.collect::<Vec<_>>(), std::collections::HashSet::new());
        while let Some(node) = waiting.pop() {
            if node == second {
                return true;
            }
            if seen.insert(node) {
                waiting.extend(waits.iter().filter(|wait| wait.from == node).map(|wait| wait.to));
            }
        }
        false
    }

    #[test]
    fn what_is_found_is_what_a_walk_finds() {
        let mut state = 7_u64;
        let mut random = |below: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % below
        };
        for round in 0..200 {
            let nodes = 2 + random(150);
            // Numbers say nothing of the order.
            let name: Vec<u32> = {
                let mut names: Vec<u32> = (0..nodes as u32).collect();
                for place in (1..names.len()).rev() {
                    names.swap(place, random(place as u64 + 1) as usize);
                }
                names
            };
            let mut waits = Vec::new();
            for _ in 0..random(3 * nodes) {
                let (a, b) = (random(nodes) as usize, random(nodes) as usize);
                let full = random(3) > 0;
                if a != b {
                    waits.push(Wait { from: name[a.min(b)], to: name[a.max(b)], full });
                }
            }
            let mut pairs: Vec<(u32, u32)> = Vec::new();
            let (few, many) = (1 + random(3), random(2 * nodes));
            for _ in 0..many {
                let (few, any) = (name[random(few) as usize], name[random(nodes) as usize]);
                if few != any {
                    pairs.push(if round % 2 == 0 { (few, any) } else { (any, few) });
                }
            }
            let found = ends_before(nodes as usize, &waits, &pairs);
            let expected: Vec<bool> = pairs.iter().map(|pair| walked(&waits, *pair)).collect();
            assert_eq!(found, expected, "{waits:?} {pairs:?}");
        }
    }

    #[test]
    fn a_trigger_is_no_end() {
        let wait = |from, to, full| Wait { from, to, full };
        // 0 ends before 1 starts, which triggers 2, and 3 waits for that.
        let waits = [wait(0, 1, true), wait(1, 2, false), wait(2, 3, true)];
        let pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (3, 0)];
        assert_eq!(ends_before(4, &waits, &pairs), [true, true, true, false, false, true, false]);
    }

    #[test]
    fn a_cycle_is_not_looked_at() {
        let wait = |from, to| Wait { from, to, full: true };
        assert_eq!(ends_before(3, &[wait(0, 1), wait(1, 0)], &[(2, 0)]), [true]);
    }
}
