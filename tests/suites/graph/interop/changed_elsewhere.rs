//! Nodes that other code removed, and what it put in their places.

use cuda_graph::{ContextExt, EdgeKind, Error, Graph, Node, NodeKind};
use cuda_handles::{Batch, Context, Owner};
use cuda_sys::{CUgraph, CUgraphNode, CUresult, Call};
use cuda_tests::{Injection, fail, no_leaks, raw, settle, setup};

use crate::common::chains::{Bench, moves, names};
use crate::common::gone::soon;
use crate::common::other;
use crate::interop::lent::kinds_of;

/// A lent graph with a node of other code that was seen and is gone; the handle of that and its
/// address.
fn with_a_gap(context: &Context) -> (Graph, Node, CUgraphNode) {
    let graph = context.graph().unwrap();
    let foreign = other::empty(graph.lend().unwrap(), &[]);
    let seen = graph.nodes().unwrap().remove(0);
    other::remove(foreign);
    (graph, seen, foreign)
}

#[test]
fn a_node_added_here_in_place_of_one_that_other_code_removed_is_another_one() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let source = context.graph().unwrap();
        source.root().empty().unwrap();
        let adds: [fn(&Bench, &Graph, &Graph) -> Node; 6] = [
            |_, graph, _| graph.root().empty().unwrap().into(),
            |bench, graph, _| bench.step(&graph.root()),
            |_, graph, _| graph.root().host(|| {}).unwrap().into(),
            |_, graph, source| graph.root().child(source).unwrap().into(),
            // One of its nodes may get the address, too.
            |_, graph, source| {
                graph.root().child(source).unwrap().embedded().unwrap().nodes().unwrap().remove(0)
            },
            |_, graph, source| match moves() {
                true => graph.root().child_moved(source.clone_graph().unwrap()).unwrap().into(),
                false => graph.root().child(source).unwrap().into(),
            },
        ];
        for (number, add) in adds.into_iter().enumerate() {
            let (graph, seen, address) = with_a_gap(&context);
            let mine = add(&bench, &graph, &source);
            if mine.as_raw().unwrap() == address {
                assert!(seen.is_removed(), "add {number}");
                assert!(matches!(seen.remove(), Err(Error::Removed { .. })));
            }
            graph.refresh().unwrap();
            assert!(seen.is_removed() && !mine.is_removed(), "add {number}");
            assert_eq!(graph.nodes().unwrap().len(), 1);
            assert!(matches!(seen.then().empty(), Err(Error::Removed { .. })));
            mine.remove().unwrap();
            assert!(mine.is_removed());
            assert!(raw::nodes(graph.as_raw().unwrap()).len() <= 1);
        }
    });
}

#[test]
fn a_node_of_another_type_in_place_of_one_that_other_code_removed_is_seen_by_a_look() {
    let context = setup();
    no_leaks(|| {
        let (event, source) = (context.event().unwrap(), other::graph());
        other::empty(source, &[]);
        let add = |graph: CUgraph, which: usize| match which {
            0 => other::empty(graph, &[]),
            1 => other::host(graph),
            2 => other::child(graph, source),
            _ => other::record(graph, &event),
        };
        let kinds = [NodeKind::Empty, NodeKind::HostCallback, NodeKind::ChildGraph, NodeKind::EventRecord];
        for (before, after) in (0..16).map(|pair| (pair / 4, pair % 4)).filter(|(from, to)| from != to) {
            let graph = context.graph().unwrap();
            let mine = graph.root().empty().unwrap();
            let raw_graph = graph.lend().unwrap();
            let old = add(raw_graph, before);
            let seen = graph.nodes().unwrap().remove(1);
            let inside = graph.children().unwrap().first().map(|child| child.embedded().unwrap());
            other::remove(old);
            add(raw_graph, after);
            graph.refresh().unwrap();
            assert!(seen.is_removed() && !mine.is_removed(), "{before} {after}");
            assert!(matches!(seen.remove(), Err(Error::Removed { .. })));
            assert!(inside.is_none_or(|inside| inside.len() == Err(Error::GraphRemoved)));
            assert_eq!(kinds_of(&graph), [NodeKind::Empty, kinds[after]]);
            assert_eq!(kinds_of(&graph.clone_graph().unwrap()), kinds_of(&graph));
            let children = graph.children().unwrap();
            assert!(children.iter().all(|child| child.embedded().unwrap().nodes().unwrap().len() == 1));
            graph.instantiate().unwrap();
        }
        other::destroy(source);
    });
}

#[test]
fn nodes_in_the_place_of_those_of_an_embedded_graph_that_went_are_seen() {
    let context = setup();
    no_leaks(|| {
        let source = other::graph();
        for _ in 0..4 {
            other::empty(source, &[]);
        }
        let graph = context.graph().unwrap();
        let raw_graph = graph.lend().unwrap();
        let child = other::child(raw_graph, source);
        let inner = graph.children().unwrap()[0].embedded().unwrap().nodes().unwrap();
        other::remove(child);
        // They get the addresses of the inner nodes, which are of the same type.
        let new: Vec<_> = (0..5).map(|_| other::empty(raw_graph, &[])).collect();
        other::connect(raw_graph, new[4], new[0]);
        graph.refresh().unwrap();
        assert!(inner.iter().all(Node::is_removed));
        let nodes = graph.nodes().unwrap();
        assert_eq!(nodes.iter().map(|node| node.as_raw().unwrap()).collect::<Vec<_>>(), new);
        assert!(nodes.iter().all(|node| node.graph() == &graph && !inner.contains(node)));
        assert!(matches!(graph.add_edge(&nodes[0], &nodes[4]), Err(Error::Cycle { .. })));
        assert!(nodes.iter().all(|node| !node.is_removed()));
        other::destroy(source);
    });
}

#[test]
fn a_look_leaves_nodes_that_are_there_as_they_are_whatever_they_do() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let (a, b) = (stream.zeros::<u32>(16).unwrap(), stream.zeros::<u32>(16).unwrap());
        let (event, plain) = (context.event().unwrap(), context.alloc_blocking::<u32>(1).unwrap());
        stream.record(&event).unwrap();
        let mut batch = Batch::new();
        batch.write(&plain, 0, 1).unwrap();
        let fill = |graph: &Graph| {
            graph.root().empty().unwrap().named("empty");
            bench.step(&graph.root()).named("kernel");
            graph.root().copy(&a, &b).unwrap().named("copy");
            graph.root().fill(&a, 3).unwrap().named("fill");
            graph.root().host(|| {}).unwrap().named("host");
            graph.root().record(&event).unwrap().named("record");
            graph.root().wait(&event).unwrap().named("wait");
            graph.root().batch(&batch).unwrap().named("batch");
        };
        let inner = context.graph().unwrap();
        fill(&inner);
        let graph = context.graph().unwrap();
        fill(&graph);
        let child = graph.root().child(&inner).unwrap().named("child");
        graph.lend().unwrap();
        let inside = child.embedded().unwrap();
        let before = [&graph, &inside].map(|graph| (graph.nodes().unwrap(), names(graph)));
        graph.refresh().unwrap();
        assert_eq!([&graph, &inside].map(|graph| (graph.nodes().unwrap(), names(graph))), before);
        assert!(before.iter().flat_map(|(nodes, _)| nodes).all(|node| !node.is_removed()));
        assert_eq!(child.embedded().unwrap(), inside);
    });
}

/// What a look at a graph of other code may ask.
const ASKED: [Call; 6] = [
    Call::cuGraphGetNodes,
    Call::cuGraphNodeGetType,
    Call::cuGraphChildGraphNodeGetGraph,
    Call::cuGraphGetEdges_v12030,
    Call::cuGraphEventRecordNodeGetEvent,
    Call::cuGraphHostNodeGetParams,
];

#[test]
fn a_look_that_fails_on_its_way_changes_nothing() {
    let context = setup();
    no_leaks(|| {
        let (event, source) = (context.event().unwrap(), other::graph());
        let (first, second) = (other::empty(source, &[]), other::empty(source, &[]));
        other::connect(source, second, first);
        let looks: [fn(&Graph) -> cuda_graph::Result<()>; 4] = [
            |graph| graph.nodes().map(drop),
            Graph::refresh,
            |graph| graph.clone_graph().map(drop),
            |graph| graph.instantiate().map(drop),
        ];
        let mut failures = [0; 4];
        for (which, look) in looks.into_iter().enumerate() {
            for (call, nth) in ASKED.into_iter().flat_map(|call| (1..40).map(move |nth| (call, nth))) {
                let graph = context.graph().unwrap();
                let mine = graph.root().empty().unwrap();
                let raw_graph = graph.lend().unwrap();
                let vanishing = other::empty(raw_graph, &[]);
                let seen = graph.nodes().unwrap().remove(1);
                let last = other::empty(raw_graph, &[]);
                let middle = other::empty(raw_graph, &[]);
                other::connect(raw_graph, middle, last);
                other::child(raw_graph, source);
                other::host(raw_graph);
                other::record(raw_graph, &event);
                // The others do not look for what is gone.
                if which == 1 {
                    other::remove(vanishing);
                }
                let injected = fail(call, nth, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
                let outcome = look(&graph);
                if !injected.hit() {
                    outcome.unwrap();
                    continue;
                }
                drop::<Injection>(injected);
                assert!(outcome.is_err(), "{} {nth}", call.name());
                failures[which] += 1;
                assert!(!seen.is_removed() && !mine.is_removed(), "{} {nth}", call.name());
                // The next who meets them gives all an order.
                let nodes = graph.nodes().unwrap();
                let place = nodes.len() - 5;
                let (last, middle, child) = (&nodes[place], &nodes[place + 1], &nodes[place + 2]);
                assert!(
                    matches!(graph.add_edge(last, middle), Err(Error::Cycle { .. })),
                    "{} {nth}",
                    call.name()
                );
                assert_eq!(graph.edge_kind(middle, last), Ok(Some(EdgeKind::Full)));
                let inside = cuda_graph::ChildGraphNode::try_from(child.clone()).unwrap().embedded().unwrap();
                let inner = inside.nodes().unwrap();
                assert!(matches!(inside.add_edge(&inner[0], &inner[1]), Err(Error::Cycle { .. })));
                graph.refresh().unwrap();
                assert_eq!(seen.is_removed(), which == 1);
                graph.instantiate().unwrap();
            }
        }
        println!("{failures:?} failures");
        assert!(failures.iter().all(|count| *count >= 12), "{failures:?}");
        other::destroy(source);
    });
}

/// Asks the graph when it goes: that needs its lock.
struct Asks(Graph, std::sync::mpsc::Sender<usize>);

impl Drop for Asks {
    fn drop(&mut self) {
        let _ = self.1.send(self.0.len().unwrap_or_default());
    }
}

#[test]
fn what_a_vanished_node_kept_may_use_a_graph_when_it_goes() {
    let context = setup();
    no_leaks(|| {
        let (send, answers) = std::sync::mpsc::channel();
        let source = context.graph().unwrap();
        source.root().empty().unwrap();
        let foreign = other::graph();
        // SAFETY: the graph lives longer than the handles.
        let graph = unsafe { Graph::from_raw(&context, foreign) }.unwrap();
        for (round, fails) in [true, false].into_iter().enumerate() {
            let node = other::empty(foreign, &[]);
            let seen = graph.nodes().unwrap().pop().unwrap();
            seen.keep(Owner::other(Asks(source.clone(), send.clone()))).unwrap();
            graph.root().child(&source).unwrap();
            other::remove(node);
            let call = Call::cuGraphChildGraphNodeGetGraph;
            let injected = fails.then(|| fail(call, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY));
            assert_eq!(graph.refresh().is_err(), fails);
            drop(injected);
            graph.refresh().unwrap();
            assert!(seen.is_removed());
            // Where two locks are held.
            let node = other::empty(foreign, &[]);
            let seen = graph.nodes().unwrap().pop().unwrap();
            seen.keep(Owner::other(Asks(source.clone(), send.clone()))).unwrap();
            other::remove(node);
            graph.root().child(&source).unwrap();
            graph.refresh().unwrap();
            assert!(seen.is_removed());
            assert_eq!(graph.len().unwrap(), 2 * (round + 1));
        }
        drop(graph);
        settle();
        other::destroy(foreign);
        let mut count = 0;
        assert!(soon(&|| true));
        while let Ok(nodes) = answers.recv_timeout(cuda_tests::SOON) {
            assert_eq!(nodes, 1);
            count += 1;
            if count == 4 {
                break;
            }
        }
        assert_eq!(count, 4);
    });
}

#[test]
fn an_executable_is_made_with_what_other_code_added_last() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let options = || cuda_graph::InstantiateOptions::new().device_launch();
        let graph = context.graph().unwrap();
        let raw_graph = graph.lend().unwrap();
        assert!(matches!(graph.instantiate_with(options()), Err(Error::DeviceLaunch { .. })));
        // A kernel alone is enough for it.
        let template = bench.chain(&context, 1);
        other::kernel(raw_graph, &[], raw::kernel(template.nodes().unwrap()[0].as_raw().unwrap()));
        graph.instantiate_with(options()).unwrap();
        // An event is not, and goes with the launches.
        let event = context.event().unwrap();
        let record = other::record(raw_graph, &event);
        let error = graph.instantiate_with(options()).unwrap_err();
        let Error::DeviceLaunch { node: Some(node), .. } = &error else { panic!("{error}") };
        assert!(node.starts_with("event record"), "{node}");
        other::remove(record);
        graph.refresh().unwrap();
        other::record(raw_graph, &event);
        let mut exec = graph.instantiate().unwrap();
        let capture = stream.begin_capture(cuda_handles::capture::CaptureMode::ThreadLocal).unwrap();
        stream.record(&event).unwrap();
        drop(capture);
        assert_eq!(event.query(), Err(cuda_handles::Error::CapturedEvent));
        exec.launch(stream).unwrap();
        stream.synchronize_blocking().unwrap();
        assert_ne!(event.query(), Err(cuda_handles::Error::CapturedEvent));
    });
}
