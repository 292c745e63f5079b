//! Edges, one by one and many at once, of every kind.

use cuda_graph::EdgeKind::{Full, LaunchOrder, Programmatic, ProgrammaticLaunchOrder};
use cuda_graph::{EdgeError, EdgeKind, EmptyNode, Error, Graph, KernelNode, Node, NodeError};
use cuda_handles::{Context, Error as HandleError};
use cuda_launch::{params, per};
use cuda_sys::{CUresult, Call};
use cuda_tests::{alone, count, fail, is_soft, kernel, needs, no_leaks, raw, setup};

use crate::common::driver_view::{Drawn, View};

/// The kinds of edges that a driver has, with the driver's numbers: port of origin and type.
pub(crate) const KINDS: [(EdgeKind, (u8, u8)); 4] =
    [(Full, (0, 0)), (Programmatic, (1, 1)), (LaunchOrder, (2, 0)), (ProgrammaticLaunchOrder, (2, 1))];

/// Kernel nodes that wait for nothing.
pub(crate) fn kernels<const N: usize>(context: &Context, graph: &Graph) -> [KernelNode; N] {
    let empty = kernel(context, "empty");
    core::array::from_fn(|place| {
        // SAFETY: the kernel has no parameters and does nothing.
        let node = unsafe { graph.root().launch_untyped(&empty, per(1, 1), params![]) };
        node.unwrap().named(format!("k{place}"))
    })
}

/// Empty nodes that wait for nothing, named by their number.
pub(crate) fn empties(graph: &Graph, count: usize) -> Vec<EmptyNode> {
    (0..count).map(|place| graph.root().empty().unwrap().named(place.to_string())).collect()
}

fn version_error(error: &Error) -> String {
    assert!(matches!(error, Error::Handles(HandleError::Missing(_))), "{error:?}");
    error.to_string()
}

pub(crate) fn names(nodes: &[Node]) -> Vec<String> {
    nodes.iter().map(Node::name).collect()
}

/// a → b → c, and d alone.
fn chain(context: &cuda_handles::Context) -> (Drawn, [EmptyNode; 4]) {
    let graph = Drawn::new(context);
    let a = graph.root().empty().unwrap().named("a");
    let b = a.then().empty().unwrap().named("b");
    let c = b.then().empty().unwrap().named("c");
    let d = graph.root().empty().unwrap().named("d");
    (graph, [a, b, c, d])
}

/// The driver still sees the chain, edges and all.
fn unchanged(graph: &Drawn, before: &View) {
    assert_eq!(graph.view(), *before);
    assert_eq!(before.edges, [(0, 1), (1, 2)]);
    assert_eq!(graph.edges().unwrap().len(), 2);
}

#[test]
fn edges_are_added_and_removed_and_seen_by_the_driver() {
    let context = setup();
    no_leaks(|| {
        let (graph, [a, b, c, d]) = chain(&context);
        graph.add_edge(&a, &d).unwrap();
        graph.add_edge(&d, &c).unwrap();
        assert_eq!(graph.view().edges, [(0, 1), (0, 3), (1, 2), (3, 2)]);
        assert_eq!(names(&c.predecessors().unwrap()), ["b", "d"]);
        assert_eq!(names(&a.successors().unwrap()), ["b", "d"]);
        let edges = graph.edges().unwrap();
        assert!(edges.iter().any(|edge| edge.from == *d && edge.to == *c));
        assert_eq!(edges.len(), 4);
        graph.remove_edges(&[(&b, &c)]).unwrap();
        assert_eq!(graph.view().edges, [(0, 1), (0, 3), (3, 2)]);
        graph.add_edge(&b, &c).unwrap();
        assert_eq!(graph.view().edges.len(), 4);
        assert!(a.predecessors().unwrap().is_empty() && c.successors().unwrap().is_empty());
    });
}

#[test]
fn an_edge_that_is_there_is_refused_by_the_names_of_its_ends() {
    let context = setup();
    no_leaks(|| {
        let (graph, [a, b, ..]) = chain(&context);
        let before = graph.view();
        let error = graph.add_edge(&a, &b).unwrap_err();
        assert_eq!(error, Error::Edge(EdgeError::DuplicateEdge { from: "a".into(), to: "b".into() }));
        assert!(error.to_string().contains("`a`") && error.to_string().contains("`b`"), "{error}");
        unchanged(&graph, &before);
    });
}

#[test]
fn an_edge_to_itself_is_refused() {
    let context = setup();
    no_leaks(|| {
        let (graph, [.., d]) = chain(&context);
        let before = graph.view();
        let error = graph.add_edge(&d, &d).unwrap_err();
        assert_eq!(error, Error::Edge(EdgeError::SelfEdge { node: "d".into() }));
        unchanged(&graph, &before);
    });
}

#[test]
fn an_edge_that_closes_a_cycle_is_refused_with_the_path() {
    let context = setup();
    no_leaks(|| {
        let (graph, [a, b, c, _]) = chain(&context);
        let before = graph.view();
        let error = graph.add_edge(&c, &a).unwrap_err();
        assert_eq!(error, Error::Edge(EdgeError::Cycle { path: vec!["a".into(), "b".into(), "c".into()] }));
        let text = error.to_string();
        assert!(text.contains("`a` -> `b` -> `c` -> `a`"), "{text}");
        let error = graph.add_edge(&b, &a).unwrap_err();
        assert_eq!(error, Error::Edge(EdgeError::Cycle { path: vec!["a".into(), "b".into()] }));
        unchanged(&graph, &before);
        graph.instantiate().unwrap();
    });
}

#[test]
fn a_cycle_through_many_nodes_is_found_too() {
    let context = setup();
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let first = graph.root().empty().unwrap();
        let mut last = first.clone();
        for _ in 0..2000 {
            last = last.then().empty().unwrap();
        }
        let error = graph.add_edge(&last, &first).unwrap_err();
        let Error::Edge(EdgeError::Cycle { path }) = &error else { panic!("{error:?}") };
        assert_eq!(path.len(), 2001);
        assert!(error.to_string().len() < 1000, "bounded");
        assert_eq!(graph.view().edges.len(), 2000);
    });
}

#[test]
fn nodes_of_another_graph_are_refused() {
    let context = setup();
    no_leaks(|| {
        let (graph, [a, ..]) = chain(&context);
        let (other, [stranger, ..]) = chain(&context);
        let (before, other_before) = (graph.view(), other.view());
        let error = graph.add_edge(&a, &stranger).unwrap_err();
        assert_eq!(error, Error::Node(NodeError::Foreign { node: "a".into() }));
        assert!(matches!(graph.add_edge(&stranger, &a), Err(Error::Node(NodeError::Foreign { .. }))));
        assert!(matches!(
            graph.remove_edges(&[(&stranger, &a)]),
            Err(Error::Node(NodeError::Foreign { .. }))
        ));
        assert!(matches!(graph.after([&a, &stranger]), Err(Error::Node(NodeError::Foreign { .. }))));
        unchanged(&graph, &before);
        unchanged(&other, &other_before);
    });
}

#[test]
fn an_edge_that_is_not_there_cannot_be_removed() {
    let context = setup();
    no_leaks(|| {
        let (graph, [a, b, c, d]) = chain(&context);
        let before = graph.view();
        for (from, to) in [(&a, &c), (&b, &a), (&a, &d), (&d, &d)] {
            let error = graph.remove_edges(&[(from, to)]).unwrap_err();
            assert_eq!(
                error,
                Error::Edge(EdgeError::NoEdge { from: from.name().into(), to: to.name().into() })
            );
        }
        unchanged(&graph, &before);
    });
}

#[test]
fn a_dependency_given_twice_counts_once() {
    let context = setup();
    no_leaks(|| {
        let (graph, [a, .., d]) = chain(&context);
        let join = graph.after([&a, &d, &a, &d]).unwrap().empty().unwrap();
        assert_eq!(names(&join.predecessors().unwrap()), ["a", "d"]);
        assert_eq!(graph.view().edges, [(0, 1), (0, 4), (1, 2), (3, 4)]);
    });
}

#[test]
fn many_dependencies_are_one_call() {
    let context = setup();
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let roots: Vec<EmptyNode> = (0..300).map(|_| graph.root().empty().unwrap()).collect();
        let frontier = graph.after_all(roots.iter().map(|node| &**node)).unwrap();
        let (join, cost) = count(|| frontier.empty().unwrap());
        assert_eq!(cost.total(), 1, "{cost}");
        assert_eq!(join.predecessors().unwrap().len(), 300);
        assert_eq!(graph.view().edges.len(), 300);
    });
}

#[test]
fn nodes_at_one_frontier_do_not_wait_for_each_other() {
    let context = setup();
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let frontier = graph.root();
        frontier.empty().unwrap();
        frontier.empty().unwrap();
        assert!(graph.view().edges.is_empty());
    });
}

#[test]
fn every_query_tells_kinds_as_the_driver_does() {
    let context = setup();
    needs!(EdgeKinds);
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let [a, b, c, d, e] = kernels(&context, &graph);
        let ends = [(&a, &b), (&b, &c), (&b, &d), (&c, &e)];
        let edges: Vec<(&Node, &Node, EdgeKind)> =
            ends.iter().zip(KINDS).map(|((from, to), (kind, _))| (&***from, &***to, kind)).collect();
        graph.add_edges(&edges).unwrap();
        let seen = raw::edges_with_data(graph.raw);
        assert_eq!(seen, [(0, 1, (0, 0)), (1, 2, (1, 1)), (1, 3, (2, 0)), (2, 4, (2, 1))]);
        let told = graph.edges().unwrap();
        assert_eq!(told.len(), 4);
        for (from, to, kind) in &edges {
            assert_eq!(graph.edge_kind(from, to), Ok(Some(*kind)));
            assert_eq!(graph.edge_kind(to, from), Ok(None));
            for list in [&told, &from.out_edges().unwrap(), &to.in_edges().unwrap()] {
                let edge = list.iter().find(|edge| edge.from == **from && edge.to == **to).unwrap();
                assert_eq!(edge.kind, *kind);
            }
        }
        assert_eq!(names(&b.successors().unwrap()), ["k2", "k3"]);
        assert_eq!(names(&b.predecessors().unwrap()), ["k0"]);
        graph.instantiate().unwrap();
    });
}

#[test]
fn many_edges_are_added_in_one_call_for_each_kind_and_removed_in_one() {
    let context = setup();
    needs!(EdgeKinds);
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let [a, b, c, d] = kernels(&context, &graph);
        let (added, cost) = count(|| {
            graph.add_edges(&[(&a, &b, Programmatic), (&a, &c, Full), (&c, &d, LaunchOrder), (&a, &d, Full)])
        });
        added.unwrap();
        // One look at each of the three nodes that edges enter.
        cost.assert_calls(&[("cuGraphNodeGetDependencies", 3), ("cuGraphAddDependencies", 3)]);
        let all = raw::edges_with_data(graph.raw);
        assert_eq!(all, [(0, 1, (1, 1)), (0, 2, (0, 0)), (0, 3, (0, 0)), (2, 3, (2, 0))]);
        let (removed, cost) = count(|| graph.remove_edges(&[(&c, &d), (&a, &b), (&a, &c)]));
        removed.unwrap();
        cost.assert_calls(&[("cuGraphNodeGetDependencies", 3), ("cuGraphRemoveDependencies", 1)]);
        assert_eq!(raw::edges_with_data(graph.raw), [(0, 3, (0, 0))]);
        let (nothing, cost) = count(|| (graph.add_edges(&[]), graph.remove_edges(&[])));
        assert_eq!(nothing, (Ok(()), Ok(())));
        cost.assert_calls(&[]);
    });
}

/// If the driver refuses a kind, no edge before it stays.
#[test]
fn a_batch_of_kinds_is_added_or_not() {
    let context = setup();
    needs!(EdgeKinds);
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let nodes: [KernelNode; 5] = kernels(&context, &graph);
        graph.add_edge(&nodes[0], &nodes[1]).unwrap();
        let before = raw::edges_with_data(graph.raw);
        for turn in 0..KINDS.len() {
            let mut kinds = KINDS;
            kinds.rotate_left(turn);
            let batch: Vec<(&Node, &Node, EdgeKind)> = (1..5)
                .zip(kinds)
                .map(|(to, (kind, _))| (&*nodes[to - 1], &*nodes[to], kind))
                .skip(1)
                .collect();
            for nth in 1..=batch.len() {
                let mut left = nth;
                // The plain call is another one than that with kinds.
                let full = batch.iter().position(|(.., kind)| *kind == Full).map(|place| place + 1);
                let call = match full {
                    Some(place) if place == nth => {
                        left = 1;
                        Call::cuGraphAddDependencies
                    }
                    Some(place) if place < nth => {
                        left -= 1;
                        Call::cuGraphAddDependencies_v12030
                    }
                    _ => Call::cuGraphAddDependencies_v12030,
                };
                let failure = fail(call, u64::try_from(left).unwrap(), CUresult::CUDA_ERROR_OUT_OF_MEMORY);
                let (result, cost) = count(|| graph.add_edges(&batch));
                assert!(failure.hit(), "{turn}, {nth}");
                assert!(matches!(result, Err(Error::Handles(_))), "{turn}, {nth}: {result:?}");
                assert_eq!(cost.calls("cuGraphRemoveDependencies"), u64::from(nth > 1), "{cost}");
                assert_eq!(raw::edges_with_data(graph.raw), before, "{turn}, {nth}");
            }
            graph.add_edges(&batch).unwrap();
            for (from, to, kind) in &batch {
                assert_eq!(graph.edge_kind(from, to), Ok(Some(*kind)));
            }
            let ends: Vec<(&Node, &Node)> = batch.iter().map(|(from, to, _)| (*from, *to)).collect();
            graph.remove_edges(&ends).unwrap();
            assert_eq!(raw::edges_with_data(graph.raw), before);
        }
    });
}

#[test]
fn an_edge_of_a_kind_is_removed_like_a_full_one() {
    let context = setup();
    needs!(EdgeKinds);
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let [a, b] = kernels(&context, &graph);
        for (kind, _) in KINDS {
            graph.add_edges(&[(&a, &b, kind)]).unwrap();
            let before = raw::edges_with_data(graph.raw);
            let failure = fail(Call::cuGraphRemoveDependencies, 1, CUresult::CUDA_ERROR_INVALID_VALUE);
            let error = graph.remove_edges(&[(&a, &b)]).unwrap_err();
            assert!(failure.hit() && error.to_string().contains("cuGraphRemoveDependencies"), "{error}");
            drop(failure);
            assert_eq!(raw::edges_with_data(graph.raw), before);
            let (removed, cost) = count(|| graph.remove_edges(&[(&a, &b)]));
            removed.unwrap();
            cost.assert_calls(&[("cuGraphRemoveDependencies", 1)]);
            assert!(raw::edges_with_data(graph.raw).is_empty());
        }
    });
}

#[test]
fn the_kind_of_an_edge_is_changed() {
    let context = setup();
    needs!(EdgeKinds);
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let [a, b, c] = kernels(&context, &graph);
        graph.add_edge(&a, &b).unwrap();
        for (kind, data) in KINDS.into_iter().rev() {
            let (changed, cost) = count(|| graph.set_edge_kind(&a, &b, kind));
            changed.unwrap();
            cost.assert_calls(&[
                ("cuGraphNodeGetDependencies", 1),
                ("cuGraphRemoveDependencies", 1),
                ("cuGraphAddDependencies", 1),
            ]);
            assert_eq!(raw::edges_with_data(graph.raw), [(0, 1, data)]);
            let (same, cost) = count(|| graph.set_edge_kind(&a, &b, kind));
            same.unwrap();
            cost.assert_calls(&[("cuGraphNodeGetDependencies", 1)]);
        }
        let error = graph.set_edge_kind(&a, &c, Programmatic).unwrap_err();
        assert_eq!(error, Error::Edge(EdgeError::NoEdge { from: "k0".into(), to: "k2".into() }));
        let failure = fail(Call::cuGraphAddDependencies_v12030, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        let error = graph.set_edge_kind(&a, &b, Programmatic).unwrap_err();
        assert!(failure.hit() && error.to_string().contains("OUT_OF_MEMORY"), "{error}");
        assert_eq!(raw::edges_with_data(graph.raw), [(0, 1, (0, 0))], "put back");
    });
}

#[test]
fn kinds_need_kernels_at_both_ends() {
    let context = setup();
    needs!(EdgeKinds);
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let [a, b] = kernels(&context, &graph);
        let empty = graph.root().empty().unwrap().named("empty");
        graph.add_edge(&a, &empty).unwrap();
        let before = graph.view();
        let refused = |error: Error, from: &str| {
            assert_eq!(error, Error::Edge(EdgeError::EdgeKind { kind: Programmatic, from: from.into() }));
            assert_eq!(graph.view(), before);
        };
        let (refusals, cost) = count(|| {
            [
                (graph.add_edges(&[(&b, &empty, Programmatic)]), "k1"),
                (graph.add_edges(&[(&empty, &b, Programmatic)]), "empty"),
                (empty.then_with(cuda_graph::EdgeKind::Programmatic).empty().map(drop), "empty"),
                (b.then_with(cuda_graph::EdgeKind::Programmatic).empty().map(drop), "k1"),
                (graph.after_all([(&*empty, Programmatic)]).map(drop), "empty"),
            ]
        });
        cost.assert_calls(&[]);
        for (refusal, from) in refusals {
            refused(refusal.unwrap_err(), from);
        }
        refused(graph.add_edges(&[(&a, &b, Programmatic), (&empty, &b, Programmatic)]).unwrap_err(), "empty");
        refused(graph.set_edge_kind(&a, &empty, Programmatic).unwrap_err(), "k0");
        refused(b.set_in_edges(&[(&empty, Programmatic)]).unwrap_err(), "empty");
        let error = graph.add_edges(&[(&a, &b, EdgeKind::Other { from_port: 1, to_port: 0, kind: 0 })]);
        assert!(error.unwrap_err().to_string().contains("CUDA_ERROR_INVALID_VALUE"));
        assert_eq!(graph.view(), before);
    });
}

#[test]
fn a_driver_without_kinds_has_full_edges_and_says_so() {
    alone!("CUDA_SOFT_VERSION" = "12.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    assert!(is_soft());
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let [a, b, c] = kernels(&context, &graph);
        graph.add_edges(&[(&a, &b, Full), (&c, &b, Full), (&c, &a, Full)]).unwrap();
        assert_eq!(graph.view().edges, [(0, 1), (2, 0), (2, 1)]);
        assert!(graph.edges().unwrap().iter().all(|edge| edge.kind == Full));
        assert_eq!(graph.edge_kind(&a, &b), Ok(Some(Full)));
        assert_eq!(names(&b.predecessors().unwrap()), ["k0", "k2"]);
        assert_eq!(c.out_edges().unwrap().len(), 2);
        let between = graph.between(&a, &b).unwrap().empty().unwrap();
        graph.remove_edges(&[(&c, &b)]).unwrap();
        b.set_in_edges(&[(&c, cuda_graph::EdgeKind::Full), (&a, cuda_graph::EdgeKind::Full)]).unwrap();
        between.remove_bridging().unwrap();
        let before = graph.view();
        assert_eq!(before.edges, [(0, 1), (2, 0), (2, 1)]);
        let (refusals, cost) = count(|| {
            let new = |frontier: cuda_graph::Frontier<'_>| {
                // SAFETY: the kernel has no parameters and does nothing.
                unsafe { frontier.launch_untyped(&kernel(&context, "empty"), per(1, 1), params![]) }.map(drop)
            };
            let at_a = graph.root().before_all([(&*a, Programmatic)]).unwrap();
            [
                graph.set_edge_kind(&a, &b, Programmatic),
                a.set_in_edges(&[(&c, LaunchOrder)]),
                new(a.then_with(cuda_graph::EdgeKind::Programmatic)),
                new(at_a),
            ]
        });
        for refusal in refusals {
            let text = version_error(&refusal.unwrap_err());
            assert!(text.contains("12.3") && text.contains("12.2"), "{text}");
        }
        assert_eq!(cost.calls("cuGraphRemoveDependencies"), 0, "{cost}");
        assert_eq!(graph.view(), before);
        version_error(&graph.add_edges(&[(&b, &c, Programmatic)]).unwrap_err());
        graph.remove_edges(&[(&a, &b), (&c, &a)]).unwrap();
        assert_eq!(graph.view().edges, [(2, 1)]);
    });
}

/// A batch with one bad edge changes nothing, wherever it stands.
#[test]
fn a_batch_is_checked_as_a_whole() {
    let context = setup();
    no_leaks(|| {
        let (graph, [a, b, c, d]) = chain(&context);
        let other = Drawn::new(&context);
        let stranger = other.root().empty().unwrap().named("stranger");
        let gone = graph.root().empty().unwrap();
        gone.remove().unwrap();
        let before = graph.view();
        let bad: [((&Node, &Node), Error); 7] = [
            ((&a, &stranger), Error::Node(NodeError::Foreign { node: "stranger".into() })),
            ((&a, &gone), Error::Node(NodeError::Removed { node: gone.name().into() })),
            ((&d, &d), Error::Edge(EdgeError::SelfEdge { node: "d".into() })),
            ((&a, &b), Error::Edge(EdgeError::DuplicateEdge { from: "a".into(), to: "b".into() })),
            ((&a, &d), Error::Edge(EdgeError::EdgeTwice { from: "a".into(), to: "d".into() })),
            ((&c, &a), Error::Edge(EdgeError::Cycle { path: vec!["a".into(), "b".into(), "c".into()] })),
            ((&d, &a), Error::Edge(EdgeError::Cycle { path: vec!["a".into(), "d".into()] })),
        ];
        for (edge, expected) in bad {
            let good: [(&Node, &Node); 2] = [(&a, &d), (&d, &c)];
            for place in 0..=2 {
                let mut edges: Vec<_> = good.iter().map(|(from, to)| (*from, *to, Full)).collect();
                edges.insert(place, (edge.0, edge.1, Full));
                let (result, cost) = count(|| graph.add_edges(&edges));
                match (result.unwrap_err(), &expected) {
                    // Either path may be reported.
                    (Error::Edge(EdgeError::Cycle { path }), Error::Edge(EdgeError::Cycle { .. })) => {
                        assert!(path.len() >= 2)
                    }
                    (error, expected) => assert_eq!(error, *expected),
                }
                assert_eq!(cost.calls("cuGraphAddDependencies"), 0, "{cost}");
                unchanged(&graph, &before);
            }
        }
        let error = graph.remove_edges(&[(&a, &b), (&a, &c), (&b, &c)]).unwrap_err();
        assert_eq!(error, Error::Edge(EdgeError::NoEdge { from: "a".into(), to: "c".into() }));
        let error = graph.remove_edges(&[(&a, &b), (&b, &c), (&a, &b)]).unwrap_err();
        assert_eq!(error, Error::Edge(EdgeError::EdgeTwice { from: "a".into(), to: "b".into() }));
        let error = graph.remove_edges(&[(&a, &b), (&stranger, &c)]).unwrap_err();
        assert_eq!(error, Error::Node(NodeError::Foreign { node: "stranger".into() }));
        let error = graph.remove_edges(&[(&a, &b), (&gone, &c)]).unwrap_err();
        assert_eq!(error, Error::Node(NodeError::Removed { node: gone.name().into() }));
        unchanged(&graph, &before);
    });
}

#[test]
fn an_edge_between_graphs_of_one_hierarchy_is_foreign() {
    let context = setup();
    no_leaks(|| {
        let inner = Drawn::new(&context);
        inner.root().empty().unwrap();
        let graph = Drawn::new(&context);
        let child = graph.root().child(&inner).unwrap().named("child");
        let outside = graph.root().empty().unwrap().named("outside");
        let embedded = child.embedded().unwrap();
        let inside = embedded.nodes().unwrap().remove(0).named("inside");
        let second = embedded.root().empty().unwrap().named("second");
        let before = graph.view();
        let foreign = |error: Error, node: &str| {
            assert_eq!(error, Error::Node(NodeError::Foreign { node: node.into() }));
            assert_eq!(graph.view(), before);
            assert_eq!(embedded.edges().unwrap(), []);
        };
        foreign(graph.add_edge(&outside, &inside).unwrap_err(), "inside");
        foreign(graph.add_edge(&inside, &outside).unwrap_err(), "inside");
        foreign(embedded.add_edge(&child, &inside).unwrap_err(), "child");
        foreign(graph.add_edge(&inside, &second).unwrap_err(), "inside");
        foreign(graph.remove_edges(&[(&inside, &second)]).unwrap_err(), "inside");
        foreign(
            outside
                .set_in_edges(&[(&child, cuda_graph::EdgeKind::Full), (&inside, cuda_graph::EdgeKind::Full)])
                .unwrap_err(),
            "inside",
        );
        foreign(graph.after([&outside, &inside]).unwrap_err(), "inside");
        foreign(outside.then().before([&inside]).unwrap_err(), "inside");
        foreign(graph.between(&outside, &second).unwrap_err(), "second");
        foreign(graph.remove_nodes(&[&outside, &inside]).unwrap_err(), "inside");
        embedded.add_edge(&second, &inside).unwrap();
        assert_eq!(names(&inside.predecessors().unwrap()), ["second"]);
        let error = embedded.add_edge(&inside, &second).unwrap_err();
        assert_eq!(error, Error::Edge(EdgeError::Cycle { path: vec!["second".into(), "inside".into()] }));
        child.remove().unwrap();
        assert_eq!(inside.predecessors(), Err(Error::Node(NodeError::GraphRemoved)));
        assert_eq!(embedded.edges(), Err(Error::Node(NodeError::GraphRemoved)));
    });
}

#[test]
fn five_thousand_neighbours_are_complete() {
    const MANY: usize = 5_000;
    let context = setup();
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let before = empties(&graph, MANY);
        let hub = graph.after_all(before.iter().map(|node| &**node)).unwrap().empty().unwrap();
        let after: Vec<EmptyNode> = (0..MANY).map(|_| hub.then().empty().unwrap()).collect();
        assert!(hub.predecessors().unwrap().iter().eq(before.iter().map(|node| &**node)));
        assert!(hub.successors().unwrap().iter().eq(after.iter().map(|node| &**node)));
        assert!(hub.in_edges().unwrap().iter().all(|edge| edge.to == *hub && edge.kind == Full));
        assert_eq!(graph.edges().unwrap().len(), 2 * MANY);
        // Seven at once, eight and more by counting first.
        for (near, calls) in [(7, 1), (8, 3), (9, 3)] {
            let some = graph.after_all(before[..near].iter().map(|node| &**node)).unwrap().empty().unwrap();
            let (told, cost) = count(|| some.predecessors().unwrap());
            assert!(told.iter().eq(before[..near].iter().map(|node| &**node)));
            cost.assert_calls(&[("cuGraphNodeGetDependencies", calls)]);
        }
        let (kind, cost) = count(|| graph.edge_kind(&before[MANY / 2], &hub).unwrap());
        assert_eq!(kind, Some(Full));
        assert!(cost.total() <= 4, "{cost}");
        // All at once, and back.
        let away: Vec<(&Node, &Node)> = before.iter().map(|node| (&**node, &*hub)).collect();
        let (removed, cost) = count(|| graph.remove_edges(&away));
        removed.unwrap();
        cost.assert_calls(&[("cuGraphNodeGetDependencies", 3), ("cuGraphRemoveDependencies", 1)]);
        assert!(hub.predecessors().unwrap().is_empty());
        let (set, cost) = count(|| hub.set_out_edges(&[]));
        set.unwrap();
        cost.assert_calls(&[("cuGraphNodeGetDependentNodes", 3), ("cuGraphRemoveDependencies", 1)]);
        assert!(graph.edges().unwrap().len() < MANY);
        let edges: Vec<_> = after.iter().map(|node| (&**node, &*hub, Full)).collect();
        let (added, cost) = count(|| graph.add_edges(&edges));
        added.unwrap();
        assert_eq!(cost.calls("cuGraphAddDependencies"), 1);
        assert!(hub.predecessors().unwrap().iter().eq(after.iter().map(|node| &**node)));
    });
}

/// An edge is found wherever the driver is asked: at the end with fewer edges.
#[test]
fn edges_between_nodes_of_many_edges_are_found() {
    let context = setup();
    no_leaks(|| {
        for (entering, leaving) in [(300, 2), (300, 20), (300, 400), (20, 400), (2, 400)] {
            let graph = Drawn::new(&context);
            let (from, to) = (graph.root().empty().unwrap(), graph.root().empty().unwrap());
            let lonely = graph.root().empty().unwrap();
            for _ in 0..entering {
                graph.root().before([&*to]).unwrap().empty().unwrap();
            }
            for _ in 0..leaving {
                from.then().empty().unwrap();
            }
            assert_eq!(graph.edge_kind(&from, &to), Ok(None));
            graph.add_edge(&from, &to).unwrap();
            let (kind, cost) = count(|| graph.edge_kind(&from, &to));
            assert_eq!(kind, Ok(Some(Full)));
            assert!(cost.total() <= 5, "{cost}");
            assert_eq!(graph.edge_kind(&to, &from), Ok(None));
            assert_eq!(graph.edge_kind(&from, &lonely), Ok(None));
            let error = graph.add_edge(&from, &to).unwrap_err();
            assert!(matches!(error, Error::Edge(EdgeError::DuplicateEdge { .. })), "{error:?}");
            let error = graph.add_edges(&[(&lonely, &to, Full), (&from, &to, Full)]).unwrap_err();
            assert!(matches!(error, Error::Edge(EdgeError::DuplicateEdge { .. })), "{error:?}");
            graph.remove_edges(&[(&from, &to)]).unwrap();
            assert_eq!(graph.view().edges.len(), entering + leaving);
        }
    });
}
