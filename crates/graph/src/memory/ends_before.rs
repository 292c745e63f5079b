//! Which nodes of a graph end before others start, whatever happens.

use crate::toposort::{self, Successors};

/// An edge of a graph, by the numbers of its nodes. The second node starts after the first has
/// ended; or, if the edge is not full, at some point after the first has started.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Dependency {
    pub(crate) from: u32,
    pub(crate) to: u32,
    pub(crate) full: bool,
}

/// For each pair of different nodes, whether the first ends before the second starts, whatever
/// happens. In a graph with a cycle, which is an error of its own, the answer is yes for all.
///
/// Up to 64 first nodes, or 64 second nodes, whichever are fewer, share one walk over the graph.
pub(crate) fn ends_before(nodes: usize, edges: &[Dependency], pairs: &[(u32, u32)]) -> Vec<bool> {
    let Some(sorted) = sorted(nodes, edges) else { return vec![true; pairs.len()] };
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
            fill_in(&mut found, pairs, some, |&(first, second)| (first, after[second as usize]));
        }
    } else {
        for some in seconds.chunks(64) {
            let before = end_before(nodes, &sorted, some);
            fill_in(&mut found, pairs, some, |&(first, second)| (second, before[first as usize]));
        }
    }
    found
}

/// Fills in the answers for the pairs with one of `some` nodes. `look` returns that node of a pair,
/// and the bits of the other node.
fn fill_in(found: &mut [bool], pairs: &[(u32, u32)], some: &[u32], look: impl Fn(&(u32, u32)) -> (u32, u64)) {
    for (found, pair) in found.iter_mut().zip(pairs) {
        let (node, bits) = look(pair);
        if let Ok(bit) = some.binary_search(&node) {
            *found = bits >> bit & 1 != 0;
        }
    }
}

/// For each node, which of `some` nodes end before it starts, as bits.
fn starts_after(nodes: usize, sorted: &[Dependency], some: &[u32]) -> Vec<u64> {
    let own = own_bits(nodes, some);
    let mut bits = vec![0_u64; nodes];
    for &Dependency { from, to, full } in sorted {
        let more = bits[from as usize] | if full { own[from as usize] } else { 0 };
        bits[to as usize] |= more;
    }
    bits
}

/// For each node, which of `some` nodes start after it has ended, as bits.
fn end_before(nodes: usize, sorted: &[Dependency], some: &[u32]) -> Vec<u64> {
    let (mut starts, mut ends) = (own_bits(nodes, some), vec![0_u64; nodes]);
    for &Dependency { from, to, full } in sorted.iter().rev() {
        let more = starts[to as usize];
        if full {
            ends[from as usize] |= more;
        }
        // Over an edge of any kind, the second node does not start before the first.
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

/// The edges in an order in which those that enter a node come before those that leave it; `None`
/// if the graph has a cycle.
fn sorted(nodes: usize, edges: &[Dependency]) -> Option<Vec<Dependency>> {
    let order = toposort::sort(&Successors::new(nodes, edges.iter().map(|edge| (edge.from, edge.to))))?;
    let mut places = vec![0_u32; nodes];
    for (place, node) in (0..).zip(order) {
        places[node as usize] = place;
    }
    // The numbers of the edges, by the places of the nodes they leave.
    let numbers = edges.iter().zip(0..).map(|(edge, number)| (places[edge.from as usize], number));
    let numbers = Successors::new(nodes, numbers);
    Some(numbers.targets().iter().map(|number| edges[*number as usize]).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By definition: a path from the first node to the second that begins with a full edge.
    fn walked(edges: &[Dependency], (first, second): (u32, u32)) -> bool {
        let start = edges.iter().filter(|edge| edge.from == first && edge.full).map(|edge| edge.to);
        let (mut waiting, mut seen) = (start.collect::<Vec<_>>(), std::collections::HashSet::new());
        while let Some(node) = waiting.pop() {
            if node == second {
                return true;
            }
            if seen.insert(node) {
                waiting.extend(edges.iter().filter(|edge| edge.from == node).map(|edge| edge.to));
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
            // Numbers are independent of the order.
            let name: Vec<u32> = {
                let mut names: Vec<u32> = (0..nodes as u32).collect();
                for place in (1..names.len()).rev() {
                    names.swap(place, random(place as u64 + 1) as usize);
                }
                names
            };
            let mut edges = Vec::new();
            for _ in 0..random(3 * nodes) {
                let (a, b) = (random(nodes) as usize, random(nodes) as usize);
                let full = random(3) > 0;
                if a != b {
                    edges.push(Dependency { from: name[a.min(b)], to: name[a.max(b)], full });
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
            let found = ends_before(nodes as usize, &edges, &pairs);
            let expected: Vec<bool> = pairs.iter().map(|pair| walked(&edges, *pair)).collect();
            assert_eq!(found, expected, "{edges:?} {pairs:?}");
        }
    }

    #[test]
    fn a_trigger_is_no_end() {
        let edge = |from, to, full| Dependency { from, to, full };
        // 0 ends before 1 starts; 1 triggers 2; 2 ends before 3 starts.
        let edges = [edge(0, 1, true), edge(1, 2, false), edge(2, 3, true)];
        let pairs = [(0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3), (3, 0)];
        assert_eq!(ends_before(4, &edges, &pairs), [true, true, true, false, false, true, false]);
    }

    #[test]
    fn a_cycle_is_not_looked_at() {
        let edge = |from, to| Dependency { from, to, full: true };
        assert_eq!(ends_before(3, &[edge(0, 1), edge(1, 0)], &[(2, 0)]), [true]);
    }
}
