//! Hubs: some nodes of a graph, with the nodes that lead to them and those that they lead to.

use crate::toposort::Successors;

/// For each node, the hubs that it leads to and the hubs that lead to it, as bits.
#[derive(Debug)]
pub(super) struct Hubs {
    /// 64-bit words for each node.
    words: usize,
    led_to: Vec<u64>,
    leading: Vec<u64>,
}

/// More words cost more time than the edges that they find are worth.
const MOST_WORDS: usize = 16;

impl Hubs {
    /// Chooses hubs in a graph whose edges lead to higher numbers, as many as `entries` numbers of
    /// 32 bits have room for. Takes time linear in nodes and edges, times the words for a node.
    pub(super) fn new(successors: &Successors, entries: usize) -> Self {
        let nodes = successors.len();
        let words = (entries / 4 / nodes.max(1)).min(MOST_WORDS);
        let mut hubs = Self { words, led_to: vec![0; nodes * words], leading: vec![0; nodes * words] };
        if words == 0 {
            return hubs;
        }
        let mut bits = vec![None; nodes];
        (0..).zip(choose(successors, words * 64)).for_each(|(bit, hub)| bits[hub as usize] = Some(bit));
        for (node, bit) in bits.iter().enumerate() {
            let mut own = hubs.leading_to(node);
            set(&mut own, *bit);
            let next = successors.of(node as u32).iter();
            next.for_each(|next| merge(&mut hubs.leading[*next as usize * words..], &own[..words]));
        }
        for node in (0..nodes).rev() {
            let mut own = [0; MOST_WORDS];
            for &next in successors.of(node as u32) {
                merge(&mut own, &hubs.led_to[next as usize * words..][..words]);
                set(&mut own, bits[next as usize]);
            }
            hubs.led_to[node * words..][..words].copy_from_slice(&own[..words]);
        }
        hubs
    }

    /// Whether some hub lies on a path from one node to another.
    #[inline]
    pub(super) fn lie_between(&self, from: u32, to: u32) -> bool {
        let led_to = &self.led_to[from as usize * self.words..][..self.words];
        let leading = &self.leading[to as usize * self.words..][..self.words];
        led_to.iter().zip(leading).any(|(led_to, leading)| led_to & leading != 0)
    }

    fn leading_to(&self, node: usize) -> [u64; MOST_WORDS] {
        let mut row = [0; MOST_WORDS];
        row[..self.words].copy_from_slice(&self.leading[node * self.words..][..self.words]);
        row
    }
}

/// The node with most paths through it, by its edges, of each of so many stretches of the order.
fn choose(successors: &Successors, count: usize) -> impl Iterator<Item = u32> {
    let nodes = successors.len();
    let mut before = vec![0_u64; nodes];
    successors.targets().iter().for_each(|to| before[*to as usize] += 1);
    let stretch = nodes.div_ceil(count).max(1);
    let paths = move |node: u32| before[node as usize] * successors.of(node).len() as u64;
    (0..nodes).step_by(stretch).filter_map(move |first| {
        let stretch = first as u32..nodes.min(first + stretch) as u32;
        stretch.max_by_key(|node| paths(*node)).filter(|node| paths(*node) > 0)
    })
}

fn set(row: &mut [u64; MOST_WORDS], bit: Option<usize>) {
    if let Some(bit) = bit {
        row[bit / 64] |= 1 << (bit % 64);
    }
}

fn merge(into: &mut [u64], from: &[u64]) {
    into.iter_mut().zip(from).for_each(|(into, from)| *into |= from);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hubs_lie_between_nodes_on_paths_through_them() {
        let edges = [(0, 1), (1, 2), (0, 2), (3, 2), (2, 4)];
        let successors = Successors::new(5, edges.into_iter());
        let hubs = Hubs::new(&successors, 1000);
        let between: Vec<_> = (0..5)
            .flat_map(|from| (0..5).map(move |to| (from, to)))
            .filter(|(from, to)| hubs.lie_between(*from, *to))
            .collect();
        assert_eq!(between, [(0, 2), (0, 4), (1, 4), (3, 4)]);
        // Without room there are no hubs.
        assert!(!Hubs::new(&successors, 19).lie_between(0, 2));
    }
}
