//! Changes of edges of which two driver calls fail.

use cuda_graph::EdgeKind::{Full, Programmatic};
use cuda_graph::{Error, KernelNode};
use cuda_handles::Stream;
use cuda_tests::{needs, no_leaks, raw, setup};

use super::uses::{assert_broken, assert_nodes_broken};
use super::{assert_ordered, every_two, failing};
use crate::common::driver_view::Drawn;
use crate::edges::changes::kernels;
use crate::rollback::all_or_nothing::{CHANGES, Change};

#[test]
fn whichever_two_calls_fail_a_change_of_edges_is_made_or_not_or_breaks_the_graph() {
    let context = setup();
    needs!(EdgeKinds);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let broken: usize =
            CHANGES.into_iter().map(|(name, change)| break_change(&stream, name, change)).sum();
        assert!(broken >= 20, "{broken}");
        stream.synchronize_blocking().unwrap();
    });
}

/// Lets every two driver calls of a change fail; gives how often that broke the graph.
fn break_change(stream: &Stream, name: &str, change: Change) -> usize {
    let context = stream.context();
    let mut broken = 0;
    every_two(|calls| {
        let graph = Drawn::new(context);
        let nodes: [KernelNode; 6] = kernels(context, &graph);
        let [a, b, c, d, ..] = &nodes;
        graph.add_edges(&[(a, b, Full), (b, c, Programmatic), (c, d, Full)]).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let seen = || (graph.view(), raw::edges_with_data(graph.raw));
        let before = seen();
        let (outcome, hits) = failing(calls, || change(&graph, &nodes));
        let what = format!("{name}, calls {calls:?}: {outcome:?}");
        match &outcome {
            Ok(()) => assert_ne!(seen(), before, "{what}"),
            Err(error @ Error::Broken(_)) => {
                broken += 1;
                assert_broken(&graph, error);
                assert_nodes_broken([a, d], error);
                assert!(!nodes.iter().any(|node| node.is_removed()), "{what}");
                exec.launch(stream).unwrap();
                stream.synchronize_blocking().unwrap();
            }
            Err(_) => {
                assert_eq!(seen(), before, "{what}");
                assert_ordered(&graph);
            }
        }
        hits
    });
    broken
}
