//! Launches: what runs, in which order, and from which thread.

use cuda_graph::{ContextExt, Error, ExecError};
use cuda_launch::{params, per};
use cuda_sys::{CUgraphInstantiateResult, CUresult};
use cuda_tests::{Gate, Kind, kernel, live, no_leaks, raw, setup};

use crate::common::driver_view::Drawn;

#[test]
fn an_empty_graph_can_be_launched() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let mut exec = context.graph().unwrap().instantiate().unwrap();
        exec.upload(&stream).unwrap();
        exec.launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
    });
}

#[test]
fn every_launch_runs_the_whole_graph() {
    let context = setup();
    no_leaks(|| {
        let increment = kernel(&context, "increment");
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(100).unwrap();
        let graph = context.graph().unwrap();
        // SAFETY: the arguments are the kernel's, the count is the buffer's, and the edge orders
        // the two.
        unsafe {
            let first =
                graph.root().launch_untyped(&increment, per(100, 32), params![&buffer, 100_u32]).unwrap();
            first.then().launch_untyped(&increment, per(100, 32), params![&buffer, 50_u32]).unwrap();
        }
        let mut exec = graph.instantiate().unwrap();
        for _ in 0..100 {
            exec.launch(&stream).unwrap();
        }
        let values = buffer.read_blocking(&stream).unwrap();
        assert!(
            values[..50].iter().all(|value| *value == 200) && values[50..].iter().all(|value| *value == 100)
        );
    });
}

#[test]
fn an_executable_is_what_the_graph_was() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(8).unwrap();
        let graph = context.graph().unwrap();
        let fill = graph.root().fill(&buffer, 1).unwrap();
        let mut before = graph.instantiate().unwrap();
        fill.then().fill(buffer.slice(4..).unwrap(), 2).unwrap();
        let mut after = graph.instantiate().unwrap();
        fill.remove().unwrap();
        before.launch(&stream).unwrap();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [1; 8]);
        after.launch(&stream).unwrap();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [1, 1, 1, 1, 2, 2, 2, 2]);
        assert_eq!(before.graph(), Some(graph));
    });
}

#[test]
fn launches_of_one_executable_on_two_streams_do_not_overlap() {
    let context = setup();
    no_leaks(|| {
        let increment = kernel(&context, "increment");
        let (first, second) = (context.stream().unwrap(), context.stream().unwrap());
        let buffer = first.zeros::<u32>(64).unwrap();
        first.synchronize_blocking().unwrap();
        let graph = context.graph().unwrap();
        let mut last = (*graph.root().empty().unwrap()).clone();
        for _ in 0..10 {
            // SAFETY: the arguments are the kernel's, the count is the buffer's, and the nodes form
            // a chain.
            last = unsafe { last.then().launch_untyped(&increment, per(64, 64), params![&buffer, 64_u32]) }
                .unwrap()
                .into();
        }
        let mut exec = graph.instantiate().unwrap();
        for round in 0..50 {
            exec.launch(if round % 2 == 0 { &first } else { &second }).unwrap();
        }
        context.synchronize_blocking().unwrap();
        assert_eq!(buffer.read_blocking(&first).unwrap(), [500; 64]);
    });
}

#[test]
fn a_launch_waits_for_what_is_before_it_in_the_stream() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (a, b) = (stream.zeros::<u32>(8).unwrap(), stream.zeros::<u32>(8).unwrap());
        let graph = context.graph().unwrap();
        graph.root().copy(&a, &b).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let gate = Gate::close(&stream);
        stream.fill(&a, 9).unwrap();
        exec.launch(&stream).unwrap();
        stream.fill(&a, 1).unwrap();
        assert!(!stream.query().unwrap());
        gate.open();
        assert_eq!(b.read_blocking(&stream).unwrap(), [9; 8]);
    });
}

#[test]
fn nodes_run_after_all_they_wait_for() {
    let context = setup();
    no_leaks(|| {
        let stamp = kernel(&context, "stamp");
        let stream = context.stream().unwrap();
        const LAYERS: usize = 6;
        const WIDTH: usize = 5;
        let (counter, stamps) =
            (stream.zeros::<u32>(1).unwrap(), stream.zeros::<u32>(LAYERS * WIDTH).unwrap());
        let graph = context.graph().unwrap();
        let mut layer: Vec<cuda_graph::Node> = Vec::new();
        for depth in 0..LAYERS {
            let frontier = graph.after_all(&layer).unwrap();
            let nodes = (0..WIDTH).map(|place| {
                let slot = stamps.slice(depth * WIDTH + place..=depth * WIDTH + place).unwrap();
                // SAFETY: the arguments are the kernel's; the counter is used by atomic operations
                // alone, and each node has its slot.
                unsafe { frontier.launch_untyped(&stamp, per(1, 1), params![&counter, slot]) }.unwrap().into()
            });
            let nodes: Vec<cuda_graph::Node> = nodes.collect();
            layer = nodes;
        }
        let mut exec = graph.instantiate().unwrap();
        for round in 0..5 {
            exec.launch(&stream).unwrap();
            let stamps = stamps.read_blocking(&stream).unwrap();
            let base = (round * LAYERS * WIDTH) as u32;
            for (depth, layer) in stamps.chunks(WIDTH).enumerate() {
                let least = base + (depth * WIDTH) as u32;
                assert!(
                    layer.iter().all(|stamp| *stamp > least && *stamp <= least + WIDTH as u32),
                    "{depth}: {stamps:?}"
                );
            }
        }
    });
}

#[test]
fn a_graph_that_cannot_be_instantiated_says_why_and_which_node() {
    let context = setup();
    no_leaks(|| {
        let graph = Drawn::new(&context);
        let a = graph.root().empty().unwrap().named("start");
        let b = a.then().empty().unwrap().named("end");
        // Behind the library's back, which would refuse it.
        let nodes = raw::nodes(graph.raw);
        // SAFETY: both nodes are live and of this graph.
        raw::ok(unsafe {
            raw::driver().cuGraphAddDependencies(graph.raw, &raw const nodes[1], &raw const nodes[0], 1)
        });
        let before = live();
        let error = graph.instantiate().unwrap_err();
        let Error::Exec(ExecError::Instantiate(reason)) = &error else { panic!("{error:?}") };
        assert_eq!(reason.code, CUresult::CUDA_ERROR_INVALID_VALUE);
        assert_eq!(reason.result, CUgraphInstantiateResult::CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE);
        let node = reason.node.as_deref().unwrap();
        assert!(node == "start" || node == "end", "{node}");
        let text = error.to_string();
        assert!(
            text.contains(node) && text.contains("cycle") && text.contains("cuGraphInstantiateWithParams"),
            "{text}"
        );
        cuda_tests::settle();
        assert_eq!(live().of(Kind::Exec), before.of(Kind::Exec));
        assert!(cuda_tests::until(cuda_tests::SOON, || live().of(Kind::UserObject)
            == before.of(Kind::UserObject)));
        graph.remove_edges(&[(&b, &a)]).unwrap();
        let stream = context.stream().unwrap();
        graph.instantiate().unwrap().launch(&stream).unwrap();
    });
}

#[test]
fn executables_are_made_and_launched_by_threads_without_a_current_context() {
    let context = setup();
    no_leaks(|| {
        let increment = kernel(&context, "increment");
        let stream = context.stream().unwrap();
        let buffer = stream.zeros::<u32>(8).unwrap();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let graph = context.graph().unwrap();
                // SAFETY: the arguments are the kernel's, and the count is the buffer's.
                let node =
                    unsafe { graph.root().launch_untyped(&increment, per(8, 8), params![&buffer, 8_u32]) }
                        .unwrap();
                node.then().fill(buffer.slice(..4).unwrap(), 7).unwrap();
                let mut exec = graph.instantiate().unwrap();
                exec.upload(&stream).unwrap();
                exec.launch(&stream).unwrap();
                graph.to_dot().unwrap();
                node.remove().unwrap();
            });
        });
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [7, 7, 7, 7, 1, 1, 1, 1]);
    });
}

#[test]
fn graphs_and_executables_go_between_threads() {
    fn may_move<T: Send>() {}
    fn may_share<T: Send + Sync + Clone>() {}
    may_share::<cuda_graph::Graph>();
    may_share::<cuda_graph::Node>();
    may_share::<cuda_graph::KernelNode>();
    may_move::<cuda_graph::GraphExec>();
    may_move::<cuda_graph::Outputs<'_>>();
    may_share::<&cuda_graph::OutputBuffer<'_, u32>>();
    may_share::<cuda_handles::GraphBuffer<u32>>();
}
