//! Clones of graphs, and finding nodes in them.

use std::collections::HashSet;

use cuda_graph::{ContextExt, EdgeError, EmbedError, Error, Graph, Node, NodeError, NodeKind};
use cuda_sys::{CUresult, Call};
use cuda_tests::{count, fail, no_leaks, raw, settle, setup};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::common::chains::{Bench, moves, names};
use crate::common::gone::{flag, soon};
use crate::rollback::broken::assert_broken;

#[test]
fn a_clone_is_a_graph_of_its_own_with_the_same_nodes() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let graph = bench.chain(&context, 2);
        let first = graph.nodes().unwrap().remove(0).named("first");
        let child = first.then().child(&bench.chain(&context, 2)).unwrap();
        let deep = child.embedded().unwrap().nodes().unwrap().remove(1).named("deep");
        let clone = graph.clone_graph().unwrap();
        assert_ne!(clone, graph);
        assert_eq!(names(&clone), names(&graph));
        assert_eq!(raw::edges(clone.as_raw().unwrap()), raw::edges(graph.as_raw().unwrap()));
        assert_eq!((bench.adds(&clone), bench.adds(&graph)), (4, 4));

        let twin = clone.find_clone_of(&first).unwrap();
        assert_eq!((twin.name(), twin.graph(), twin.kind()), ("first".to_owned(), &clone, first.kind()));
        assert_eq!(twin.successors().unwrap().len(), 2);
        let inside = clone.children().unwrap()[0].embedded().unwrap();
        assert_eq!(inside.find_clone_of(&deep).unwrap().name(), "deep");

        // Each goes its own way.
        first.remove().unwrap();
        bench.step(&twin.then());
        assert_eq!((clone.len().unwrap(), graph.len().unwrap()), (4, 2));
        drop((graph, first, child, deep));
        clone.add_edge(&clone.nodes().unwrap()[1], &clone.nodes().unwrap()[2]).unwrap();
        clone.add_edge(&clone.nodes().unwrap()[2], &clone.nodes().unwrap()[3]).unwrap();
        assert_eq!(bench.adds(&clone), 5);
    });
}

#[test]
fn look_ups_without_a_counterpart_say_so() {
    let context = setup();
    no_leaks(|| {
        let graph = context.graph().unwrap();
        let (a, b) = (graph.root().empty().unwrap(), graph.root().empty().unwrap());
        let child = graph.root().child(&graph.clone_graph().unwrap()).unwrap();
        let deep = child.embedded().unwrap().nodes().unwrap().remove(0);
        let clone = graph.clone_graph().unwrap();
        let late = graph.root().empty().unwrap().named("late");
        let ((), cost) = count(|| {
            // Added later, roles swapped, in the graph itself, of another graph, deeper than the
            // outer clone.
            let twin = clone.find_clone_of(&a).unwrap();
            for (graph, node) in [
                (&clone, &*late),
                (&graph, &twin),
                (&graph, &*a),
                (&clone, &twin),
                (&clone, &deep),
                (&Graph::clone(&clone), &*late),
            ] {
                let error = graph.find_clone_of(node).unwrap_err();
                assert!(matches!(error, Error::Node(NodeError::NotCloned { .. })), "{error}");
                assert!(error.to_string().contains(&node.name()), "{error}");
            }
        });
        cost.assert_calls(&[]);
        // The clone's node removed; the original removed, which the driver does not survive.
        clone.find_clone_of(&a).unwrap().remove().unwrap();
        assert!(matches!(clone.find_clone_of(&a), Err(Error::Node(NodeError::Removed { .. }))));
        b.remove().unwrap();
        assert!(matches!(clone.find_clone_of(&b), Err(Error::Node(NodeError::Removed { .. }))));
        // A new node at the old address is not taken for the removed one.
        let again = graph.root().empty().unwrap();
        assert!(matches!(clone.find_clone_of(&again), Err(Error::Node(NodeError::NotCloned { .. }))));
        assert!(matches!(clone.find_clone_of(&b), Err(Error::Node(NodeError::Removed { .. }))));
        // The clone's child is gone.
        let inside = clone.children().unwrap()[0].embedded().unwrap();
        assert!(inside.find_clone_of(&deep).is_ok());
        clone.children().unwrap()[0].remove().unwrap();
        assert!(matches!(inside.find_clone_of(&deep), Err(Error::Node(NodeError::GraphRemoved))));
    });
}

#[test]
fn nodes_are_found_in_clones_of_clones_whatever_became_of_those_between() {
    let context = setup();
    no_leaks(|| {
        let graph = context.graph().unwrap();
        let node = graph.root().empty().unwrap().named("node");
        let first = graph.clone_graph().unwrap();
        let second = first.clone_graph().unwrap();
        let between = first.find_clone_of(&node).unwrap();
        let last = second.find_clone_of(&node).unwrap();
        assert_eq!(last, second.find_clone_of(&between).unwrap());
        between.remove().unwrap();
        drop((first, between));
        assert_eq!(second.find_clone_of(&node).unwrap(), last);
        let outer = context.graph().unwrap();
        let inside = outer.root().child(&second).unwrap().embedded().unwrap();
        assert_eq!(inside.find_clone_of(&node).unwrap().name(), "node");
        assert_eq!(inside.find_clone_of(&last).unwrap().name(), "node");
        if moves() {
            let moved = outer.root().child_moved(second).unwrap().embedded().unwrap();
            assert_eq!(moved.find_clone_of(&node).unwrap(), moved.find_clone_of(&last).unwrap());
        }
    });
}

#[test]
fn an_embedded_graph_is_cloned_into_one_of_its_own() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let middle = bench.chain(&context, 2);
        bench.step(&middle.root());
        let graph = context.graph().unwrap();
        let inside = graph.root().child(&middle).unwrap().embedded().unwrap();
        let joined = inside.nodes().unwrap();
        inside.add_edge(&joined[1], &joined[2]).unwrap();
        let clone = inside.clone_graph().unwrap();
        drop((graph, middle));
        assert!(clone.parent().unwrap().is_none());
        assert_eq!(clone.find_clone_of(&joined[0]).unwrap(), clone.nodes().unwrap()[0]);
        drop((inside, joined));
        assert_eq!(bench.adds(&clone), 3);
    });
}

#[test]
fn an_embedded_graph_with_children_is_cloned_alone() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        for by_move in [false, true] {
            if by_move && !moves() {
                continue;
            }
            let graph = context.graph().unwrap();
            // One child is there before, of which one more lies in a child, and one comes later.
            let (source, middle) = (bench.chain(&context, 1), bench.chain(&context, 2));
            middle.root().child(&bench.chain(&context, 1)).unwrap();
            source.root().child(&middle).unwrap();
            let child = match by_move {
                true => graph.root().child_moved(source),
                false => graph.root().child(&source),
            };
            let inside = child.unwrap().embedded().unwrap();
            assert_eq!(bench.adds(&inside.clone_graph().unwrap()), 1 + 2 + 1);
            let later = inside.root().child(&bench.chain(&context, 3)).unwrap();
            let (deep, whole) = (later.embedded().unwrap(), graph.clone_graph().unwrap());
            let clone = inside.clone_graph().unwrap();
            agree(&clone);
            assert!(clone.parent().unwrap().is_none());
            assert_eq!(clone.find_clone_of(&later).unwrap().kind(), NodeKind::ChildGraph);
            // It is a graph of its own: removing the one leaves the other.
            assert_eq!(bench.adds(&deep.clone_graph().unwrap()), 3);
            later.remove().unwrap();
            assert_eq!(bench.adds(&inside.clone_graph().unwrap()), 1 + 2 + 1);
            drop(graph);
            assert_eq!((bench.adds(&clone), bench.adds(&whole)), (1 + 2 + 1 + 3, 1 + 2 + 1 + 3));
        }
    });
}

#[test]
fn where_the_driver_refuses_that_the_error_says_what_can_be_done() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let graph = context.graph().unwrap();
        let inside = graph.root().child(&bench.chain(&context, 1)).unwrap().embedded().unwrap();
        let refused = || fail(Call::cuGraphClone, 1, CUresult::CUDA_ERROR_INVALID_VALUE);
        // Without children it is some other refusal.
        let plain = refused();
        assert!(matches!(inside.clone_graph(), Err(Error::Handles(_))));
        drop(plain);
        inside.root().child(&bench.chain(&context, 2)).unwrap();
        let with_children = refused();
        let error = inside.clone_graph().unwrap_err();
        assert!(with_children.hit());
        drop(with_children);
        assert_eq!(error, Error::Embed(EmbedError::HoldsChildren));
        assert!(error.to_string().contains("clone the whole"), "{error}");
        assert_eq!(bench.adds(&graph.clone_graph().unwrap()), 3);
        assert_eq!(bench.adds(&inside.clone_graph().unwrap()), 3);
    });
}

#[test]
fn new_edges_of_a_clone_are_checked_for_cycles_as_those_of_the_original() {
    let context = setup();
    no_leaks(|| {
        let graph = context.graph().unwrap();
        let nodes: Vec<Node> = (0..6).map(|_| graph.root().empty().unwrap().into()).collect();
        // An order against that of creation.
        for pair in nodes.windows(2) {
            graph.add_edge(&pair[1], &pair[0]).unwrap();
        }
        for clone in [
            graph.clone_graph().unwrap(),
            context.graph().unwrap().root().child(&graph).unwrap().embedded().unwrap(),
        ] {
            let twins: Vec<Node> = nodes.iter().map(|node| clone.find_clone_of(node).unwrap()).collect();
            let late = twins[0].then().empty().unwrap();
            for (from, to) in [(&twins[0], &twins[5]), (&late, &twins[3]), (&twins[1], &twins[2])] {
                assert!(matches!(clone.add_edge(from, to), Err(Error::Edge(EdgeError::Cycle { .. }))));
            }
            clone.add_edge(&twins[5], &twins[0]).unwrap();
            clone.add_edge(&twins[4], &late).unwrap();
        }
    });
}

#[test]
fn cloning_costs_one_call_and_the_look_at_the_clone() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let graph = bench.chain(&context, 10);
        let (clone, cost) = count(|| graph.clone_graph().unwrap());
        cost.assert_calls(&[("cuGraphGetNodes", 4), ("cuGraphClone", 1)]);
        let node = graph.nodes().unwrap().remove(4);
        let (_, cost) = count(|| clone.find_clone_of(&node).unwrap());
        cost.assert_calls(&[]);
        let ((), cost) = count(|| drop(clone));
        cost.assert_calls(&[("cuCtxGetCurrent", 1), ("cuGraphDestroy", 1)]);
    });
}

#[test]
fn the_order_of_creation_pairs_the_nodes_of_clones() {
    let context = setup();
    for many in [10, 100] {
        let bench = Bench::new(&context);
        let graph = context.graph().unwrap();
        let nodes: Vec<_> = (0..many).map(|_| graph.root().empty().unwrap()).collect();
        for node in nodes.iter().step_by(2) {
            node.remove().unwrap();
        }
        let step = bench.step(&nodes[1].then());
        let last = graph.root().child(&bench.chain(&context, 1)).unwrap();
        let clone = graph.clone_graph().unwrap();
        agree(&clone);
        for (node, twin) in graph.nodes().unwrap().iter().zip(raw::nodes(clone.as_raw().unwrap())) {
            assert_eq!(clone.find_clone_of(node).unwrap().as_raw().unwrap(), twin);
            // None of the originals is destroyed, so the driver may be asked.
            let mut found = core::ptr::null_mut();
            // SAFETY: node and clone live, and the out pointer is valid.
            raw::ok(unsafe {
                raw::driver().cuGraphNodeFindInClone(
                    &raw mut found,
                    node.as_raw().unwrap(),
                    clone.as_raw().unwrap(),
                )
            });
            assert_eq!(found, twin);
        }
        assert_eq!(clone.find_clone_of(&step).unwrap().predecessors().unwrap().len(), 1);
        clone.find_clone_of(&last).unwrap().remove().unwrap();
        assert_eq!(bench.adds(&clone), 1);
    }
}

#[test]
fn embedding_whose_clone_cannot_be_looked_into_is_undone() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let (graph, source) = (context.graph().unwrap(), bench.chain(&context, 2));
        let (owner, gone) = flag();
        source.keep(owner);
        let failure = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
        // The source is listed by two calls before.
        for (call, nth) in [(Call::cuGraphChildGraphNodeGetGraph, 1), (Call::cuGraphGetNodes, 3)] {
            let injected = fail(call, nth, failure);
            let error = graph.root().child(&source).unwrap_err();
            assert!(error.to_string().contains("cuGraph"), "{error}");
            assert!(injected.hit());
            assert_eq!((graph.len().unwrap(), graph.nodes().unwrap().len()), (0, 0));
            let injected = fail(call, nth, failure);
            if call == Call::cuGraphGetNodes {
                assert!(source.clone_graph().is_err());
            }
            drop(injected);
        }
        // Where it cannot be undone, the graph is broken and keeps all that the node uses.
        let injected = [fail(Call::cuGraphGetNodes, 4, failure), fail(Call::cuGraphDestroyNode, 1, failure)];
        let error = graph.root().child(&source).unwrap_err();
        assert!(injected.iter().all(cuda_tests::Injection::hit));
        drop(injected);
        assert_broken(&graph, &error);
        assert_eq!(bench.adds(&source), 2);
        drop(source);
        settle();
        assert!(!gone());
        drop(graph);
        assert!(soon(&gone));
    });
}

/// The old graph is gone by then, and nothing is known of the new one.
#[test]
fn a_replaced_graph_that_cannot_be_looked_into_breaks_the_graph() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let failure = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
        for (call, nth) in [(Call::cuGraphChildGraphNodeGetGraph, 1), (Call::cuGraphGetNodes, 3)] {
            let graph = context.graph().unwrap();
            let old = bench.chain(&context, 1);
            let (owner, old_gone) = flag();
            old.keep(owner);
            let child = graph.root().child(&old).unwrap();
            drop(old);
            let mut exec = graph.instantiate().unwrap();
            let source = bench.chain(&context, 3);
            let (owner, gone) = flag();
            source.keep(owner);
            let injected = fail(call, nth, failure);
            let error = child.set_graph(&source).unwrap_err();
            assert!(injected.hit());
            drop((injected, source));
            let Error::Broken(broken) = &error else { panic!("{error}") };
            assert!(broken.cause.to_string().contains(call.name()), "{error}");
            assert!(matches!(broken.undo, Error::Node(NodeError::NotRestored { .. })), "{error}");
            assert_broken(&graph, &error);
            assert!(child.embedded().is_ok_and(|inside| inside.nodes().unwrap_err() == error));
            // The executable has the old graph, the broken one what the new one uses.
            exec.launch(&bench.stream).unwrap();
            bench.stream.synchronize_blocking().unwrap();
            assert!(!old_gone() && !gone());
            drop(exec);
            assert!(soon(&old_gone) && !gone());
            drop((graph, child));
            assert!(soon(&gone));
        }
        // A refusal of the call itself changes nothing.
        let graph = context.graph().unwrap();
        let child = graph.root().child(&bench.chain(&context, 1)).unwrap();
        let inside = child.embedded().unwrap();
        let injected = fail(Call::cuGraphNodeSetParams, 1, CUresult::CUDA_ERROR_INVALID_VALUE);
        assert!(child.set_graph(&bench.chain(&context, 2)).is_err());
        drop(injected);
        assert_eq!(inside.len().unwrap(), 1);
        assert_eq!(bench.adds(&graph), 1);
    });
}

#[test]
fn large_graphs_are_cloned_embedded_and_moved_in_time_that_goes_with_their_nodes() {
    let context = setup();
    no_leaks(|| {
        let time = |nodes: usize| {
            let graph = context.graph().unwrap();
            let mut last: Node = graph.root().empty().unwrap().into();
            for _ in 1..nodes {
                last = last.then().empty().unwrap().into();
            }
            let start = std::time::Instant::now();
            let outer = context.graph().unwrap();
            let child = outer.root().child(&graph).unwrap();
            let inside = child.embedded().unwrap();
            assert_eq!(inside.find_clone_of(&last).unwrap().predecessors().unwrap().len(), 1);
            inside.find_clone_of(&last).unwrap().remove().unwrap();
            child.set_graph(&graph).unwrap();
            let clone = graph.clone_graph().unwrap();
            if moves() {
                outer.root().child_moved(clone).unwrap().remove().unwrap();
            }
            child.remove().unwrap();
            start.elapsed()
        };
        time(1_000);
        let (small, large) = (time(2_000), time(40_000));
        println!("2 000 nodes: {small:?}, 40 000 nodes: {large:?}");
        // Twenty times as many; what is quadratic would take four hundred times as long.
        assert!(large < small * 100, "2 000 nodes: {small:?}, 40 000 nodes: {large:?}");
    });
}

/// What is done to one of some graphs, drawn at random.
#[derive(Clone, Debug)]
enum Step {
    Add { after: Vec<prop::sample::Index> },
    Remove(prop::sample::Index),
    Connect(prop::sample::Index, prop::sample::Index),
    Clone,
    Embed(prop::sample::Index),
    Replace(prop::sample::Index, prop::sample::Index),
    Move(prop::sample::Index),
}

fn step() -> impl Strategy<Value = (prop::sample::Index, Step)> {
    let index = any::<prop::sample::Index>;
    let step = prop_oneof![
        4 => prop::collection::vec(index(), 0..3).prop_map(|after| Step::Add { after }),
        2 => index().prop_map(Step::Remove),
        2 => (index(), index()).prop_map(|(from, to)| Step::Connect(from, to)),
        1 => Just(Step::Clone),
        2 => index().prop_map(Step::Embed),
        1 => (index(), index()).prop_map(|(node, graph)| Step::Replace(node, graph)),
        1 => index().prop_map(Step::Move),
    ];
    (index(), step)
}

/// A graph and all that lie in it.
fn all_within(graph: &Graph) -> Vec<Graph> {
    let mut all = vec![graph.clone()];
    let mut at = 0;
    while let Some(graph) = all.get(at).cloned() {
        all.extend(graph.children().unwrap().iter().map(|child| child.embedded().unwrap()));
        at += 1;
    }
    all
}

/// Asserts that the table says what the driver says, for a graph and those in it; embedded graphs
/// are found in the driver, too.
fn agree(root: &Graph) {
    for graph in all_within(root) {
        let raw_nodes = raw::nodes(graph.as_raw().unwrap());
        let nodes = graph.nodes().unwrap();
        assert_eq!(nodes.iter().map(|node| node.as_raw().unwrap()).collect::<Vec<_>>(), raw_nodes);
        assert_eq!(nodes.iter().collect::<HashSet<_>>().len(), nodes.len());
        let place = |node: &Node| nodes.iter().position(|other| other == node).unwrap();
        let edges = graph.edges().unwrap();
        let mut edges: Vec<_> = edges.iter().map(|edge| (place(&edge.from), place(&edge.to))).collect();
        edges.sort_unstable();
        assert_eq!(edges, raw::edges(graph.as_raw().unwrap()));
        for child in graph.children().unwrap() {
            let mut inside = core::ptr::null_mut();
            // SAFETY: the node lives and the out pointer is valid.
            let result = unsafe {
                raw::driver().cuGraphChildGraphNodeGetGraph(child.as_raw().unwrap(), &raw mut inside)
            };
            raw::ok(result);
            assert_eq!(child.embedded().unwrap().as_raw().unwrap(), inside);
        }
    }
}

#[test]
fn whatever_is_cloned_embedded_and_moved_table_and_driver_agree() {
    const MANY: usize = 40;
    let context = setup();
    let mut runner = TestRunner::new(Config { cases: 60, failure_persistence: None, ..Config::default() });
    let steps = prop::collection::vec(step(), 1..40);
    runner
        .run(&steps, |steps| {
            no_leaks(|| {
                let mut roots = vec![context.graph().unwrap(), context.graph().unwrap()];
                for (which, step) in steps {
                    let all: Vec<Graph> = roots.iter().flat_map(all_within).collect();
                    let graph = which.get(&all);
                    let nodes = graph.nodes().unwrap();
                    let nodes_in_all: usize = all.iter().map(|graph| graph.len().unwrap()).sum();
                    match step {
                        Step::Add { after } if !nodes.is_empty() => {
                            let after = after.iter().map(|index| index.get(&nodes));
                            graph.after_all(after).unwrap().empty().unwrap();
                        }
                        Step::Add { .. } => drop(graph.root().empty().unwrap()),
                        Step::Remove(node) if !nodes.is_empty() => node.get(&nodes).remove().unwrap(),
                        Step::Connect(from, to) if !nodes.is_empty() => {
                            // Whether it can be is told by the test of edges.
                            let _ = graph.add_edge(from.get(&nodes), to.get(&nodes));
                        }
                        Step::Clone if roots.len() < 4 => roots.push(graph.clone_graph().unwrap()),
                        Step::Embed(of) if nodes_in_all < MANY => match graph.root().child(of.get(&all)) {
                            Ok(_) => assert!(of.get(&all).parent().unwrap().is_none()),
                            Err(
                                Error::Embed(EmbedError::EmbedsItself)
                                | Error::Embed(EmbedError::Embedded { .. }),
                            ) => {}
                            Err(error) => panic!("{error}"),
                        },
                        Step::Replace(node, of) if nodes_in_all < MANY => {
                            let children = graph.children().unwrap();
                            if !children.is_empty() {
                                match node.get(&children).set_graph(of.get(&all)) {
                                    Ok(())
                                    | Err(
                                        Error::Embed(EmbedError::EmbedsItself)
                                        | Error::Embed(EmbedError::Embedded { .. })
                                        | Error::Embed(EmbedError::ReplacesItself { .. }),
                                    ) => {}
                                    Err(error) => panic!("{error}"),
                                }
                            }
                        }
                        Step::Move(of) if moves() && roots.len() > 1 => {
                            let root = of.index(roots.len());
                            match graph.root().child_moved(roots[root].clone()) {
                                Ok(_) => drop(roots.remove(root)),
                                Err(Error::Embed(EmbedError::EmbedsItself)) => {}
                                Err(error) => panic!("{error}"),
                            }
                        }
                        _ => {}
                    }
                    roots.iter().for_each(agree);
                }
                for root in &roots {
                    root.instantiate().unwrap();
                }
            });
            Ok(())
        })
        .unwrap();
}
