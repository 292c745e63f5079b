//! A graph of other code is known as it was when it was adopted: nodes that come later are unknown
//! until it is adopted anew, once every handle of it is gone.

use std::sync::Barrier;

use cuda_graph::{
    ChildGraphNode, ContextExt, EdgeError, EdgeKind, Error, ExecError, Graph, InstantiateOptions,
    InteropError, NodeKind,
};
use cuda_handles::Context;
use cuda_sys::{CUgraph, CUgraphNode, CUresult, Call};
use cuda_tests::{Injection, fail, no_leaks, raw, settle, setup};

use crate::common::chains::Bench;
use crate::common::other;
use crate::interop::lent::kinds_of;

/// Adopts a graph of other code.
fn adopt(context: &Context, raw: CUgraph) -> cuda_graph::Result<Graph> {
    // SAFETY: the tests destroy the graph after every handle of it, and no call of theirs overlaps
    // with the library's.
    unsafe { Graph::from_raw(context, raw) }
}

#[track_caller]
fn assert_unknown<T: core::fmt::Debug>(outcome: cuda_graph::Result<T>, node: CUgraphNode) {
    assert_eq!(outcome.unwrap_err(), Error::Interop(InteropError::UnknownNode { raw: node.addr() }));
}

#[test]
fn a_node_that_other_code_adds_later_is_unknown_until_the_graph_is_adopted_anew() {
    let context = setup();
    no_leaks(|| {
        let foreign = other::graph();
        let first = other::empty(foreign, &[]);
        let late = {
            let graph = adopt(&context, foreign).unwrap();
            let node = graph.nodes().unwrap().remove(0);
            let late = other::empty(foreign, &[first]);
            // Met in the list, as a neighbour, at an edge.
            assert_unknown(graph.nodes(), late);
            assert_unknown(node.successors(), late);
            assert_unknown(node.out_edges(), late);
            assert_unknown(graph.edges(), late);
            assert_unknown(graph.clone_graph(), late);
            assert_unknown(context.graph().unwrap().root().child(&graph), late);
            assert_unknown(graph.to_dot(), late);
            assert_unknown(graph.check(), late);
            let ran = graph.instantiate().map(drop);
            assert!(matches!(ran, Ok(()) | Err(Error::Interop(InteropError::UnknownNode { .. }))), "{ran:?}");
            // What does not meet it goes on.
            assert!(node.predecessors().unwrap().is_empty());
            let mine = graph.root().empty().unwrap();
            graph.add_edge(&mine, &node).unwrap();
            assert!(!node.is_removed());
            // Adopted again while a handle lives, it is the same graph.
            assert_eq!(adopt(&context, foreign).unwrap(), graph);
            assert_unknown(graph.nodes(), late);
            late
        };
        settle();
        let graph = adopt(&context, foreign).unwrap();
        let nodes = graph.nodes().unwrap();
        assert!(nodes.len() >= 3 && nodes[1].as_raw().unwrap() == late, "{nodes:?}");
        assert_eq!(nodes[0].successors().unwrap(), nodes[1..2]);
        assert!(matches!(graph.add_edge(&nodes[1], &nodes[0]), Err(Error::Edge(EdgeError::Cycle { .. }))));
        graph.clone_graph().unwrap();
        graph.instantiate().unwrap();
        drop((graph, nodes));
        other::destroy(foreign);
    });
}

#[test]
fn a_node_added_later_inside_an_adopted_graph_is_unknown_there() {
    let context = setup();
    no_leaks(|| {
        let (foreign, source) = (other::graph(), other::graph());
        other::empty(source, &[]);
        other::child(foreign, source);
        other::destroy(source);
        let graph = adopt(&context, foreign).unwrap();
        let inside = graph.children().unwrap().remove(0).embedded().unwrap();
        assert_eq!(inside.nodes().unwrap().len(), 1);
        let late = other::empty(inside.as_raw().unwrap(), &[]);
        assert_unknown(inside.nodes(), late);
        assert_unknown(graph.clone_graph(), late);
        assert_eq!(graph.nodes().unwrap().len(), 1);
        drop((graph, inside));
        let graph = adopt(&context, foreign).unwrap();
        let inside = graph.children().unwrap().remove(0).embedded().unwrap();
        assert_eq!(inside.nodes().unwrap()[1].as_raw().unwrap(), late);
        graph.clone_graph().unwrap();
        drop((graph, inside));
        other::destroy(foreign);
    });
}

#[test]
fn a_node_added_to_a_lent_graph_is_unknown_here_and_runs_elsewhere() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let graph = bench.chain(&context, 1);
        let mine = graph.nodes().unwrap().remove(0);
        let lent = graph.lend().unwrap();
        let late = other::kernel(lent, &[mine.as_raw().unwrap()], raw::kernel(mine.as_raw().unwrap()));
        assert_unknown(graph.nodes(), late);
        assert_unknown(mine.successors(), late);
        assert_unknown(graph.clone_graph(), late);
        assert!(!mine.is_removed());
        let clone = other::clone(lent);
        for exec in [lent, clone].map(|graph| other::instantiate(&context, graph)) {
            bench.stream.fill(&bench.numbers, 0).unwrap();
            other::launch(exec, &bench.stream);
            assert_eq!(bench.numbers.read_blocking(&bench.stream).unwrap(), [2; 64]);
            other::destroy_exec(exec);
        }
        other::destroy(clone);
        // Once it is gone again, the graph is what it was.
        other::remove(late);
        assert_eq!(graph.nodes().unwrap(), [mine]);
        assert_eq!(bench.adds(&graph), 1);
    });
}

/// The queries of an adoption.
const ASKED: [Call; 6] = [
    Call::cuGraphGetNodes,
    Call::cuGraphNodeGetType,
    Call::cuGraphChildGraphNodeGetGraph,
    Call::cuGraphGetEdges_v12030,
    Call::cuGraphEventRecordNodeGetEvent,
    Call::cuGraphHostNodeGetParams,
];

#[test]
fn an_adoption_that_fails_on_its_way_leaves_nothing_behind() {
    let context = setup();
    no_leaks(|| {
        let (event, source) = (context.event().unwrap(), other::graph());
        let (first, second) = (other::empty(source, &[]), other::empty(source, &[]));
        other::connect(source, second, first);
        let foreign = other::graph();
        let last = other::empty(foreign, &[]);
        let middle = other::empty(foreign, &[]);
        other::connect(foreign, middle, last);
        other::child(foreign, source);
        other::host(foreign);
        other::record(foreign, &event);
        let mut failures = 0;
        for (call, nth) in ASKED.into_iter().flat_map(|call| (1..40).map(move |nth| (call, nth))) {
            let injected = fail(call, nth, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
            let outcome = adopt(&context, foreign);
            if !injected.hit() {
                outcome.unwrap();
                continue;
            }
            drop::<Injection>(injected);
            let error = outcome.unwrap_err();
            assert!(error.to_string().contains(call.symbol().to_str().unwrap()), "{error}");
            failures += 1;
            let graph = adopt(&context, foreign).unwrap();
            let nodes = graph.nodes().unwrap();
            assert_eq!(nodes.len(), 5);
            let (last, middle) = (&nodes[0], &nodes[1]);
            assert!(matches!(graph.add_edge(last, middle), Err(Error::Edge(EdgeError::Cycle { .. }))));
            assert_eq!(graph.edge_kind(middle, last), Ok(Some(EdgeKind::Full)));
            let inside = ChildGraphNode::try_from(nodes[2].clone()).unwrap().embedded().unwrap();
            let inner = inside.nodes().unwrap();
            assert!(matches!(
                inside.add_edge(&inner[0], &inner[1]),
                Err(Error::Edge(EdgeError::Cycle { .. }))
            ));
            graph.instantiate().unwrap();
        }
        assert!(failures >= 12, "{failures}");
        [source, foreign].into_iter().for_each(other::destroy);
    });
}

/// Whichever is first reads it, and the others wait for that.
#[test]
fn threads_that_adopt_a_graph_at_once_know_its_nodes_at_once() {
    let context = setup();
    no_leaks(|| {
        let foreign = other::graph();
        let mut last = other::empty(foreign, &[]);
        for _ in 1..20 {
            last = other::empty(foreign, &[last]);
        }
        let address = foreign.expose_provenance();
        for round in 0..100 {
            let start = Barrier::new(4);
            // In each second round, one of them is refused by the driver.
            let failing = (round % 2 == 1)
                .then(|| fail(Call::cuGraphNodeGetType, 7, CUresult::CUDA_ERROR_OUT_OF_MEMORY));
            let look = || {
                start.wait();
                let graph = adopt(&context, core::ptr::with_exposed_provenance_mut(address))?;
                Ok((graph.nodes().unwrap(), graph))
            };
            let all: Vec<cuda_graph::Result<_>> = std::thread::scope(|scope| {
                let threads: Vec<_> = (0..4).map(|_| scope.spawn(look)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            drop(failing);
            let refused = all.iter().filter(|found| found.is_err()).count();
            assert_eq!(refused, round % 2);
            let found: Vec<_> = all.into_iter().filter_map(Result::ok).collect();
            for (nodes, graph) in &found {
                assert_eq!((nodes.len(), nodes, graph), (20, &found[0].0, &found[0].1));
                assert!(matches!(
                    graph.add_edge(&nodes[19], &nodes[0]),
                    Err(Error::Edge(EdgeError::Cycle { .. }))
                ));
            }
        }
        other::destroy(foreign);
    });
}

#[test]
fn an_adopted_graph_is_instantiated_with_all_that_was_read_of_it() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let options = || InstantiateOptions::new().device_launch();
        let template = bench.chain(&context, 1);
        let foreign = other::graph();
        other::kernel(foreign, &[], raw::kernel(template.nodes().unwrap()[0].as_raw().unwrap()));
        // A kernel alone is enough for it.
        adopt(&context, foreign).unwrap().instantiate_with(options()).unwrap();
        settle();
        // An event is not, and goes with the launches.
        let event = context.event().unwrap();
        other::record(foreign, &event);
        let graph = adopt(&context, foreign).unwrap();
        assert_eq!(kinds_of(&graph), [NodeKind::Kernel, NodeKind::EventRecord]);
        let error = graph.instantiate_with(options()).unwrap_err();
        let Error::Exec(ExecError::DeviceLaunch { node: Some(node), .. }) = &error else { panic!("{error}") };
        assert!(node.starts_with("event record"), "{node}");
        let mut exec = graph.instantiate().unwrap();
        let capture = stream.begin_capture(cuda_handles::capture::CaptureMode::ThreadLocal).unwrap();
        stream.record(&event).unwrap();
        drop(capture);
        assert_eq!(event.query(), Err(cuda_handles::Error::CapturedEvent));
        exec.launch(stream).unwrap();
        stream.synchronize_blocking().unwrap();
        assert_ne!(event.query(), Err(cuda_handles::Error::CapturedEvent));
        drop((exec, graph));
        settle();
        other::destroy(foreign);
    });
}
