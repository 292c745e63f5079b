//! Launches of captured graphs: the first waits for the homes of captured memory, and graphs that
//! share scratch memory are one line.

use cuda_graph::{ContextExt, Error, ExecError, Fallback, Graph, GraphExec, InstantiateOptions};
use cuda_handles::capture::{CaptureMode, CaptureOptions, Captured, Scratch};
use cuda_handles::{Buffer, Context, Error as HandleError, Owner, Stream, reaper};
use cuda_launch::{Launch, params, per};
use cuda_tests::{Gate, Kind, SOON, count, kernel, live, no_leaks, settle, setup, until};

/// A graph of what was captured, which owns what the nodes use.
fn graph_of(context: &Context, captured: Captured) -> Graph {
    let Captured { graph, records, .. } = captured;
    // SAFETY: the graph is the library's own, and everything that its nodes use is kept.
    unsafe { Graph::from_raw_with(context, graph.as_raw(), Owner::other(records.into_owners())) }.unwrap()
}

/// A graph that counts up through a temporary: `to` becomes one more at each launch. It takes the
/// temporary from scratch memory, which holds a wrong value for a while.
fn counting(context: &Context, stream: &Stream, scratch: &Scratch, to: &Buffer<u32>) -> Graph {
    let increment = kernel(context, "increment");
    let len = to.len() as u32;
    let capture = stream.begin_capture_with(&CaptureOptions::new().scratch(scratch)).unwrap();
    let temporary = stream.upload(&vec![77_u32; to.len()]).unwrap();
    stream.copy(to, &temporary).unwrap();
    for _ in 0..3 {
        // SAFETY: the arguments are the kernel's, and the count is the buffer's.
        unsafe { increment.launch(stream, per(to.len(), 32), params![&temporary, len]) }.unwrap();
    }
    stream.copy(&temporary, to).unwrap();
    drop(temporary);
    graph_of(context, capture.end().unwrap())
}

fn executable(graph: &Graph) -> GraphExec {
    graph.instantiate().unwrap()
}

#[test]
fn the_first_launch_waits_for_homes_that_captured_uses_did_not_wait_for() {
    let context = setup();
    let increment = kernel(&context, "increment");
    no_leaks(|| {
        for keep_by_node in [false, true] {
            let (home, stream) = (context.stream().unwrap(), context.stream().unwrap());
            let gate = Gate::close(&home);
            let buffer = home.zeros::<u32>(64).unwrap();
            let capture = stream.begin_capture(CaptureMode::ThreadLocal).unwrap();
            let (launched, cost) = count(|| {
                // SAFETY: the arguments are the kernel's, and the count is the buffer's.
                unsafe { increment.launch(&stream, per(64, 32), params![&buffer, 64_u32]) }
            });
            launched.unwrap();
            cost.assert_calls(&[("cuLaunchKernel", 1)]);
            let captured = capture.end().unwrap();
            let graph = if keep_by_node {
                let graph = context.graph().unwrap();
                let node = graph.root().empty().unwrap();
                for owner in captured.records.into_owners() {
                    node.keep(owner).unwrap();
                }
                node.then().fill(&buffer, 1).unwrap();
                graph
            } else {
                graph_of(&context, captured)
            };
            let mut exec = executable(&graph);
            exec.launch(&stream).unwrap();
            assert!(!stream.query().unwrap(), "it waits for the home");
            gate.open();
            assert_eq!(buffer.read_blocking(&stream).unwrap(), [1; 64]);
            let (launched, cost) = count(|| exec.launch(&stream));
            launched.unwrap();
            cost.assert_calls(&[("cuGraphLaunch", 1)]);
            stream.synchronize_blocking().unwrap();
        }
    });
}

#[test]
fn memory_of_a_capture_is_there_before_during_and_after_the_launches() {
    let context = setup();
    let increment = kernel(&context, "increment");
    no_leaks(|| {
        let (stream, other) = (context.stream().unwrap(), context.stream().unwrap());
        let before = live().of(Kind::Allocation);
        let capture = stream.begin_capture(CaptureMode::Global).unwrap();
        let buffer = stream.alloc::<u32>(64).unwrap();
        // SAFETY: the arguments are the kernel's, and the count is the buffer's.
        let launched = unsafe { increment.launch(&stream, per(64, 32), params![&buffer, 64_u32]) };
        launched.unwrap();
        let graph = graph_of(&context, capture.end().unwrap());
        other.fill(&buffer, 10).unwrap();
        other.synchronize_blocking().unwrap();
        let mut exec = executable(&graph);
        exec.launch(&stream).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(buffer.read_blocking(&stream).unwrap(), [12; 64]);
        let gate = Gate::close(&stream);
        exec.launch(&stream).unwrap();
        drop((exec, graph));
        let last = buffer.clone();
        drop(buffer);
        gate.open();
        assert_eq!(last.read_blocking(&stream).unwrap(), [13; 64]);
        drop(last);
        settle();
        assert!(until(SOON, || live().of(Kind::Allocation) == before));
    });
}

#[test]
fn temporaries_are_freed_only_after_the_launches_that_use_them() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let before = live().of(Kind::Allocation);
        for scratch in [None, Some(Scratch::new(&context))] {
            let mut options = CaptureOptions::from(CaptureMode::ThreadLocal);
            if let Some(scratch) = &scratch {
                options = options.scratch(scratch);
            }
            let capture = stream.begin_capture_with(&options).unwrap();
            drop(stream.zeros::<u32>(64).unwrap());
            let graph = graph_of(&context, capture.end().unwrap());
            let mut exec = executable(&graph);
            let gate = Gate::close(&stream);
            exec.launch(&stream).unwrap();
            drop((graph, exec, options, scratch));
            // Whatever the reaper can do meanwhile.
            let _ = until(std::time::Duration::from_millis(30), || reaper::pending() == 0);
            assert_eq!(live().of(Kind::Allocation), before + 1);
            gate.open();
            stream.synchronize_blocking().unwrap();
            settle();
            assert!(until(SOON, || live().of(Kind::Allocation) == before));
        }
    });
}

#[test]
fn graphs_with_the_same_scratch_memory_do_not_overlap() {
    let context = setup();
    no_leaks(|| {
        let (first, second) = (context.stream().unwrap(), context.stream().unwrap());
        let scratch = Scratch::new(&context);
        let totals = [(); 2].map(|()| first.zeros::<u32>(64).unwrap());
        let small = first.zeros::<u32>(32).unwrap();
        first.synchronize_blocking().unwrap();
        let graphs = [
            counting(&context, &first, &scratch, &totals[0]),
            counting(&context, &second, &scratch, &totals[1]),
            counting(&context, &second, &scratch, &small),
        ];
        assert_eq!(scratch.size_bytes(), 256, "the largest need");
        let mut execs = graphs.each_ref().map(executable);
        for exec in &mut execs {
            exec.launch(&first).unwrap();
        }
        // Makes the event by which others wait for the stream.
        second.wait_for(&first).unwrap();
        // On the stream of the last launch it is one call, on another one it waits first.
        let (launched, cost) = count(|| execs[1].launch(&first));
        launched.unwrap();
        cost.assert_calls(&[("cuGraphLaunch", 1)]);
        assert_eq!(cost.heap_allocations(), 0);
        let gate = Gate::close(&first);
        execs[0].launch(&first).unwrap();
        let (launched, cost) = count(|| execs[1].launch(&second));
        launched.unwrap();
        cost.assert_calls(&[("cuEventRecord", 1), ("cuGraphLaunch", 1), ("cuStreamWaitEvent", 1)]);
        assert!(!second.query().unwrap());
        gate.open();
        second.synchronize_blocking().unwrap();
        // What was seen done needs no wait.
        let (launched, cost) = count(|| execs[2].launch(&first));
        launched.unwrap();
        cost.assert_calls(&[("cuGraphLaunch", 1)]);
        std::thread::scope(|scope| {
            for (number, exec) in execs.iter_mut().enumerate() {
                let streams = [&first, &second];
                scope.spawn(move || {
                    for round in 0..30 {
                        exec.launch(streams[(number + round) % 2]).unwrap();
                    }
                });
            }
        });
        context.synchronize_blocking().unwrap();
        assert_eq!(totals[0].read_blocking(&first).unwrap(), [3 * 32; 64]);
        assert_eq!(totals[1].read_blocking(&first).unwrap(), [3 * 33; 64]);
        assert_eq!(small.read_blocking(&first).unwrap(), [3 * 32; 32]);
    });
}

#[test]
fn a_launch_in_line_with_one_on_a_capturing_stream_is_refused_until_the_end() {
    let context = setup();
    no_leaks(|| {
        let (first, second) = (context.stream().unwrap(), context.stream().unwrap());
        let (scratch, total) = (Scratch::new(&context), first.zeros::<u32>(64).unwrap());
        first.synchronize_blocking().unwrap();
        let mut exec = executable(&counting(&context, &first, &scratch, &total));
        exec.launch(&first).unwrap();
        let capture = first.begin_capture(CaptureMode::ThreadLocal).unwrap();
        let (launched, cost) = count(|| exec.launch(&second));
        assert!(matches!(launched, Err(Error::Handles(HandleError::Capturing { .. }))), "{launched:?}");
        cost.assert_calls(&[]);
        capture.end().unwrap();
        exec.launch(&second).unwrap();
        assert_eq!(total.read_blocking(&second).unwrap(), [6; 64]);
        // A run that was seen done is waited for by none.
        let capture = second.begin_capture(CaptureMode::ThreadLocal).unwrap();
        exec.launch(&first).unwrap();
        capture.end().unwrap();
    });
}

#[test]
fn clones_and_graphs_around_are_in_the_line_and_others_are_not() {
    let context = setup();
    no_leaks(|| {
        let (first, second) = (context.stream().unwrap(), context.stream().unwrap());
        let (scratch, other) = (Scratch::new(&context), Scratch::new(&context));
        let totals = [(); 2].map(|()| first.zeros::<u32>(64).unwrap());
        first.synchronize_blocking().unwrap();
        let graph = counting(&context, &first, &scratch, &totals[0]);
        let beside = counting(&context, &first, &other, &totals[1]);
        let clone = graph.clone_graph().unwrap();
        let around = context.graph().unwrap();
        around.root().child(&clone).unwrap().then().child(&beside).unwrap();
        let mut exec = executable(&graph);
        exec.launch(&first).unwrap();
        first.synchronize_blocking().unwrap();
        for (inside, is_in_line) in [(&clone, true), (&around, true), (&beside, false)] {
            let mut inside = executable(inside);
            inside.launch(&second).unwrap();
            second.synchronize_blocking().unwrap();
            let gate = Gate::close(&first);
            exec.launch(&first).unwrap();
            inside.launch(&second).unwrap();
            match is_in_line {
                true => assert!(!second.query().unwrap()),
                false => second.synchronize_blocking().unwrap(),
            }
            gate.open();
            context.synchronize_blocking().unwrap();
        }
        assert_eq!(totals[0].read_blocking(&first).unwrap(), [3 * 8; 64]);
        assert_eq!(totals[1].read_blocking(&first).unwrap(), [3 * 4; 64]);
    });
}

#[test]
fn runs_with_decisions_of_the_host_are_in_the_line() {
    let context = setup();
    no_leaks(|| {
        let (first, second) = (context.stream().unwrap(), context.stream().unwrap());
        let scratch = Scratch::new(&context);
        let total = first.zeros::<u32>(64).unwrap();
        first.synchronize_blocking().unwrap();
        let graph = counting(&context, &first, &scratch, &total);
        let options = InstantiateOptions::new();
        let mut by_host = graph.instantiate_with_fallback(Fallback::HostLoopAlways, options).unwrap();
        assert!(by_host.is_on_host());
        let mut exec = executable(&graph);
        let gate = Gate::close(&first);
        exec.launch(&first).unwrap();
        std::thread::scope(|scope| {
            let runs = scope.spawn(|| by_host.run_blocking(&second));
            assert!(!until(std::time::Duration::from_millis(30), || runs.is_finished()));
            gate.open();
            runs.join().unwrap().unwrap();
        });
        exec.launch(&first).unwrap();
        assert_eq!(total.read_blocking(&first).unwrap(), [9; 64]);
    });
}

#[test]
fn a_launch_that_fails_is_not_in_the_line() {
    let context = setup();
    no_leaks(|| {
        let (first, second) = (context.stream().unwrap(), context.stream().unwrap());
        let scratch = Scratch::new(&context);
        let total = first.zeros::<u32>(64).unwrap();
        first.synchronize_blocking().unwrap();
        let graph = counting(&context, &first, &scratch, &total);
        let mut exec = executable(&graph);
        exec.launch(&first).unwrap();
        let capture = second.begin_capture(CaptureMode::ThreadLocal).unwrap();
        assert_eq!(exec.launch(&second), Err(Error::Exec(ExecError::Captured)));
        drop(capture.end().unwrap());
        let (launched, cost) = count(|| exec.launch(&first));
        launched.unwrap();
        cost.assert_calls(&[("cuGraphLaunch", 1)]);
        assert_eq!(total.read_blocking(&first).unwrap(), [6; 64]);
    });
}

#[test]
fn kernels_launch_no_graph_with_scratch_memory() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let scratch = Scratch::new(&context);
        let total = stream.zeros::<u32>(64).unwrap();
        let graph = counting(&context, &stream, &scratch, &total);
        let refused = graph.instantiate_with(InstantiateOptions::new().device_launch());
        assert!(matches!(refused, Err(Error::Exec(ExecError::DeviceLaunch { node: None, .. }))));
    });
}
