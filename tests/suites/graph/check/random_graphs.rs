//! Random graphs, against a check that tries every pair.

use std::collections::HashSet;

use cuda_graph::{Finding, Graph, Node};
use cuda_tests::setup;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::{Lab, N};

/// A node: its kind, the start of its memory, and the number of elements.
#[derive(Clone, Copy, Debug)]
enum Work {
    Write(usize, usize),
    Change(usize, usize),
    /// Reads the one, and changes the other.
    Add(usize, usize),
    Copy(usize, usize, usize),
    /// Rows of so many elements, 8 apart.
    Rows(usize, usize, usize),
}

/// Nodes by their numbers, two and two.
type Pairs = HashSet<(usize, usize)>;

/// A node, with those before it that it waits for, as a mask.
type Step = (Work, u32);

fn any_work() -> impl Strategy<Value = Work> {
    let range = || (0..12_usize, 1..8_usize);
    prop_oneof![
        range().prop_map(|(start, len)| Work::Write(start, len)),
        range().prop_map(|(start, len)| Work::Change(start, len)),
        range().prop_map(|(from, to)| Work::Add(from, from + 8 + to)),
        (0..8_usize, 0..8_usize, 1..5_usize).prop_map(|(from, to, len)| Work::Copy(
            from,
            from + len + to,
            len
        )),
        (0..8_usize, 1..4_usize, 1..4_usize)
            .prop_map(|(start, width, height)| Work::Rows(start, width, height)),
    ]
}

/// The elements that are read, and those that are written.
fn elements(work: Work) -> (HashSet<usize>, HashSet<usize>) {
    let range = |start: usize, len: usize| (start..start + len).collect::<HashSet<usize>>();
    match work {
        Work::Write(start, len) => (HashSet::new(), range(start, len)),
        Work::Change(start, len) => (range(start, len), range(start, len)),
        Work::Add(from, to) => (range(from, 4).union(&range(to, 4)).copied().collect(), range(to, 4)),
        Work::Copy(from, to, len) => (range(from, len), range(to, len)),
        Work::Rows(start, width, height) => {
            let rows = (0..height).flat_map(|row| start + 8 * row..start + 8 * row + width);
            (HashSet::new(), rows.collect())
        }
    }
}

fn draw(lab: &Lab, graph: &Graph, steps: &[Step]) -> Vec<Node> {
    let mut nodes: Vec<Node> = Vec::new();
    let of = |start: usize, len: usize| lab.a.slice(start..start + len).unwrap();
    for (number, (work, after)) in steps.iter().enumerate() {
        let before = nodes.iter().enumerate().filter(|(at, _)| after & (1 << at) != 0).map(|(_, node)| node);
        let at = graph.after_all(before).unwrap();
        let name = format!("n{number}");
        let node: Node = match *work {
            Work::Write(start, len) => lab.write(&at, of(start, len), &name).into(),
            Work::Change(start, len) => lab.change(&at, of(start, len), &name).into(),
            Work::Add(from, to) => lab.add(&at, of(from, 4), of(to, 4), &name).into(),
            Work::Copy(from, to, len) => at.copy(of(from, len), of(to, len)).unwrap().named(name).into(),
            Work::Rows(start, width, height) => {
                at.fill_2d(lab.a.slice(start..).unwrap(), 8, [width, height], 1.0).unwrap().named(name).into()
            }
        };
        nodes.push(node);
    }
    nodes
}

/// All racing pairs, by trying every pair, every element and every path.
fn oracle(steps: &[Step]) -> Pairs {
    let edges = |(to, (_, after)): (usize, &Step)| {
        let after = *after;
        (0..to).filter(move |from| after & (1 << from) != 0).map(move |from| (from, to))
    };
    racing(steps, &steps.iter().enumerate().flat_map(edges).collect::<Vec<_>>())
}

fn racing(steps: &[Step], edges: &[(usize, usize)]) -> Pairs {
    let mut reached = vec![vec![false; steps.len()]; steps.len()];
    edges.iter().for_each(|(from, to)| reached[*from][*to] = true);
    for via in 0..steps.len() {
        for from in 0..steps.len() {
            for to in 0..steps.len() {
                reached[from][to] |= reached[from][via] && reached[via][to];
            }
        }
    }
    let mut racing = HashSet::new();
    for second in 0..steps.len() {
        for first in 0..second {
            let ((read, written), (reads, writes)) = (elements(steps[first].0), elements(steps[second].0));
            let conflict =
                !written.is_disjoint(&reads) || !written.is_disjoint(&writes) || !read.is_disjoint(&writes);
            if conflict && !reached[first][second] && !reached[second][first] {
                racing.insert((first, second));
            }
        }
    }
    racing
}

fn at(nodes: &[Node], node: &Node) -> usize {
    nodes.iter().position(|known| known == node).unwrap()
}

/// The racing pairs that a check tells, and the edges that it proposes.
fn told(graph: &Graph, nodes: &[Node]) -> (Pairs, Vec<(Node, Node)>) {
    let report = graph.check().unwrap();
    assert!(report.stopped().is_none() && report.opaque().is_empty());
    let (mut pairs, mut edges) = (HashSet::new(), Vec::new());
    for finding in report.findings() {
        let Finding::Race(race) = finding else { panic!("{finding}") };
        let (one, two) = (at(nodes, race.first.node.node()), at(nodes, race.second.node.node()));
        pairs.insert((one.min(two), one.max(two)));
        edges.push((race.edge.0.node().clone(), race.edge.1.node().clone()));
    }
    (pairs, edges)
}

#[test]
fn a_check_tells_what_trying_every_pair_tells() {
    let context = setup();
    let lab = Lab::new(&context);
    assert_eq!(N, 64);
    let steps = prop::collection::vec((any_work(), any::<u32>(), any::<u32>()), 1..12)
        .prop_map(|steps| steps.into_iter().map(|(work, one, two)| (work, one & two)).collect::<Vec<Step>>())
        .boxed();
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(150) });
    let outcome = runner.run(&steps, |steps| {
        let graph = lab.graph();
        let nodes = draw(&lab, &graph, &steps);
        let wanted = oracle(&steps);
        let (found, edges) = told(&graph, &nodes);
        // Every finding is true.
        prop_assert!(found.is_subset(&wanted), "{:?} {:?}", found, wanted);
        prop_assert_eq!(found.is_empty(), wanted.is_empty());
        // The edges that are proposed mend all, together.
        for (from, to) in &edges {
            graph.add_edge(from, to).unwrap();
        }
        prop_assert!(told(&graph, &nodes).0.is_empty());
        let mut mended: Vec<(usize, usize)> =
            edges.iter().map(|(from, to)| (at(&nodes, from), at(&nodes, to))).collect();
        for (to, (_, after)) in steps.iter().enumerate() {
            mended.extend((0..to).filter(|from| after & (1 << from) != 0).map(|from| (from, to)));
        }
        prop_assert!(racing(&steps, &mended).is_empty());
        Ok(())
    });
    outcome.unwrap();
}
