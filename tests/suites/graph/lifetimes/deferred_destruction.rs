//! The end of executables with conditional nodes, in which the driver waits for all work of the
//! device: it is put off.

use std::time::Duration;

use cuda_graph::{ContextExt, Error, ExecError, Fallback, Graph, GraphExec, InstantiateOptions};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Buffer, Context, Error as HandleError, Stream, reaper, set_patience};
use cuda_sys::{CUresult, Call};
use cuda_tests::states::Foreign;
use cuda_tests::{
    Gate, Injection, Kind, SOON, count, fail, in_callback, live, needs, no_leaks, raw, setup, until,
    used_stream,
};

use crate::common::gone::allocations;

/// A graph with a loop over one round, and with memory of which nobody else has a handle.
fn looping(context: &Context, stream: &Stream, number: &Buffer<u32>) -> Graph {
    let graph = context.graph().unwrap();
    let own = stream.zeros::<u32>(16).unwrap();
    stream.synchronize_blocking().unwrap();
    let start = graph.root().fill(number, 1).unwrap();
    let used = start.then().fill(&own, 2).unwrap();
    used.then().while_loop(cuda_graph::Test::nonzero(number), |body| body.root().fill(number, 0)).unwrap();
    graph
}

/// What a test of this file has: a stream, and a number for loops.
fn with_loops(test: impl FnOnce(&Context, &Stream, &Buffer<u32>)) {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let stream = used_stream(&context);
        let number = stream.zeros::<u32>(1).unwrap();
        stream.synchronize_blocking().unwrap();
        test(&context, &stream, &number);
    });
}

#[test]
fn what_it_kept_goes_when_its_run_is_over_and_nobody_waits() {
    with_loops(|context, stream, number| {
        let other = context.stream().unwrap();
        let (memory, execs) = (allocations(), live().of(Kind::Exec));
        let graph = looping(context, stream, number);
        let mut exec = graph.instantiate().unwrap();
        drop(graph);
        let gate = Gate::close(stream);
        exec.launch(stream).unwrap();
        let ((), cost) = count(|| drop(exec));
        assert_eq!(cost.calls_anywhere("cuGraphExecDestroy"), 0, "{cost}");
        // Other work goes on while the loop has not even begun.
        let out = other.upload(&[1_u32]).unwrap();
        assert_eq!(out.read_blocking(&other).unwrap(), [1]);
        drop(out);
        assert!(!stream.query().unwrap());
        assert!(allocations() > memory, "it runs yet");
        gate.open();
        stream.synchronize_blocking().unwrap();
        // Without a drain.
        assert!(until(SOON, || allocations() == memory), "memory is kept");
        assert_eq!(live().of(Kind::Exec), execs + 1);
        assert!(until(SOON, || {
            reaper::drain();
            live().of(Kind::Exec) == execs
        }));
    });
}

#[test]
fn what_one_kept_that_never_ran_goes_at_once() {
    with_loops(|context, stream, number| {
        let memory = allocations();
        drop(looping(context, stream, number).instantiate().unwrap());
        assert!(until(SOON, || allocations() == memory), "memory is kept");
    });
}

#[test]
fn the_next_executable_of_the_graph_ends_it() {
    with_loops(|context, stream, number| {
        let (graph, another) = (looping(context, stream, number), looping(context, stream, number));
        drop(another.instantiate().unwrap());
        let execs = live().of(Kind::Exec);
        drop(graph.instantiate().unwrap());
        let (mut exec, cost) = count(|| graph.instantiate().unwrap());
        // That one alone.
        assert_eq!(
            (cost.calls_anywhere("cuGraphExecDestroy"), live().of(Kind::Exec)),
            (1, execs + 1),
            "{cost}"
        );
        exec.launch(stream).unwrap();
        stream.synchronize_blocking().unwrap();
        assert_eq!(
            graph.instantiate().unwrap_err(),
            Error::Exec(ExecError::OneExecutable { of: "conditional nodes" })
        );
    });
}

#[test]
fn a_host_loop_of_the_graph_ends_it() {
    with_loops(|context, stream, number| {
        let graph = looping(context, stream, number);
        let execs = live().of(Kind::Exec);
        drop(graph.instantiate().unwrap());
        assert_eq!(live().of(Kind::Exec), execs + 1);
        let options = InstantiateOptions::new();
        let make = || graph.instantiate_with_fallback(Fallback::HostLoopAlways, options).unwrap();
        let (mut host, cost) = count(make);
        assert_eq!(cost.calls_anywhere("cuGraphExecDestroy"), 1, "{cost}");
        host.run_blocking(stream).unwrap();
        drop(host);
        assert!(until(SOON, || live().of(Kind::Exec) == execs), "the host loop's own go in the drop");
    });
}

#[test]
fn a_device_without_memory_left_ends_it() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    with_loops(|context, stream, number| {
        let (graph, another) = (looping(context, stream, number), looping(context, stream, number));
        let instantiate = || {
            let failing = fail(Call::cuGraphInstantiateWithParams, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
            let outcome = another.instantiate();
            assert!(failing.hit());
            outcome
        };
        assert!(matches!(instantiate().unwrap_err(), Error::Exec(ExecError::Instantiate(_))));
        let execs = live().of(Kind::Exec);
        drop(graph.instantiate().unwrap());
        let exec = instantiate().unwrap();
        assert_eq!(live().of(Kind::Exec), execs + 1);
        drop(exec);
        // For memory of other kinds, too, if what waits to be freed is not enough.
        let short = || fail(Call::cuMemAllocAsync, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        for (times, left) in [(1, 1), (2, 0)] {
            let failing: Vec<Injection> = (0..times).map(|_| short()).collect();
            let buffer = stream.zeros::<u32>(16).unwrap();
            assert!(failing.iter().all(Injection::hit));
            assert_eq!(live().of(Kind::Exec), execs + left);
            drop(buffer);
        }
    });
}

#[test]
fn a_launch_without_memory_ends_it() {
    with_loops(|context, stream, number| {
        let plain = context.graph().unwrap();
        plain.root().fill(number, 3).unwrap();
        let mut exec = plain.instantiate().unwrap();
        let short = |exec: &mut GraphExec| {
            let failing = fail(Call::cuGraphLaunch, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
            let launched = exec.launch(stream);
            assert!(failing.hit());
            launched
        };
        assert!(short(&mut exec).is_err());
        let execs = live().of(Kind::Exec);
        drop(looping(context, stream, number).instantiate().unwrap());
        assert_eq!(live().of(Kind::Exec), execs + 1);
        short(&mut exec).unwrap();
        assert_eq!((live().of(Kind::Exec), number.read_blocking(stream).unwrap()), (execs, vec![3]));
    });
}

/// The stream may be gone once no handle is left: where its work ends is known all the same.
#[test]
fn what_one_kept_that_ran_on_an_adopted_stream_goes_with_its_run() {
    with_loops(|context, stream, number| {
        let foreign = Foreign::new(context);
        // SAFETY: the stream lives longer than its handles, and nobody captures it.
        let adopted = unsafe { Stream::from_raw(context, foreign.as_raw()) }.unwrap();
        let memory = allocations();
        let mut exec = looping(context, stream, number).instantiate().unwrap();
        let gate = Gate::close(&adopted);
        exec.launch(&adopted).unwrap();
        drop((exec, adopted));
        assert!(allocations() > memory, "it runs yet");
        gate.open();
        assert!(until(SOON, || allocations() == memory), "memory is kept");
    });
}

/// Memory of the host is no reason to wait for all work of the device.
#[test]
fn memory_of_the_host_does_not_end_it() {
    with_loops(|context, stream, number| {
        let execs = live().of(Kind::Exec);
        drop(looping(context, stream, number).instantiate().unwrap());
        // Of a size that nothing on the free list has.
        for bytes in [1 << 16, 1 << 18] {
            let (block, cost) = count(|| context.pinned_zeros::<u8>(bytes).unwrap());
            assert_eq!(cost.calls_anywhere("cuGraphExecDestroy"), 0, "{cost}");
            drop(block);
            let (block, cost) = count(|| context.managed_zeros::<u8>(bytes).unwrap());
            assert_eq!(cost.calls_anywhere("cuGraphExecDestroy"), 0, "{cost}");
            drop(block);
        }
        assert_eq!(live().of(Kind::Exec), execs + 1);
    });
}

/// Other code may make the next one: it knows of no drain.
#[test]
fn lending_the_graph_ends_it() {
    with_loops(|context, stream, number| {
        let graph = looping(context, stream, number);
        drop(graph.instantiate().unwrap());
        let lent = graph.lend().unwrap();
        let instantiate = || {
            let mut exec = core::ptr::null_mut();
            // SAFETY: the graph lives, nobody else uses it, and the out pointer is valid.
            raw::ok(unsafe { raw::driver().cuGraphInstantiateWithFlags(&raw mut exec, lent, 0) });
            // SAFETY: it is ours and runs nowhere.
            raw::ok(unsafe { raw::driver().cuGraphExecDestroy(exec) });
        };
        context.with_current(instantiate).unwrap();
    });
}

#[test]
fn what_one_kept_goes_wherever_it_is_dropped() {
    with_loops(|context, stream, number| {
        let memory = allocations();
        let running = || {
            let home = context.stream().unwrap();
            let mut exec = looping(context, stream, number).instantiate().unwrap();
            let gate = Gate::close(&home);
            exec.launch(&home).unwrap();
            (exec, gate)
        };
        let goes = |gate: Gate, case: &str| {
            assert!(allocations() > memory, "{case}: it runs yet");
            gate.open();
            assert!(until(SOON, || allocations() == memory), "{case}: memory is kept");
        };
        let mut exec = looping(context, stream, number).instantiate().unwrap();
        exec.launch(stream).unwrap();
        // Not behind a gate, which is one itself: drivers run them one after the other.
        in_callback(stream, move || drop(exec));
        assert!(until(SOON, || allocations() == memory), "in a host function: memory is kept");
        let (exec, gate) = running();
        let capture = stream.begin_capture(CaptureMode::Global).unwrap();
        drop(exec);
        drop(capture.end().unwrap());
        goes(gate, "during a capture");
        let (exec, gate) = running();
        std::thread::spawn(move || drop(exec)).join().unwrap();
        goes(gate, "on a thread that ends");
    });
}

/// As the last run is over, what the executable records goes, and the graph; its own end comes
/// last.
#[test]
fn events_that_it_records_go_first() {
    with_loops(|context, stream, number| {
        let (events, execs) = (live().of(Kind::Event), live().of(Kind::Exec));
        let graph = looping(context, stream, number);
        let event = context.event().unwrap();
        graph.root().record(&event).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(stream).unwrap();
        drop((event, graph, exec));
        assert!(until(SOON, || live().of(Kind::Event) <= events), "the event is kept");
        assert_eq!(live().of(Kind::Exec), execs + 1);
        reaper::drain();
        assert_eq!(live().of(Kind::Exec), execs);
        stream.fill(number, 7).unwrap();
        assert_eq!(number.read_blocking(stream).unwrap(), [7]);
    });
}

#[test]
fn its_end_breaks_no_capture() {
    with_loops(|context, stream, number| {
        for mode in [CaptureMode::Global, CaptureMode::ThreadLocal, CaptureMode::Relaxed] {
            let execs = live().of(Kind::Exec);
            let mut exec = looping(context, stream, number).instantiate().unwrap();
            exec.launch(stream).unwrap();
            drop(exec);
            let captured = context.stream().unwrap();
            let capture = captured.begin_capture(mode).unwrap();
            captured.fill(number, 3).unwrap();
            // Here, and from another thread.
            reaper::drain();
            std::thread::spawn(reaper::drain).join().unwrap();
            assert!(until(SOON, || live().of(Kind::Exec) == execs), "{mode:?}");
            captured.fill(number, 4).unwrap();
            assert!(capture.end().is_ok(), "{mode:?}");
        }
    });
}

/// Gives what `work` gives, on a thread of its own: what waits for the gate fails the test.
#[track_caller]
fn beside_the_gate<R: Send + 'static>(work: impl FnOnce() -> R + Send + 'static) -> R {
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || sender.send(work()));
    receiver.recv_timeout(SOON).expect("it ends while the gate is closed")
}

#[track_caller]
fn is_running(outcome: Result<GraphExec, Error>) {
    let error = outcome.expect_err("the driver would wait for the gate");
    let text = error.to_string();
    assert!(matches!(error, Error::Handles(HandleError::StillRunning { .. })), "{text}");
    assert!(text.contains("the stream") && text.contains("reaper::drain"), "{text}");
}

/// The host opens the gate: whoever waited for that would wait for itself.
#[test]
fn the_next_executable_is_refused_while_there_is_work_that_the_host_has_to_end() {
    with_loops(|context, stream, number| {
        let other = context.stream().unwrap();
        // Its own run, and the work of another stream.
        for held in [stream, &other] {
            // The last one of the round before waits for a drain: lack of memory would end it, too.
            reaper::drain();
            let graph = looping(context, stream, number);
            // That of the round before.
            reaper::drain();
            let execs = live().of(Kind::Exec);
            let mut exec = graph.instantiate().unwrap();
            let gate = Gate::close(held);
            exec.launch(stream).unwrap();
            drop(exec);
            let again = graph.clone();
            is_running(beside_the_gate(move || again.instantiate()));
            // Not for lack of memory either.
            let allocates = other.clone();
            beside_the_gate(move || {
                let short = |nth| fail(Call::cuMemAllocAsync, nth, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
                let injections = [short(1), short(1)];
                assert!(matches!(allocates.zeros::<u32>(16), Err(HandleError::OutOfMemory { .. })));
                assert!(injections.iter().all(Injection::hit));
            });
            let lends = graph.clone();
            beside_the_gate(move || lends.lend().map(drop)).unwrap();
            gate.open();
            [stream, &other].into_iter().for_each(|stream| stream.synchronize_blocking().unwrap());
            // As somebody wanted it gone, without a drain.
            assert!(until(SOON, || live().of(Kind::Exec) == execs));
            graph.instantiate().unwrap().launch(stream).unwrap();
            stream.synchronize_blocking().unwrap();
        }
    });
}

/// Nobody knows of the work of a stream that is gone: the driver is asked, and not for longer than
/// calls are patient.
#[test]
fn the_next_executable_does_not_wait_for_ever_for_work_that_is_not_known() {
    with_loops(|context, stream, number| {
        set_patience(Duration::from_millis(200));
        let graph = looping(context, stream, number);
        let gone = context.stream().unwrap();
        let gate = Gate::close(&gone);
        drop(gone);
        drop(graph.instantiate().unwrap());
        let again = graph.clone();
        let error = beside_the_gate(move || again.instantiate()).unwrap_err();
        let text = error.to_string();
        assert!(matches!(error, Error::Handles(HandleError::Busy { .. })), "{text}");
        assert!(text.contains("cuGraphExecDestroy"), "{text}");
        gate.open();
        assert!(until(SOON, || graph.instantiate().is_ok()));
    });
}

/// The driver waits in its end for work that nobody knows of, and on the reaper's thread alone.
#[test]
fn who_asks_for_memory_does_not_end_one_that_waits_for_streams_to_be_idle() {
    with_loops(|context, stream, number| {
        let graph = looping(context, stream, number);
        graph.lend().unwrap();
        let gone = context.stream().unwrap();
        let (gate, unknown) = (Gate::close(stream), Gate::close(&gone));
        drop(gone);
        let exec = graph.instantiate().unwrap();
        beside_the_gate(move || drop(exec));
        // The reaper looks less often by now.
        std::thread::sleep(Duration::from_millis(500));
        let own = context.clone();
        gate.open();
        beside_the_gate(move || own.memory_info()).unwrap();
        unknown.open();
    });
}

/// That of a graph which other code knows is not left to a drain: that code knows of none.
#[test]
fn one_of_a_lent_graph_waits_for_no_work_and_goes_when_there_is_none() {
    with_loops(|context, stream, number| {
        let other = context.stream().unwrap();
        for held in [stream, &other] {
            let graph = looping(context, stream, number);
            graph.lend().unwrap();
            let execs = live().of(Kind::Exec);
            let mut exec = graph.instantiate().unwrap();
            let gate = Gate::close(held);
            exec.launch(stream).unwrap();
            beside_the_gate(move || drop(exec));
            assert_eq!(live().of(Kind::Exec), execs + 1);
            gate.open();
            // Without a drain.
            assert!(until(SOON, || live().of(Kind::Exec) == execs));
            // At rest it goes at once.
            drop(graph.instantiate().unwrap());
            assert_eq!(live().of(Kind::Exec), execs);
        }
    });
}

/// Nobody knows of the work of a stream that is gone: the driver waits for it, but not on the
/// thread that drops the executable.
#[test]
fn one_of_a_lent_graph_waits_for_no_work_that_is_not_known() {
    with_loops(|context, stream, number| {
        let execs = live().of(Kind::Exec);
        let graph = looping(context, stream, number);
        graph.lend().unwrap();
        let exec = graph.instantiate().unwrap();
        let gone = context.stream().unwrap();
        let gate = Gate::close(&gone);
        drop(gone);
        beside_the_gate(move || drop(exec));
        gate.open();
        assert!(until(SOON, || live().of(Kind::Exec) == execs));
        drop(graph);
    });
}
