//! The driver calls of loops decided by the host.

use cuda_graph::{Fallback, HostCounts, InstantiateOptions, Test};
use cuda_launch::per;
use cuda_tests::{alone, asked_by_copies, count, needs, setup};

use super::{By, Steps};

/// A loop of so many rounds with two kernels in its body, and a fill before it.
fn costs(steps: &Steps) {
    const ROUNDS: u32 = 7;
    let (graph, number) = (steps.graph(), steps.number(0));
    let start = graph.root().fill(&number, ROUNDS).unwrap();
    let body = |body: &cuda_graph::LoopBody| steps.round(body, number.as_slice());
    let rounds = start.then().while_loop(Test::nonzero(&number).limit(100), body).unwrap();
    let fallback = Fallback::HostLoopAlways;
    let make = || graph.instantiate_with_fallback(fallback, InstantiateOptions::new()).unwrap();
    let (mut exec, cost) = count(make);
    cost.assert_calls(&[
        // Of the graph and the body, each asked for a count first.
        ("cuGraphGetNodes", 4),
        ("cuGraphGetEdges", 4),
        ("cuGraphCreate", 2),
        // The fill; two kernels, which have no attributes; where a driver hangs with an empty body,
        // a node that does nothing.
        ("cuGraphAddNode", if super::has_some() && !super::has_all() { 4 } else { 3 }),
        ("cuGraphMemsetNodeGetParams", 1),
        ("cuGraphKernelNodeGetParams", 2),
        ("cuGraphInstantiateWithParams", 2),
        ("cuGraphDestroy", 2),
        // Whether this is a host function, before each of these.
        ("cuCtxGetCurrent", 2),
        ("cuCtxPushCurrent", 1),
        ("cuCtxPopCurrent", 1),
        ("cuThreadExchangeStreamCaptureMode", 2),
    ]);
    exec.run_blocking(&steps.stream).unwrap();
    for runs in 2..4 {
        let ((), cost) = count(|| exec.run_blocking(&steps.stream).unwrap());
        let (rounds, decisions) = (u64::from(ROUNDS), u64::from(ROUNDS) + 1);
        // Before the copy of each decision and behind it, and at the end.
        let waits = 2 * decisions + 1;
        cost.assert_calls(&[
            ("cuGraphLaunch", 1 + rounds),
            // The count of rounds, and at its beginning both halves of it at once.
            ("cuMemsetD32Async", decisions),
            ("cuMemcpyDtoHAsync", decisions),
            ("cuStreamSynchronize", waits),
            ("cuThreadExchangeStreamCaptureMode", 2 * waits),
            // Whether this is a host function: before each decision, before anything is begun, and
            // before the end.
            ("cuCtxGetCurrent", decisions + 2 + asked_by_copies(decisions)),
        ]);
        let (launches, rounds) = (runs * (1 + rounds), runs * rounds);
        let counts = exec.counts();
        assert_eq!((counts.runs, counts.launches), (runs, launches));
        assert_eq!((counts.decisions, counts.rounds), (runs * decisions, rounds));
    }
    assert_eq!(rounds.rounds_done_blocking(&steps.stream).unwrap(), u64::from(ROUNDS));
    let ((), cost) = count(|| drop(exec));
    assert_eq!(cost.calls("cuGraphExecDestroy"), 2, "{cost}");
}

#[test]
fn each_decision_is_a_copy_and_a_wait() {
    cuda_tests::as_drawn!("it counts calls");
    let context = setup();
    costs(&Steps::new(&context, By::Host));
}

#[test]
fn a_driver_without_conditionals_costs_the_same() {
    cuda_tests::as_drawn!("it counts calls");
    alone!("CUDA_SOFT_VERSION" = "12.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    costs(&Steps::new(&context, By::Need));
}

#[test]
fn where_the_device_decides_a_run_is_a_launch_and_a_wait() {
    let context = setup();
    needs!(Branches);
    let steps = Steps::new(&context, By::Device);
    let (graph, number) = (steps.graph(), steps.number(3));
    graph
        .root()
        .while_loop(cuda_graph::Test::nonzero(&number), |body| steps.round(body, number.as_slice()))
        .unwrap();
    let mut exec = steps.exec(&graph);
    exec.run_blocking(&steps.stream).unwrap();
    let ((), cost) = count(|| exec.run_blocking(&steps.stream).unwrap());
    cost.assert_calls(&[
        ("cuGraphLaunch", 1),
        ("cuStreamSynchronize", 1),
        ("cuThreadExchangeStreamCaptureMode", 2),
        ("cuCtxGetCurrent", 2),
    ]);
    assert_eq!(exec.counts(), HostCounts::default());
}

#[test]
fn a_limit_that_says_all_and_nodes_that_do_nothing_cost_nothing() {
    let context = setup();
    let steps = Steps::new(&context, By::Host);
    let (graph, number) = (steps.graph(), steps.number(3));
    let start = graph.root().empty().unwrap();
    let never = start.then().while_loop(Test::nonzero(&number).limit(0), |body| {
        body.root().launch(&steps.add, per(1, 1), (1, &steps.runs))
    });
    never.unwrap().then().empty().unwrap();
    let mut exec = steps.exec(&graph);
    exec.run_blocking(&steps.stream).unwrap();
    let ((), cost) = count(|| exec.run_blocking(&steps.stream).unwrap());
    cost.assert_calls(&[
        ("cuMemsetD32Async", 1),
        ("cuStreamSynchronize", 1),
        ("cuThreadExchangeStreamCaptureMode", 2),
        ("cuCtxGetCurrent", 2),
    ]);
    assert_eq!(steps.counted(), 0);
}

#[test]
fn a_place_holder_costs_what_a_loop_costs_and_a_graph_for_each_body() {
    alone!("CUDA_SOFT_VERSION" = "12.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    let steps = Steps::new(&context, By::Need);
    let (graph, number) = (steps.graph(), steps.number(3));
    let (_, cost) = count(|| {
        graph
            .root()
            .while_loop(cuda_graph::Test::nonzero(&number), |body| body.root().fill(&number, 0))
            .unwrap()
    });
    cost.assert_calls(&[
        ("cuMemAlloc", 1),
        // Around that.
        ("cuCtxPushCurrent", 1),
        ("cuCtxPopCurrent", 1),
        ("cuThreadExchangeStreamCaptureMode", 2),
        ("cuGraphCreate", 1),
        // Before the loop, the loop, the fill, and the last of the body, behind what these tell.
        ("cuGraphAddNode", 4),
        ("cuGraphGetEdges", 1),
        ("cuGraphGetNodes", 2),
    ]);
    let fill = |body: &cuda_graph::Graph| body.root().fill(&number, 0);
    let (_, cost) = count(|| graph.root().if_then_else(Test::nonzero(&number), fill, fill).unwrap());
    cost.assert_calls(&[("cuGraphCreate", 2), ("cuGraphAddNode", 4)]);
    // Handles of them cost nothing.
    let ((), cost) =
        count(|| drop(graph.nodes().unwrap().into_iter().map(|node| node.all_bodies().unwrap())));
    assert_eq!(cost.total(), cost.calls("cuGraphGetNodes"), "{cost}");
}

#[test]
fn many_loops_in_a_row_are_many_launches_and_no_more() {
    const LOOPS: u32 = 500;
    let context = setup();
    let steps = Steps::new(&context, By::Host);
    let (graph, number) = (steps.graph(), steps.number(0));
    let mut last: cuda_graph::Node = graph.root().empty().unwrap().into();
    for _ in 0..LOOPS {
        let start = last.then().fill(&number, 2).unwrap();
        let rounds = start
            .then()
            .while_loop(cuda_graph::Test::nonzero(&number), |body| steps.round(body, number.as_slice()))
            .unwrap();
        last = (**rounds).clone();
    }
    let (mut exec, cost) = count(|| steps.exec(&graph));
    let (loops, graphs) = (u64::from(LOOPS), 1 + u64::from(LOOPS));
    assert_eq!(cost.calls("cuGraphInstantiateWithParams"), 2 * loops, "{cost}");
    // The whole graph is asked for once, and each body.
    assert_eq!((cost.calls("cuGraphGetNodes"), cost.calls("cuGraphGetEdges")), (2 * graphs, 2 * graphs));
    exec.run_blocking(&steps.stream).unwrap();
    assert_eq!((exec.counts().launches, exec.counts().rounds), (loops + 2 * loops, 2 * loops));
    assert_eq!(steps.counted(), 2 * LOOPS);
}
