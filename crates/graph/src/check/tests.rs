//! The race search against an exhaustive one that tries every pair, every byte and every path.

use std::collections::HashSet;

use cuda_launch::Access;
use proptest::prelude::*;

use super::model::{AddressSpace, EdgeOrder, MemoryAccess, Model, ModelNode, Subgraph};
use super::order::NodeOrder;
use super::race_search::{RacingPair, SearchLimits, races};
use super::region::Region;
use crate::node_kind::NodeKind;
use crate::state::ids::{NodeId, SubgraphId};

const ANY: [EdgeOrder; 3] = [EdgeOrder::Always, EdgeOrder::IfWaitedFor, EdgeOrder::Never];
const ENOUGH: SearchLimits = SearchLimits { steps: 1_000_000_000, pairs: 1_000_000 };

impl Model {
    /// A model of one graph.
    fn flat(nodes: u32, edges: Vec<(u32, u32, EdgeOrder)>) -> Self {
        let mut model = Self::default();
        model.add_graph(None, None, nodes);
        model.graphs[0].edges = edges;
        model
    }

    /// Adds a graph, and returns its number.
    fn add_graph(&mut self, outer: Option<u32>, body: Option<&str>, nodes: u32) -> usize {
        let (number, first) = (self.graphs.len() as u32, self.nodes.len() as u32);
        let depth = outer.map_or(0, |node| {
            let inside = &mut self.nodes[node as usize].inside;
            let first = if inside.start == inside.end { number } else { inside.start };
            *inside = first..number + 1;
            let graph = self.nodes[node as usize].graph;
            self.graphs[graph as usize].depth + 1
        });
        let (subgraph, body) = (SubgraphId::ROOT, body.map(str::to_owned));
        self.graphs.push(Subgraph {
            subgraph,
            outer,
            body,
            depth,
            nodes: first..first + nodes,
            edges: Vec::new(),
        });
        self.nodes.extend((0..nodes).map(|_| ModelNode {
            graph: number,
            id: NodeId::NONE,
            name: "".into(),
            kind: NodeKind::Empty,
            inside: 0..0,
            opaque: None,
            fault: None,
        }));
        number as usize
    }

    fn access(&mut self, node: u32, region: Region, writes: bool) {
        let access = if writes { Access::Write } else { Access::Read };
        let (role, is_argument, space, memory, synchronizes) =
            ("it", false, AddressSpace::Memory, None, false);
        self.accesses.push(MemoryAccess {
            node,
            region,
            kind: access,
            role,
            is_argument,
            space,
            memory,
            synchronizes,
        });
    }

    fn races(&self, bounds: SearchLimits) -> super::race_search::FoundRaces {
        races(self, &mut NodeOrder::of(self).unwrap(), bounds)
    }

    /// All pairs of nodes that race, the lower number first, by trying everything; with `certain`,
    /// only those that race even if kernels wait.
    fn all_races(&self, certain: bool) -> HashSet<(u32, u32)> {
        let mut racing = HashSet::new();
        for (number, one) in self.accesses.iter().enumerate() {
            for two in &self.accesses[number + 1..] {
                let conflict = (one.kind.writes() || two.kind.writes())
                    && one.region.overlap(&two.region).is_some()
                    && one.space == two.space
                    && !(one.synchronizes && two.synchronizes);
                if conflict && self.may_be_beside(one.node, two.node, certain) {
                    racing.insert((one.node.min(two.node), one.node.max(two.node)));
                }
            }
        }
        racing
    }

    /// The nodes around a node, from the outside in, and the node.
    fn line(&self, node: u32) -> Vec<u32> {
        let graph = &self.graphs[self.nodes[node as usize].graph as usize];
        let mut line = graph.outer.map_or_else(Vec::new, |outer| self.line(outer));
        line.push(node);
        line
    }

    /// Whether a path of such edges leads from one node, or a node around it, to the other.
    fn comes_before(&self, one: u32, two: u32, with: &[EdgeOrder]) -> bool {
        let (one, two) = (self.line(one), self.line(two));
        let Some(apart) = one.iter().zip(&two).position(|(one, two)| one != two) else { return false };
        let (one, two) = (one[apart], two[apart]);
        self.nodes[one as usize].graph == self.nodes[two as usize].graph && self.has_path(one, two, with)
    }

    fn may_be_beside(&self, one: u32, two: u32, certain: bool) -> bool {
        let (one, two) = (self.line(one), self.line(two));
        let Some(apart) = one.iter().zip(&two).position(|(one, two)| one != two) else { return false };
        let (one, two) = (one[apart], two[apart]);
        self.nodes[one as usize].graph == self.nodes[two as usize].graph
            && [(one, two), (two, one)].into_iter().all(|(one, two)| !self.ends_before(one, two, certain))
    }

    /// Whether one ends before the other accesses memory; with `waited`, if kernels wait wherever
    /// they may.
    fn ends_before(&self, from: u32, to: u32, waited: bool) -> bool {
        let graph = &self.graphs[self.nodes[from as usize].graph as usize];
        let mut next = graph.edges.iter().filter(|(start, ..)| *start == from);
        next.any(|&(_, next, ordering)| match ordering {
            EdgeOrder::Always => next == to || self.has_path(next, to, &ANY),
            EdgeOrder::IfWaitedFor => waited && (next == to || self.ends_before(next, to, waited)),
            EdgeOrder::Never => false,
        })
    }

    fn has_path(&self, from: u32, to: u32, with: &[EdgeOrder]) -> bool {
        let graph = &self.graphs[self.nodes[from as usize].graph as usize];
        let (mut seen, mut waiting) = (HashSet::new(), vec![from]);
        while let Some(node) = waiting.pop() {
            for &(start, end, ordering) in &graph.edges {
                if start == node && with.contains(&ordering) && seen.insert(end) {
                    waiting.push(end);
                }
            }
        }
        seen.contains(&to)
    }
}

fn node(model: &Model, access: u32) -> u32 {
    model.accesses[access as usize].node
}

fn nodes_of(model: &Model, pair: &RacingPair) -> (u32, u32) {
    let (one, two) = (node(model, pair.first), node(model, pair.second));
    (one.min(two), one.max(two))
}

/// A few shapes, many of them equal.
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

fn any_ordering() -> impl Strategy<Value = EdgeOrder> {
    prop_oneof![8 => Just(EdgeOrder::Always), 1 => Just(EdgeOrder::IfWaitedFor), 1 => Just(EdgeOrder::Never)]
}

/// Nested graphs with accesses, and edges in any direction that closes no cycle.
fn any_subject() -> impl Strategy<Value = Model> {
    let graphs = prop::collection::vec((1..7_u32, any::<u32>(), any::<bool>()), 0..4);
    let edges = prop::collection::vec((any::<u32>(), any::<u32>(), any_ordering()), 0..40);
    let accesses =
        prop::collection::vec((any::<u32>(), any_region(), any::<bool>(), prop::bool::weighted(0.2)), 0..24);
    let keys = prop::collection::vec(any::<u32>(), 40);
    (1..9_u32, graphs, edges, accesses, keys).prop_map(|(nodes, graphs, edges, accesses, keys)| {
        let mut model = Model::flat(nodes, Vec::new());
        for (nodes, outer, two) in graphs {
            let outer = outer % model.nodes.len() as u32;
            // A node gets all its graphs at once.
            if model.nodes[outer as usize].inside.is_empty() {
                model.add_graph(Some(outer), Some("then"), nodes);
                if two {
                    model.add_graph(Some(outer), Some("else"), nodes);
                }
            }
        }
        let key = |node: u32| (keys[node as usize % keys.len()], node);
        for (from, to, ordering) in edges {
            let from = from % model.nodes.len() as u32;
            let graph = model.nodes[from as usize].graph as usize;
            let nodes = model.graphs[graph].nodes.clone();
            let to = nodes.start + to % nodes.len() as u32;
            let (from, to) = if key(from) < key(to) { (from, to) } else { (to, from) };
            let edges = &mut model.graphs[graph].edges;
            if from != to && !edges.iter().any(|(start, end, _)| (*start, *end) == (from, to)) {
                edges.push((from, to, ordering));
            }
        }
        for (node, region, writes, synchronizes) in accesses {
            let node = node % model.nodes.len() as u32;
            // Nodes with graphs in them access nothing themselves.
            if !model.nodes[node as usize].inside.clone().eq(0..0) {
                continue;
            }
            model.access(node, region, writes);
            if let Some(access) = model.accesses.last_mut() {
                access.synchronizes = synchronizes;
            }
        }
        model
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn races_are_those_that_trying_everything_finds(model in any_subject()) {
        let found = model.races(ENOUGH);
        prop_assert!(found.left.is_none());
        let (certain, all) = (model.all_races(true), model.all_races(false));
        // Every reported pair races.
        for pair in &found.pairs {
            let nodes = nodes_of(&model, pair);
            prop_assert!(all.contains(&nodes), "{:?}", pair);
            prop_assert_eq!(certain.contains(&nodes), !pair.may_wait, "{:?}", pair);
        }
        // An edge for each reported pair fixes all races; an edge for each certain pair fixes all
        // certain races.
        let comes = |one: u32, two: u32| one == two || model.comes_before(one, two, &ANY);
        for (whole, wanted) in [(&all, false), (&certain, true)] {
            for &(one, two) in whole {
                let says_all = |pair: &&RacingPair| {
                    let (first, second) = (node(&model, pair.first), node(&model, pair.second));
                    let ways = [(one, two), (two, one)];
                    ways.into_iter().any(|(one, two)| comes(one, first) && comes(second, two))
                };
                let mut pairs = found.pairs.iter().filter(|pair| !(wanted && pair.may_wait));
                prop_assert!(pairs.any(|pair| says_all(&pair)), "{} {} {:?} {:?}", one, two, found, model);
            }
        }
        // No reported pair implies another one.
        for pair in &found.pairs {
            let (first, second) = (node(&model, pair.first), node(&model, pair.second));
            let says_it = |other: &&RacingPair| {
                let (one, two) = (node(&model, other.first), node(&model, other.second));
                (first, second) != (one, two)
                    && (first == one || second == two)
                    && (pair.may_wait || !other.may_wait)
                    && (first == one || model.comes_before(first, one, &[EdgeOrder::Always]))
                    && (two == second || model.comes_before(two, second, &[EdgeOrder::Always]))
            };
            prop_assert!(!found.pairs.iter().any(|other| says_it(&other)), "{:?} {:?}", pair, model);
        }
    }
}

#[test]
fn a_hundred_thousand_writes_in_line_are_a_comparison_each() {
    let line = (0..100_000).map(|node| (node, node + 1, EdgeOrder::Always)).collect();
    let mut model = Model::flat(100_001, line);
    for node in 0..=100_000 {
        model.access(node, Region::linear(0, 64), true);
        model.access(node, Region::linear(64 + 8 * u64::from(node % 10), 8), node % 3 == 0);
    }
    let found = model.races(SearchLimits { steps: 2_000_000, pairs: 1 });
    assert!(found.left.is_none() && found.pairs.is_empty());
}

#[test]
fn a_fan_over_slices_and_its_join_are_few_steps() {
    const WIDE: u32 = 50_000;
    let out = (1..=WIDE).map(|node| (0, node, EdgeOrder::Always));
    let into = (1..=WIDE).map(|node| (node, WIDE + 1, EdgeOrder::Always));
    let mut model = Model::flat(WIDE + 2, out.chain(into).collect());
    let whole = Region::linear(0, 8 * u64::from(WIDE));
    model.access(0, whole, true);
    for node in 1..=WIDE {
        model.access(node, Region::linear(8 * u64::from(node - 1), 8), true);
    }
    model.access(WIDE + 1, whole, false);
    let found = model.races(SearchLimits { steps: 1_000_000, pairs: 1 });
    assert!(found.left.is_none() && found.pairs.is_empty());
    // A single slice that is one byte longer is found.
    model.access(77, Region::linear(8 * 77, 1), false);
    let found = model.races(SearchLimits { steps: 1_000_000, pairs: 10 });
    let pairs: Vec<_> = found.pairs.iter().map(|pair| nodes_of(&model, pair)).collect();
    assert_eq!(pairs, [(77, 78)]);
}

#[test]
fn a_line_beside_a_line_is_a_pair() {
    let line = |first: u32| (first..first + 999).map(|node| (node, node + 1, EdgeOrder::Always));
    let mut model = Model::flat(2000, line(0).chain(line(1000)).collect());
    for node in 0..2000 {
        model.access(node, Region::linear(0, 8), true);
    }
    let found = model.races(SearchLimits { steps: 100_000, pairs: 5 });
    let pairs: Vec<_> = found.pairs.iter().map(|pair| nodes_of(&model, pair)).collect();
    assert!(found.left.is_none() && pairs == [(999, 1000)], "{pairs:?}");
}

#[test]
fn a_line_of_kernels_that_may_wait_is_a_note_each() {
    let line = (0..999).map(|node| (node, node + 1, EdgeOrder::IfWaitedFor)).collect();
    let mut model = Model::flat(1000, line);
    for node in 0..1000 {
        model.access(node, Region::linear(0, 8), true);
    }
    let found = model.races(SearchLimits { steps: 100_000, pairs: 999 });
    assert!(
        found.left.is_none() && found.pairs.iter().all(|pair| pair.may_wait && pair.second == pair.first + 1)
    );
}

#[test]
fn what_starts_with_a_kernel_comes_after_all_that_comes_before_it() {
    for ordering in [EdgeOrder::IfWaitedFor, EdgeOrder::Never] {
        // 0 ends before 1 starts, and 2 may start with 1.
        let mut model = Model::flat(3, vec![(0, 1, EdgeOrder::Always), (1, 2, ordering)]);
        [0, 2].into_iter().for_each(|node| model.access(node, Region::linear(0, 8), true));
        assert_eq!(model.races(ENOUGH).pairs, []);
        model.access(1, Region::linear(0, 8), false);
        let pairs = model.races(ENOUGH).pairs;
        assert!(pairs.len() == 1 && nodes_of(&model, &pairs[0]) == (1, 2), "{pairs:?}");
        // The other way round, 1 may end before 0 does.
        let mut model = Model::flat(3, vec![(0, 1, ordering), (1, 2, EdgeOrder::Always)]);
        [0, 2].into_iter().for_each(|node| model.access(node, Region::linear(0, 8), true));
        assert_eq!(model.races(ENOUGH).pairs.len(), 1);
    }
}

#[test]
fn what_starts_with_one_that_waited_comes_after_all_that_it_waited_for() {
    // If 1 waits for 0, then 0 has ended before 2 starts, and 3 may start with 2.
    let ties = vec![(0, 1, EdgeOrder::IfWaitedFor), (1, 2, EdgeOrder::Always), (2, 3, EdgeOrder::Never)];
    let mut model = Model::flat(4, ties);
    model.access(0, Region::linear(0, 8), true);
    model.access(3, Region::linear(0, 8), false);
    let pairs = model.races(ENOUGH).pairs;
    assert!(pairs.len() == 1 && pairs[0].may_wait, "{pairs:?}");
    // A node that starts with 1 does not wait for 0.
    let mut model = Model::flat(3, vec![(0, 1, EdgeOrder::IfWaitedFor), (1, 2, EdgeOrder::Never)]);
    [0, 2].into_iter().for_each(|node| model.access(node, Region::linear(0, 8), true));
    let pairs = model.races(ENOUGH).pairs;
    assert!(pairs.len() == 1 && !pairs[0].may_wait, "{pairs:?}");
}

#[test]
fn what_was_not_compared_is_said() {
    let mut model = Model::flat(200, Vec::new());
    for node in 0..200 {
        model.access(node, Region::linear(100 * u64::from(node % 2), 10), true);
    }
    let found = model.races(SearchLimits { steps: 1_000_000, pairs: 10 });
    let left = found.left.unwrap();
    assert!(left.by_pairs && found.pairs.len() == 10 && (left.of, left.ranges) == (2, 2));
    let found = model.races(SearchLimits { steps: 10, pairs: 1000 });
    assert!(found.left.is_some_and(|left| !left.by_pairs));
    assert_eq!(model.races(ENOUGH).pairs.len(), 2 * (100 * 99) / 2);
}
