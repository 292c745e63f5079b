//! Changes of nodes and edges happen whole or not at all: each driver call of each change fails in
//! turn, and then the driver's view is the one before.

use cuda_graph::EdgeKind::{Full, LaunchOrder, Programmatic};
use cuda_graph::{EdgeError, Error, KernelNode};
use cuda_launch::{params, per};
use cuda_sys::CUresult;
use cuda_tests::{fail_any, needs, no_leaks, raw, setup};

use crate::common::driver_view::Drawn;
use crate::edges::changes::kernels;

pub(crate) type Change = fn(&Drawn, &[KernelNode; 6]) -> Result<(), Error>;

/// Each begins with the edges of [`drawn`].
pub(crate) const CHANGES: [(&str, Change); 18] = [
    ("add_edge along", |graph, [a, .., f]| graph.add_edge(a, f)),
    ("add_edge against", |graph, [a, .., f]| graph.add_edge(f, a)),
    ("add_edges", |graph, [a, b, _, d, e, f]| {
        graph.add_edges(&[(a, e, Full), (f, d, Programmatic), (f, b, LaunchOrder), (e, f, Full)])
    }),
    ("remove_edge", |graph, [a, b, ..]| graph.remove_edges(&[(a, b)])),
    ("remove_edge of a kind", |graph, [_, b, c, ..]| graph.remove_edges(&[(b, c)])),
    ("remove_edges", |graph, [a, b, c, d, ..]| graph.remove_edges(&[(a, b), (b, c), (c, d)])),
    ("set_edge_kind", |graph, [a, b, ..]| graph.set_edge_kind(a, b, Programmatic)),
    ("set_edge_kind to full", |graph, [_, b, c, ..]| graph.set_edge_kind(b, c, Full)),
    ("set_predecessors", |_, [a, _, c, _, e, f]| {
        c.set_in_edges(&[
            (a, cuda_graph::EdgeKind::Full),
            (e, cuda_graph::EdgeKind::Full),
            (f, cuda_graph::EdgeKind::Full),
        ])
    }),
    ("set_successors", |_, [_, b, _, _, e, f]| {
        b.set_out_edges(&[(e, cuda_graph::EdgeKind::Full), (f, cuda_graph::EdgeKind::Full)])
    }),
    ("set_in_edges", |_, [a, _, c, _, e, _]| c.set_in_edges(&[(a, Programmatic), (e, LaunchOrder)])),
    ("set_out_edges", |_, [_, b, c, _, e, _]| b.set_out_edges(&[(c, Full), (e, Programmatic)])),
    ("remove", |_, [_, b, ..]| b.remove()),
    ("remove_bridging", |_, [_, b, ..]| b.remove_bridging()),
    ("remove_nodes of one", |graph, [.., f]| graph.remove_nodes(&[f])),
    ("between", |graph, [a, b, ..]| launch(graph.between(a, b)?, a)),
    ("between, of a kind", |graph, [_, b, c, ..]| launch(graph.between(b, c)?, b)),
    ("before", |graph, [_, _, c, d, _, f]| {
        let frontier = graph.after_all([(&**c, LaunchOrder)])?.before_all([(&**f, Programmatic)])?;
        launch(frontier.before([&**d])?, c)
    }),
];

/// With an attribute, which is set after the add.
fn launch(frontier: cuda_graph::Frontier<'_>, like: &KernelNode) -> Result<(), Error> {
    // SAFETY: the kernel has no parameters and does nothing.
    unsafe { frontier.launch_untyped(&like.kernel()?, per(1, 1).priority(-1), params![]) }.map(drop)
}

#[test]
fn whatever_call_fails_a_change_is_made_or_not() {
    let context = setup();
    needs!(EdgeKinds);
    no_leaks(|| {
        let mut cases = 0;
        for (name, change) in CHANGES {
            for code in [CUresult::CUDA_ERROR_INVALID_VALUE, CUresult::CUDA_ERROR_OUT_OF_MEMORY] {
                for nth in 1.. {
                    let graph = Drawn::new(&context);
                    let nodes: [KernelNode; 6] = kernels(&context, &graph);
                    let [a, b, c, d, ..] = &nodes;
                    graph.add_edges(&[(a, b, Full), (b, c, Programmatic), (c, d, Full)]).unwrap();
                    let seen = || (graph.view(), raw::edges_with_data(graph.raw));
                    let before = seen();
                    let failure = fail_any(nth, code);
                    let outcome = change(&graph, &nodes);
                    let hit = failure.hit_call();
                    drop(failure);
                    let Some(call) = hit else {
                        assert_eq!(outcome, Ok(()), "{name}");
                        assert_ne!(seen(), before, "{name}");
                        break;
                    };
                    cases += 1;
                    match outcome {
                        Ok(()) => assert_ne!(seen(), before, "{name}: call {nth}, {call:?}"),
                        Err(error) => {
                            let text = error.to_string();
                            assert!(!matches!(error, Error::Broken(_)), "{name}: {text}");
                            assert!(text.contains(call.symbol().to_str().unwrap()), "{name}: {text}");
                            assert_eq!(seen(), before, "{name}: call {nth}, {call:?}");
                        }
                    }
                    // The order of the nodes is still what the edges say.
                    let ends: Vec<_> = graph.edges().unwrap();
                    for edge in ends {
                        let closed = graph.add_edge(&edge.to, &edge.from);
                        assert!(
                            matches!(closed, Err(Error::Edge(EdgeError::Cycle { .. }))),
                            "{name}: {closed:?}"
                        );
                    }
                }
            }
        }
        println!("all or nothing: {cases} cases");
        assert!(cases >= 100, "{cases}");
    });
}
