//! Additions of nodes of which two driver calls fail.

use std::sync::Arc;

use cuda_graph::{ContextExt, Error, Frontier, Graph, LoopError, Node, Test};
use cuda_launch::{LaunchConfig, params, per};
use cuda_tests::{alone, needs, no_leaks, setup};

use super::keeping::{Keeps, Things, Used, goes, stays_until_the_graph_goes};
use super::uses::{assert_broken, assert_nodes_broken};
use super::{assert_ordered, every_two, failing};
use crate::common::driver_view::{Drawn, View};

/// A way to add a node at a frontier.
type Add = fn(&Things, &Used, &Frontier<'_>) -> Result<(), Error>;

pub(super) fn launch(
    things: &Things,
    used: &Used,
    at: &Frontier<'_>,
    config: LaunchConfig,
) -> Result<(), Error> {
    // SAFETY: the kernel takes an address; nothing of this is run.
    unsafe { at.launch_untyped(&things.kernels[1], config, params![&used.buffer, 1024_u32]) }.map(drop)
}

const ADDS: [(&str, Keeps, Add); 10] = [
    ("empty", Keeps::Nothing, |_, _, at| at.empty().map(drop)),
    ("launch", Keeps::Buffer, |things, used, at| launch(things, used, at, per(1, 32))),
    ("launch with attributes", Keeps::Buffer, |things, used, at| {
        launch(things, used, at, per(1, 32).priority(-1).cooperative())
    }),
    ("fill", Keeps::Buffer, |_, used, at| at.fill(&used.buffer, 1).map(drop)),
    ("copy", Keeps::Buffer, |things, used, at| at.copy(&used.buffer, &things.host).map(drop)),
    ("host function", Keeps::Held, |_, used, at| {
        let held = Arc::clone(&used.held);
        at.host(move || drop(Arc::clone(&held))).map(drop)
    }),
    ("record", Keeps::Nothing, |things, _, at| at.record(&things.event).map(drop)),
    ("wait", Keeps::Nothing, |things, _, at| at.wait(&things.event).map(drop)),
    ("batch", Keeps::Nothing, |things, _, at| at.batch(&things.batch).map(drop)),
    ("child graph", Keeps::Held, |_, used, at| at.child(&used.source).map(drop)),
];

/// Those that are only where the driver has conditional nodes.
const CONDITIONALS: [(&str, Keeps, Add); 4] = [
    ("if with default", Keeps::Nothing, |_, _, at| {
        let condition = root_of(at).condition_with_default(1)?;
        at.if_node(&condition).map(drop)
    }),
    ("while", Keeps::Nothing, |_, _, at| {
        let condition = root_of(at).condition()?;
        at.while_node(&condition).map(drop)
    }),
    ("loop", Keeps::Buffer, |_, used, at| {
        at.while_loop(Test::nonzero(&used.buffer), |body| body.root().empty()).map(drop)
    }),
    ("branch whose closure fails", Keeps::Buffer, |_, used, at| {
        let outcome = at.if_then(Test::nonzero(&used.buffer), |body| {
            body.root().empty()?;
            Err::<(), _>(Error::Loop(LoopError::NothingToTest))
        });
        match outcome {
            // As it is meant to.
            Err(Error::Loop(LoopError::NothingToTest)) => Ok(()),
            outcome => outcome.map(drop),
        }
    }),
];

/// Conditions are of any graph of the hierarchy.
fn root_of(at: &Frontier<'_>) -> Graph {
    at.graph().clone()
}

/// Where a node is added among `a` to `b` and `b` to `c`.
type Place = for<'g> fn(&'g Graph, [&Node; 3]) -> Result<Frontier<'g>, Error>;

const PLACES: [(&str, Place); 4] = [
    ("between", |graph, [a, b, _]| graph.between(a, b)),
    ("between, and before another", |graph, [a, b, c]| graph.between(a, b)?.before([c])),
    ("before two", |graph, [_, b, c]| graph.root().before([b, c])),
    ("after", |graph, [_, b, _]| graph.after([b])),
];

/// A graph, and the root that it lies in.
type Make = fn(&Things) -> (Graph, Drawn);

fn root(things: &Things) -> (Graph, Drawn) {
    let drawn = Drawn::new(things.context());
    (drawn.graph.clone(), drawn)
}

fn body(things: &Things) -> (Graph, Drawn) {
    let graph = things.context().graph().unwrap();
    let condition = graph.condition_with_default(1).unwrap();
    let body = graph.root().if_node(&condition).unwrap().body().unwrap();
    let raw = body.as_raw().unwrap();
    (graph, Drawn { graph: body, raw })
}

/// Everything that can be seen of a graph, by the library and by the driver.
fn state(graph: &Drawn) -> (Vec<Node>, Vec<cuda_graph::Edge>, View) {
    let mut edges = graph.edges().unwrap();
    edges.sort_by_key(|edge| (edge.from.name(), edge.to.name()));
    let mut view = graph.view();
    view.edges.sort_unstable();
    (graph.nodes().unwrap(), edges, view)
}

/// Lets every two driver calls of an addition fail; gives how often that broke the graph.
fn break_additions(
    things: &Things,
    make: Make,
    place: Place,
    (name, keeps, add): (&str, Keeps, Add),
) -> usize {
    let mut broken = 0;
    every_two(|calls| {
        let (root, graph) = make(things);
        let nodes = ["a", "b", "c"].map(|name| Node::from(graph.root().empty().unwrap()).named(name));
        let [a, b, c] = &nodes;
        graph.add_edge(a, b).unwrap();
        graph.add_edge(b, c).unwrap();
        let mut exec = root.instantiate().unwrap();
        let used = Used::new(things);
        let held = Arc::downgrade(&used.held);
        let before = state(&graph);
        let (outcome, hits) =
            failing(calls, || place(&graph, [a, b, c]).and_then(|at| add(things, &used, &at)));
        let what = format!("{name}, calls {calls:?}: {outcome:?}");
        match &outcome {
            Ok(()) => {}
            Err(error @ Error::Broken(_)) => {
                broken += 1;
                assert_broken(&graph, error);
                assert_broken(&root, error);
                assert_nodes_broken([b, c], error);
                exec.launch(&things.stream).unwrap();
                things.stream.synchronize_blocking().unwrap();
                drop(exec);
                stays_until_the_graph_goes(keeps, used, &held, &what, (before, root, graph, nodes));
            }
            Err(_) => {
                assert_eq!(state(&graph), before, "{what}");
                assert_ordered(&graph);
                goes(used, &held, &what);
                // It is added all the same once nothing fails.
                let again = Used::new(things);
                place(&graph, [a, b, c]).and_then(|at| add(things, &again, &at)).unwrap();
            }
        }
        hits
    });
    broken
}

#[test]
fn whichever_two_calls_fail_an_addition_is_made_or_not_or_breaks_the_graph() {
    let context = setup();
    needs!(EdgeKinds);
    no_leaks(|| {
        let things = Things::new(&context);
        for (name, place) in PLACES {
            for add in ADDS {
                let broken = break_additions(&things, root, place, add);
                // Behind others nothing is left to be undone but what comes after the add.
                let undoes = name != "after" || matches!(add.0, "launch with attributes" | "child graph");
                assert_eq!(broken > 0, undoes, "{name}: {}", add.0);
            }
        }
    });
}

#[test]
fn whichever_two_calls_fail_a_conditional_node_or_loop_is_made_or_not_or_breaks_the_graph() {
    let context = setup();
    needs!(EdgeKinds, Conditionals);
    let things = Things::new(&context);
    for (name, place) in PLACES {
        for add in CONDITIONALS {
            for (make, is_body) in [(root as Make, false), (body, true)] {
                let broken = break_additions(&things, make, place, add);
                let undoes =
                    name != "after" || is_body && add.0 == "if with default" || add.1 == Keeps::Buffer;
                assert!(broken > 0 || !undoes, "{name}: {}", add.0);
            }
        }
    }
}

/// There each body gets a node, which may fail as well.
#[test]
fn whichever_two_calls_fail_on_the_first_drivers_with_conditional_nodes() {
    alone!("CUDA_SOFT_VERSION" = "12.4", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    let things = Things::new(&context);
    for (_, place) in PLACES {
        for make in [root as Make, body] {
            assert!(break_additions(&things, make, place, CONDITIONALS[0]) > 0);
        }
    }
}
