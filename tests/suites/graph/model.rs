//! Random edits of a graph against a model and the driver's view.

use std::collections::BTreeSet;

use cuda_graph::{Error, Node, NodeKind};
use cuda_handles::{Buffer, Kernel, Stream};
use cuda_launch::{params, per};
use cuda_tests::{kernel, no_leaks, raw, setup};
use proptest::prelude::*;

use crate::drawn::Drawn;

#[derive(Clone, Debug)]
enum Edit {
    /// A node of some kind behind these, by their number.
    Add(u8, Vec<usize>),
    AddEdge(usize, usize),
    RemoveEdge(usize, usize),
    Remove(usize),
}

fn edit() -> impl Strategy<Value = Edit> {
    let node = 0_usize..24;
    prop_oneof![
        5 => (0_u8..3, prop::collection::vec(node.clone(), 0..4)).prop_map(|(kind, after)| Edit::Add(kind, after)),
        4 => (node.clone(), node.clone()).prop_map(|(from, to)| Edit::AddEdge(from, to)),
        2 => (node.clone(), node.clone()).prop_map(|(from, to)| Edit::RemoveEdge(from, to)),
        1 => node.prop_map(Edit::Remove),
    ]
}

/// What the graph should be: nodes by their number, with a mark for those removed.
#[derive(Default)]
struct Model {
    nodes: Vec<Node>,
    removed: BTreeSet<usize>,
    edges: BTreeSet<(usize, usize)>,
}

impl Model {
    fn reaches(&self, from: usize, to: usize) -> bool {
        from == to || self.edges.iter().any(|&(a, b)| a == from && self.reaches(b, to))
    }

    fn alive(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|node| !self.removed.contains(node)).collect()
    }
}

struct Things {
    stream: Stream,
    stamp: Kernel,
    counter: Buffer<u32>,
    stamps: Buffer<u32>,
    fodder: Buffer<u32>,
}

fn add(graph: &Drawn, model: &Model, things: &Things, kind: u8, after: &[usize]) -> Result<Node, Error> {
    let frontier = graph.after_all(after.iter().map(|node| &model.nodes[*node]))?;
    let number = model.nodes.len();
    let slot = things.stamps.slice(number..=number)?;
    match kind {
        0 => frontier.empty().map(Node::from),
        1 => frontier.fill(things.fodder.slice(number..=number)?, number as u32).map(Node::from),
        // SAFETY: the arguments are the kernel's; the counter is used by atomic operations alone, and each node has its slot.
        _ => unsafe { frontier.launch_untyped(&things.stamp, per(1, 1), params![&things.counter, slot]) }
            .map(Node::from),
    }
}

/// Makes one edit in both; the outcome must be the one that the model foresees.
fn apply(graph: &Drawn, model: &mut Model, things: &Things, edit: &Edit) {
    let count = model.nodes.len();
    match edit {
        Edit::Add(kind, after) => {
            let after: Vec<usize> = after.iter().copied().filter(|node| *node < count).collect();
            match add(graph, model, things, *kind, &after) {
                Ok(node) => {
                    assert!(after.iter().all(|node| !model.removed.contains(node)));
                    model.nodes.push(node);
                    model.edges.extend(after.iter().map(|from| (*from, count)));
                }
                Err(Error::Removed { .. }) => assert!(after.iter().any(|node| model.removed.contains(node))),
                Err(error) => panic!("{error}"),
            }
        }
        Edit::AddEdge(from, to) if *from < count && *to < count => {
            let (from, to) = (*from, *to);
            let gone = model.removed.contains(&from) || model.removed.contains(&to);
            match graph.add_edge(&model.nodes[from], &model.nodes[to]) {
                Ok(()) => {
                    assert!(!gone && !model.reaches(to, from) && model.edges.insert((from, to)));
                }
                Err(Error::SelfEdge { .. }) => assert_eq!(from, to),
                Err(Error::Removed { .. }) => assert!(gone),
                Err(Error::DuplicateEdge { .. }) => assert!(model.edges.contains(&(from, to))),
                Err(Error::Cycle { path }) => assert!(model.reaches(to, from) && path.len() >= 2),
                Err(error) => panic!("{error}"),
            }
        }
        Edit::RemoveEdge(from, to) if *from < count && *to < count => {
            match graph.remove_edge(&model.nodes[*from], &model.nodes[*to]) {
                Ok(()) => assert!(model.edges.remove(&(*from, *to))),
                Err(Error::NoEdge { .. }) => assert!(!model.edges.contains(&(*from, *to))),
                Err(Error::Removed { .. }) => {
                    assert!(model.removed.contains(from) || model.removed.contains(to))
                }
                Err(error) => panic!("{error}"),
            }
        }
        Edit::Remove(node) if *node < count => match model.nodes[*node].remove() {
            Ok(()) => {
                assert!(model.removed.insert(*node));
                model.edges.retain(|(from, to)| from != node && to != node);
            }
            Err(Error::Removed { .. }) => assert!(model.removed.contains(node)),
            Err(error) => panic!("{error}"),
        },
        _ => {}
    }
}

/// The graph, the driver and the model agree.
fn agree(graph: &Drawn, model: &Model) {
    let alive = model.alive();
    let nodes: Vec<Node> = alive.iter().map(|node| model.nodes[*node].clone()).collect();
    assert_eq!(graph.nodes().unwrap(), nodes, "nodes, in the order of creation");
    let position = |node: usize| alive.binary_search(&node).unwrap();
    let edges: Vec<(usize, usize)> =
        model.edges.iter().map(|(from, to)| (position(*from), position(*to))).collect();
    let view = graph.view();
    assert_eq!((view.nodes.len(), &view.edges), (alive.len(), &edges), "the driver's view");
    let mut told: Vec<(usize, usize)> = graph
        .edges()
        .unwrap()
        .iter()
        .map(|edge| {
            let place = |node: &Node| nodes.iter().position(|other| other == node).unwrap();
            (place(&edge.from), place(&edge.to))
        })
        .collect();
    told.sort_unstable();
    assert_eq!(told, edges);
    for (node, raw_node) in nodes.iter().zip(raw::nodes(graph.raw)) {
        let predecessors = node.predecessors().unwrap();
        let place = nodes.iter().position(|other| other == node).unwrap();
        assert_eq!(predecessors.len(), edges.iter().filter(|(_, to)| *to == place).count());
        assert_eq!(node.successors().unwrap().len(), edges.iter().filter(|(from, _)| *from == place).count());
        let expected = match node.kind() {
            NodeKind::Empty => cuda_sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY,
            NodeKind::Memset => cuda_sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET,
            _ => cuda_sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL,
        };
        assert_eq!(raw::kind(raw_node), expected);
    }
}

/// Every kernel node ran once, after all kernel nodes it waits for.
fn runs(graph: &Drawn, model: &Model, things: &Things) {
    things.stream.fill(&things.stamps, 0).unwrap();
    let mut exec = graph.instantiate().unwrap();
    exec.launch(&things.stream).unwrap();
    let stamps = things.stamps.read_blocking(&things.stream).unwrap();
    let is_kernel = |node: &usize| model.nodes[*node].kind() == NodeKind::Kernel;
    for node in (0..model.nodes.len()).filter(is_kernel) {
        assert_eq!(
            stamps[node] != 0,
            !model.removed.contains(&node),
            "node {node} ran exactly if it is in the graph"
        );
    }
    for from in model.alive().into_iter().filter(is_kernel) {
        for to in model.alive().into_iter().filter(is_kernel) {
            if from != to && model.reaches(from, to) {
                assert!(stamps[from] < stamps[to], "{from} before {to}: {stamps:?}");
            }
        }
    }
}

#[test]
fn after_any_edits_graph_driver_and_model_agree_and_the_graph_runs() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let things = Things {
            stamp: kernel(&context, "stamp"),
            counter: stream.zeros(1).unwrap(),
            stamps: stream.zeros(64).unwrap(),
            fodder: stream.zeros(64).unwrap(),
            stream,
        };
        proptest!(ProptestConfig::with_cases(32), |(edits in prop::collection::vec(edit(), 1..50))| {
            let graph = Drawn::new(&context);
            let mut model = Model::default();
            for edit in &edits {
                apply(&graph, &mut model, &things, edit);
            }
            agree(&graph, &model);
            runs(&graph, &model, &things);
            agree(&graph, &model);
        });
    });
}
