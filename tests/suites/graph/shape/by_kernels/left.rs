//! Fills and copies that stay, with the reason.

use cuda_graph::{ContextExt, Graph, InstantiateOptions, RawFill, RawMemory, Shape, StreamExt};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Buffer, Stream};
use cuda_launch::{params, per};
use cuda_sys::{CUresult, Call};
use cuda_tests::{count, fail, kernel, no_leaks, setup};

use super::by_kernels;

const N: usize = 8;

/// The nodes that the host submits, before and after shaping, and the report.
fn submitted(graph: &Graph, options: InstantiateOptions, stream: &Stream) -> (usize, usize, String) {
    let mut exec = graph.instantiate_with(options).unwrap();
    exec.launch(stream).unwrap();
    let report = exec.shape_report().unwrap();
    let [before, after] = [report.before().unwrap(), report.after().unwrap()].map(|one| one.host_submitted);
    (before, after, report.to_string())
}

#[test]
fn memory_that_a_kernel_may_not_reach() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let numbers = context.alloc_blocking::<u32>(N).unwrap();
        let target = context.alloc_blocking::<u32>(N).unwrap();
        let managed = context.managed_zeros::<u32>(N).unwrap().share();
        let registered = context.register(vec![0_u32; N]).unwrap().share();
        let pinned = context.pinned_zeros::<u32>(N).unwrap().share();
        // SAFETY: the buffer keeps the memory.
        let foreign =
            unsafe { Buffer::from_foreign(&context, numbers.address(), N, numbers.clone()) }.unwrap();
        let graph = context.graph().unwrap();
        let mut last = graph.root().fill(&managed, 1).unwrap();
        last = last.then().fill(&registered, 2).unwrap();
        last = last.then().fill(&foreign, 3).unwrap();
        let raw = || RawFill::new(RawMemory::at(target.address()), 4, 4, N);
        // SAFETY: the buffer outlives the launches.
        last = unsafe { last.then().fill_raw(raw()) }.unwrap();
        let mut copy = last.then().copy(&registered, &target).unwrap();
        copy = copy.then().copy(&managed, &target).unwrap();
        copy = copy.then().copy(&pinned, &registered).unwrap();
        copy.then().copy(&pinned, context.pinned_zeros::<u32>(N).unwrap().share().as_slice()).unwrap();
        for options in by_kernels() {
            let (before, after, text) = submitted(&graph, options, &stream);
            assert_eq!((before, after), (8, 8), "{text}");
            let fills = "left 4 fills: kernels fill device memory and pinned memory of this library alone";
            let copies =
                "left 4 copies: kernels copy between device memory and pinned memory of this library";
            assert!(text.contains(fills) && text.contains(copies), "{text}");
        }
        // With an owner, memory is known.
        let graph = context.graph().unwrap();
        let raw = RawFill::new(RawMemory::at(target.address()).keep(&target), 4, 5, N);
        // SAFETY: the node keeps the memory.
        unsafe { graph.root().fill_raw(raw) }.unwrap();
        for options in by_kernels() {
            assert_eq!(submitted(&graph, options, &stream).1, 0);
        }
        assert_eq!(target.read_blocking(&stream).unwrap(), [5; N]);
    });
}

#[test]
fn what_the_host_does_not_submit_and_what_is_large() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let bytes = (4 << 20) + 16;
        let large = stream.zeros::<u8>(bytes).unwrap();
        let other = stream.zeros::<u8>(bytes).unwrap();
        let pinned = context.pinned_zeros::<u8>(bytes).unwrap().share();
        let graph = context.graph().unwrap();
        // The driver makes kernels of these.
        let fill = graph.root().fill(large.slice(..8 << 10).unwrap(), 1).unwrap();
        let copy = fill.then().copy(&large, &other).unwrap();
        let copy = copy.then().copy(&pinned, &large).unwrap();
        // A byte at a time, a kernel is slower.
        let (from, to) = (pinned.slice(..1 << 20).unwrap(), large.slice(1..(1 << 20) + 1).unwrap());
        let copy = copy.then().copy(from, to).unwrap();
        copy.then().copy(from, large.slice(16..(1 << 20) + 16).unwrap()).unwrap();
        for options in by_kernels() {
            let (before, after, text) = submitted(&graph, options, &stream);
            assert_eq!((before, after), (3, 2), "{text}");
            assert!(text.contains("left 2 copies: a kernel copies so much no faster"), "{text}");
            assert!(text.contains("put kernels in place of 1 copy"), "{text}");
        }
    });
}

#[test]
fn fills_and_copies_beside_a_kernel_that_may_wait() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let increment = kernel(&context, "increment");
        let (x, y) = (stream.zeros::<u32>(N).unwrap(), stream.zeros::<u32>(N).unwrap());
        let pinned = context.pinned_zeros::<u32>(N).unwrap().share();
        let graph = context.graph().unwrap();
        let first = graph.root().fill(&y, 7).unwrap();
        // SAFETY: the kernel increments the numbers that it is given.
        let beside =
            unsafe { first.then().launch_untyped(&increment, per(N, N as u32), params![&x, N as u32]) };
        let fill = first.then().fill(&y, 8).unwrap();
        let copy = fill.then().copy(&y, &pinned).unwrap();
        let (beside, copy) = (beside.unwrap(), (*copy).clone());
        graph.after([&*beside, &copy]).unwrap().fill(&x, 9).unwrap();
        for options in by_kernels() {
            let (before, after, text) = submitted(&graph, options.clone(), &stream);
            assert_eq!((before, after), (4, 2), "{text}");
            assert!(text.contains("left 1 fill: a kernel that may wait"), "{text}");
            assert!(text.contains("left 1 copy: a kernel that may wait"), "{text}");
            let (_, after, text) = submitted(&graph, options.assume_progress(), &stream);
            assert_eq!(after, 0, "{text}");
            assert_eq!(pinned.read_blocking(&stream).unwrap(), [8; N]);
            assert_eq!(x.read_blocking(&stream).unwrap(), [9; N]);
        }
    });
}

#[test]
fn each_kind_is_chosen_by_itself() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let numbers = stream.zeros::<u32>(N).unwrap();
        let pinned = context.pinned_zeros::<u32>(N).unwrap().share();
        let graph = context.graph().unwrap();
        graph.root().fill(&numbers, 7).unwrap().then().copy(&numbers, &pinned).unwrap();
        let shape = |shape| InstantiateOptions::new().shape(shape);
        for (options, left) in [
            (shape(Shape::Auto), 0),
            (shape(Shape::Reduced), 2),
            (shape(Shape::Auto).fills_by_kernels(false), 1),
            (shape(Shape::Auto).copies_by_kernels(false), 1),
            (shape(Shape::Reduced).fills_by_kernels(true), 1),
            (shape(Shape::Reduced).copies_by_kernels(true), 1),
        ] {
            let (before, after, text) = submitted(&graph, options, &stream);
            assert_eq!((before, after), (2, left), "{text}");
            assert_eq!(pinned.read_blocking(&stream).unwrap(), [7; N]);
            stream.clear(&pinned).unwrap();
        }
    });
}

#[test]
fn captured_fills_and_copies_are_as_drawn_ones() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let numbers = stream.zeros::<u32>(N).unwrap();
        let pinned = context.pinned_zeros::<u32>(N).unwrap().share();
        stream.synchronize_blocking().unwrap();
        let captured = stream.capture(CaptureMode::ThreadLocal, |capture| {
            capture.fill(&numbers, 7)?;
            capture.copy(&numbers, &pinned)
        });
        let graph = captured.unwrap();
        for options in by_kernels() {
            let (before, after, text) = submitted(&graph, options, &stream);
            assert_eq!((before, after), (2, 0), "{text}");
            assert_eq!(pinned.read_blocking(&stream).unwrap(), [7; N]);
            stream.clear(&pinned).unwrap();
        }
    });
}

#[test]
fn a_launch_of_kernels_in_place_of_fills_is_one_call() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let numbers = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        let value = graph.param(1_u32).unwrap();
        graph.root().fill(&numbers, &value).unwrap();
        for options in by_kernels() {
            let mut exec = graph.instantiate_with(options).unwrap();
            exec.launch(&stream).unwrap();
            let (launched, cost) = count(|| exec.launch_with(&stream, ((&value, 5),)));
            launched.unwrap();
            cost.assert_calls(&[("cuGraphExecNodeSetParams", 1), ("cuGraphLaunch", 1)]);
            assert_eq!(cost.heap_allocations(), 0);
            assert_eq!(numbers.read_blocking(&stream).unwrap(), [5; N]);
        }
    });
}

#[test]
fn a_driver_that_refuses_a_step_is_asked_for_the_graph_as_drawn() {
    cuda_tests::as_drawn!("it counts loads of the library's own kernels");
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let numbers = stream.zeros::<u32>(N).unwrap();
        for step in [Call::cuLibraryGetKernel, Call::cuDeviceGetAttribute, Call::cuGraphAddNode] {
            let graph = context.graph().unwrap();
            graph.root().fill(&numbers, 1).unwrap();
            let failure = fail(step, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
            let mut exec = graph.instantiate_with(by_kernels()[0].clone()).unwrap();
            assert!(failure.hit(), "{step:?}");
            drop(failure);
            let why = exec.shape_report().unwrap().reason_to_leave().unwrap().to_owned();
            assert!(why.contains("OUT_OF_MEMORY"), "{why}");
            exec.launch(&stream).unwrap();
            assert_eq!(numbers.read_blocking(&stream).unwrap(), [1; N]);
            stream.clear(&numbers).unwrap();
        }
    });
}
