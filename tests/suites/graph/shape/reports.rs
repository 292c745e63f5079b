//! What a report says.

use core::num::NonZeroU16;

use cuda_graph::{ContextExt, InstantiateOptions, Shape};
use cuda_handles::Stream;
use cuda_launch::{params, per};
use cuda_tests::{count, kernel, no_leaks, setup};

use super::shaped;
use crate::capture::{N, add_to};

#[test]
fn many_roots_get_a_kernel_in_front_and_redundant_edges_go() {
    cuda_tests::as_drawn!("it is about executables that are not shaped");
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let numbers: Vec<_> = (0..16).map(|_| stream.zeros::<u32>(N).unwrap()).collect();
        let graph = context.graph().unwrap();
        for numbers in &numbers {
            let first = graph.root().launch(&add, per(1, 1), (1, numbers)).unwrap();
            let second = first.then().launch(&add, per(1, 1), (1, numbers)).unwrap();
            graph.after([&first, &second]).unwrap().launch(&add, per(1, 1), (1, numbers)).unwrap();
        }
        let mut exec = shaped(&graph, Shape::Reduced);
        let report = exec.shape_report().unwrap();
        assert_eq!((report.shape(), report.reason_to_leave()), (Shape::Reduced, None));
        let (before, after) = (report.before().unwrap(), report.after().unwrap());
        assert_eq!((before.nodes, before.roots, before.edges, before.widest), (48, 16, 48, 16));
        assert_eq!((after.nodes, after.roots, after.edges, after.widest), (49, 1, 48, 16));
        let text = report.to_string();
        assert!(text.contains("48 edges became 32") && text.contains("in front of 16 roots"), "{text}");
        exec.launch(&stream).unwrap();
        for numbers in &numbers {
            assert_eq!(numbers.read_blocking(&stream).unwrap()[0], 3);
        }
        let drawn = graph.instantiate().unwrap();
        assert!(drawn.shape_report().is_none());
        drop((exec, drawn));
    });
}

#[test]
fn kernels_that_may_wait_for_others_are_not_ordered_anew() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let increment = kernel(&context, "increment");
        let numbers: Vec<_> = (0..4).map(|_| stream.zeros::<u32>(8).unwrap()).collect();
        let graph = context.graph().unwrap();
        for numbers in &numbers {
            // SAFETY: the kernel increments the numbers that it is given.
            unsafe { graph.root().launch_untyped(&increment, per(8, 8), params![numbers, 8_u32]) }.unwrap();
        }
        let run = |options: InstantiateOptions, stream: &Stream| {
            let mut exec = graph.instantiate_with(options.shape(Shape::Reduced)).unwrap();
            exec.launch(stream).unwrap();
            let report = exec.shape_report().unwrap().clone();
            (report.after().unwrap().roots, report.to_string())
        };
        let (roots, text) = run(InstantiateOptions::new(), &stream);
        assert!(roots == 4 && text.contains("left 4 roots"), "{text}");
        let (roots, text) = run(InstantiateOptions::new().assume_progress(), &stream);
        assert!(roots == 1 && text.contains("in front of 4 roots"), "{text}");
        for numbers in &numbers {
            assert_eq!(numbers.read_blocking(&stream).unwrap(), [2; 8]);
        }
    });
}

#[test]
fn host_functions_are_not_ordered_anew_whatever_is_assumed() {
    let context = setup();
    no_leaks(|| {
        let graph = context.graph().unwrap();
        for _ in 0..2 {
            graph.root().host(|| ()).unwrap();
        }
        let lanes = Shape::Lanes(NonZeroU16::new(1).unwrap());
        let exec = graph.instantiate_with(InstantiateOptions::new().shape(lanes).assume_progress()).unwrap();
        let after = exec.shape_report().unwrap().after().unwrap();
        assert_eq!((after.nodes, after.roots, after.edges), (2, 2, 0));
    });
}

#[test]
fn the_kernels_of_shapes_are_loaded_once_for_a_graph() {
    cuda_tests::as_drawn!("it counts loads of the library's own kernels");
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let numbers = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        for _ in 0..2 {
            graph.root().launch(&add, per(1, 1), (1, &numbers)).unwrap();
        }
        let loads = || {
            let (exec, cost) = count(|| shaped(&graph, Shape::Reduced));
            assert_eq!(exec.shape_report().unwrap().after().unwrap().roots, 1);
            cost.calls("cuLibraryLoadData")
        };
        assert_eq!([loads(), loads()], [1, 0]);
    });
}

#[test]
fn a_launch_of_a_shaped_executable_is_one_call() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let numbers = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        graph.root().fill(&numbers, 1).unwrap();
        let mut exec = shaped(&graph, Shape::Auto);
        exec.launch(&stream).unwrap();
        let (launched, cost) = count(|| exec.launch(&stream));
        launched.unwrap();
        cost.assert_calls(&[("cuGraphLaunch", 1)]);
        assert_eq!(cost.heap_allocations(), 0);
    });
}

#[test]
fn pictures_show_the_graph_as_drawn_and_shaped() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let numbers: Vec<_> = (0..3).map(|_| stream.zeros::<u32>(N).unwrap()).collect();
        let graph = context.graph().unwrap();
        let clear = graph.root().fill(&numbers[0], 1).unwrap().named("clear");
        clear.then().launch(&add, per(1, 1), (1, &numbers[0])).unwrap().named("added");
        for numbers in &numbers[1..] {
            graph.root().launch(&add, per(1, 1), (1, numbers)).unwrap();
        }
        let drawn = graph.instantiate_with(InstantiateOptions::new().shape(Shape::AsBuilt)).unwrap();
        assert_eq!(drawn.to_dot().unwrap(), graph.to_dot().unwrap());
        assert_eq!(drawn.to_svg().unwrap(), graph.to_svg().unwrap());
        let shaped = graph.instantiate_with(InstantiateOptions::new().shape(Shape::Auto)).unwrap();
        for picture in [shaped.to_dot().unwrap(), shaped.to_svg().unwrap()] {
            for text in ["clear", "in place of a memset", "added", "nothing"] {
                assert!(picture.contains(text), "{text}: {picture}");
            }
        }
        assert!(!graph.to_dot().unwrap().contains("nothing"));
    });
}
