//! Random graphs against all pairs of their nodes, and the cost of known ones.

use std::time::Instant;

use proptest::prelude::*;

use super::*;
use crate::check::model::AddressSpace;
use crate::check::region::Region;
use crate::footprint::{Touch, Touches, WhyOpaque};
use crate::shape::by_data::parts::Part;
use crate::shape::planning::drawn::{DrawnNode, Overlap, Role};

fn touch(start: u64, bytes: u64, writes: bool) -> Touch {
    Touch { space: AddressSpace::Memory, region: Region::linear(start, bytes), writes }
}

fn known(touches: impl IntoIterator<Item = Touch>) -> Footprint {
    Footprint::Known(touches.into_iter().collect())
}

/// A node: empty, opaque, or with accesses.
#[derive(Clone, Debug)]
enum Node {
    Empty,
    Opaque,
    Touches(Vec<(u64, u64, bool)>),
}

fn any_node(opaque: u32) -> impl Strategy<Value = Node> {
    let access = (0..12_u64, 1..6_u64, any::<bool>());
    prop_oneof![
        2 => Just(Node::Empty),
        opaque => Just(Node::Opaque),
        10 => prop::collection::vec(access, 0..3).prop_map(Node::Touches),
    ]
}

#[derive(Clone, Debug)]
struct Case {
    drawn: Drawn,
    footprints: Vec<Footprint>,
}

impl Case {
    fn new(nodes: &[Node], edges: impl IntoIterator<Item = (u32, u32, bool)>) -> Self {
        let role = |node: &Node| match node {
            Node::Empty => Role::Empty,
            Node::Opaque | Node::Touches(_) => {
                Role::Kernel { like: 0, promises_progress: true, overlap: Overlap::Never }
            }
        };
        let footprint = |node: &Node| match node {
            Node::Empty => known([]),
            Node::Opaque => Footprint::Opaque(WhyOpaque::Kernel),
            Node::Touches(accesses) => {
                let touches: Touches =
                    accesses.iter().map(|(start, bytes, writes)| touch(*start, *bytes, *writes)).collect();
                Footprint::Known(touches)
            }
        };
        let edges = edges.into_iter().map(|(from, to, is_full)| DrawnEdge { from, to, is_full });
        let nodes_drawn = nodes.iter().map(|node| DrawnNode { role: role(node) }).collect();
        Self {
            drawn: Drawn { nodes: nodes_drawn, edges: edges.collect() },
            footprints: nodes.iter().map(footprint).collect(),
        }
    }

    fn by_data(&self) -> ByData {
        order_by_data(&self.drawn, &self.footprints, Limits { edges: 1000, ..Limits::DEFAULT }).unwrap()
    }

    /// Whether a node is at an edge that is not full.
    fn is_special(&self, node: u32) -> bool {
        self.drawn.edges.iter().any(|edge| !edge.is_full && (edge.from == node || edge.to == node))
    }

    fn is_empty(&self, node: u32) -> bool {
        self.drawn.nodes[node as usize].role == Role::Empty
    }

    /// Whether two ordered nodes need their order.
    fn is_needed(&self, one: u32, two: u32) -> bool {
        let touches = |node: u32| match self.is_special(node) {
            true => None,
            false => self.footprints[node as usize].touches(),
        };
        match (touches(one), touches(two)) {
            (Some(one), Some(two)) => one.iter().any(|one| two.iter().any(|two| one.conflicts(two))),
            _ => true,
        }
    }
}

fn full(edges: &[DrawnEdge]) -> Vec<(u32, u32)> {
    edges.iter().filter(|edge| edge.is_full).map(|edge| (edge.from, edge.to)).collect()
}

fn closure(nodes: usize, edges: &[(u32, u32)]) -> Vec<Vec<bool>> {
    let mut leads = vec![vec![false; nodes]; nodes];
    edges.iter().for_each(|(from, to)| leads[*from as usize][*to as usize] = true);
    for middle in 0..nodes {
        let behind = leads[middle].clone();
        for row in leads.iter_mut().filter(|row| row[middle]) {
            row.iter_mut().zip(&behind).for_each(|(leads, behind)| *leads |= behind);
        }
    }
    leads
}

fn any_case(opaque: u32, special: u32) -> impl Strategy<Value = Case> {
    let nodes = prop::collection::vec(any_node(opaque), 1..16);
    (nodes, 0..40_usize).prop_flat_map(move |(nodes, edges)| {
        let count = nodes.len() as u32;
        let edge = (0..count, 0..count, 0..16_u32);
        let names = Just((0..count).collect::<Vec<_>>()).prop_shuffle();
        (Just(nodes), prop::collection::vec(edge, edges), names).prop_map(move |(nodes, edges, names)| {
            let is_kernel = |node: u32| !matches!(nodes[node as usize], Node::Empty);
            let mut seen = std::collections::HashSet::new();
            let edges: Vec<_> = edges
                .into_iter()
                .filter(|(one, two, _)| one != two)
                .map(|(one, two, kind)| {
                    let is_forwards = names[one as usize] < names[two as usize];
                    let (from, to) = if is_forwards { (one, two) } else { (two, one) };
                    (from, to, kind >= special || !is_kernel(one) || !is_kernel(two))
                })
                .filter(|edge| seen.insert((edge.0, edge.1)))
                .collect();
            Case::new(&nodes, edges)
        })
    })
}

fn check(case: &Case) -> Result<(), TestCaseError> {
    let nodes = case.drawn.nodes.len();
    let by_data = case.by_data();
    let drawn = closure(nodes, &full(&case.drawn.edges));
    let found = closure(nodes, &full(&by_data.edges));
    let pairs = || (0..nodes as u32).flat_map(|one| (0..nodes as u32).map(move |two| (one, two)));
    let real = || pairs().filter(|(one, two)| !case.is_empty(*one) && !case.is_empty(*two));
    let needed: Vec<(u32, u32)> = real()
        .filter(|(one, two)| drawn[*one as usize][*two as usize] && case.is_needed(*one, *two))
        .collect();
    let wanted = closure(nodes, &needed);
    let has_special = case.drawn.edges.iter().any(|edge| !edge.is_full);
    for (one, two) in real() {
        let [drawn, found, wanted] = [&drawn, &found, &wanted].map(|leads| leads[one as usize][two as usize]);
        prop_assert!(!wanted || found, "{} and {} are apart: {:?}", one, two, by_data.edges);
        prop_assert!(!found || drawn, "{} and {} are ordered anew: {:?}", one, two, by_data.edges);
        // Empty nodes beside nodes at other edges keep more.
        prop_assert!(
            has_special || found == wanted,
            "{} and {} need no order: {:?}",
            one,
            two,
            by_data.edges
        );
    }
    for edge in &case.drawn.edges {
        let stays = !edge.is_full || case.is_special(edge.from) || case.is_special(edge.to);
        prop_assert!(!stays || by_data.edges.contains(edge));
    }
    for edge in &by_data.edges {
        prop_assert!([edge.from, edge.to].iter().all(|node| by_data.parts.of_node(*node) != Part::Passes));
    }
    let dropped = dropped::dropped(&case.drawn, &case.footprints, &by_data);
    for &(from, to) in full(&case.drawn.edges).iter() {
        let is_dropped = dropped.iter().any(|edge| (edge.0, edge.1) == (from, to));
        prop_assert!(is_dropped || found[from as usize][to as usize], "{} to {} is not listed", from, to);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_order_is_that_of_all_needed_pairs(case in prop_oneof![any_case(0, 0), any_case(2, 0), any_case(8, 0)]) {
        check(&case)?;
    }

    #[test]
    fn nodes_at_other_edges_keep_theirs(case in any_case(1, 4)) {
        check(&case)?;
    }
}

fn chain(nodes: impl IntoIterator<Item = Node>) -> Case {
    let nodes: Vec<Node> = nodes.into_iter().collect();
    Case::new(&nodes, (1..nodes.len() as u32).map(|to| (to - 1, to, true)))
}

fn writes(start: u64) -> Node {
    Node::Touches(vec![(start, 1, true)])
}

#[test]
fn nodes_stay_ordered_whatever_was_between_them() {
    let case = chain([writes(0), writes(1), writes(0), Node::Empty, writes(1)]);
    assert_eq!(full(&case.by_data().edges), [(0, 2), (1, 4)]);
    let dropped = dropped::dropped(&case.drawn, &case.footprints, &case.by_data());
    use dropped::WhyDropped::{NothingShared, PassedOn};
    let expected = [(0, 1, NothingShared), (1, 2, NothingShared), (2, 3, PassedOn), (3, 4, PassedOn)];
    assert_eq!(dropped, expected);
}

#[test]
fn an_overwritten_access_matters_beside_the_overwriting_one() {
    // Node 0 clears, and 1 and 2 add up, in any order.
    let case = Case::new(&[writes(0), writes(0), writes(0)], [(0, 1, true), (0, 2, true)]);
    assert_eq!(full(&case.by_data().edges), [(0, 1), (0, 2)]);
}

#[test]
fn empty_nodes_between_opaque_ones_stay() {
    let nodes: Vec<Node> = (0..7).map(|node| if node == 3 { Node::Empty } else { Node::Opaque }).collect();
    let edges = (0..3).map(|from| (from, 3, true)).chain((4..7).map(|to| (3, to, true)));
    let case = Case::new(&nodes, edges);
    assert_eq!(full(&case.by_data().edges), full(&case.drawn.edges));
}

/// Runs a large case and returns the number of its edges.
fn large(case: &Case) -> usize {
    let start = Instant::now();
    let by_data = order_by_data(&case.drawn, &case.footprints, Limits::DEFAULT).unwrap();
    // In debug builds, too.
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
    by_data.edges.len()
}

#[test]
fn large_graphs_are_within_the_limits() {
    const MANY: u32 = 100_000;
    let modulo = |count: u64| (0..u64::from(MANY)).map(move |node| writes(node % count));
    assert_eq!(large(&chain(modulo(1))), 99_999);
    assert_eq!(large(&chain(modulo(100))), 99_900);
    assert_eq!(large(&chain((0..MANY).map(|_| Node::Opaque))), 99_999);
    // Reads and writes in turn of one memory.
    let turns = (0..MANY).map(|node| Node::Touches(vec![(0, 64, node % 10 == 0)]));
    assert!(large(&chain(turns)) < 300_000);
    // Chains side by side, each on a memory of its own, from one node and to another one.
    let nodes: Vec<Node> = (0..u64::from(MANY)).map(|node| writes(node % 4)).collect();
    let ends = [(0, 1), (0, 2), (0, 3), (0, 4)].map(|(from, to)| (from, to, true));
    let lines = (1..MANY - 4).map(|from| (from, from + 4, true));
    assert!(large(&Case::new(&nodes, lines.chain(ends))) < 200_000);
    // Each node behind the two before it in its own chain and the next one.
    let edges = (4..MANY).flat_map(|to| [(to - 4, to, true), (to - 3, to, true)]);
    assert!(large(&Case::new(&nodes, edges)) < 400_000);
}

#[test]
fn beyond_a_limit_there_is_no_result() {
    let case = chain((0..1000).map(|_| writes(0)));
    let left = |limits| order_by_data(&case.drawn, &case.footprints, limits).unwrap_err();
    assert_eq!(left(Limits { steps: 1000, ..Limits::DEFAULT }), Left::TooLarge);
    assert_eq!(left(Limits { edges: 0, ..Limits::DEFAULT }), Left::TooLarge);
    let cycle = Case::new(&[writes(0), writes(0)], [(0, 1, true), (1, 0, true)]);
    let left = order_by_data(&cycle.drawn, &cycle.footprints, Limits::DEFAULT).unwrap_err();
    assert_eq!(left, Left::Cycle);
}
