//! Large graphs: the driver calls of each operation grow no faster than nodes and edges.

use cuda_graph::EdgeKind::Full;
use cuda_graph::{ConditionError, ContextExt, EdgeError, EdgeKind, EmptyNode, Error, Graph, Node};
use cuda_tests::{Kind, count, is_soft, live, needs, no_leaks, setup};

const NODES: usize = 100_000;

/// Chains side by side.
fn lanes(graph: &Graph, nodes: usize, lanes: usize) -> Vec<EmptyNode> {
    let mut all: Vec<EmptyNode> = Vec::with_capacity(nodes);
    for place in 0..nodes {
        let new = match place.checked_sub(lanes) {
            Some(before) => all[before].then().empty(),
            None => graph.root().empty(),
        };
        all.push(new.unwrap());
    }
    all
}

#[test]
fn a_hundred_thousand_nodes_are_built_asked_for_changed_and_dropped() {
    const LANES: usize = 32;
    let context = setup();
    no_leaks(|| {
        let before = live();
        let ((graph, nodes), cost) = count(|| {
            let graph = context.graph().unwrap();
            let nodes = lanes(&graph, NODES, LANES);
            (graph, nodes)
        });
        cost.assert_calls(&[("cuGraphCreate", 1), ("cuGraphAddNode", NODES as u64)]);
        let (listed, cost) = count(|| graph.nodes().unwrap());
        cost.assert_calls(&[("cuGraphGetNodes", 2)]);
        assert!(listed.iter().eq(nodes.iter().map(|node| &**node)));
        drop(listed);
        let (edges, cost) = count(|| graph.edges().unwrap());
        // Drivers list so many edges slowly.
        cost.assert_calls(&[
            ("cuGraphGetEdges", 1),
            ("cuGraphGetNodes", 2),
            ("cuGraphNodeGetDependencies", NODES as u64),
        ]);
        assert_eq!(edges.len(), NODES - LANES);
        drop(edges);
        // Along the order: from each node to the next one, at once.
        let along: Vec<(&Node, &Node, EdgeKind)> =
            nodes.windows(2).map(|pair| (&*pair[0], &*pair[1], Full)).collect();
        let (added, cost) = count(|| graph.add_edges(&along));
        added.unwrap();
        let calls = [("cuGraphNodeGetDependencies", NODES as u64 - 1), ("cuGraphAddDependencies", 1)];
        cost.assert_calls(&calls);
        let away: Vec<(&Node, &Node)> = along.iter().map(|(from, to, _)| (*from, *to)).collect();
        let (removed, cost) = count(|| graph.remove_edges(&away));
        removed.unwrap();
        cost.assert_calls(&[
            ("cuGraphNodeGetDependencies", NODES as u64 - 1),
            ("cuGraphRemoveDependencies", 1),
        ]);
        // And one by one.
        let ((), cost) = count(|| along.iter().for_each(|(from, to, _)| graph.add_edge(from, to).unwrap()));
        cost.assert_calls(&[("cuGraphAddDependencies", NODES as u64 - 1)]);
        // A cycle through all of it.
        let (cycle, cost) = count(|| graph.add_edge(&nodes[NODES - 1], &nodes[0]));
        let Err(Error::Edge(EdgeError::Cycle { path })) = cycle else { panic!("{cycle:?}") };
        assert!(path.len() > 1);
        assert!(cost.total() <= 2 * NODES as u64 + 10, "{cost}");
        let ((), cost) =
            count(|| away.iter().for_each(|(from, to)| graph.remove_edges(&[(from, to)]).unwrap()));
        cost.assert_calls(&[("cuGraphRemoveDependencies", NODES as u64 - 1)]);
        let half: Vec<&Node> = nodes[NODES / 2..].iter().map(|node| &**node).collect();
        let (removed, cost) = count(|| graph.remove_nodes(&half));
        removed.unwrap();
        cost.assert_calls(&[("cuGraphDestroyNode", NODES as u64 / 2)]);
        let ((), cost) = count(|| nodes[NODES / 4..NODES / 2].iter().for_each(|node| node.remove().unwrap()));
        cost.assert_calls(&[("cuGraphDestroyNode", NODES as u64 / 4)]);
        assert_eq!(graph.len(), Ok(NODES / 4));
        drop((along, away, half));
        let ((), cost) = count(|| drop((nodes, graph)));
        assert_eq!(cost.calls("cuGraphDestroy"), 1, "{cost}");
        assert!(cost.total() <= 3, "{cost}");
        assert_eq!(live().since(&before).of(Kind::Graph), 0);
    });
}

/// Whether one by one or at once: a chain against the order of its nodes asks for each of them once
/// or twice.
#[test]
fn a_long_chain_in_reverse_is_linear() {
    const LONG: usize = 20_000;
    let context = setup();
    no_leaks(|| {
        for which in 0..3 {
            let graph = context.graph().unwrap();
            let nodes = lanes(&graph, LONG, LONG);
            let mut edges: Vec<(&Node, &Node, EdgeKind)> =
                nodes.windows(2).map(|pair| (&*pair[1], &*pair[0], Full)).collect();
            let ((), cost) = count(|| match which {
                0 => graph.add_edges(&edges).unwrap(),
                1 => edges.iter().for_each(|(from, to, _)| graph.add_edge(from, to).unwrap()),
                _ => {
                    edges.reverse();
                    edges.iter().for_each(|(from, to, _)| graph.add_edge(from, to).unwrap());
                }
            });
            assert!(cost.total() <= 4 * LONG as u64, "{which}: {cost}");
            assert_eq!(graph.edges().unwrap().len(), LONG - 1);
            let closed = graph.add_edge(&nodes[0], &nodes[LONG - 1]);
            assert!(matches!(closed, Err(Error::Edge(EdgeError::Cycle { path })) if path.len() == LONG));
        }
    });
}

/// Conditions beside each other: each is found, and found to be left over, without a look at the
/// others.
#[test]
fn conditions_and_their_nodes_are_linear() {
    let context = setup();
    needs!(Conditionals, EmptyBodies);
    let many: u64 = if is_soft() { 20_000 } else { 2_000 };
    no_leaks(|| {
        let graph = context.graph().unwrap();
        let mut conditions = Vec::new();
        let mut nodes = Vec::new();
        let ((), cost) = count(|| {
            for _ in 0..many {
                let condition = graph.condition().unwrap();
                nodes.push(graph.root().if_node(&condition).unwrap());
                conditions.push(condition);
            }
        });
        cost.assert_calls(&[("cuGraphConditionalHandleCreate", many), ("cuGraphAddNode", many)]);
        for (condition, node) in conditions.iter().zip(&nodes) {
            assert_eq!(condition.node().unwrap().as_ref(), Some(&**node));
            node.body().unwrap().root().empty().unwrap();
        }
        assert!(graph.check().unwrap().is_clean());
        drop(graph.instantiate().unwrap());
        // Half of them are let go of: what the driver has for these is used again, one by one.
        let ((), cost) = count(|| nodes.iter().step_by(2).for_each(|node| node.remove().unwrap()));
        assert_eq!(cost.calls("cuGraphDestroyNode"), many / 2, "{cost}");
        drop(conditions);
        let ((), cost) = count(|| {
            for _ in 0..many / 2 {
                let condition = graph.condition().unwrap();
                graph.root().if_node(&condition).unwrap();
            }
        });
        cost.assert_calls(&[("cuGraphAddNode", many / 2)]);
        graph.condition().unwrap();
        let (unused, cost) = count(|| graph.instantiate().err());
        assert!(
            matches!(unused, Some(Error::Condition(ConditionError::UnusedCondition { .. }))),
            "{unused:?}"
        );
        assert!(cost.total() <= 10, "{cost}");
        drop((nodes, graph));
    });
}

/// Bodies in bodies. How deep a driver nests them, it does not say; on a GPU this is what was
/// tried.
#[test]
fn bodies_in_bodies_are_linear() {
    let context = setup();
    needs!(Conditionals, EmptyBodies);
    let deep: u64 = if is_soft() { 20_000 } else { 8 };
    no_leaks(|| {
        for default in [None, Some(1)] {
            let graph = context.graph().unwrap();
            let mut body = graph.clone();
            let ((), cost) = count(|| {
                for _ in 0..deep {
                    let condition = match default {
                        None => body.condition(),
                        Some(default) => body.condition_with_default(default),
                    };
                    body = body.root().if_node(&condition.unwrap()).unwrap().body().unwrap();
                }
            });
            // In a body, another node sets the default.
            let nodes = if default.is_some() { 2 * deep - 1 } else { deep };
            assert_eq!(cost.calls("cuGraphConditionalHandleCreate"), deep, "{cost}");
            assert_eq!(cost.calls("cuGraphAddNode"), nodes, "{cost}");
            body.root().empty().unwrap();
            assert!(graph.check().unwrap().is_clean());
            drop(graph.instantiate().unwrap());
            drop((body, graph));
        }
    });
}
