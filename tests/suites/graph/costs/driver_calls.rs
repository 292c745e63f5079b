//! The cost of building and launching: driver calls and allocations.

use cuda_graph::{AllocOptions, AllocPlace, ContextExt};
use cuda_launch::{params, per};
use cuda_tests::{Kind, alone, count, kernel, no_leaks, setup};

#[test]
fn adding_a_node_is_one_call() {
    let context = setup();
    no_leaks(|| {
        let saxpy = kernel(&context, "saxpy");
        let stream = context.stream().unwrap();
        let (x, y) = (stream.zeros::<f32>(8).unwrap(), stream.zeros::<f32>(8).unwrap());
        let (graph, cost) = count(|| context.graph().unwrap());
        cost.assert_calls(&[("cuGraphCreate", 1)]);
        let (empty, cost) = count(|| graph.root().empty().unwrap());
        assert_eq!(cost.total(), 1, "{cost}");
        let (fill, cost) = count(|| empty.then().fill(&x, 1.0).unwrap());
        assert_eq!(cost.total(), 1, "{cost}");
        let (copy, cost) = count(|| fill.then().copy(&x, &y).unwrap());
        assert_eq!(cost.total(), 1, "{cost}");
        let (launch, cost) = count(|| {
            // SAFETY: the arguments are the kernel's, and both buffers have 8 elements.
            unsafe { copy.then().launch_untyped(&saxpy, per(8, 32), params![8_u32, 2.0_f32, &x, &y]) }
                .unwrap()
        });
        assert_eq!(cost.total(), 1, "{cost}");
        let (_, cost) = count(|| launch.clone().named("named"));
        cost.assert_calls(&[]);
        let (_, cost) = count(|| graph.add_edge(&empty, &launch).unwrap());
        assert_eq!(cost.calls("cuGraphAddDependencies"), 1, "{cost}");
    });
}

#[test]
fn memory_nodes_and_launches_that_leave_memory_cost_what_is_said() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        // How much memory the device has is known then.
        context.graph().unwrap().root().alloc::<u32>(8).unwrap();
        let graph = context.graph().unwrap();
        let ((alloc, memory), cost) = count(|| graph.root().alloc::<u32>(8).unwrap());
        cost.assert_calls(&[("cuGraphAddNode", 1)]);
        let (fill, cost) = count(|| alloc.then().fill(&memory, 1).unwrap());
        cost.assert_calls(&[("cuGraphAddNode", 1)]);
        let (_, other) = fill.then().alloc::<u32>(8).unwrap();
        let (free, cost) = count(|| graph.free(&other).unwrap());
        cost.assert_calls(&[("cuGraphAddNode", 1)]);
        let (_, cost) = count(|| (alloc.options().unwrap(), free.allocation().unwrap()));
        cost.assert_calls(&[]);
        // The edges are asked for, once.
        let (exec, cost) = count(|| graph.instantiate().unwrap());
        assert_eq!((cost.calls("cuGraphGetEdges"), cost.calls("cuGraphGetNodes")), (2, 0), "{cost}");
        let mut exec = exec;
        // The memory goes at once, and in the order of the stream.
        for _ in 0..2 {
            let (launched, cost) = count(|| exec.launch(&stream));
            launched.unwrap();
            let free =
                [("cuGraphLaunch", 1), ("cuMemFreeAsync", 1), ("cuThreadExchangeStreamCaptureMode", 2)];
            cost.assert_calls(&free);
        }
        let (outputs, cost) = count(|| exec.launch_with_outputs(&stream).unwrap());
        cost.assert_calls(&[("cuGraphLaunch", 1)]);
        let ((), cost) = count(|| drop(outputs));
        cost.assert_calls(&[("cuMemFreeAsync", 1), ("cuThreadExchangeStreamCaptureMode", 2)]);
    });
    context.synchronize_blocking().unwrap();
    context.trim_graph_memory().unwrap();
}

#[test]
fn how_much_memory_a_device_has_is_asked_for_once_in_a_process() {
    alone!();
    let context = setup();
    no_leaks(|| {
        let graph = context.graph().unwrap();
        let (_, cost) = count(|| graph.root().alloc::<u32>(8).unwrap());
        cost.assert_calls(&[("cuDeviceTotalMem", 1), ("cuGraphAddNode", 1)]);
        let other = context.graph().unwrap();
        let here = AllocOptions::new().on(AllocPlace::Device(context.device()));
        for graph in [&graph, &other] {
            let (_, cost) = count(|| graph.root().alloc_with::<u32>(8, here.clone()).unwrap());
            cost.assert_calls(&[("cuGraphAddNode", 1)]);
        }
    });
}

#[test]
fn clones_of_handles_cost_nothing() {
    let context = setup();
    no_leaks(|| {
        let graph = context.graph().unwrap();
        let node = graph.root().empty().unwrap();
        let (clones, cost) = count(|| (graph.clone(), node.clone(), graph.root(), node.then()));
        cost.assert_calls(&[]);
        assert_eq!(cost.heap_allocations(), 0);
        let ((), cost) = count(|| drop(clones));
        cost.assert_calls(&[]);
    });
}

#[test]
fn making_an_executable_is_one_call_whatever_it_keeps_alive() {
    cuda_tests::as_drawn!("it counts calls");
    let context = setup();
    no_leaks(|| {
        let increment = kernel(&context, "increment");
        let stream = context.stream().unwrap();
        let graph = context.graph().unwrap();
        let mut last = (*graph.root().empty().unwrap()).clone();
        for _ in 0..20 {
            let buffer = stream.zeros::<u32>(8).unwrap();
            // SAFETY: the graph is never launched.
            last = unsafe { last.then().launch_untyped(&increment, per(8, 8), params![&buffer, 8_u32]) }
                .unwrap()
                .into();
        }
        let (exec, cost) = count(|| graph.instantiate().unwrap());
        // Each launch of an executable with a user object would take twice as long.
        assert_eq!((cost.live(Kind::UserObject), cost.live(Kind::Exec), cost.live(Kind::Graph)), (0, 1, 0));
        cost.assert_calls(&[
            ("cuGraphInstantiateWithParams", 1),
            ("cuThreadExchangeStreamCaptureMode", 2),
            ("cuCtxPushCurrent", 1),
            ("cuCtxPopCurrent", 1),
        ]);
        let ((), cost) = count(|| drop(exec));
        assert_eq!(cost.calls("cuGraphExecDestroy"), 1, "{cost}");
    });
}

#[test]
fn a_graph_launch_is_one_call_and_no_allocation() {
    let context = setup();
    no_leaks(|| {
        let increment = kernel(&context, "increment");
        let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
        let buffer = home.zeros::<u32>(8).unwrap();
        home.synchronize_blocking().unwrap();
        let graph = context.graph().unwrap();
        // SAFETY: the arguments are the kernel's, and the count is the buffer's.
        unsafe { graph.root().launch_untyped(&increment, per(8, 8), params![&buffer, 8_u32]) }.unwrap();
        let mut exec = graph.instantiate().unwrap();
        for stream in [&home, &other, &home] {
            let (launched, cost) = count(|| exec.launch(stream));
            launched.unwrap();
            cost.assert_calls(&[("cuGraphLaunch", 1)]);
            assert_eq!(cost.heap_allocations(), 0);
        }
        let (uploaded, cost) = count(|| exec.upload(&home));
        uploaded.unwrap();
        cost.assert_calls(&[("cuGraphUpload", 1)]);
        assert_eq!(buffer.read_blocking(&home).unwrap(), [3; 8]);
    });
}

#[test]
fn the_first_launch_elsewhere_waits_for_unsettled_homes_and_later_ones_are_one_call() {
    let context = setup();
    no_leaks(|| {
        let increment = kernel(&context, "increment");
        let homes: Vec<_> = (0..3).map(|_| context.stream().unwrap()).collect();
        let other = context.stream().unwrap();
        let buffers: Vec<_> = homes.iter().map(|home| home.zeros::<u32>(8).unwrap()).collect();
        let graph = context.graph().unwrap();
        for buffer in &buffers {
            // SAFETY: the arguments are the kernel's, and the count is the buffer's.
            unsafe { graph.root().launch_untyped(&increment, per(8, 8), params![buffer, 8_u32]) }.unwrap();
        }
        let mut exec = graph.instantiate().unwrap();
        let (launched, cost) = count(|| exec.launch(&other));
        launched.unwrap();
        assert_eq!((cost.calls("cuGraphLaunch"), cost.calls("cuStreamWaitEvent")), (1, 3), "{cost}");
        for _ in 0..3 {
            let (launched, cost) = count(|| exec.launch(&other));
            launched.unwrap();
            cost.assert_calls(&[("cuGraphLaunch", 1)]);
            assert_eq!(cost.heap_allocations(), 0);
        }
        for buffer in &buffers {
            assert_eq!(buffer.read_blocking(&other).unwrap(), [4; 8]);
        }
    });
}
