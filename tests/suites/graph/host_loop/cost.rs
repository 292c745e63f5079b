//! What it costs that the host decides, in driver calls.

use cuda_graph::{Fallback, HostCounts, InstantiateOptions, Test};
use cuda_launch::per;
use cuda_tests::{alone, count, setup};

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
        // The fill; two kernels, with all their attributes; where a driver hangs with an empty body, a node that does nothing.
        ("cuGraphAddNode", if super::has_some() && !super::has_all() { 4 } else { 3 }),
        ("cuGraphMemsetNodeGetParams", 1),
        ("cuGraphKernelNodeGetParams", 2),
        ("cuGraphKernelNodeCopyAttributes", 2),
        ("cuUserObjectCreate", 1),
        ("cuGraphRetainUserObject", 2),
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
        let waits = decisions + 1;
        cost.assert_calls(&[
            ("cuGraphLaunch", 1 + rounds),
            // The count of rounds, and at its beginning both halves of it at once.
            ("cuMemsetD32Async", decisions),
            ("cuMemcpyDtoHAsync", decisions),
            ("cuStreamSynchronize", waits),
            ("cuThreadExchangeStreamCaptureMode", 2 * waits),
            // Whether this is a host function: before each wait, and before anything is begun.
            ("cuCtxGetCurrent", waits + 1),
        ]);
        let (launches, rounds) = (runs * (1 + rounds), runs * rounds);
        let counts = exec.counts();
        assert_eq!((counts.runs, counts.launches), (runs, launches));
        assert_eq!((counts.decisions, counts.rounds), (runs * decisions, rounds));
    }
    assert_eq!(rounds.rounds_done_blocking(&steps.stream).unwrap(), u64::from(ROUNDS));
    let ((), cost) = count(|| drop(exec));
    assert_eq!((cost.calls("cuGraphExecDestroy"), cost.calls("cuUserObjectRelease")), (2, 1), "{cost}");
}

#[test]
fn each_decision_is_a_copy_and_a_wait() {
    let context = setup();
    costs(&Steps::new(&context, By::Host));
}

#[test]
fn a_driver_without_conditionals_costs_the_same() {
    alone!("CUDA_SOFT_VERSION" = "12.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    costs(&Steps::new(&context, By::Need));
}

#[test]
fn where_the_device_decides_a_run_is_a_launch_and_a_wait() {
    let context = setup();
    if !super::has_all() {
        cuda_tests::skip!("the driver has not all conditional nodes");
    }
    let steps = Steps::new(&context, By::Device);
    let (graph, number) = (steps.graph(), steps.number(3));
    graph.root().while_nonzero(&number, |body| steps.round(body, number.as_slice())).unwrap();
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
