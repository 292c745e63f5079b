//! The end of executables with conditional nodes, in which the driver waits for all work of the device: it is put off.

use cuda_graph::{ContextExt, Error, Graph};
use cuda_handles::{Buffer, Context, Stream, reaper};
use cuda_sys::{CUresult, Call};
use cuda_tests::{Gate, Kind, SOON, count, fail, live, needs, no_leaks, setup, until, used_stream};

use crate::interop::allocations;

/// A graph with a loop over one round, and with memory of which nobody else has a handle.
fn looping(context: &Context, stream: &Stream, number: &Buffer<u32>) -> Graph {
    let graph = context.graph().unwrap();
    let own = stream.zeros::<u32>(16).unwrap();
    stream.synchronize_blocking().unwrap();
    let start = graph.root().fill(number, 1).unwrap();
    let used = start.then().fill(&own, 2).unwrap();
    used.then().while_nonzero(number, |body| body.root().fill(number, 0)).unwrap();
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
        drop(looping(context, stream, number).into_exec().unwrap());
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
        assert_eq!((cost.calls("cuGraphExecDestroy"), live().of(Kind::Exec)), (1, execs + 1), "{cost}");
        exec.launch(stream).unwrap();
        stream.synchronize_blocking().unwrap();
        assert_eq!(graph.instantiate().unwrap_err(), Error::OneExecutable { of: "conditional nodes" });
    });
}

#[test]
fn a_device_without_memory_left_ends_it() {
    with_loops(|context, stream, number| {
        let (graph, another) = (looping(context, stream, number), looping(context, stream, number));
        let instantiate = || {
            let failing = fail(Call::cuGraphInstantiateWithParams, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
            let outcome = another.instantiate();
            assert!(failing.hit());
            outcome
        };
        assert!(matches!(instantiate().unwrap_err(), Error::Instantiate(_)));
        let execs = live().of(Kind::Exec);
        drop(graph.instantiate().unwrap());
        let exec = instantiate().unwrap();
        assert_eq!(live().of(Kind::Exec), execs + 1);
        drop(exec);
        // For memory of other kinds, too.
        let failing = fail(Call::cuMemAllocAsync, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        let buffer = stream.zeros::<u32>(16).unwrap();
        assert!(failing.hit());
        assert_eq!(live().of(Kind::Exec), execs);
        drop(buffer);
    });
}
