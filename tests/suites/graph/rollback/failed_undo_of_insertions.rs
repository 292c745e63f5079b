//! Insertions in which two driver calls fail: all that stayed is told, edges that are gone or
//! missing among it, and else the graph is as it was.

use cuda_graph::{ContextExt, Error, Graph, KernelNode, Node, NodeAttribute, NodeAttributeKind, NodeKind};
use cuda_handles::{Context, Kernel, Stream};
use cuda_launch::{params, per};
use cuda_sys::CUresult;
use cuda_tests::{alone, fail_any, kernel, needs, no_leaks, setup, used_stream};

use crate::common::driver_view::{Drawn, View};

const CODE: CUresult = CUresult::CUDA_ERROR_OUT_OF_MEMORY;

type Insert = fn(&Things, &Graph, [&Node; 3]) -> Result<(), Error>;

/// What the nodes use, made before anything fails.
struct Things {
    stream: Stream,
    empty: Kernel,
    inner: Graph,
}

/// How a node is inserted among `a` to `b` and `b` to `c`.
struct Insertion {
    what: &'static str,
    insert: Insert,
    /// Which of the three come behind the node itself.
    behind: &'static [usize],
    kind: NodeKind,
}

const PLAIN: [Insertion; 5] = [
    Insertion {
        what: "between",
        insert: |_, graph, [a, b, _]| graph.between(a, b)?.empty().map(drop),
        behind: &[1],
        kind: NodeKind::Empty,
    },
    Insertion {
        what: "between, and before another",
        insert: |_, graph, [a, b, c]| graph.between(a, b)?.before([c])?.empty().map(drop),
        behind: &[1, 2],
        kind: NodeKind::Empty,
    },
    Insertion {
        what: "before two",
        insert: |_, graph, [_, b, c]| graph.root().before([b, c])?.empty().map(drop),
        behind: &[1, 2],
        kind: NodeKind::Empty,
    },
    Insertion {
        what: "a child graph",
        insert: |things, graph, [a, b, _]| graph.between(a, b)?.child(&things.inner).map(drop),
        behind: &[1],
        kind: NodeKind::ChildGraph,
    },
    Insertion {
        what: "a kernel with an attribute",
        insert: |things, graph, [a, b, _]| {
            // SAFETY: the kernel has no parameters and does nothing.
            unsafe { graph.between(a, b)?.launch_untyped(&things.empty, per(1, 1).priority(-1), params![]) }
                .map(drop)
        },
        behind: &[1],
        kind: NodeKind::Kernel,
    },
];

const CONDITIONAL: Insertion = Insertion {
    what: "a conditional node",
    insert: |_, graph, [a, b, _]| {
        let condition = graph.condition_with_default(1)?;
        graph.between(a, b)?.if_node(&condition).map(drop)
    },
    behind: &[1],
    kind: NodeKind::If,
};

const LOOP: Insertion = Insertion {
    what: "a loop",
    insert: |things, graph, [a, b, _]| {
        let number = things.stream.zeros::<u32>(1)?;
        let at = graph.between(a, b)?;
        at.while_loop(cuda_graph::Test::nonzero(&number), |body| body.root().empty().map(drop)).map(drop)
    },
    behind: &[1],
    kind: NodeKind::While,
};

/// A graph of its own, and the root that it lies in.
type Make = fn(&Context) -> (Graph, Drawn);

fn root(context: &Context) -> (Graph, Drawn) {
    let drawn = Drawn::new(context);
    (drawn.graph.clone(), drawn)
}

fn body(context: &Context) -> (Graph, Drawn) {
    let graph = context.graph().unwrap();
    let condition = graph.condition_with_default(1).unwrap();
    let body = graph.root().if_node(&condition).unwrap().body().unwrap();
    let raw = body.as_raw().unwrap();
    (graph, Drawn { graph: body, raw })
}

/// Lets every two calls fail; says how often something stayed.
fn try_all(things: &Things, make: Make, insertion: &Insertion) -> usize {
    let mut half_done = 0;
    for first in 1.. {
        let mut hit = false;
        for second in first.. {
            let (_root, graph) = make(things.stream.context());
            let [a, b, c] = ["a", "b", "c"].map(|name| {
                let node: Node = graph.root().empty().unwrap().into();
                node.named(name)
            });
            graph.add_edge(&a, &b).unwrap();
            graph.add_edge(&b, &c).unwrap();
            let before = graph.view();
            let (one, two) = (fail_any(first, CODE), fail_any(second, CODE));
            let outcome = (insertion.insert)(things, &graph, [&a, &b, &c]);
            let hits = (one.hit(), two.hit());
            drop((one, two));
            hit |= hits.0;
            let now = graph.view();
            let what = format!("{}, calls {first} and {second}: {outcome:?}", insertion.what);
            match &outcome {
                Ok(()) => {}
                Err(Error::HalfDone(half)) => {
                    half_done += 1;
                    assert_ne!(now, before, "{what}");
                    assert!(half.undo.is_some(), "{what}");
                    let mut left = half.left.clone();
                    left.sort_unstable();
                    assert_eq!(left, told(&graph, insertion, &before, &now.edges), "{what}");
                }
                Err(_) => assert_eq!(now, before, "{what}"),
            }
            // The order of the nodes is still what the edges say.
            for edge in graph.edges().unwrap() {
                let closed = graph.add_edge(&edge.to, &edge.from);
                assert!(matches!(closed, Err(Error::Cycle { .. })), "{what}: {closed:?}");
            }
            if !hits.1 {
                break;
            }
        }
        if !hit {
            break;
        }
    }
    half_done
}

/// What is to be told, sorted.
fn told(graph: &Graph, insertion: &Insertion, before: &View, now: &[(usize, usize)]) -> Vec<String> {
    let nodes = graph.nodes().unwrap();
    let names: Vec<String> = nodes.iter().map(Node::name).collect();
    let edge = |(from, to): (usize, usize), what| {
        format!("the edge from `{}` to `{}` is {what}", names[from], names[to])
    };
    let gone = before.edges.iter().filter(|edge| !now.contains(edge)).map(|ends| edge(*ends, "gone"));
    let mut told: Vec<String> = gone.collect();
    for (place, name) in names.iter().enumerate().skip(before.nodes.len()) {
        told.push(format!("node `{name}` is in the graph"));
        if nodes[place].kind() != insertion.kind {
            continue;
        }
        let behind = insertion.behind.iter().map(|behind| (place, before.nodes.len() - 3 + behind));
        told.extend(behind.filter(|ends| !now.contains(ends)).map(|ends| edge(ends, "missing")));
        if insertion.kind == NodeKind::Kernel && !has_its_priority(&nodes[place]) {
            told.push(format!("node `{name}` has a part of its launch"));
        }
    }
    told.sort_unstable();
    told
}

fn has_its_priority(node: &Node) -> bool {
    let node = KernelNode::try_from(node.clone()).unwrap();
    node.attribute(NodeAttributeKind::Priority).unwrap() == NodeAttribute::Priority(-1)
}

#[test]
fn whatever_stays_of_an_insertion_is_told() {
    let context = setup();
    needs!(EdgeKinds);
    no_leaks(|| {
        let things = Things {
            stream: context.stream().unwrap(),
            empty: kernel(&context, "empty"),
            inner: context.graph().unwrap(),
        };
        for insertion in PLAIN.iter().chain([&CONDITIONAL]) {
            assert!(try_all(&things, root, insertion) > 0, "{}", insertion.what);
        }
        // There a node that sets the default goes with it.
        assert!(try_all(&things, body, &CONDITIONAL) > 0);
        things.stream.synchronize_blocking().unwrap();
    });
}

#[test]
fn whatever_stays_of_a_loop_is_told() {
    let context = setup();
    needs!(EdgeKinds);
    let things = Things {
        stream: used_stream(&context),
        empty: kernel(&context, "empty"),
        inner: context.graph().unwrap(),
    };
    assert!(try_all(&things, root, &LOOP) > 0);
}

/// There each body gets a node, which may fail as well.
#[test]
fn whatever_stays_of_a_conditional_node_is_told_on_the_first_drivers_that_have_them() {
    alone!("CUDA_SOFT_VERSION" = "12.4", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    let things = Things {
        stream: used_stream(&context),
        empty: kernel(&context, "empty"),
        inner: context.graph().unwrap(),
    };
    for make in [root, body] {
        assert!(try_all(&things, make, &CONDITIONAL) > 0);
    }
}
