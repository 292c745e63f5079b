//! Nodes inserted before other nodes and into edges.

use cuda_graph::EdgeKind::{Full, LaunchOrder, Programmatic};
use cuda_graph::{ContextExt, EdgeError, EmbedError, Error, Frontier, Node, NodeError};
use cuda_launch::{params, per};
use cuda_sys::{CUresult, Call};
use cuda_tests::{count, fail, kernel, needs, no_leaks, raw, setup, skip};

use crate::common::driver_view::Drawn;
use crate::edges::changes::{empties, kernels};
use crate::rollback::broken::assert_broken;

#[test]
fn a_node_takes_the_place_of_an_edge() {
    let context = setup();
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let nodes = empties(&graph, 3);
        graph.add_edges(&[(&nodes[0], &nodes[1], Full), (&nodes[1], &nodes[2], Full)]).unwrap();
        let (frontier, cost) = count(|| graph.between(&nodes[0], &nodes[1]).unwrap());
        cost.assert_calls(&[("cuGraphNodeGetDependencies", 1)]);
        let (new, cost) = count(|| frontier.empty().unwrap());
        cost.assert_calls(&[
            ("cuGraphNodeGetDependencies", 1),
            ("cuGraphRemoveDependencies", 1),
            ("cuGraphAddNode", 1),
            ("cuGraphAddDependencies", 1),
        ]);
        assert_eq!(graph.view().edges, [(0, 3), (1, 2), (3, 1)]);
        // The edge is gone; another one stands beside.
        let (_, cost) = count(|| frontier.empty().unwrap());
        assert_eq!((cost.calls("cuGraphRemoveDependencies"), cost.calls("cuGraphAddNode")), (0, 1));
        assert_eq!(graph.view().edges, [(0, 3), (0, 4), (1, 2), (3, 1), (4, 1)]);
        let error = graph.between(&nodes[0], &nodes[1]).unwrap_err();
        assert_eq!(error, Error::Edge(EdgeError::NoEdge { from: "0".into(), to: "1".into() }));
        let error = graph.add_edge(&nodes[1], &new).unwrap_err();
        assert_eq!(error, Error::Edge(EdgeError::Cycle { path: vec![new.name(), "1".into()] }));
        graph.instantiate().unwrap();
    });
}

#[test]
fn every_kind_of_node_can_be_put_between() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (from, to) = (stream.zeros::<u32>(8).unwrap(), stream.zeros::<u32>(8).unwrap());
        let (offset_copy, inner) = (kernel(&context, "offset_copy"), context.graph().unwrap());
        inner.root().empty().unwrap();
        let graph = Drawn::new(&context);
        // First 1, 2 and 3 are written, then read, in the place of an edge.
        let first = graph.root().fill(&from, 1).unwrap();
        let last = first.then().copy(&from, &to).unwrap();
        let between = || graph.between(&first, &last).unwrap();
        let add = |values: &cuda_handles::Buffer<u32>, frontier: Frontier<'_>| {
            // SAFETY: the arguments are the kernel's, and the buffer has 8 elements, each of which
            // a thread reads and writes.
            unsafe {
                frontier.launch_untyped(&offset_copy, per(8, 8), params![values, values, 10_u32, 8_u32])
            }
            .unwrap()
        };
        let kernel = add(&from, between());
        let fill = graph.between(&kernel, &last).unwrap().fill(from.slice(..4).unwrap(), 5).unwrap();
        let child = graph.between(&fill, &last).unwrap().child(&inner).unwrap();
        let second = add(&from, graph.between(&fill, &child).unwrap());
        graph.between(&second, &child).unwrap().empty().unwrap();
        assert_eq!(graph.view().edges.len(), 6);
        graph.instantiate().unwrap().launch(&stream).unwrap();
        assert_eq!(to.read_blocking(&stream).unwrap(), [15, 15, 15, 15, 21, 21, 21, 21]);
    });
}

#[test]
fn nodes_are_put_before_others() {
    let context = setup();
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let nodes = empties(&graph, 4);
        graph.add_edge(&nodes[0], &nodes[1]).unwrap();
        let frontier = nodes[0].then().before([&nodes[2], &nodes[3], &nodes[2]]).unwrap();
        let (new, cost) = count(|| frontier.empty().unwrap());
        cost.assert_calls(&[("cuGraphAddNode", 1), ("cuGraphAddDependencies", 1)]);
        assert_eq!(graph.view().edges, [(0, 1), (0, 4), (4, 2), (4, 3)]);
        let first = graph.root().before([&nodes[0]]).unwrap().empty().unwrap();
        assert_eq!(graph.view().edges, [(0, 1), (0, 4), (4, 2), (4, 3), (5, 0)]);
        assert_eq!(first.successors().unwrap(), [(*nodes[0]).clone()]);
        let nothing: [&Node; 0] = [];
        let (_, cost) = count(|| new.then().before(nothing).unwrap().empty().unwrap());
        cost.assert_calls(&[("cuGraphAddNode", 1)]);
        let before = graph.view();
        // From the last to the first; and before itself.
        let error = nodes[2].then().before([&nodes[0]]).unwrap().empty().unwrap_err();
        let Error::Edge(EdgeError::Cycle { path }) = &error else { panic!("{error:?}") };
        assert_eq!(path.len(), 4, "{error}");
        assert!(error.to_string().contains("the new node"), "{error}");
        let error = nodes[2].then().before([&nodes[2]]).unwrap().empty().unwrap_err();
        assert!(matches!(error, Error::Edge(EdgeError::Cycle { .. })), "{error:?}");
        let frontier = nodes[1].then().before([&nodes[3]]).unwrap();
        nodes[3].remove().unwrap();
        let after_removal = graph.view();
        assert!(matches!(frontier.empty(), Err(Error::Node(NodeError::Removed { .. }))));
        assert!(matches!(nodes[1].then().before([&nodes[3]]), Err(Error::Node(NodeError::Removed { .. }))));
        assert_eq!(graph.view(), after_removal);
        assert_eq!(before.nodes.len(), after_removal.nodes.len() + 1);
        graph.instantiate().unwrap();
    });
}

#[test]
fn frontiers_take_more_nodes_and_kinds() {
    let context = setup();
    needs!(EdgeKinds);
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let [a, b, c] = kernels(&context, &graph);
        let empty = kernel(&context, "empty");
        let launch = |frontier: &Frontier<'_>| {
            // SAFETY: the kernel has no parameters and does nothing.
            unsafe { frontier.launch_untyped(&empty, per(1, 1), params![]) }
        };
        let frontier = graph
            .after_all([(&*a, Programmatic), (&*b, LaunchOrder)])
            .unwrap()
            .before_all([(&*c, Programmatic)])
            .unwrap();
        let (added, cost) = count(|| launch(&frontier));
        added.unwrap();
        cost.assert_calls(&[("cuGraphAddNode", 1), ("cuGraphAddDependencies", 1)]);
        assert_eq!(raw::edges_with_data(graph.raw), [(0, 3, (1, 1)), (1, 3, (2, 0)), (3, 2, (1, 1))]);
        let (added, cost) = count(|| launch(&graph.after([&a, &a]).unwrap()));
        added.unwrap();
        cost.assert_calls(&[("cuGraphAddNode", 1)]);
        assert_eq!(raw::edges_with_data(graph.raw).len(), 4);
        let before = graph.view();
        let error = graph.after_all([(&*a, Programmatic), (&*a, Full)]).unwrap_err();
        assert_eq!(
            error,
            Error::Edge(EdgeError::DuplicateEdge { from: "k0".into(), to: "the new node".into() })
        );
        let error = a.then().before([&*c]).unwrap().before_all([(&*c, Programmatic)]).unwrap_err();
        assert_eq!(
            error,
            Error::Edge(EdgeError::DuplicateEdge { from: "the new node".into(), to: "k2".into() })
        );
        let error = a.then().before_all([(&*c, Programmatic)]).unwrap().empty().unwrap_err();
        assert_eq!(
            error,
            Error::Edge(EdgeError::EdgeKind { kind: Programmatic, from: "the new node".into() })
        );
        assert_eq!(graph.view(), before);
        graph.instantiate().unwrap();
    });
}

/// Whichever call fails, the edge is there again and nothing else is.
#[test]
fn an_insertion_that_fails_changes_nothing() {
    let context = setup();
    needs!(EdgeKinds);
    no_leaks(|| {
        let spread = kernel(&context, "empty");
        let graph = Drawn::new(&context);
        let [a, b] = kernels(&context, &graph);
        graph.add_edges(&[(&a, &b, Programmatic)]).unwrap();
        let before = (graph.view(), raw::edges_with_data(graph.raw));
        // With an attribute, which is set after the add.
        let config = per(1, 1).priority(-1);
        let insert = || {
            // SAFETY: the kernel has no parameters and does nothing.
            unsafe { graph.between(&a, &b).unwrap().launch_untyped(&spread, config, params![]) }
        };
        for (call, code) in [
            (Call::cuGraphRemoveDependencies, CUresult::CUDA_ERROR_NOT_SUPPORTED),
            (Call::cuGraphAddNode, CUresult::CUDA_ERROR_OUT_OF_MEMORY),
            (Call::cuGraphKernelNodeSetAttribute, CUresult::CUDA_ERROR_INVALID_VALUE),
            (Call::cuGraphAddDependencies, CUresult::CUDA_ERROR_OUT_OF_MEMORY),
        ] {
            let failure = fail(call, 1, code);
            let error = insert().unwrap_err();
            assert!(failure.hit(), "{call:?}");
            drop(failure);
            assert!(matches!(error, Error::Handles(_)), "{error:?}");
            assert!(error.to_string().contains(call.symbol().to_str().unwrap()), "{error}");
            assert_eq!((graph.view(), raw::edges_with_data(graph.raw)), before, "{call:?}");
        }
        insert().unwrap();
        assert_eq!(raw::edges_with_data(graph.raw), [(0, 2, (0, 0)), (2, 1, (0, 0))]);
        graph.add_edge(&a, &b).unwrap();
        let error = graph.add_edge(&b, &a).unwrap_err();
        assert!(matches!(error, Error::Edge(EdgeError::Cycle { .. })), "the order holds: {error:?}");
    });
}

/// If what was done cannot be taken back either, the graph is broken.
#[test]
fn an_insertion_that_cannot_be_taken_back_breaks_the_graph() {
    let context = setup();
    no_leaks(|| {
        let code = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
        // Neither the edge to the second node nor the one in its place is added; or neither the
        // node nor the edge in its place.
        for (call, nodes_then) in [(Call::cuGraphAddDependencies, 3), (Call::cuGraphAddNode, 2)] {
            let graph = Drawn::new(&context);
            let nodes = empties(&graph, 2);
            graph.add_edge(&nodes[0], &nodes[1]).unwrap();
            let (first, second) = (fail(call, 1, code), fail(Call::cuGraphAddDependencies, 1, code));
            let error = graph.between(&nodes[0], &nodes[1]).unwrap().empty().unwrap_err();
            assert!(first.hit() && second.hit());
            drop((first, second));
            let Error::Broken(broken) = &error else { panic!("{error:?}") };
            assert!(broken.cause.to_string().contains(call.symbol().to_str().unwrap()), "{error}");
            assert!(broken.undo.to_string().contains("cuGraphAddDependencies"), "{error}");
            assert_eq!(graph.view().nodes.len(), nodes_then);
            assert_broken(&graph, &error);
        }
    });
}

#[test]
fn a_graph_is_not_moved_before_others() {
    let context = setup();
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let last = graph.root().empty().unwrap();
        let inner = context.graph().unwrap();
        inner.root().empty().unwrap();
        let kept = inner.clone();
        match graph.root().before([&*last]).unwrap().child_moved(inner) {
            Err(Error::Edge(EdgeError::MovesBefore)) => {}
            Err(Error::Embed(EmbedError::CannotMove { .. })) => skip!("the driver cannot move graphs"),
            other => panic!("{other:?}"),
        }
        assert_eq!(kept.len(), Ok(1));
        assert_eq!(graph.view().nodes.len(), 1);
    });
}

/// Nodes put again and again at one place do not make each other dear.
#[test]
fn insertion_at_one_place_stays_cheap() {
    const TIMES: u64 = 1_000;
    let context = setup();
    no_leaks(|| {
        for which in 0..3 {
            let graph = Drawn::new(&context);
            let nodes = empties(&graph, 3);
            graph.add_edges(&[(&nodes[0], &nodes[1], Full), (&nodes[1], &nodes[2], Full)]).unwrap();
            let (mut low, mut high): (Node, Node) = ((*nodes[0]).clone(), (*nodes[1]).clone());
            let ((), cost) = count(|| {
                for time in 0..TIMES {
                    let node: Node = graph.between(&low, &high).unwrap().empty().unwrap().into();
                    if which == 0 || which == 2 && time % 2 == 0 { low = node } else { high = node }
                }
            });
            assert_eq!(cost.calls("cuGraphAddNode"), TIMES);
            assert!(cost.total() < 14 * TIMES, "{which}: {cost}");
            assert_eq!(graph.view().edges.len() as u64, TIMES + 2);
            assert!(matches!(
                graph.add_edge(&nodes[2], &nodes[0]),
                Err(Error::Edge(EdgeError::Cycle { .. }))
            ));
        }
    });
}
