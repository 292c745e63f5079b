//! A context that is lost while a change is taken back leaves no broken graph.

use cuda_graph::EdgeKind::Full;
use cuda_graph::{ContextExt, EmptyNode, Error, Graph};
use cuda_handles::Context;
use cuda_sys::{CUresult, Call};
use cuda_tests::{Injection, alone, fail, needs, setup};

use super::CODE;

/// The context is lost by the call that was to undo: there is nothing left to be broken.
fn lose_between(
    context: &Context,
    fails: [(Call, u64); 2],
    change: impl FnOnce(&Graph, [&EmptyNode; 3]) -> Result<(), Error>,
) {
    let graph = context.graph().unwrap();
    let nodes = [(); 3].map(|()| graph.root().empty().unwrap());
    let [a, b, c] = &nodes;
    graph.add_edges(&[(a, b, Full), (b, c, Full)]).unwrap();
    let [(cause, nth), (undo, nth_undo)] = fails;
    let failing = [fail(cause, nth, CODE), fail(undo, nth_undo, CUresult::CUDA_ERROR_ILLEGAL_ADDRESS)];
    let error = change(&graph, [a, b, c]).unwrap_err();
    assert!(failing.iter().all(Injection::hit), "{error}");
    assert!(!matches!(error, Error::Broken(_)), "{error}");
    assert!(error.to_string().contains(cause.symbol().to_str().unwrap()), "{error}");
    let lost = graph.len().unwrap_err();
    assert!(matches!(lost, Error::Handles(cuda_handles::Error::ContextLost(_))), "{lost}");
    assert_eq!(graph.root().empty().unwrap_err(), lost);
    assert!(!a.is_removed() && a.name() == "empty#0");
}

#[test]
fn a_context_lost_while_an_edge_is_put_back_is_no_broken_graph() {
    alone!();
    let fails = [(Call::cuGraphAddNode, 1), (Call::cuGraphAddDependencies, 1)];
    lose_between(&setup(), fails, |graph, [a, b, _]| graph.between(a, b)?.empty().map(drop));
}

#[test]
fn a_context_lost_while_a_node_is_taken_back_is_no_broken_graph() {
    alone!();
    let fails = [(Call::cuGraphAddDependencies, 1), (Call::cuGraphDestroyNode, 1)];
    lose_between(&setup(), fails, |graph, [_, b, _]| graph.root().before([b])?.host(|| {}).map(drop));
}

#[test]
fn a_context_lost_while_edges_are_put_right_is_no_broken_graph() {
    alone!();
    let fails = [(Call::cuGraphDestroyNode, 1), (Call::cuGraphRemoveDependencies, 2)];
    lose_between(&setup(), fails, |_, [_, b, _]| b.remove_bridging());
}

#[test]
fn a_context_lost_while_a_loop_is_taken_out_is_no_broken_graph() {
    alone!();
    let context = setup();
    needs!(Conditionals);
    let number = context.stream().unwrap().zeros::<u32>(1).unwrap();
    // The loop itself is the second node.
    let fails = [(Call::cuGraphAddNode, 2), (Call::cuGraphDestroyNode, 1)];
    lose_between(&context, fails, |graph, [.., c]| {
        let at = graph.after([c])?;
        at.while_loop(cuda_graph::Test::nonzero(&number), |body| body.root().empty()).map(drop)
    });
}
