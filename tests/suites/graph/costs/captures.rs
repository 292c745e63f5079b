//! The cost of captures: driver calls, and allocations of captured launches.

use cuda_graph::{ContextExt, StreamExt};
use cuda_handles::capture::CaptureMode;
use cuda_launch::per;
use cuda_tests::{count, is_soft, needs, no_leaks, setup};

use crate::capture::{Bench, Capture};

const LOCAL: CaptureMode = CaptureMode::ThreadLocal;

#[test]
fn a_captured_call_is_one_driver_call_and_a_copy_on_the_device_three() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let pinned = context.pinned_zeros::<u32>(bench.others.len()).unwrap().share();
        let capture = bench.begin();
        let [fork] = capture.split().unwrap();
        // The first launch of a kernel may ask for its parameters.
        bench.add(&capture, 1).unwrap();
        for _ in 0..3 {
            let ((), cost) = count(|| bench.add(&capture, 1).unwrap());
            cost.assert_calls(&[("cuLaunchKernel", 1)]);
            let ((), cost) = count(|| bench.add(&fork, 1).unwrap());
            cost.assert_calls(&[("cuLaunchKernel", 1)]);
            let launch = || bench.add.launch(capture.stream(), per(1, 1), (1, &bench.numbers)).unwrap();
            let ((), cost) = count(launch);
            cost.assert_calls(&[("cuLaunchKernel", 1)]);
            let launch = || capture.launch(&bench.add, per(1, 1).priority(-1), (1, &bench.numbers)).unwrap();
            let ((), cost) = count(launch);
            cost.assert_calls(&[("cuLaunchKernelEx", 1)]);
            let ((), cost) = count(|| capture.fill(&bench.others, 1).unwrap());
            cost.assert_calls(&[("cuMemsetD32Async", 1)]);
            let ((), cost) = count(|| capture.copy(&bench.others, &bench.numbers).unwrap());
            let entered = [("cuCtxPushCurrent", 1), ("cuMemcpyDtoDAsync", 1), ("cuCtxPopCurrent", 1)];
            cost.assert_calls(&entered);
            let ((), cost) = count(|| capture.copy(&bench.others, &pinned).unwrap());
            cost.assert_calls(&[("cuMemcpyDtoHAsync", 1)]);
            let ((), cost) = count(|| capture.copy(&pinned, &bench.others).unwrap());
            cost.assert_calls(&[("cuMemcpyHtoDAsync", 1)]);
            let ((), cost) = count(|| capture.callback(|| ()).unwrap());
            cost.assert_calls(&[("cuLaunchHostFunc", 1)]);
            let ((), cost) = count(|| capture.keep(&bench.numbers).unwrap());
            cost.assert_calls(&[]);
        }
        capture.join([fork]).unwrap();
        drop(capture.end().unwrap());
    });
}

#[test]
fn a_captured_launch_of_known_memory_allocates_nothing_by_itself() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let capture = bench.begin();
        let launches = 1000;
        let allocations = |from: u32| {
            let ((), cost) = count(|| (0..from).for_each(|_| bench.add(&capture, 1).unwrap()));
            cost.heap_allocations()
        };
        allocations(launches);
        // Tables grow by doubling.
        let more = allocations(launches);
        assert!(more <= 8, "{more} allocations for {launches} launches");
        drop(capture);
    });
}

#[test]
fn beginning_a_capture_is_one_call_and_splitting_two() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let (capture, cost) = count(|| bench.begin());
        cost.assert_calls(&[("cuStreamBeginCapture", 1)]);
        // Streams and their events are made at first.
        let [fork] = capture.split().unwrap();
        bench.add(&fork, 1).unwrap();
        let (joined, cost) = count(|| capture.join([fork]));
        joined.unwrap();
        assert_eq!((cost.calls("cuEventRecord"), cost.calls("cuStreamWaitEvent")), (1, 1), "{cost}");
        let (graph, cost) = count(|| capture.end().unwrap());
        assert_eq!(cost.calls("cuStreamEndCapture"), 1, "{cost}");
        drop(graph);
        let ((), cost) = count(|| drop(bench.begin()));
        assert_eq!(cost.calls("cuStreamBeginCapture") + cost.calls("cuStreamEndCapture"), 2, "{cost}");
    });
}

/// Costs of the end of a capture with as many launches, fills and copies, and of its nodes.
fn end(bench: &Bench, times: usize) -> [(u64, u64); 2] {
    let capture = bench.begin();
    for _ in 0..times {
        bench.add(&capture, 1).unwrap();
        capture.fill(&bench.others, 1).unwrap();
        capture.copy(&bench.others, &bench.numbers).unwrap();
    }
    let (ended, at_end) = count(|| capture.end().unwrap());
    let (nodes, at_nodes) = count(|| ended.graph().nodes().unwrap());
    assert_eq!(nodes.len(), 3 * times);
    assert_eq!(ended.unmatched().unwrap(), 0);
    [at_end, at_nodes].map(|cost| (cost.total(), cost.heap_allocations()))
}

#[test]
fn the_calls_of_an_end_and_of_its_nodes_grow_with_the_nodes_and_no_faster() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let costs = [1, 2, 64].map(|times| end(&bench, times));
        for (part, (of_each, of_all, allocations)) in [(3, 2, 1), (16, 8, 30)].into_iter().enumerate() {
            let [one, two, many] = costs.map(|cost| cost[part]);
            let each = two.0 - one.0;
            println!("{part}: {} calls, and {each} for a launch, a fill and a copy", one.0 - each);
            assert_eq!(many.0 - one.0, 63 * each, "{one:?}, {two:?}, {many:?}");
            // At the end the type. For nodes type and parameters; of a kernel also six attributes,
            // and its kernel.
            assert!(each <= of_each, "{each}");
            assert!(one.0 - each <= of_all, "{}", one.0 - each);
            let each = many.1 / 64;
            assert!(each <= allocations, "{each} allocations");
        }
    });
}

#[test]
fn a_capture_becomes_an_executable_and_updates_one_by_the_types_of_its_nodes() {
    cuda_tests::as_drawn!("a shape needs the nodes");
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let work = |capture: &Capture| (0..8).try_for_each(|_| bench.add(capture, 1));
        let captured = [
            ("cuStreamBeginCapture", 1),
            ("cuLaunchKernel", 8),
            ("cuStreamEndCapture", 1),
            ("cuGraphGetNodes", 1),
            ("cuGraphNodeGetType", 8),
        ];
        // The first launch of a kernel may ask for its parameters.
        drop(bench.stream.capture(LOCAL, work).unwrap());
        let (graph, cost) = count(|| bench.stream.capture(LOCAL, work).unwrap());
        cost.assert_calls(&captured);
        let (mut exec, cost) = count(|| graph.instantiate().unwrap());
        assert_eq!(cost.calls("cuGraphInstantiateWithParams"), 1);
        assert!(cost.total() <= 5, "and capture mode and context, exchanged: {cost}");
        let graph = bench.stream.capture(LOCAL, work).unwrap();
        let (updated, cost) = count(|| exec.update(&graph).unwrap());
        assert!(updated.is_updated());
        cost.assert_calls(&[("cuCtxGetCurrent", 1), ("cuGraphExecUpdate", 1)]);
        let (len, cost) = count(|| graph.len().unwrap());
        assert_eq!(len, 8);
        cost.assert_calls(&[("cuGraphGetNodes", 1)]);
    });
}

#[test]
fn a_capture_into_a_graph_adds_each_node_by_one_call() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let graph = context.graph().unwrap();
        let first = graph.root().fill(&bench.numbers, 0).unwrap();
        let ((), cost) = count(|| {
            first
                .then()
                .capture(&bench.stream, LOCAL, |capture| {
                    (0..10).try_for_each(|_| capture.fill(&bench.numbers, 1))
                })
                .unwrap();
        });
        assert_eq!(cost.calls("cuGraphAddNode"), 10, "{cost}");
        assert_eq!(cost.calls("cuGraphAddDependencies"), 0, "{cost}");
        let always = graph.condition_with_default(1).unwrap();
        let body = graph.root().if_node(&always).unwrap().body().unwrap();
        let ((), cost) = count(|| {
            body.root().capture(&bench.stream, LOCAL, |capture| bench.add(capture, 1)).unwrap();
        });
        assert_eq!(cost.calls("cuGraphAddNode"), 1, "{cost}");
    });
}

#[test]
fn a_thousand_captures_leave_nothing_behind() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let times = if is_soft() { 300 } else { 1000 };
        for round in 0..times {
            let capture = bench.begin();
            let [fork] = capture.split().unwrap();
            bench.add(&fork, 1).unwrap();
            if round % 2 == 0 {
                drop((capture, fork));
                continue;
            }
            capture.join([fork]).unwrap();
            drop(capture.end().unwrap());
        }
        bench.works_again();
    });
}
