//! Child graph nodes.

use std::sync::Barrier;

use cuda_graph::{ChildGraphNode, ContextExt, EdgeError, EmbedError, Error, Graph, NodeError, NodeKind};
use cuda_tests::{alone, count, is_soft, needs, no_leaks, other_device, raw, setup, skip};

use crate::common::chains::{Bench, N, moves, names};
use crate::common::driver_view::Drawn;

#[test]
fn a_child_runs_a_clone_of_its_graph() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let source = bench.chain(&context, 3);
        let graph = Drawn::new(&context);
        let first = graph.root().child(&source).unwrap().named("first");
        let second = bench.step(&first.then());
        let third = second.then().child(&source).unwrap();
        assert_eq!(graph.view().edges, [(0, 1), (1, 2)]);
        assert_eq!(bench.adds(&graph), 7);
        assert_eq!(bench.adds(&source), 3);

        assert_eq!((first.kind(), first.name()), (NodeKind::ChildGraph, "first".to_owned()));
        let nodes = graph.nodes().unwrap();
        assert_eq!(nodes, [(*first).clone(), second, (*third).clone()]);
        assert_eq!(ChildGraphNode::try_from(nodes[2].clone()).unwrap(), third);
        assert_eq!(graph.children().unwrap(), [first.clone(), third.clone()]);
        assert!(source.children().unwrap().is_empty());

        let inside = first.embedded().unwrap();
        assert_eq!((inside.len().unwrap(), inside.edges().unwrap().len()), (3, 2));
        assert_eq!(inside, first.embedded().unwrap());
        assert_ne!(inside, third.embedded().unwrap());
        assert_ne!(inside, graph.graph);
        assert_eq!(inside.context(), graph.context());
        assert_eq!(inside.parent().unwrap().unwrap(), *first);
        assert!(graph.parent().unwrap().is_none() && source.parent().unwrap().is_none());
        assert_eq!(format!("{inside:?}").split('(').next(), Some("Graph"));
    });
}

#[test]
fn source_and_clone_go_their_own_ways() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let source = bench.chain(&context, 2);
        let graph = context.graph().unwrap();
        let inside = graph.root().child(&source).unwrap().embedded().unwrap();
        bench.step(&source.nodes().unwrap()[1].then());
        source.nodes().unwrap()[0].remove().unwrap();
        source.nodes().unwrap()[0].remove().unwrap();
        assert_eq!((source.len().unwrap(), inside.len().unwrap()), (1, 2));
        assert_eq!(bench.adds(&graph), 2);
        inside.nodes().unwrap()[0].remove().unwrap();
        assert_eq!((source.len().unwrap(), inside.len().unwrap()), (1, 1));
        assert_eq!((bench.adds(&graph), bench.adds(&source)), (1, 1));
        drop(source);
        assert_eq!(bench.adds(&graph), 1);
    });
}

#[test]
fn inside_nodes_are_added_removed_and_connected_as_anywhere() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let source = bench.chain(&context, 1);
        let graph = context.graph().unwrap();
        let child = graph.root().child(&source).unwrap();
        let inside = child.embedded().unwrap();
        let only = inside.nodes().unwrap().remove(0);
        let join = inside.after([&only]).unwrap().empty().unwrap().named("join");
        let late = bench.step(&join.then());
        let loose = bench.step(&inside.root());
        inside.add_edge(&late, &loose).unwrap();
        assert_eq!(bench.adds(&graph), 3);
        assert_eq!(late.predecessors().unwrap(), [(*join).clone()]);
        assert_eq!(loose.predecessors().unwrap(), std::slice::from_ref(&late));
        let raw = inside.as_raw().unwrap();
        assert_eq!(raw::nodes(raw).len(), 4);
        assert_eq!(raw::edges(raw), [(0, 1), (1, 2), (2, 3)]);
        assert!(matches!(inside.add_edge(&loose, &only), Err(Error::Edge(EdgeError::Cycle { .. }))));
        inside.remove_edges(&[(&late, &loose)]).unwrap();
        late.remove().unwrap();
        assert_eq!(inside.len().unwrap(), 3);

        // Nodes of one graph have no edges to those of another.
        let outside = graph.root().empty().unwrap();
        for result in [inside.add_edge(&outside, &join), graph.add_edge(&outside, &join)] {
            assert!(matches!(result, Err(Error::Node(NodeError::Foreign { .. }))), "{result:?}");
        }
        assert!(matches!(graph.after([&only]), Err(Error::Node(NodeError::Foreign { .. }))));
        graph.add_edge(&outside, &child).unwrap();
    });
}

#[test]
fn an_embedded_graph_goes_with_its_node() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let inner = bench.chain(&context, 1);
        let middle = context.graph().unwrap();
        middle.root().child(&inner).unwrap();
        let graph = context.graph().unwrap();
        let child = graph.root().child(&middle).unwrap();
        let outer = child.embedded().unwrap();
        let deep = outer.children().unwrap()[0].embedded().unwrap();
        let node = deep.nodes().unwrap().remove(0);
        assert!(!node.is_removed());
        child.remove().unwrap();
        assert!(node.is_removed());
        assert!(matches!(child.embedded(), Err(Error::Node(NodeError::Removed { .. }))));
        assert!(matches!(node.remove(), Err(Error::Node(NodeError::GraphRemoved))));
        assert!(matches!(node.successors(), Err(Error::Node(NodeError::GraphRemoved))));
        for gone in [&outer, &deep] {
            assert!(matches!(gone.len(), Err(Error::Node(NodeError::GraphRemoved))));
            assert!(matches!(gone.root().empty(), Err(Error::Node(NodeError::GraphRemoved))));
            assert!(matches!(gone.clone_graph(), Err(Error::Node(NodeError::GraphRemoved))));
            assert!(matches!(gone.parent(), Err(Error::Node(NodeError::GraphRemoved))));
            assert!(matches!(graph.root().child(gone), Err(Error::Node(NodeError::GraphRemoved))));
        }
        // Its place is given to another one, which it is not taken for.
        let again = graph.root().child(&middle).unwrap().embedded().unwrap();
        assert_ne!(again, outer);
        assert!(matches!(outer.len(), Err(Error::Node(NodeError::GraphRemoved))));
        assert_eq!(again.len().unwrap(), 1);
        assert!(node.is_removed());
    });
}

#[test]
fn nodes_removed_from_the_source_before_do_not_mix_up_those_of_the_clone() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let source = context.graph().unwrap();
        let nodes: Vec<_> = (0..40).map(|i| bench.step(&source.root()).named(format!("n{i}"))).collect();
        for node in nodes.iter().step_by(3) {
            node.remove().unwrap();
        }
        // These get the places of the removed ones.
        for i in 40..45 {
            let _late = bench.step(&source.root()).named(format!("n{i}"));
        }
        let graph = context.graph().unwrap();
        let inside = graph.root().child(&source).unwrap().embedded().unwrap();
        assert_eq!(names(&inside), names(&source));
        for node in source.nodes().unwrap() {
            let twin = inside.find_clone_of(&node).unwrap();
            assert_eq!((twin.name(), twin.kind()), (node.name(), node.kind()));
            assert_eq!(twin.graph(), &inside);
        }
        // The table has the right node: its edges and parameters agree.
        let first = inside.nodes().unwrap().remove(0);
        let last = inside.nodes().unwrap().pop().unwrap();
        inside.add_edge(&first, &last).unwrap();
        let count = inside.len().unwrap();
        assert_eq!(raw::edges(inside.as_raw().unwrap()), [(0, count - 1)]);
    });
}

#[test]
fn children_lie_in_children_to_any_depth() {
    const DEPTH: u32 = 12;
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let mut graph = bench.chain(&context, 1);
        for level in 0..DEPTH {
            let outer = context.graph().unwrap();
            let child = outer.root().child(&graph).unwrap().named(format!("level {level}"));
            bench.step(&child.then());
            graph = outer;
        }
        assert_eq!(bench.adds(&graph), DEPTH + 1);
        let mut inside = graph.clone();
        for level in (0..DEPTH).rev() {
            let child = inside.children().unwrap().remove(0);
            assert_eq!(child.name(), format!("level {level}"));
            inside = child.embedded().unwrap();
            assert_eq!(inside.parent().unwrap().unwrap(), *child);
        }
        assert!(inside.children().unwrap().is_empty());
        bench.step(&inside.root());
        assert_eq!(inside.len().unwrap(), 2);
        let only = inside.nodes().unwrap().remove(0);
        inside.add_edge(&only, &inside.nodes().unwrap()[1]).unwrap();
        assert_eq!(bench.adds(&graph), DEPTH + 2);
        only.remove().unwrap();
        assert_eq!(bench.adds(&graph), DEPTH + 1);
    });
}

#[test]
fn a_graph_is_not_embedded_in_itself_nor_in_what_lies_in_it() {
    let context = setup();
    no_leaks(|| {
        let empty = context.graph().unwrap();
        assert!(matches!(empty.root().child(&empty), Err(Error::Embed(EmbedError::EmbedsItself))));
        let graph = context.graph().unwrap();
        let child = graph.root().child(&empty).unwrap();
        let inside = child.embedded().unwrap();
        let deep = inside.root().child(&empty).unwrap().embedded().unwrap();
        for (into, of) in
            [(&graph, &graph), (&inside, &graph), (&deep, &graph), (&deep, &inside), (&deep, &deep)]
        {
            let error = into.root().child(of).unwrap_err();
            assert_eq!(error, Error::Embed(EmbedError::EmbedsItself));
            assert!(error.to_string().contains("clone_graph"), "{error}");
            let inner = into.root().child(&empty).unwrap();
            assert_eq!(inner.set_graph(of), Err(Error::Embed(EmbedError::EmbedsItself)));
            inner.remove().unwrap();
        }
        assert_eq!((graph.len().unwrap(), inside.len().unwrap(), deep.len().unwrap()), (1, 1, 0));

        // A clone can be, and so can a clone of what lies inside, further out.
        let inner = graph.root().child(&deep.clone_graph().unwrap()).unwrap();
        inner.remove().unwrap();
        let clone = deep.root().child(&graph.clone_graph().unwrap()).unwrap();
        assert_eq!(clone.embedded().unwrap().children().unwrap().len(), 1);
        graph.instantiate().unwrap();
    });
}

#[test]
fn what_only_a_graph_of_its_own_can_do_is_refused_with_words() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let graph = context.graph().unwrap();
        let inside = graph.root().child(&bench.chain(&context, 2)).unwrap().embedded().unwrap();
        let other = context.graph().unwrap();
        let beside = graph.root().child(&other).unwrap();
        let (_, cost) = count(|| {
            let error = inside.instantiate().unwrap_err();
            assert!(error.to_string().contains("cannot be instantiated"), "{error}");
            for error in [
                graph.root().child(&inside).unwrap_err(),
                other.root().child(&inside).unwrap_err(),
                beside.set_graph(&inside).unwrap_err(),
            ] {
                assert!(error.to_string().contains("cannot be embedded"), "{error}");
                assert!(error.to_string().contains("clone_graph"), "{error}");
            }
            if moves() {
                let error = context.graph().unwrap().root().child_moved(inside.clone()).unwrap_err();
                assert!(matches!(error, Error::Embed(EmbedError::Embedded { .. })), "{error}");
            }
        });
        let calls = ["cuGraphInstantiateWithParams", "cuGraphAddNode", "cuGraphNodeSetParams"];
        assert!(calls.iter().all(|call| cost.calls(call) == 0), "{cost}");
        let clone = inside.clone_graph().unwrap();
        beside.set_graph(&clone).unwrap();
        drop((graph, inside, beside));
        assert_eq!(bench.adds(&clone), 2);
    });
}

#[test]
fn frontiers_with_removed_nodes_take_no_children() {
    let context = setup();
    no_leaks(|| {
        let (graph, source) = (context.graph().unwrap(), context.graph().unwrap());
        let node = graph.root().empty().unwrap();
        let then = node.then();
        node.remove().unwrap();
        assert!(matches!(then.child(&source), Err(Error::Node(NodeError::Removed { .. }))));
        if moves() {
            assert!(matches!(then.child_moved(source.clone()), Err(Error::Node(NodeError::Removed { .. }))));
            assert_eq!(source.len().unwrap(), 0, "it is still there");
        }
        assert!(graph.is_empty().unwrap());
    });
}

#[test]
fn graphs_of_another_context_are_refused() {
    alone!("CUDA_SOFT_DEVICES" = "2");
    let context = setup();
    needs!(TwoDevices);
    let other = other_device().context().unwrap().graph().unwrap();
    let graph = context.graph().unwrap();
    let error = graph.root().child(&other).unwrap_err();
    let [near, far] = [context.device(), other_device()].map(|device| device.ordinal());
    let words = format!(
        "the graph to embed belongs to the context of device {far}, the graph that embeds it to the context of device {near}"
    );
    assert_eq!(error.to_string(), words);
    assert!(graph.is_empty().unwrap() && other.is_empty().unwrap());
}

#[test]
fn the_graph_of_a_child_is_replaced_by_one_of_another_shape() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let graph = context.graph().unwrap();
        let child = graph.root().child(&bench.chain(&context, 1)).unwrap().named("child");
        bench.step(&child.then());
        let before = child.embedded().unwrap();
        let node = before.nodes().unwrap().remove(0);
        let mut exec = graph.instantiate().unwrap();
        let wide = bench.chain(&context, 4);
        let _named = wide.nodes().unwrap()[2].clone().named("third");
        child.set_graph(&wide).unwrap();
        assert_eq!(bench.adds(&graph), 5);
        assert!(matches!(before.len(), Err(Error::Node(NodeError::GraphRemoved))));
        assert!(node.is_removed());
        let after = child.embedded().unwrap();
        assert_eq!(names(&after)[2], "third");
        assert_eq!(after.find_clone_of(&wide.nodes().unwrap()[2]).unwrap().name(), "third");
        assert_eq!(child.successors().unwrap().len(), 1);
        assert_eq!(child.name(), "child");

        // An executable keeps what it was made of.
        bench.stream.fill(&bench.numbers, 0).unwrap();
        exec.launch(&bench.stream).unwrap();
        assert_eq!(bench.numbers.read_blocking(&bench.stream).unwrap(), [2; N]);

        let nested = context.graph().unwrap();
        nested.root().child(&wide).unwrap();
        child.set_graph(&nested).unwrap();
        assert_eq!(bench.adds(&graph), 5);
        let inner = child.embedded().unwrap().children().unwrap()[0].embedded().unwrap();
        assert_eq!(names(&inner)[2], "third");
        for within in [&inner, &child.embedded().unwrap()] {
            let error = child.set_graph(within).unwrap_err();
            assert!(matches!(error, Error::Embed(EmbedError::ReplacesItself { .. })), "{error}");
        }
        child.set_graph(&inner.clone_graph().unwrap()).unwrap();
        assert_eq!(bench.adds(&graph), 5);
        child.set_graph(&context.graph().unwrap()).unwrap();
        assert_eq!(bench.adds(&graph), 1);
        child.remove().unwrap();
        assert!(matches!(child.set_graph(&wide), Err(Error::Node(NodeError::Removed { .. }))));
    });
}

#[test]
fn embedding_costs_one_add_and_the_look_at_the_clone() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let source = bench.chain(&context, 8);
        source.root().child(&bench.chain(&context, 1)).unwrap();
        let graph = context.graph().unwrap();
        let (child, cost) = count(|| graph.root().child(&source).unwrap());
        let expected = [("cuGraphGetNodes", 8), ("cuGraphAddNode", 1), ("cuGraphChildGraphNodeGetGraph", 2)];
        cost.assert_calls(&expected);
        let (_, cost) = count(|| (child.embedded().unwrap(), child.embedded().unwrap().parent().unwrap()));
        cost.assert_calls(&[]);
        let (_, cost) = count(|| child.set_graph(&source).unwrap());
        let expected = expected.map(|(call, count)| match call {
            "cuGraphAddNode" => ("cuGraphNodeSetParams", count),
            _ => (call, count),
        });
        cost.assert_calls(&expected);
        let (_, cost) = count(|| child.remove().unwrap());
        cost.assert_calls(&[("cuGraphDestroyNode", 1)]);
        if moves() {
            let (_, cost) = count(|| graph.root().child_moved(source).unwrap());
            cost.assert_calls(&[("cuGraphGetNodes", 4), ("cuGraphAddNode", 1)]);
        }
    });
}

#[test]
fn threads_embed_graphs_in_each_other_in_any_order() {
    const ROUNDS: usize = 100;
    let context = setup();
    no_leaks(|| {
        let graphs: Vec<Graph> = (0..3).map(|_| context.graph().unwrap()).collect();
        for graph in &graphs {
            graph.root().empty().unwrap();
        }
        let small = context.graph().unwrap();
        small.root().empty().unwrap();
        let start = Barrier::new(6);
        std::thread::scope(|scope| {
            for (into, of) in [(0, 1), (1, 0), (1, 2), (2, 1), (2, 0), (0, 2)] {
                let (start, small, into, of) = (&start, &small, &graphs[into], &graphs[of]);
                scope.spawn(move || {
                    start.wait();
                    for round in 0..ROUNDS {
                        // Graphs that hold each other's clones of each other would grow without
                        // end.
                        let of = if of.children().unwrap().is_empty() { of } else { small };
                        let child = into.root().child(of).unwrap();
                        let inside = child.embedded().unwrap();
                        let clone = of.clone_graph().unwrap();
                        if round % 2 == 0 {
                            child.set_graph(&clone).unwrap();
                        } else {
                            inside.root().empty().unwrap();
                        }
                        child.remove().unwrap();
                        assert!(matches!(inside.len(), Err(Error::Node(NodeError::GraphRemoved))));
                    }
                });
            }
        });
        for graph in &graphs {
            assert_eq!(graph.len().unwrap(), 1);
        }
    });
}

#[test]
fn a_graph_is_moved_into_a_node() {
    let context = setup();
    needs!(MovedGraphs);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let source = bench.chain(&context, 2);
        let inner = source.nodes().unwrap()[1].then().child(&bench.chain(&context, 1)).unwrap();
        let (inside, deep) =
            (inner.embedded().unwrap(), inner.embedded().unwrap().nodes().unwrap().remove(0));
        let old = source.nodes().unwrap().remove(0).named("old");
        let mut exec = source.instantiate().unwrap();
        let raw = source.as_raw().unwrap();

        let graph = context.graph().unwrap();
        let child = graph.root().child_moved(source.clone()).unwrap();
        assert_eq!(bench.adds(&graph), 3);
        let moved = child.embedded().unwrap();
        assert_eq!(moved.as_raw().unwrap(), raw);
        assert_eq!(moved.len().unwrap(), 3);

        // The old handles lead nowhere; the nodes are found.
        for gone in [&source, &inside] {
            assert_eq!(gone.len(), Err(Error::Node(NodeError::GraphMoved)));
            assert!(matches!(gone.root().empty(), Err(Error::Node(NodeError::GraphMoved))));
            assert!(matches!(gone.clone_graph(), Err(Error::Node(NodeError::GraphMoved))));
            assert!(matches!(gone.parent(), Err(Error::Node(NodeError::GraphMoved))));
            assert!(matches!(graph.root().child(gone), Err(Error::Node(NodeError::GraphMoved))));
        }
        assert!(matches!(source.instantiate(), Err(Error::Node(NodeError::GraphMoved))));
        assert!(matches!(old.remove(), Err(Error::Node(NodeError::GraphMoved))));
        assert!(matches!(graph.root().child_moved(source.clone()), Err(Error::Node(NodeError::GraphMoved))));
        assert!(matches!(source.root().child_moved(graph.clone()), Err(Error::Node(NodeError::GraphMoved))));
        let new = moved.find_clone_of(&old).unwrap();
        assert_eq!((new.name(), new.graph()), ("old".to_owned(), &moved));
        let deep_now = moved.children().unwrap()[0].embedded().unwrap().find_clone_of(&deep).unwrap();
        assert_eq!(deep_now.kind(), NodeKind::Kernel);

        // It is used as any other; not moved, embedded or instantiated again, but cloned with the
        // whole.
        bench.step(&deep_now.then());
        assert_eq!(bench.adds(&graph), 4);
        new.remove().unwrap();
        assert_eq!(bench.adds(&graph), 3);
        assert!(matches!(moved.find_clone_of(&old), Err(Error::Node(NodeError::Removed { .. }))));
        let other = context.graph().unwrap();
        assert!(matches!(other.root().child(&moved), Err(Error::Embed(EmbedError::Embedded { .. }))));
        assert!(matches!(
            other.root().child_moved(moved.clone()),
            Err(Error::Embed(EmbedError::Embedded { .. }))
        ));
        assert!(matches!(moved.instantiate(), Err(Error::Embed(EmbedError::Embedded { .. }))));
        assert_eq!(bench.adds(&moved.clone_graph().unwrap()), 3);
        let clone = graph.clone_graph().unwrap();
        other.root().child_moved(clone).unwrap();
        assert_eq!(bench.adds(&other), 3);

        // The executable that was made before lives on, also when the node is gone.
        for _ in 0..2 {
            bench.stream.fill(&bench.numbers, 0).unwrap();
            exec.launch(&bench.stream).unwrap();
            assert_eq!(bench.numbers.read_blocking(&bench.stream).unwrap(), [3; N]);
            if !child.is_removed() {
                child.remove().unwrap();
            }
        }
        assert_eq!(moved.len(), Err(Error::Node(NodeError::GraphRemoved)));
    });
}

#[test]
fn a_graph_is_not_moved_into_itself_or_what_lies_in_it() {
    let context = setup();
    needs!(MovedGraphs);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let graph = bench.chain(&context, 1);
        let child = graph.root().child(&bench.chain(&context, 1)).unwrap();
        let inside = child.embedded().unwrap();
        let deep = inside.root().child(&context.graph().unwrap()).unwrap().embedded().unwrap();
        for into in [&graph, &inside, &deep] {
            assert_eq!(
                into.root().child_moved(graph.clone()).unwrap_err(),
                Error::Embed(EmbedError::EmbedsItself)
            );
        }
        // Two into each other: the second finds the first moved.
        let other = context.graph().unwrap();
        graph.root().child_moved(other.clone()).unwrap();
        assert!(matches!(other.root().child_moved(graph.clone()), Err(Error::Node(NodeError::GraphMoved))));
        assert!(matches!(deep.root().child_moved(other.clone()), Err(Error::Node(NodeError::GraphMoved))));
        graph.instantiate().unwrap();
    });
}

#[test]
fn threads_move_two_graphs_into_each_other_and_one_wins() {
    let context = setup();
    needs!(MovedGraphs);
    no_leaks(|| {
        for _ in 0..50 {
            let (a, b) = (context.graph().unwrap(), context.graph().unwrap());
            let start = Barrier::new(2);
            let won: Vec<bool> = std::thread::scope(|scope| {
                let threads = [(&a, &b), (&b, &a)].map(|(into, of)| {
                    let start = &start;
                    scope.spawn(move || {
                        start.wait();
                        match into.root().child_moved(of.clone()) {
                            Ok(_) => true,
                            Err(Error::Node(NodeError::GraphMoved)) => false,
                            Err(error) => panic!("{error}"),
                        }
                    })
                });
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(won.iter().filter(|won| **won).count(), 1);
            let outer = if won[0] { &a } else { &b };
            outer.instantiate().unwrap();
        }
    });
}

#[test]
fn an_older_driver_says_that_it_cannot_move() {
    alone!("CUDA_SOFT_VERSION" = "12.8");
    let context = setup();
    if !is_soft() {
        skip!("a real driver has the version that it has");
    }
    let (graph, source) = (context.graph().unwrap(), context.graph().unwrap());
    let error = graph.root().child_moved(source.clone()).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("12.9") && text.contains("12.8") && text.contains("Frontier::child"), "{text}");
    assert!(source.is_empty().unwrap() && graph.is_empty().unwrap());
    graph.root().child(&source).unwrap();
}
