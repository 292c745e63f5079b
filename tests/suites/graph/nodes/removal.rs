//! Removing nodes, and the refusals of graphs with memory nodes.

use cuda_graph::EdgeKind::{Full, Programmatic};
use cuda_graph::{EdgeKind, Error, Node, NodeError};
use cuda_sys::{CUDA_MEM_ALLOC_NODE_PARAMS, CUmemAllocationType, CUmemLocationType, CUresult, Call};
use cuda_tests::{Kind, count, fail, live, needs, no_leaks, raw, settle, setup};

use crate::common::driver_view::Drawn;
use crate::edges::changes::{empties, kernels};
use crate::rollback::broken::assert_broken;

#[test]
fn many_nodes_are_removed_with_their_edges_and_owners() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let graph = Drawn::new(&context);
        let nodes = empties(&graph, 4);
        let fill = nodes[0].then().fill(&stream.zeros::<u32>(8).unwrap(), 1).unwrap();
        graph.add_edges(&[(&fill, &nodes[1], Full), (&nodes[1], &nodes[2], Full)]).unwrap();
        let before = live();
        let (removed, cost) = count(|| graph.remove_nodes(&[&nodes[1], &fill, &nodes[1]]));
        removed.unwrap();
        assert_eq!((cost.calls("cuGraphDestroyNode"), cost.calls("cuMemFreeAsync")), (2, 1), "{cost}");
        settle();
        assert_eq!(live().since(&before).of(Kind::Allocation), -1, "what the node used is let go of");
        assert!(nodes[1].is_removed() && fill.is_removed() && !nodes[0].is_removed());
        let view = graph.view();
        assert_eq!((view.nodes.len(), view.edges.len()), (3, 0));
        assert_eq!(graph.remove_nodes(&[]), Ok(()));
        let stranger = Drawn::new(&context).root().empty().unwrap().named("stranger");
        let error = graph.remove_nodes(&[&nodes[0], &stranger]).unwrap_err();
        assert_eq!(error, Error::Node(NodeError::Foreign { node: "stranger".into() }));
        let error = graph.remove_nodes(&[&nodes[0], &fill]).unwrap_err();
        assert!(matches!(error, Error::Node(NodeError::Removed { .. })), "{error:?}");
        assert_eq!(graph.view(), view);
        let all: Vec<Node> = graph.nodes().unwrap();
        graph.remove_nodes(&all.iter().collect::<Vec<_>>()).unwrap();
        assert_eq!(graph.len(), Ok(0));
    });
}

#[test]
fn a_failure_among_many_removals_says_which_are_gone() {
    let context = setup();
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let nodes = empties(&graph, 4);
        let all: Vec<&Node> = nodes.iter().map(|node| &**node).collect();
        let code = CUresult::CUDA_ERROR_NOT_SUPPORTED;
        let failure = fail(Call::cuGraphDestroyNode, 1, code);
        let error = graph.remove_nodes(&all).unwrap_err();
        drop(failure);
        assert!(matches!(error, Error::Handles(_)), "{error:?}");
        assert_eq!(graph.len(), Ok(4));
        let failure = fail(Call::cuGraphDestroyNode, 3, code);
        let error = graph.remove_nodes(&all).unwrap_err();
        drop(failure);
        let Error::RemovedSome { removed, cause } = &error else { panic!("{error:?}") };
        assert_eq!(removed, &["node `0` is removed", "node `1` is removed"]);
        assert!(matches!(**cause, Error::Handles(_)), "{cause}");
        assert!(error.to_string().contains("cuGraphDestroyNode"), "{error}");
        assert_eq!(graph.len(), Ok(2));
        assert!(nodes[1].is_removed() && !nodes[2].is_removed());
    });
}

#[test]
fn a_node_is_removed_and_the_others_keep_their_order() {
    let context = setup();
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let nodes = empties(&graph, 5);
        let middle = graph.after([&nodes[0], &nodes[1]]).unwrap().empty().unwrap();
        middle
            .set_out_edges(&[
                (&nodes[2], cuda_graph::EdgeKind::Full),
                (&nodes[3], cuda_graph::EdgeKind::Full),
            ])
            .unwrap();
        graph.add_edge(&nodes[0], &nodes[2]).unwrap();
        let (removed, cost) = count(|| middle.remove_bridging());
        removed.unwrap();
        cost.assert_calls(&[
            // Of the node and of its two successors.
            ("cuGraphNodeGetDependencies", 3),
            ("cuGraphNodeGetDependentNodes", 1),
            ("cuGraphRemoveDependencies", 1),
            ("cuGraphAddDependencies", 1),
            ("cuGraphDestroyNode", 1),
        ]);
        assert_eq!(graph.view().edges, [(0, 2), (0, 3), (1, 2), (1, 3)]);
        assert!(matches!(middle.remove_bridging(), Err(Error::Node(NodeError::Removed { .. }))));
        // At an end there is nothing to join.
        let (removed, cost) = count(|| nodes[0].remove_bridging());
        removed.unwrap();
        cost.assert_calls(&[
            ("cuGraphNodeGetDependencies", 1),
            ("cuGraphNodeGetDependentNodes", 1),
            ("cuGraphDestroyNode", 1),
        ]);
        assert_eq!(graph.view().edges, [(0, 1), (0, 2)]);
    });
}

#[test]
fn a_removal_that_fails_is_taken_back() {
    let context = setup();
    needs!(EdgeKinds);
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let [a, b, c, d] = kernels(&context, &graph);
        graph.add_edges(&[(&a, &b, Programmatic), (&b, &c, Full), (&b, &d, Programmatic)]).unwrap();
        let before = (graph.view(), raw::edges_with_data(graph.raw));
        for call in [Call::cuGraphRemoveDependencies, Call::cuGraphAddDependencies, Call::cuGraphDestroyNode]
        {
            let failure = fail(call, 1, CUresult::CUDA_ERROR_NOT_SUPPORTED);
            let error = b.remove_bridging().unwrap_err();
            assert!(failure.hit(), "{call:?}");
            assert!(matches!(error, Error::Handles(_)), "{error:?}");
            assert_eq!((graph.view(), raw::edges_with_data(graph.raw)), before, "{call:?}");
        }
        b.remove_bridging().unwrap();
        assert_eq!(raw::edges_with_data(graph.raw), [(0, 1, (0, 0)), (0, 2, (0, 0))]);
    });
}

/// The driver takes neither edges nor nodes out of a graph with memory nodes, but adds some.
#[test]
fn a_graph_with_memory_nodes_keeps_what_it_has() {
    let context = setup();
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let nodes = empties(&graph, 4);
        graph
            .add_edges(&[
                (&nodes[0], &nodes[1], Full),
                (&nodes[1], &nodes[2], Full),
                (&nodes[0], &nodes[3], Full),
            ])
            .unwrap();
        let mut params = CUDA_MEM_ALLOC_NODE_PARAMS::default();
        params.poolProps.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        params.poolProps.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        params.bytesize = 64;
        let mut alloc = core::ptr::null_mut();
        // SAFETY: the graph lives and nobody else uses it; the parameters are complete and the out
        // pointer is valid.
        raw::ok(unsafe {
            raw::driver().cuGraphAddMemAllocNode(
                &raw mut alloc,
                graph.raw,
                core::ptr::null(),
                0,
                &raw mut params,
            )
        });
        let before = (graph.view(), raw::edges_with_data(graph.raw));
        let [a, b, c, d] = [&nodes[0], &nodes[1], &nodes[2], &nodes[3]];
        let refused = [
            graph.remove_edges(&[(a, b)]),
            graph.remove_edges(&[(a, b), (b, c)]),
            c.set_in_edges(&[(a, cuda_graph::EdgeKind::Full)]),
            a.set_out_edges(&[]),
            graph.between(a, b).unwrap().empty().map(drop),
            b.remove(),
            graph.remove_nodes(&[d, c]),
            b.remove_bridging(),
        ];
        for (place, result) in refused.into_iter().enumerate() {
            let error = result.unwrap_err();
            assert!(matches!(error, Error::Handles(_)), "{place}: {error:?}");
            assert!(error.to_string().contains("CUDA_ERROR_NOT_SUPPORTED"), "{place}: {error}");
            assert_eq!((graph.view(), raw::edges_with_data(graph.raw)), before, "{place}");
        }
        // Adding is fine.
        graph.add_edge(d, c).unwrap();
        c.set_in_edges(&[
            (a, cuda_graph::EdgeKind::Full),
            (b, cuda_graph::EdgeKind::Full),
            (d, cuda_graph::EdgeKind::Full),
        ])
        .unwrap();
        d.then().before([&**c]).unwrap().empty().unwrap();
        assert_eq!(graph.view().nodes.len(), before.0.nodes.len() + 1);
        assert_eq!(graph.view().edges.len(), before.0.edges.len() + 4);
    });
}

/// Each kind is a call of its own: the edges of those before one that the driver does not know are
/// there.
#[test]
fn edges_that_a_driver_added_before_a_bad_one_are_taken_back() {
    let context = setup();
    needs!(EdgeKinds);
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let [a, b, c, d] = kernels(&context, &graph);
        graph.add_edge(&a, &b).unwrap();
        let unknown = EdgeKind::Other { from_port: 1, to_port: 0, kind: 0 };
        let batch: [(&Node, &Node, EdgeKind); 3] =
            [(&d, &c, Full), (&c, &b, Programmatic), (&d, &a, unknown)];
        let (error, cost) = count(|| graph.add_edges(&batch).unwrap_err());
        assert!(error.to_string().contains("CUDA_ERROR_INVALID_VALUE"), "{error}");
        assert_eq!(cost.calls("cuGraphRemoveDependencies"), 1, "{cost}");
        assert_eq!(graph.view().edges, [(0, 1)]);
        let failure = fail(Call::cuGraphRemoveDependencies, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        let error = graph.add_edges(&batch).unwrap_err();
        assert!(failure.hit());
        drop(failure);
        assert_eq!(raw::edges_with_data(graph.raw), [(0, 1, (0, 0)), (2, 1, (1, 1)), (3, 2, (0, 0))]);
        assert_broken(&graph, &error);
    });
}

/// Half of a batch that the driver did is taken back; if that is refused, too, the graph is broken.
#[test]
fn what_a_driver_did_of_a_failing_batch_is_taken_back() {
    let context = setup();
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let nodes = empties(&graph, 6);
        graph.add_edges(&[(&nodes[0], &nodes[1], Full), (&nodes[2], &nodes[1], Full)]).unwrap();
        let before = graph.view();
        // The call is not made at all: nothing was done, so that nothing is to be taken back.
        let code = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
        let failure = fail(Call::cuGraphAddDependencies, 1, code);
        let (error, cost) = count(|| {
            graph.add_edges(&[(&nodes[0], &nodes[4], Full), (&nodes[0], &nodes[5], Full)]).unwrap_err()
        });
        assert!(failure.hit() && matches!(error, Error::Handles(_)), "{error:?}");
        assert_eq!(cost.calls("cuGraphRemoveDependencies"), 0, "{cost}");
        assert_eq!(graph.view(), before);
        drop(failure);
        // Edges were taken away, others not added, and the first ones do not come back.
        let (first, second) =
            (fail(Call::cuGraphAddDependencies, 1, code), fail(Call::cuGraphAddDependencies, 1, code));
        let error = nodes[1]
            .set_in_edges(&[
                (&nodes[0], cuda_graph::EdgeKind::Full),
                (&nodes[3], cuda_graph::EdgeKind::Full),
                (&nodes[4], cuda_graph::EdgeKind::Full),
            ])
            .unwrap_err();
        assert!(first.hit() && second.hit());
        drop((first, second));
        assert_eq!(error.to_string().matches("cuGraphAddDependencies").count(), 2, "{error}");
        assert_broken(&graph, &error);
    });
}
