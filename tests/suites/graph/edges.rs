use cuda_graph::{EmptyNode, Error, Node};
use cuda_tests::{count, no_leaks, setup};

use crate::drawn::{Drawn, View};

fn names(nodes: &[Node]) -> Vec<String> {
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
        graph.remove_edge(&b, &c).unwrap();
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
        assert_eq!(error, Error::DuplicateEdge { from: "a".into(), to: "b".into() });
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
        assert_eq!(error, Error::SelfEdge { node: "d".into() });
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
        assert_eq!(error, Error::Cycle { path: vec!["a".into(), "b".into(), "c".into()] });
        let text = error.to_string();
        assert!(text.contains("`a` -> `b` -> `c` -> `a`"), "{text}");
        let error = graph.add_edge(&b, &a).unwrap_err();
        assert_eq!(error, Error::Cycle { path: vec!["a".into(), "b".into()] });
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
        let Error::Cycle { path } = &error else { panic!("{error:?}") };
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
        assert_eq!(error, Error::Foreign { node: "a".into() });
        assert!(matches!(graph.add_edge(&stranger, &a), Err(Error::Foreign { .. })));
        assert!(matches!(graph.remove_edge(&stranger, &a), Err(Error::Foreign { .. })));
        assert!(matches!(graph.after([&a, &stranger]), Err(Error::Foreign { .. })));
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
            let error = graph.remove_edge(from, to).unwrap_err();
            assert_eq!(error, Error::NoEdge { from: from.name().into(), to: to.name().into() });
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
