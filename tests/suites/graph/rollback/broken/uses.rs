//! Each use of a broken graph, and of its nodes, is answered with the error.

use std::sync::Arc;

use cuda_graph::EdgeKind::Full;
use cuda_graph::{ContextExt, Error, Fallback, Graph, InstantiateOptions, Node};
use cuda_handles::Owner;
use cuda_tests::{Need, count};

use crate::common::chains::moves;

/// What can be asked of a graph that takes the driver's graph.
fn uses(graph: &Graph) -> Vec<(&'static str, Result<(), Error>)> {
    let other = || graph.context().graph().unwrap();
    let options = InstantiateOptions::new;
    let mut uses = vec![
        ("len", graph.len().map(drop)),
        ("nodes", graph.nodes().map(drop)),
        ("edges", graph.edges().map(drop)),
        ("children", graph.children().map(drop)),
        ("to_dot", graph.to_dot().map(drop)),
        ("to_svg", graph.to_svg().map(drop)),
        ("check", graph.check().map(drop)),
        ("add", graph.root().empty().map(drop)),
        ("as_raw", graph.as_raw().map(drop)),
        ("lend", graph.lend().map(drop)),
        ("clone", graph.clone_graph().map(drop)),
        ("embed", other().root().child(graph).map(drop)),
        ("embed in it", graph.root().child(&other()).map(drop)),
    ];
    if Need::Conditionals.is_met() {
        uses.push(("condition", graph.condition().map(drop)));
    }
    if moves() {
        uses.push(("move", other().root().child_moved(graph.clone()).map(drop)));
        uses.push(("move into it", graph.root().child_moved(other()).map(drop)));
    }
    // What an embedded graph is refused anyway.
    if graph.parent().is_ok_and(|parent| parent.is_none()) {
        uses.push(("instantiate", graph.instantiate().map(drop)));
        uses.push(("into_exec", graph.clone().instantiate().map(drop)));
        for fallback in [Fallback::HostLoop, Fallback::HostLoopAlways] {
            uses.push(("fallback", graph.instantiate_with_fallback(fallback, options()).map(drop)));
        }
    }
    uses
}

/// What can be asked of its nodes.
fn uses_of(node: &Node, other: &Node) -> Vec<(&'static str, Result<(), Error>)> {
    let graph = node.graph();
    vec![
        ("as_raw", node.as_raw().map(drop)),
        ("then", node.then().empty().map(drop)),
        ("predecessors", node.predecessors().map(drop)),
        ("out_edges", node.out_edges().map(drop)),
        ("set_in_edges", node.set_in_edges(&[(other, Full)])),
        ("set_out_edges", node.set_out_edges(&[(other, Full)])),
        ("add_edge", graph.add_edge(node, other)),
        ("remove_edges", graph.remove_edges(&[(node, other)])),
        ("edge_kind", graph.edge_kind(node, other).map(drop)),
        ("before", graph.root().before([node]).and_then(|at| at.empty().map(drop))),
        ("remove_bridging", node.remove_bridging()),
        ("remove", node.remove()),
        ("remove_nodes", graph.remove_nodes(&[node, other])),
    ]
}

/// Every use of the graph is answered with the error, without a call on the graph.
#[track_caller]
pub(crate) fn assert_broken(graph: &Graph, error: &Error) {
    let Error::Broken(broken) = error else { panic!("not broken: {error}") };
    let text = error.to_string();
    for cause in [&broken.cause, &broken.undo] {
        assert!(!matches!(cause, Error::Broken(_)), "{text}");
        assert!(text.contains(&cause.to_string()), "{text}");
    }
    for (what, outcome) in uses(graph) {
        assert_eq!(outcome.as_ref().unwrap_err(), error, "{what}");
    }
    // What is known without the driver is told.
    assert!(graph.parent().is_ok());
}

/// The same for two of its nodes; what was known of them is.
#[track_caller]
pub(super) fn assert_nodes_broken([node, other]: [&Node; 2], error: &Error) {
    let known = (node.name(), node.describe());
    assert!(known.1.is_ok(), "{known:?}");
    let (outcomes, cost) = count(|| uses_of(node, other));
    for (what, outcome) in outcomes {
        assert_eq!(outcome.as_ref().unwrap_err(), error, "{what}");
    }
    let called = ["cuGraphAddNode", "cuGraphDestroyNode", "cuGraphGetEdges", "cuGraphAddDependencies"];
    assert!(called.iter().all(|call| cost.calls(call) == 0), "{cost}");
    assert!(!node.is_removed() && node.graph().parent().is_ok());
    assert_eq!((node.name(), node.describe()), known);
    // A name and an owner are no changes of the driver's graph.
    let (held, named) = (Arc::new(()), node.clone().named("of a broken graph"));
    node.keep(Owner::shared(Arc::clone(&held))).unwrap();
    assert!(Arc::strong_count(&held) == 2 && node.name() == "of a broken graph");
    named.named(known.0);
}
