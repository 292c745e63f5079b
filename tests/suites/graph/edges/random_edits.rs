//! Random edits, compared with a model and with the driver's view.

use std::collections::{BTreeMap, BTreeSet};

use cuda_graph::{EdgeError, EdgeKind, Error, Node, NodeError, NodeKind};
use cuda_handles::{Buffer, Kernel, Stream};
use cuda_launch::{params, per};
use cuda_sys::Version;
use cuda_tests::{is_soft, kernel, no_leaks, raw, setup};
use proptest::prelude::*;

use crate::common::driver_view::Drawn;
use crate::edges::changes::KINDS;

/// A node, by its number, and a kind of edge.
type End = (usize, usize);

#[derive(Clone, Debug)]
enum Edit {
    /// A node of some kind behind some nodes and before others.
    Add(u8, Vec<End>, Vec<End>),
    /// A node in the place of an edge, whichever it is.
    Insert(u8, usize),
    AddEdges(Vec<(usize, usize, usize)>),
    RemoveEdges(Vec<(usize, usize)>),
    /// An edge, whichever it is, gets a kind.
    SetKind(usize, usize),
    SetPredecessors(usize, Vec<usize>),
    SetSuccessors(usize, Vec<usize>),
    SetInEdges(usize, Vec<End>),
    Remove(Vec<usize>),
    RemoveBridging(usize),
}

const NODES: usize = 24;
/// Kinds of edges, by how often they are taken.
const ENDS: [usize; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 2, 3];

fn edit() -> impl Strategy<Value = Edit> {
    let node = 0..NODES;
    let kind = (0..ENDS.len()).prop_map(|place| ENDS[place]);
    let end = (node.clone(), kind.clone());
    let nodes = prop::collection::vec(node.clone(), 0..4);
    let ends = prop::collection::vec(end.clone(), 0..4);
    let edges = prop::collection::vec((node.clone(), node.clone(), kind.clone()), 1..5);
    let pairs = prop::collection::vec((node.clone(), node.clone()), 1..4);
    let few = prop::collection::vec(end, 0..2);
    prop_oneof![
        8 => (0_u8..4, ends.clone(), few).prop_map(|(what, after, before)| Edit::Add(what, after, before)),
        2 => (0_u8..4, any::<usize>()).prop_map(|(what, edge)| Edit::Insert(what, edge)),
        6 => edges.prop_map(Edit::AddEdges),
        2 => pairs.prop_map(Edit::RemoveEdges),
        2 => (any::<usize>(), kind).prop_map(|(edge, kind)| Edit::SetKind(edge, kind)),
        2 => (node.clone(), nodes.clone()).prop_map(|(node, nodes)| Edit::SetPredecessors(node, nodes)),
        2 => (node.clone(), nodes).prop_map(|(node, nodes)| Edit::SetSuccessors(node, nodes)),
        2 => (node.clone(), ends).prop_map(|(node, ends)| Edit::SetInEdges(node, ends)),
        1 => prop::collection::vec(node.clone(), 1..3).prop_map(Edit::Remove),
        1 => node.prop_map(Edit::RemoveBridging),
    ]
}

/// A fault of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fault {
    Removed,
    SelfEdge,
    Twice,
    Duplicate,
    Missing,
    Kind,
    Cycle,
}

fn fault(error: &Error) -> Fault {
    match error {
        Error::Node(NodeError::Removed { .. }) => Fault::Removed,
        Error::Edge(EdgeError::SelfEdge { .. }) => Fault::SelfEdge,
        Error::Edge(EdgeError::EdgeTwice { .. }) => Fault::Twice,
        Error::Edge(EdgeError::DuplicateEdge { .. }) => Fault::Duplicate,
        Error::Edge(EdgeError::NoEdge { .. }) => Fault::Missing,
        Error::Edge(EdgeError::EdgeKind { .. }) => Fault::Kind,
        Error::Edge(EdgeError::Cycle { path }) => {
            assert!(path.len() >= 2, "{path:?}");
            Fault::Cycle
        }
        other => panic!("{other}"),
    }
}

type Ends = (usize, usize);
type NewEdge = (usize, usize, EdgeKind);
type Edges = BTreeMap<Ends, EdgeKind>;

/// The model of the graph: nodes by number, with a mark for removed ones.
#[derive(Default)]
struct Model {
    nodes: Vec<Node>,
    removed: BTreeSet<usize>,
    edges: Edges,
}

impl Model {
    fn is_kernel(&self, node: usize) -> bool {
        self.nodes[node].kind() == NodeKind::Kernel
    }

    fn alive(&self) -> Vec<usize> {
        (0..self.nodes.len()).filter(|node| !self.removed.contains(node)).collect()
    }

    fn edge(&self, any: usize) -> Option<(usize, usize)> {
        let place = any.checked_rem(self.edges.len())?;
        self.edges.keys().nth(place).copied()
    }

    /// The fault of these nodes, if any.
    fn gone(&self, nodes: impl IntoIterator<Item = usize>) -> BTreeSet<Fault> {
        let gone = nodes.into_iter().any(|node| self.removed.contains(&node));
        gone.then_some(Fault::Removed).into_iter().collect()
    }

    /// The fault of removing edges and adding others, if any.
    fn faults(&self, remove: &[(usize, usize)], add: &[(usize, usize, EdgeKind)]) -> BTreeSet<Fault> {
        let ends = add.iter().map(|(from, to, _)| (*from, *to));
        let mut faults = self.gone(ends.chain(remove.iter().copied()).flat_map(|(from, to)| [from, to]));
        let mut edges = self.edges.clone();
        let mut old = BTreeSet::new();
        for ends in remove {
            // One that is not there may be given twice, too.
            if !old.insert(ends) {
                faults.insert(Fault::Twice);
            } else if edges.remove(ends).is_none() {
                faults.insert(Fault::Missing);
            }
        }
        let mut new = BTreeSet::new();
        for &(from, to, kind) in add {
            if from == to {
                faults.insert(Fault::SelfEdge);
            }
            if !new.insert((from, to)) {
                faults.insert(Fault::Twice);
            } else if edges.insert((from, to), kind).is_some() {
                faults.insert(Fault::Duplicate);
            }
            if kind != EdgeKind::Full && !(self.is_kernel(from) && self.is_kernel(to)) {
                faults.insert(Fault::Kind);
            }
        }
        if is_cyclic(&edges) {
            faults.insert(Fault::Cycle);
        }
        faults
    }

    fn apply(&mut self, remove: &[(usize, usize)], add: &[(usize, usize, EdgeKind)]) {
        remove.iter().for_each(|ends| {
            self.edges.remove(ends);
        });
        self.edges.extend(add.iter().map(|(from, to, kind)| ((*from, *to), *kind)));
    }

    fn remove(&mut self, node: usize) {
        assert!(self.removed.insert(node));
        self.edges.retain(|(from, to), _| *from != node && *to != node);
    }
}

fn reaches<'e>(edges: impl Iterator<Item = &'e (usize, usize)> + Clone, from: usize, to: usize) -> bool {
    let (mut seen, mut waiting) = (BTreeSet::from([from]), vec![from]);
    while let Some(node) = waiting.pop() {
        waiting.extend(edges.clone().filter(|edge| edge.0 == node && seen.insert(edge.1)).map(|edge| edge.1));
    }
    seen.contains(&to)
}

fn is_cyclic(edges: &Edges) -> bool {
    edges.keys().any(|&(from, to)| from == to || reaches(edges.keys(), to, from))
}

struct Things {
    stream: Stream,
    stamp: Kernel,
    counter: Buffer<u32>,
    stamps: Buffer<u32>,
    fodder: Buffer<u32>,
    /// Whether the driver has other edges than full ones.
    has_kinds: bool,
}

impl Things {
    fn kind(&self, kind: usize) -> EdgeKind {
        if self.has_kinds { KINDS[kind].0 } else { EdgeKind::Full }
    }

    fn add(&self, number: usize, what: u8, frontier: &cuda_graph::Frontier<'_>) -> Result<Node, Error> {
        let slot = self.stamps.slice(number..=number)?;
        match what {
            0 => frontier.empty().map(Node::from),
            1 => frontier.fill(self.fodder.slice(number..=number)?, number as u32).map(Node::from),
            // SAFETY: the arguments are the kernel's; the counter is used by atomic operations
            // alone, and each node has its slot.
            _ => unsafe { frontier.launch_untyped(&self.stamp, per(1, 1), params![&self.counter, slot]) }
                .map(Node::from),
        }
    }
}

/// The outcome must be one that the model foresees.
#[track_caller]
fn outcome<T>(result: Result<T, Error>, faults: &BTreeSet<Fault>) -> Option<T> {
    match result {
        Ok(done) => {
            assert!(faults.is_empty(), "done in spite of {faults:?}");
            Some(done)
        }
        Err(error) => {
            assert!(faults.contains(&fault(&error)), "{error}: {faults:?}");
            None
        }
    }
}

/// The edges that a replacement of a node's neighbours takes away and adds; without a kind, an edge
/// keeps its own.
fn replacement(
    model: &Model,
    is_old: impl Fn(&(usize, usize)) -> bool,
    new: &[(usize, usize, Option<EdgeKind>)],
) -> (Vec<Ends>, Vec<NewEdge>) {
    let stays = |ends: &(usize, usize), kind: &EdgeKind| {
        new.iter().any(|(from, to, new)| (*from, *to) == *ends && new.is_none_or(|new| new == *kind))
    };
    let old = model.edges.iter().filter(|(ends, _)| is_old(ends));
    let remove: Vec<_> = old.filter(|(ends, kind)| !stays(ends, kind)).map(|(ends, _)| *ends).collect();
    let mut add: Vec<(usize, usize, EdgeKind)> = Vec::new();
    for &(from, to, kind) in new {
        let there = model.edges.contains_key(&(from, to)) && !remove.contains(&(from, to));
        let edge = (from, to, kind.unwrap_or_default());
        if !there && !add.contains(&edge) {
            add.push(edge);
        }
    }
    (remove, add)
}

/// Makes one edit in both.
fn apply(graph: &Drawn, model: &mut Model, things: &Things, edit: &Edit) {
    let count = model.nodes.len();
    let in_reach =
        |nodes: &[usize]| -> Vec<usize> { nodes.iter().copied().filter(|node| *node < count).collect() };
    let ends_in_reach = |ends: &[End]| -> Vec<(usize, EdgeKind)> {
        let ends = ends.iter().filter(|(node, _)| *node < count);
        ends.map(|(node, kind)| (*node, things.kind(*kind))).collect()
    };
    match edit {
        Edit::Add(what, after, before) => {
            add(graph, model, things, *what, &ends_in_reach(after), &ends_in_reach(before));
        }
        Edit::Insert(what, edge) => {
            let Some((from, to)) = model.edge(*edge) else { return };
            let frontier = graph.between(&model.nodes[from], &model.nodes[to]).unwrap();
            let node = things.add(count, *what, &frontier).unwrap();
            model.nodes.push(node);
            model.apply(&[(from, to)], &[(from, count, EdgeKind::Full), (count, to, EdgeKind::Full)]);
        }
        Edit::AddEdges(edges) => {
            let edges: Vec<(usize, usize, EdgeKind)> = edges
                .iter()
                .filter(|(from, to, _)| *from < count && *to < count)
                .map(|(from, to, kind)| (*from, *to, things.kind(*kind)))
                .collect();
            let nodes: Vec<(&Node, &Node, EdgeKind)> = edges
                .iter()
                .map(|(from, to, kind)| (&model.nodes[*from], &model.nodes[*to], *kind))
                .collect();
            if outcome(graph.add_edges(&nodes), &model.faults(&[], &edges)).is_some() {
                model.apply(&[], &edges);
            }
        }
        Edit::RemoveEdges(pairs) => {
            let mut pairs: Vec<(usize, usize)> =
                pairs.iter().copied().filter(|(from, to)| *from < count && *to < count).collect();
            // Random pairs seldom are edges.
            pairs.extend(pairs.first().and_then(|(from, _)| model.edge(*from)));
            let nodes: Vec<(&Node, &Node)> =
                pairs.iter().map(|(from, to)| (&model.nodes[*from], &model.nodes[*to])).collect();
            if outcome(graph.remove_edges(&nodes), &model.faults(&pairs, &[])).is_some() {
                model.apply(&pairs, &[]);
            }
        }
        Edit::SetKind(edge, kind) => {
            let Some((from, to)) = model.edge(*edge) else { return };
            let kind = things.kind(*kind);
            let result = graph.set_edge_kind(&model.nodes[from], &model.nodes[to], kind);
            let change = [(from, to, kind)];
            if outcome(result, &model.faults(&[(from, to)], &change)).is_some() {
                model.apply(&[(from, to)], &change);
            }
        }
        Edit::SetPredecessors(node, nodes) if *node < count => {
            let others = in_reach(nodes);
            let new: Vec<_> = others.iter().map(|other| (*other, *node, Some(EdgeKind::Full))).collect();
            let (remove, add) = replacement(model, |ends| ends.1 == *node, &new);
            let nodes: Vec<(&Node, EdgeKind)> =
                others.iter().map(|other| (&model.nodes[*other], EdgeKind::Full)).collect();
            set(model, model.nodes[*node].set_in_edges(&nodes), *node, &others, &remove, &add);
        }
        Edit::SetSuccessors(node, nodes) if *node < count => {
            let others = in_reach(nodes);
            let new: Vec<_> = others.iter().map(|other| (*node, *other, Some(EdgeKind::Full))).collect();
            let (remove, add) = replacement(model, |ends| ends.0 == *node, &new);
            let nodes: Vec<(&Node, EdgeKind)> =
                others.iter().map(|other| (&model.nodes[*other], EdgeKind::Full)).collect();
            set(model, model.nodes[*node].set_out_edges(&nodes), *node, &others, &remove, &add);
        }
        Edit::SetInEdges(node, ends) if *node < count => {
            let ends = ends_in_reach(ends);
            let new: Vec<_> = ends.iter().map(|(other, kind)| (*other, *node, Some(*kind))).collect();
            let (remove, add) = replacement(model, |ends| ends.1 == *node, &new);
            let others: Vec<usize> = ends.iter().map(|(other, _)| *other).collect();
            let nodes: Vec<(&Node, EdgeKind)> =
                ends.iter().map(|(other, kind)| (&model.nodes[*other], *kind)).collect();
            let result = model.nodes[*node].set_in_edges(&nodes);
            // Given with two kinds, one of which may be there.
            let twice =
                ends.iter().any(|(node, kind)| ends.iter().any(|other| other.0 == *node && other.1 != *kind));
            match result {
                Err(Error::Edge(EdgeError::EdgeTwice { .. })) => assert!(twice),
                result => set(model, result, *node, &others, &remove, &add),
            }
        }
        Edit::Remove(nodes) => {
            let nodes = in_reach(nodes);
            let handles: Vec<&Node> = nodes.iter().map(|node| &model.nodes[*node]).collect();
            let result = match handles.as_slice() {
                [node] => node.remove(),
                nodes => graph.remove_nodes(nodes),
            };
            if outcome(result, &model.gone(nodes.iter().copied())).is_some() {
                BTreeSet::from_iter(nodes).into_iter().for_each(|node| model.remove(node));
            }
        }
        Edit::RemoveBridging(node) if *node < count => bridge(model, *node),
        _ => {}
    }
}

fn bridge(model: &mut Model, node: usize) {
    if outcome(model.nodes[node].remove_bridging(), &model.gone([node])).is_none() {
        return;
    }
    let ends: Vec<Ends> = model.edges.keys().copied().collect();
    for (before, _) in ends.iter().filter(|(_, to)| *to == node) {
        for (_, after) in ends.iter().filter(|(from, _)| *from == node) {
            model.edges.entry((*before, *after)).or_insert(EdgeKind::Full);
        }
    }
    model.remove(node);
}

fn set(
    model: &mut Model,
    result: Result<(), Error>,
    node: usize,
    others: &[usize],
    remove: &[(usize, usize)],
    add: &[(usize, usize, EdgeKind)],
) {
    let mut faults = model.faults(remove, add);
    faults.extend(model.gone(others.iter().copied().chain([node])));
    if others.contains(&node) {
        faults.insert(Fault::SelfEdge);
    }
    if outcome(result, &faults).is_some() {
        model.apply(remove, add);
    }
}

fn add(
    graph: &Drawn,
    model: &mut Model,
    things: &Things,
    what: u8,
    after: &[(usize, EdgeKind)],
    before: &[(usize, EdgeKind)],
) {
    let number = model.nodes.len();
    let handles = |ends: &[(usize, EdgeKind)]| -> Vec<(Node, EdgeKind)> {
        ends.iter().map(|(node, kind)| (model.nodes[*node].clone(), *kind)).collect()
    };
    let (waits, comes) = (handles(after), handles(before));
    let by_ref = |(node, kind): &(Node, EdgeKind)| (node.clone(), *kind);
    let frontier = || {
        let waits: Vec<_> = waits.iter().map(by_ref).collect();
        let comes: Vec<_> = comes.iter().map(by_ref).collect();
        let frontier = graph.after_all(waits.iter().map(|(node, kind)| (node, *kind)))?;
        things.add(number, what, &frontier.before_all(comes.iter().map(|(node, kind)| (node, *kind)))?)
    };
    let mut faults = model.gone(after.iter().chain(before).map(|(node, _)| *node));
    let mut edges = model.edges.clone();
    let entering = after.iter().map(|(node, kind)| ((*node, number), *kind));
    for (ends, kind) in entering.chain(before.iter().map(|(node, kind)| ((number, *node), *kind))) {
        if edges.insert(ends, kind).is_some_and(|other| other != kind) {
            faults.insert(Fault::Duplicate);
        }
        let other = if ends.0 == number { ends.1 } else { ends.0 };
        if kind != EdgeKind::Full && !(what >= 2 && model.is_kernel(other)) {
            faults.insert(Fault::Kind);
        }
    }
    if is_cyclic(&edges) {
        faults.insert(Fault::Cycle);
    }
    if let Some(node) = outcome(frontier(), &faults) {
        model.nodes.push(node);
        model.edges = edges;
    }
}

/// The graph, the driver and the model agree.
fn agree(graph: &Drawn, model: &Model) {
    let alive = model.alive();
    let nodes: Vec<Node> = alive.iter().map(|node| model.nodes[*node].clone()).collect();
    assert_eq!(graph.nodes().unwrap(), nodes, "nodes, in the order of creation");
    let position = |node: usize| alive.binary_search(&node).unwrap();
    let data = |kind: &EdgeKind| KINDS.iter().find(|(known, _)| known == kind).unwrap().1;
    let edges: Vec<(usize, usize, (u8, u8))> =
        model.edges.iter().map(|((from, to), kind)| (position(*from), position(*to), data(kind))).collect();
    assert_eq!(raw::nodes(graph.raw).len(), alive.len(), "the driver's view");
    assert_eq!(raw::edges_with_data(graph.raw), edges, "the driver's view");
    let place = |node: &Node| nodes.iter().position(|other| other == node).unwrap();
    let told = |edges: Vec<cuda_graph::Edge>| {
        let mut told: Vec<_> =
            edges.iter().map(|edge| (place(&edge.from), place(&edge.to), data(&edge.kind))).collect();
        told.sort_unstable();
        told
    };
    assert_eq!(told(graph.edges().unwrap()), edges);
    for (node, raw_node) in nodes.iter().zip(raw::nodes(graph.raw)) {
        let here = place(node);
        let entering: Vec<_> = edges.iter().copied().filter(|(_, to, _)| *to == here).collect();
        let leaving: Vec<_> = edges.iter().copied().filter(|(from, _, _)| *from == here).collect();
        assert_eq!(node.predecessors().unwrap().len(), entering.len());
        assert_eq!(node.successors().unwrap().len(), leaving.len());
        assert_eq!(told(node.in_edges().unwrap()), entering);
        assert_eq!(told(node.out_edges().unwrap()), leaving);
        let expected = match node.kind() {
            NodeKind::Empty => cuda_sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY,
            NodeKind::Memset => cuda_sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET,
            _ => cuda_sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL,
        };
        assert_eq!(raw::kind(raw_node), expected);
    }
}

/// Every kernel node ran once, after all kernel nodes whose end it waits for.
fn runs(graph: &Drawn, model: &Model, things: &Things) {
    things.stream.fill(&things.stamps, 0).unwrap();
    let mut exec = graph.instantiate().unwrap();
    exec.launch(&things.stream).unwrap();
    let stamps = things.stamps.read_blocking(&things.stream).unwrap();
    let is_kernel = |node: &usize| model.is_kernel(*node);
    for node in (0..model.nodes.len()).filter(is_kernel) {
        assert_eq!(
            stamps[node] != 0,
            !model.removed.contains(&node),
            "node {node} ran exactly if it is in the graph"
        );
    }
    let full: Vec<(usize, usize)> =
        model.edges.iter().filter(|(_, kind)| **kind == EdgeKind::Full).map(|(ends, _)| *ends).collect();
    for from in model.alive().into_iter().filter(is_kernel) {
        for to in model.alive().into_iter().filter(is_kernel) {
            if from != to && reaches(full.iter(), from, to) {
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
            has_kinds: raw::driver().version() >= Version::new(12, 3),
        };
        let check = |edits: &[Edit]| {
            no_leaks(|| {
                let graph = Drawn::new(&context);
                let mut model = Model::default();
                for edit in edits {
                    apply(&graph, &mut model, &things, edit);
                    agree(&graph, &model);
                }
                runs(&graph, &model, &things);
                agree(&graph, &model);
            });
        };
        seen().iter().for_each(|edits| check(edits));
        let cases = if is_soft() { 48 } else { 12 };
        proptest!(ProptestConfig::with_cases(cases), |(edits in prop::collection::vec(edit(), 1..60))| {
            check(&edits);
        });
    });
}

/// Edits about which graph and model once disagreed.
fn seen() -> Vec<Vec<Edit>> {
    let add = |after: &[End]| Edit::Add(0, after.to_vec(), Vec::new());
    vec![vec![add(&[]), add(&[(0, 0)]), add(&[]), Edit::RemoveEdges(vec![(2, 0), (2, 0)])]]
}
