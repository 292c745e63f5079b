//! Successive executables of a graph use the same memory.

use cuda_graph::{ContextExt, Fallback, Graph, GraphExec, InstantiateOptions};
use cuda_handles::{Buffer, Context, Stream};
use cuda_tests::{Gate, SOON, needs, until};

use super::{N, traceless};

/// A graph that counts by memory of its own: all is as it was, or else more than one of its
/// executables runs.
fn counting(context: &Context, out: &Buffer<u32>) -> Graph {
    let graph = context.graph().unwrap();
    let (alloc, memory) = graph.root().alloc::<u32>(N).unwrap();
    let fill = alloc.then().fill(&memory, 5).unwrap();
    let copy = fill.then().copy(&memory, out).unwrap();
    copy.then().free(&memory).unwrap();
    graph
}

/// Whether what `next` does on another stream comes after what `first` does behind a gate.
fn follows(stream: &Stream, first: GraphExec, next: impl FnOnce() -> GraphExec) {
    let other = stream.context().stream().unwrap();
    let mut first = first;
    let gate = Gate::close(stream);
    first.launch(stream).unwrap();
    drop(first);
    let mut next = next();
    next.launch(&other).unwrap();
    assert!(!until(SOON / 50, || other.query().unwrap()));
    gate.open();
    other.synchronize_blocking().unwrap();
    // It has waited once and for all.
    let (launched, cost) = cuda_tests::count(|| next.launch(&other));
    launched.unwrap();
    cost.assert_calls(&[("cuGraphLaunch", 1)]);
    other.synchronize_blocking().unwrap();
}

#[test]
fn an_executable_waits_for_the_last_run_of_the_one_before() {
    traceless(|context, stream| {
        let out = stream.zeros::<u32>(N).unwrap();
        stream.synchronize_blocking().unwrap();
        let graph = counting(context, &out);
        follows(stream, graph.instantiate().unwrap(), || {
            // One that never runs is between.
            drop(graph.instantiate().unwrap());
            graph.instantiate().unwrap()
        });
        assert_eq!(out.read_blocking(stream).unwrap(), [5; N]);
    });
}

#[test]
fn where_a_graph_was_moved_its_runs_are_waited_for() {
    traceless(|context, stream| {
        needs!(MovedGraphs);
        let out = stream.zeros::<u32>(N).unwrap();
        stream.synchronize_blocking().unwrap();
        let (source, graph) = (counting(context, &out), context.graph().unwrap());
        follows(stream, source.instantiate().unwrap(), || {
            graph.root().child_moved(source).unwrap();
            graph.instantiate().unwrap()
        });
    });
}

/// Also if an executable that was made before the move runs after it, which does not wait for them.
#[test]
fn where_a_graph_was_moved_runs_of_an_older_executable_are_no_end_of_its_own() {
    traceless(|context, stream| {
        needs!(MovedGraphs);
        let (out, beside) = (stream.zeros::<u32>(N).unwrap(), stream.zeros::<u32>(N).unwrap());
        stream.synchronize_blocking().unwrap();
        let (source, graph) = (counting(context, &out), counting(context, &beside));
        let mut older = graph.instantiate().unwrap();
        follows(stream, source.instantiate().unwrap(), || {
            graph.root().child_moved(source).unwrap();
            older.launch(&context.stream().unwrap()).unwrap();
            drop(older);
            graph.instantiate().unwrap()
        });
    });
}

#[test]
fn loops_of_one_executable_are_over_before_those_of_the_next() {
    traceless(|context, stream| {
        needs!(Conditionals);
        let number = stream.upload(&[0_u32]).unwrap();
        stream.synchronize_blocking().unwrap();
        let graph = context.graph().unwrap();
        let start = graph.root().fill(&number, 1).unwrap();
        start
            .then()
            .while_loop(cuda_graph::Test::nonzero(&number), |body| body.root().fill(&number, 0))
            .unwrap();
        let other = context.stream().unwrap();
        let next = |fallback| {
            let mut next = graph.instantiate_with_fallback(fallback, InstantiateOptions::new()).unwrap();
            next.run_blocking(&other).unwrap();
        };
        for fallback in [Fallback::HostLoop, Fallback::HostLoopAlways] {
            let mut first = graph.instantiate().unwrap();
            let gate = Gate::close(stream);
            first.launch(stream).unwrap();
            drop(first);
            std::thread::scope(|scope| {
                // Perhaps it waits as it makes the next one, for the end of the one before.
                let run = scope.spawn(|| next(fallback));
                assert!(!until(SOON / 50, || run.is_finished()), "{fallback:?}");
                assert!(!stream.query().unwrap());
                gate.open();
                run.join().unwrap();
            });
            assert!(until(SOON, || stream.query().unwrap()), "{fallback:?}");
        }
    });
}

#[test]
fn what_the_next_executable_leaves_may_have_the_address_of_what_the_one_before_freed() {
    traceless(|context, stream| {
        let other = context.stream().unwrap();
        for next in [stream, &other] {
            let out = stream.zeros::<u32>(N).unwrap();
            stream.synchronize_blocking().unwrap();
            let graph = counting(context, &out);
            let free = graph.nodes().unwrap().pop().unwrap();
            let mut exec = graph.instantiate().unwrap();
            let gate = Gate::close(stream);
            exec.launch(stream).unwrap();
            drop(exec);
            let (alloc, memory) = free.then().alloc::<u32>(N).unwrap();
            alloc.then().fill(&memory, 6).unwrap();
            let mut exec = graph.instantiate().unwrap();
            let output = exec.launch_with_outputs(next).unwrap().take(&memory).unwrap();
            gate.open();
            assert_eq!(output.read_blocking(next).unwrap(), [6; N]);
            assert_eq!(out.read_blocking(next).unwrap(), [5; N]);
        }
    });
}
