//! Random graphs, added in random orders: an update pairs their nodes, and updates of single nodes
//! then meet the counterpart of the node that is named.

use cuda_graph::{
    ContextExt, EdgeError, EdgeKind, Error, Graph, GraphExec, KernelNode, Node, RefusalReason, Update,
};
use cuda_handles::{Buffer, Context, Stream};
use cuda_launch::per;
use cuda_tests::{no_leaks, setup};
use proptest::prelude::*;

use super::whole::refused;
use crate::capture::add_to;

const NODES: usize = 7;

/// The shape of a graph: for each node, numbered in an order that fits the edges, the nodes that it
/// waits for. The last nodes of the list may be in a child graph.
#[derive(Clone, Debug)]
struct Shape {
    waits_for: Vec<Vec<usize>>,
    /// Whether the graph is the graph in a node of another.
    is_inside: bool,
}

/// The order in which nodes are added, and edges beyond.
type Order = Vec<usize>;

fn shape() -> impl Strategy<Value = Shape> {
    let edges = prop::collection::vec(prop::collection::vec(any::<prop::sample::Index>(), 0..3), 1..=NODES);
    (edges, any::<bool>()).prop_map(|(edges, is_inside)| {
        let waits_for = edges.into_iter().enumerate().map(|(node, from)| {
            let mut unique = Vec::new();
            for from in from.into_iter().filter(|_| node > 0).map(|from| from.index(node)) {
                if !unique.contains(&from) {
                    unique.push(from);
                }
            }
            unique
        });
        Shape { waits_for: waits_for.collect(), is_inside }
    })
}

fn order() -> impl Strategy<Value = Order> {
    Just((0..NODES).collect::<Order>()).prop_shuffle()
}

struct Bench {
    context: Context,
    stream: Stream,
    add: add_to,
    /// One number for each node, and one more.
    numbers: Vec<Buffer<u32>>,
}

impl Bench {
    fn new(context: &Context) -> Self {
        let stream = context.stream().unwrap();
        let numbers = (0..=NODES).map(|_| stream.zeros(1).unwrap()).collect();
        Self { context: context.clone(), add: add_to::load(context).unwrap(), numbers, stream }
    }

    /// A graph of the shape in which node `n` adds `amount` to number `n`. Nodes are added in an
    /// order, without edges, and then the edges into each node, in the order of the shape.
    fn build(&self, shape: &Shape, order: &Order, amount: u32) -> (Graph, Vec<KernelNode>) {
        let graph = self.context.graph().unwrap();
        let mut nodes: Vec<Option<KernelNode>> = vec![None; shape.waits_for.len()];
        for &node in order.iter().filter(|node| **node < shape.waits_for.len()) {
            let added = graph.root().launch(&self.add, per(1, 1), (amount, &self.numbers[node])).unwrap();
            nodes[node] = Some(added.named(format!("n{node}")));
        }
        let nodes: Vec<KernelNode> = nodes.into_iter().map(Option::unwrap).collect();
        for &node in order.iter().filter(|node| **node < shape.waits_for.len()) {
            for &from in &shape.waits_for[node] {
                graph.add_edge(&nodes[from], &nodes[node]).unwrap();
            }
        }
        if !shape.is_inside {
            return (graph, nodes);
        }
        let outer = self.context.graph().unwrap();
        let before = outer.root().empty().unwrap();
        let embedded = before.then().child(&graph).unwrap().embedded().unwrap();
        let inner = nodes.iter().map(|node| {
            KernelNode::try_from(embedded.find_clone_of(node).unwrap()).unwrap_or_else(|_| panic!("a kernel"))
        });
        let inner = inner.collect();
        (outer, inner)
    }

    /// What a run adds to each number.
    fn run(&self, exec: &mut GraphExec) -> Vec<u32> {
        self.numbers.iter().for_each(|number| self.stream.fill(number, 0).unwrap());
        exec.launch(&self.stream).unwrap();
        self.numbers.iter().map(|number| number.read_blocking(&self.stream).unwrap()[0]).collect()
    }

    /// The order in which sinks were added is the same.
    fn sinks_agree(shape: &Shape, orders: [&Order; 2]) -> bool {
        let is_sink = |node: &usize| {
            *node < shape.waits_for.len() && !shape.waits_for.iter().any(|from| from.contains(node))
        };
        let sinks = |order: &Order| order.iter().copied().filter(is_sink).collect::<Vec<_>>();
        sinks(orders[0]) == sinks(orders[1])
    }

    fn check(&self, shape: &Shape, orders: [&Order; 2], picked: usize) {
        let (old, old_nodes) = self.build(shape, orders[0], 1);
        let (new, new_nodes) = self.build(shape, orders[1], 10);
        let mut exec = old.instantiate().unwrap();
        let found = old.check_update(&new).unwrap();
        assert_eq!(exec.check_update(&new).unwrap(), found);
        let update = exec.update(&new).unwrap();
        // What the comparison says is what the driver does.
        assert_eq!(found.is_empty(), update.is_updated(), "{update:?} {found:?}");
        let count = shape.waits_for.len();
        let all =
            |amount| (0..=NODES).map(|node| if node < count { amount } else { 0 }).collect::<Vec<u32>>();
        if !update.is_updated() {
            assert!(!Self::sinks_agree(shape, orders));
            assert_eq!(refused(update).reason, RefusalReason::Topology);
            assert_eq!(self.run(&mut exec), all(1));
            return;
        }
        assert_eq!(self.run(&mut exec), all(10));
        let picked = picked % count;
        // By the new graph's node: the node that adds to this number does so no more.
        exec.node(&new_nodes[picked]).set_enabled(false).unwrap();
        let mut expected = all(10);
        expected[picked] = 0;
        assert_eq!(self.run(&mut exec), expected);
        exec.node(&new_nodes[picked]).set_enabled(true).unwrap();
        // By the old graph's node: its counterpart, which is the node of the same number if the
        // sinks were added in the same order.
        exec.node(&old_nodes[picked]).set(&self.add, per(1, 1), (5, &self.numbers[NODES])).unwrap();
        let after = self.run(&mut exec);
        let moved: Vec<usize> = (0..count).filter(|node| after[*node] == 0).collect();
        assert_eq!((moved.len(), after[NODES]), (1, 5), "{after:?}");
        if Self::sinks_agree(shape, orders) {
            assert_eq!(moved, [picked]);
        }
        // Whichever it is, the new graph's node of that number stands for the same.
        exec.node(&new_nodes[moved[0]]).set_enabled(false).unwrap();
        assert_eq!(self.run(&mut exec)[NODES], 0);
        assert!(!exec.node(&old_nodes[picked]).is_enabled().unwrap());
        exec.node(&old_nodes[picked]).set_enabled(true).unwrap();
        // A second update pairs anew, with the first graph's nodes as keys.
        assert!(exec.update(&old).unwrap().is_updated());
        exec.node(&old_nodes[picked]).set_enabled(false).unwrap();
        let mut expected = all(1);
        expected[picked] = 0;
        assert_eq!(self.run(&mut exec), expected);
    }
}

#[test]
fn node_updates_meet_the_counterpart() {
    cuda_tests::as_drawn!("it tells apart reasons for which drivers refuse updates");
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let cases = ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() };
        proptest!(cases, |(shape in shape(), one in order(), other in order(), picked in 0..NODES)| {
            bench.check(&shape, [&one, &other], picked);
            bench.check(&shape, [&one, &one], picked);
        });
    });
}

#[test]
fn a_refused_edge_keeps_the_nodes_of_an_executable_known() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let numbers = stream.zeros::<u32>(4).unwrap();
        let graph = context.graph().unwrap();
        let first = graph.root().fill(&numbers, 1).unwrap();
        let last = first.then().fill(&numbers, 2).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let (from, to) = (Node::from(first), Node::from(last.clone()));
        let again = graph.add_edges(&[(&from, &to, EdgeKind::Full)]);
        assert!(matches!(again, Err(Error::Edge(EdgeError::DuplicateEdge { .. }))), "{again:?}");
        assert!(matches!(exec.update(&graph).unwrap(), Update::Updated));
        exec.node(&last).set(&numbers, 3).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(numbers.read_blocking(&stream).unwrap(), [3; 4]);
    });
}
