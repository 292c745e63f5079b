//! The rules against rules of another kind, written as plainly as can be: every pair, every byte,
//! every path.

use std::collections::HashSet;

use cuda_launch::Access;
use proptest::prelude::*;

use super::order::Order;
use super::races::{Bounds, Pair, races};
use super::region::Region;
use super::subject::{Inner, Item, Space, Subject, Tie, Touch};
use crate::node_kind::NodeKind;
use crate::state::ids::{NodeId, SubgraphId};

const ANY: [Tie; 3] = [Tie::Order, Tie::IfWaitedFor, Tie::Nothing];
const ENOUGH: Bounds = Bounds { steps: 1_000_000_000, pairs: 1_000_000 };

impl Subject {
    /// A subject of one graph.
    fn flat(nodes: u32, edges: Vec<(u32, u32, Tie)>) -> Self {
        let mut subject = Self::default();
        subject.add_graph(None, None, nodes);
        subject.graphs[0].edges = edges;
        subject
    }

    /// A further graph; its number.
    fn add_graph(&mut self, outer: Option<u32>, body: Option<&str>, nodes: u32) -> usize {
        let (number, first) = (self.graphs.len() as u32, self.items.len() as u32);
        let depth = outer.map_or(0, |item| {
            let inside = &mut self.items[item as usize].inside;
            let first = if inside.start == inside.end { number } else { inside.start };
            *inside = first..number + 1;
            let graph = self.items[item as usize].graph;
            self.graphs[graph as usize].depth + 1
        });
        let (subgraph, body, items) = (SubgraphId::ROOT, body.map(str::to_owned), first..first + nodes);
        self.graphs.push(Inner { subgraph, outer, body, depth, items, edges: Vec::new() });
        self.items.extend((0..nodes).map(|_| Item {
            graph: number,
            id: NodeId::NONE,
            name: "".into(),
            kind: NodeKind::Empty,
            inside: 0..0,
            opaque: None,
            wrong: None,
        }));
        number as usize
    }

    fn touch(&mut self, item: u32, region: Region, writes: bool) {
        let access = if writes { Access::Write } else { Access::Read };
        let (role, is_argument, space, memory, synchronizes) = ("it", false, Space::Common, None, false);
        self.touches.push(Touch { item, region, access, role, is_argument, space, memory, synchronizes });
    }

    fn races(&self, bounds: Bounds) -> super::races::Races {
        races(self, &mut Order::of(self).unwrap(), bounds)
    }

    /// All pairs of nodes that race, the lower number first, by trying everything; or only those
    /// that do whatever kernels wait for.
    fn all_races(&self, certain: bool) -> HashSet<(u32, u32)> {
        let mut racing = HashSet::new();
        for (number, one) in self.touches.iter().enumerate() {
            for two in &self.touches[number + 1..] {
                let conflict = (one.access.writes() || two.access.writes())
                    && one.region.overlap(&two.region).is_some()
                    && one.space == two.space
                    && !(one.synchronizes && two.synchronizes);
                if conflict && self.may_be_beside(one.item, two.item, certain) {
                    racing.insert((one.item.min(two.item), one.item.max(two.item)));
                }
            }
        }
        racing
    }

    /// The item and all that it is in, from the outside in.
    fn line(&self, item: u32) -> Vec<u32> {
        let graph = &self.graphs[self.items[item as usize].graph as usize];
        let mut line = graph.outer.map_or_else(Vec::new, |outer| self.line(outer));
        line.push(item);
        line
    }

    /// Whether a path of such edges leads from one, or what it is in, to the other.
    fn comes_before(&self, one: u32, two: u32, with: &[Tie]) -> bool {
        let (one, two) = (self.line(one), self.line(two));
        let Some(apart) = one.iter().zip(&two).position(|(one, two)| one != two) else { return false };
        let (one, two) = (one[apart], two[apart]);
        self.items[one as usize].graph == self.items[two as usize].graph && self.has_path(one, two, with)
    }

    fn may_be_beside(&self, one: u32, two: u32, certain: bool) -> bool {
        let (one, two) = (self.line(one), self.line(two));
        let Some(apart) = one.iter().zip(&two).position(|(one, two)| one != two) else { return false };
        let (one, two) = (one[apart], two[apart]);
        self.items[one as usize].graph == self.items[two as usize].graph
            && [(one, two), (two, one)].into_iter().all(|(one, two)| !self.ends_before(one, two, certain))
    }

    /// Whether one waits for the end of the other, or starts no sooner than what does; or also if
    /// kernels have waited.
    fn ends_before(&self, from: u32, to: u32, waited: bool) -> bool {
        let graph = &self.graphs[self.items[from as usize].graph as usize];
        let mut next = graph.edges.iter().filter(|(start, ..)| *start == from);
        next.any(|&(_, next, tie)| match tie {
            Tie::Order => next == to || self.has_path(next, to, &ANY),
            Tie::IfWaitedFor => waited && (next == to || self.ends_before(next, to, waited)),
            Tie::Nothing => false,
        })
    }

    fn has_path(&self, from: u32, to: u32, with: &[Tie]) -> bool {
        let graph = &self.graphs[self.items[from as usize].graph as usize];
        let (mut seen, mut waiting) = (HashSet::new(), vec![from]);
        while let Some(node) = waiting.pop() {
            for &(start, end, tie) in &graph.edges {
                if start == node && with.contains(&tie) && seen.insert(end) {
                    waiting.push(end);
                }
            }
        }
        seen.contains(&to)
    }
}

fn item(subject: &Subject, touch: u32) -> u32 {
    subject.touches[touch as usize].item
}

fn nodes_of(subject: &Subject, pair: &Pair) -> (u32, u32) {
    let (one, two) = (item(subject, pair.first), item(subject, pair.second));
    (one.min(two), one.max(two))
}

/// A few shapes, of which many are alike.
fn any_region() -> impl Strategy<Value = Region> {
    prop_oneof![
        (0..20_u64, 1..8_u64).prop_map(|(start, bytes)| Region::linear(start, bytes)),
        Just(Region::linear(0, 28)),
        (0..3_u64, 1..3_usize, 1..4_usize).prop_map(|(start, width, height)| {
            let side = cuda_handles::CopySide {
                address: start,
                space: cuda_handles::MemorySpace::Device,
                pitch: 5,
                rows: height,
            };
            let layout =
                cuda_handles::CopyLayout { source: side, destination: side, width, height, depth: 1 };
            Region::of_copy(&layout, &side)
        }),
    ]
}

fn any_tie() -> impl Strategy<Value = Tie> {
    prop_oneof![8 => Just(Tie::Order), 1 => Just(Tie::IfWaitedFor), 1 => Just(Tie::Nothing)]
}

/// Graphs in graphs, with edges in any direction that closes no cycle, and accesses.
fn any_subject() -> impl Strategy<Value = Subject> {
    let graphs = prop::collection::vec((1..7_u32, any::<u32>(), any::<bool>()), 0..4);
    let edges = prop::collection::vec((any::<u32>(), any::<u32>(), any_tie()), 0..40);
    let touches =
        prop::collection::vec((any::<u32>(), any_region(), any::<bool>(), prop::bool::weighted(0.2)), 0..24);
    let keys = prop::collection::vec(any::<u32>(), 40);
    (1..9_u32, graphs, edges, touches, keys).prop_map(|(nodes, graphs, edges, touches, keys)| {
        let mut subject = Subject::flat(nodes, Vec::new());
        for (nodes, outer, two) in graphs {
            let outer = outer % subject.items.len() as u32;
            // A node holds the graphs that it was given at once.
            if subject.items[outer as usize].inside.is_empty() {
                subject.add_graph(Some(outer), Some("then"), nodes);
                if two {
                    subject.add_graph(Some(outer), Some("else"), nodes);
                }
            }
        }
        let key = |item: u32| (keys[item as usize % keys.len()], item);
        for (from, to, tie) in edges {
            let from = from % subject.items.len() as u32;
            let graph = subject.items[from as usize].graph as usize;
            let items = subject.graphs[graph].items.clone();
            let to = items.start + to % items.len() as u32;
            let (from, to) = if key(from) < key(to) { (from, to) } else { (to, from) };
            let edges = &mut subject.graphs[graph].edges;
            if from != to && !edges.iter().any(|(start, end, _)| (*start, *end) == (from, to)) {
                edges.push((from, to, tie));
            }
        }
        for (item, region, writes, synchronizes) in touches {
            let item = item % subject.items.len() as u32;
            // What has graphs in it touches nothing itself.
            if !subject.items[item as usize].inside.clone().eq(0..0) {
                continue;
            }
            subject.touch(item, region, writes);
            if let Some(touch) = subject.touches.last_mut() {
                touch.synchronizes = synchronizes;
            }
        }
        subject
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn races_are_those_that_trying_everything_finds(subject in any_subject()) {
        let found = subject.races(ENOUGH);
        prop_assert!(found.left.is_none());
        let (certain, all) = (subject.all_races(true), subject.all_races(false));
        // What is said is so.
        for pair in &found.pairs {
            let nodes = nodes_of(&subject, pair);
            prop_assert!(all.contains(&nodes), "{:?}", pair);
            prop_assert_eq!(certain.contains(&nodes), !pair.may_wait, "{:?}", pair);
        }
        // An edge for each pair mends all; for each that is certain, all that are.
        let comes = |one: u32, two: u32| one == two || subject.comes_before(one, two, &ANY);
        for (whole, wanted) in [(&all, false), (&certain, true)] {
            for &(one, two) in whole {
                let says_all = |pair: &&Pair| {
                    let (first, second) = (item(&subject, pair.first), item(&subject, pair.second));
                    let ways = [(one, two), (two, one)];
                    ways.into_iter().any(|(one, two)| comes(one, first) && comes(second, two))
                };
                let mut pairs = found.pairs.iter().filter(|pair| !(wanted && pair.may_wait));
                prop_assert!(pairs.any(|pair| says_all(&pair)), "{} {} {:?} {:?}", one, two, found, subject);
            }
        }
        // And no pair says what another one says.
        for pair in &found.pairs {
            let (first, second) = (item(&subject, pair.first), item(&subject, pair.second));
            let says_it = |other: &&Pair| {
                let (one, two) = (item(&subject, other.first), item(&subject, other.second));
                (first, second) != (one, two)
                    && (first == one || second == two)
                    && (pair.may_wait || !other.may_wait)
                    && (first == one || subject.comes_before(first, one, &[Tie::Order]))
                    && (two == second || subject.comes_before(two, second, &[Tie::Order]))
            };
            prop_assert!(!found.pairs.iter().any(|other| says_it(&other)), "{:?} {:?}", pair, subject);
        }
    }
}

#[test]
fn a_hundred_thousand_writes_in_line_are_a_comparison_each() {
    let line = (0..100_000).map(|node| (node, node + 1, Tie::Order)).collect();
    let mut subject = Subject::flat(100_001, line);
    for node in 0..=100_000 {
        subject.touch(node, Region::linear(0, 64), true);
        subject.touch(node, Region::linear(64 + 8 * u64::from(node % 10), 8), node % 3 == 0);
    }
    let found = subject.races(Bounds { steps: 2_000_000, pairs: 1 });
    assert!(found.left.is_none() && found.pairs.is_empty());
}

#[test]
fn a_fan_over_slices_and_its_join_are_few_steps() {
    const WIDE: u32 = 50_000;
    let out = (1..=WIDE).map(|node| (0, node, Tie::Order));
    let into = (1..=WIDE).map(|node| (node, WIDE + 1, Tie::Order));
    let mut subject = Subject::flat(WIDE + 2, out.chain(into).collect());
    let whole = Region::linear(0, 8 * u64::from(WIDE));
    subject.touch(0, whole, true);
    for node in 1..=WIDE {
        subject.touch(node, Region::linear(8 * u64::from(node - 1), 8), true);
    }
    subject.touch(WIDE + 1, whole, false);
    let found = subject.races(Bounds { steps: 1_000_000, pairs: 1 });
    assert!(found.left.is_none() && found.pairs.is_empty());
    // One slice a byte longer is found, and it alone.
    subject.touch(77, Region::linear(8 * 77, 1), false);
    let found = subject.races(Bounds { steps: 1_000_000, pairs: 10 });
    let pairs: Vec<_> = found.pairs.iter().map(|pair| nodes_of(&subject, pair)).collect();
    assert_eq!(pairs, [(77, 78)]);
}

#[test]
fn a_line_beside_a_line_is_a_pair() {
    let line = |first: u32| (first..first + 999).map(|node| (node, node + 1, Tie::Order));
    let mut subject = Subject::flat(2000, line(0).chain(line(1000)).collect());
    for node in 0..2000 {
        subject.touch(node, Region::linear(0, 8), true);
    }
    let found = subject.races(Bounds { steps: 100_000, pairs: 5 });
    let pairs: Vec<_> = found.pairs.iter().map(|pair| nodes_of(&subject, pair)).collect();
    assert!(found.left.is_none() && pairs == [(999, 1000)], "{pairs:?}");
}

#[test]
fn a_line_of_kernels_that_may_wait_is_a_note_each() {
    let line = (0..999).map(|node| (node, node + 1, Tie::IfWaitedFor)).collect();
    let mut subject = Subject::flat(1000, line);
    for node in 0..1000 {
        subject.touch(node, Region::linear(0, 8), true);
    }
    let found = subject.races(Bounds { steps: 100_000, pairs: 999 });
    assert!(
        found.left.is_none() && found.pairs.iter().all(|pair| pair.may_wait && pair.second == pair.first + 1)
    );
}

#[test]
fn what_starts_with_a_kernel_comes_after_all_that_comes_before_it() {
    for tie in [Tie::IfWaitedFor, Tie::Nothing] {
        // 0 ends before 1 starts, with which 2 may start.
        let mut subject = Subject::flat(3, vec![(0, 1, Tie::Order), (1, 2, tie)]);
        [0, 2].into_iter().for_each(|node| subject.touch(node, Region::linear(0, 8), true));
        assert_eq!(subject.races(ENOUGH).pairs, []);
        subject.touch(1, Region::linear(0, 8), false);
        let pairs = subject.races(ENOUGH).pairs;
        assert!(pairs.len() == 1 && nodes_of(&subject, &pairs[0]) == (1, 2), "{pairs:?}");
        // The other way round: with 1 may have ended before 0 did.
        let mut subject = Subject::flat(3, vec![(0, 1, tie), (1, 2, Tie::Order)]);
        [0, 2].into_iter().for_each(|node| subject.touch(node, Region::linear(0, 8), true));
        assert_eq!(subject.races(ENOUGH).pairs.len(), 1);
    }
}

#[test]
fn what_starts_with_one_that_waited_comes_after_all_that_it_waited_for() {
    // If 1 waits for 0, that has ended before 2 starts, with which 3 may start.
    let ties = vec![(0, 1, Tie::IfWaitedFor), (1, 2, Tie::Order), (2, 3, Tie::Nothing)];
    let mut subject = Subject::flat(4, ties);
    subject.touch(0, Region::linear(0, 8), true);
    subject.touch(3, Region::linear(0, 8), false);
    let pairs = subject.races(ENOUGH).pairs;
    assert!(pairs.len() == 1 && pairs[0].may_wait, "{pairs:?}");
    // What starts with 1 itself does not wait for 0.
    let mut subject = Subject::flat(3, vec![(0, 1, Tie::IfWaitedFor), (1, 2, Tie::Nothing)]);
    [0, 2].into_iter().for_each(|node| subject.touch(node, Region::linear(0, 8), true));
    let pairs = subject.races(ENOUGH).pairs;
    assert!(pairs.len() == 1 && !pairs[0].may_wait, "{pairs:?}");
}

#[test]
fn what_was_not_compared_is_said() {
    let mut subject = Subject::flat(200, Vec::new());
    for node in 0..200 {
        subject.touch(node, Region::linear(100 * u64::from(node % 2), 10), true);
    }
    let found = subject.races(Bounds { steps: 1_000_000, pairs: 10 });
    let left = found.left.unwrap();
    assert!(left.by_pairs && found.pairs.len() == 10 && (left.of, left.ranges) == (2, 2));
    let found = subject.races(Bounds { steps: 10, pairs: 1000 });
    assert!(found.left.is_some_and(|left| !left.by_pairs));
    assert_eq!(subject.races(ENOUGH).pairs.len(), 2 * (100 * 99) / 2);
}
