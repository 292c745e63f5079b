//! The neighbours of a node, as sets that can be changed.

use cuda_graph::EdgeKind::{Full, Programmatic};
use cuda_graph::{EdgeError, Error, Node, NodeError};
use cuda_sys::{CUresult, Call};
use cuda_tests::{count, fail, needs, no_leaks, raw, setup};

use crate::common::driver_view::Drawn;
use crate::edges::changes::{empties, kernels, names};

fn sorted(nodes: &[Node]) -> Vec<String> {
    let mut names = names(nodes);
    names.sort();
    names
}

#[test]
fn predecessors_and_successors_are_replaced() {
    let context = setup();
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let nodes = empties(&graph, 6);
        let hub = graph.after([&nodes[0], &nodes[1], &nodes[2]]).unwrap().empty().unwrap().named("hub");
        let (set, cost) = count(|| {
            hub.set_in_edges(&[(&nodes[1], Full), (&nodes[3], Full), (&nodes[2], Full), (&nodes[3], Full)])
        });
        set.unwrap();
        cost.assert_calls(&[
            ("cuGraphNodeGetDependencies", 1),
            ("cuGraphRemoveDependencies", 1),
            ("cuGraphAddDependencies", 1),
        ]);
        // A driver may put the last edge in the place of one that is removed.
        assert_eq!(sorted(&hub.predecessors().unwrap()), ["1", "2", "3"]);
        let (same, cost) =
            count(|| hub.set_in_edges(&[(&nodes[3], Full), (&nodes[2], Full), (&nodes[1], Full)]));
        same.unwrap();
        cost.assert_calls(&[("cuGraphNodeGetDependencies", 1)]);
        // A driver may put the last edge in the place of one that is removed.
        assert_eq!(sorted(&hub.predecessors().unwrap()), ["1", "2", "3"]);
        let (only, cost) = count(|| hub.set_in_edges(&[(&nodes[1], Full)]));
        only.unwrap();
        cost.assert_calls(&[("cuGraphNodeGetDependencies", 1), ("cuGraphRemoveDependencies", 1)]);
        // Nodes that were there before.
        let (set, cost) = count(|| hub.set_out_edges(&[(&nodes[4], Full), (&nodes[0], Full)]));
        set.unwrap();
        assert_eq!(cost.calls("cuGraphAddDependencies"), 1);
        assert_eq!(cost.calls("cuGraphRemoveDependencies"), 0);
        assert_eq!(graph.view().edges, [(1, 6), (6, 0), (6, 4)]);
        hub.set_out_edges(&[(&nodes[5], Full)]).unwrap();
        assert_eq!(graph.view().edges, [(1, 6), (6, 5)]);
        hub.set_in_edges(&[]).unwrap();
        hub.set_out_edges(&[]).unwrap();
        assert!(graph.view().edges.is_empty());
        graph.instantiate().unwrap();
    });
}

#[test]
fn what_is_wrong_with_a_set_changes_nothing() {
    let context = setup();
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let nodes = empties(&graph, 4);
        graph.add_edges(&[(&nodes[0], &nodes[1], Full), (&nodes[1], &nodes[2], Full)]).unwrap();
        let stranger = Drawn::new(&context).root().empty().unwrap().named("stranger");
        let gone = graph.root().empty().unwrap();
        gone.remove().unwrap();
        let before = graph.view();
        let refused = [
            (
                nodes[1].set_in_edges(&[(&nodes[3], Full), (&stranger, Full)]),
                Error::Node(NodeError::Foreign { node: "stranger".into() }),
            ),
            (
                nodes[1].set_in_edges(&[(&nodes[3], Full), (&gone, Full)]),
                Error::Node(NodeError::Removed { node: gone.name().into() }),
            ),
            (
                gone.set_in_edges(&[(&nodes[3], Full)]),
                Error::Node(NodeError::Removed { node: gone.name().into() }),
            ),
            (
                nodes[1].set_in_edges(&[(&nodes[1], Full)]),
                Error::Edge(EdgeError::SelfEdge { node: "1".into() }),
            ),
            (
                nodes[1].set_in_edges(&[(&nodes[3], Full), (&nodes[2], Full)]),
                Error::Edge(EdgeError::Cycle { path: vec!["1".into(), "2".into()] }),
            ),
            (
                nodes[1].set_out_edges(&[(&nodes[3], Full), (&nodes[0], Full)]),
                Error::Edge(EdgeError::Cycle { path: vec!["0".into(), "1".into()] }),
            ),
            (
                nodes[1].set_in_edges(&[(&nodes[3], Full), (&nodes[3], Programmatic)]),
                Error::Edge(EdgeError::EdgeTwice { from: "3".into(), to: "1".into() }),
            ),
        ];
        for (result, expected) in refused {
            assert_eq!(result.unwrap_err(), expected);
            assert_eq!(graph.view(), before);
        }
    });
}

/// An edge may close a cycle with an edge that the same change removes.
#[test]
fn an_edge_that_goes_closes_no_cycle() {
    let context = setup();
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let nodes = empties(&graph, 3);
        graph.add_edges(&[(&nodes[0], &nodes[1], Full), (&nodes[1], &nodes[2], Full)]).unwrap();
        // 1 now after 2, and 2 after 0 alone.
        nodes[2].set_in_edges(&[(&nodes[0], Full)]).unwrap();
        nodes[1].set_in_edges(&[(&nodes[2], Full)]).unwrap();
        assert_eq!(graph.view().edges, [(0, 2), (2, 1)]);
        nodes[0].set_out_edges(&[]).unwrap();
        nodes[0].set_in_edges(&[(&nodes[1], Full)]).unwrap();
        assert_eq!(graph.view().edges, [(1, 0), (2, 1)]);
        let error = graph.add_edge(&nodes[0], &nodes[2]).unwrap_err();
        assert_eq!(error, Error::Edge(EdgeError::Cycle { path: vec!["2".into(), "1".into(), "0".into()] }));
    });
}

#[test]
fn kinds_stay_or_are_set() {
    let context = setup();
    needs!(EdgeKinds);
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let [a, b, c, d] = kernels(&context, &graph);
        d.set_in_edges(&[(&a, Programmatic), (&b, Full)]).unwrap();
        let seen = || raw::edges_with_data(graph.raw);
        assert_eq!(seen(), [(0, 3, (1, 1)), (1, 3, (0, 0))]);
        d.set_in_edges(&[(&c, Full), (&a, Programmatic)]).unwrap();
        assert_eq!(seen(), [(0, 3, (1, 1)), (2, 3, (0, 0))]);
        let (set, cost) = count(|| d.set_in_edges(&[(&a, Full), (&c, Full), (&b, Programmatic)]));
        set.unwrap();
        cost.assert_calls(&[
            ("cuGraphNodeGetDependencies", 1),
            ("cuGraphRemoveDependencies", 1),
            // One for each kind.
            ("cuGraphAddDependencies", 2),
        ]);
        assert_eq!(seen(), [(0, 3, (0, 0)), (1, 3, (1, 1)), (2, 3, (0, 0))]);
        a.set_out_edges(&[(&b, Programmatic)]).unwrap();
        assert_eq!(seen(), [(0, 1, (1, 1)), (1, 3, (1, 1)), (2, 3, (0, 0))]);
    });
}

/// If adding fails after edges were taken away, these are put back.
#[test]
fn a_replacement_that_fails_is_taken_back() {
    let context = setup();
    needs!(EdgeKinds);
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let [a, b, c, d] = kernels(&context, &graph);
        d.set_in_edges(&[(&a, Programmatic), (&b, Full)]).unwrap();
        let before = raw::edges_with_data(graph.raw);
        for call in [Call::cuGraphAddDependencies, Call::cuGraphRemoveDependencies] {
            let failure = fail(call, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
            let error = d.set_in_edges(&[(&c, Full)]).unwrap_err();
            assert!(failure.hit(), "{call:?}");
            assert!(matches!(error, Error::Handles(_)), "{error:?}");
            assert_eq!(raw::edges_with_data(graph.raw), before);
        }
        d.set_in_edges(&[(&c, Full)]).unwrap();
        assert_eq!(graph.view().edges, [(2, 3)]);
    });
}
