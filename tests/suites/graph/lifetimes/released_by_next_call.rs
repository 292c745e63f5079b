//! Dropped and idle owners are released by the next call that needs them gone, without waiting for
//! the driver.

use core::time::Duration;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cuda_graph::{ContextExt, Graph, InstantiateOptions};
use cuda_handles::{Context, Owner, SharedHostBuffer, Stream, reaper};
use cuda_sys::{CUresult, Call};
use cuda_tests::{Gate, Kind, Need, SOON, alone, count, fail, live, needs, no_leaks, raw, setup, until};

use crate::common::chains::Bench;

const TIMES: usize = 200;

/// Draws a graph that writes to pinned memory of one element, among other things.
type Draw = fn(&Context, &Bench, &SharedHostBuffer<u32>) -> Graph;

fn kernels(context: &Context, bench: &Bench, host: &SharedHostBuffer<u32>) -> Graph {
    let graph = bench.chain(context, 2);
    graph.root().fill(host, 42).unwrap();
    graph
}

fn copies(context: &Context, bench: &Bench, host: &SharedHostBuffer<u32>) -> Graph {
    let graph = context.graph().unwrap();
    let first = graph.root().fill(&bench.numbers, 42).unwrap();
    first.then().copy(bench.numbers.slice(..1).unwrap(), host).unwrap();
    graph
}

fn host_functions(context: &Context, _: &Bench, host: &SharedHostBuffer<u32>) -> Graph {
    let graph = context.graph().unwrap();
    let (seen, kept) = (AtomicU32::new(0), host.clone());
    let call = move || {
        seen.fetch_add(kept.len() as u32, Ordering::Relaxed);
    };
    graph.root().host(call).unwrap().then().fill(host, 42).unwrap();
    graph
}

fn children(context: &Context, bench: &Bench, host: &SharedHostBuffer<u32>) -> Graph {
    let graph = context.graph().unwrap();
    graph.root().child(&copies(context, bench, host)).unwrap();
    graph
}

fn conditionals(context: &Context, bench: &Bench, host: &SharedHostBuffer<u32>) -> Graph {
    let graph = context.graph().unwrap();
    let number = bench.numbers.slice(..1).unwrap();
    let start = graph.root().fill(number, 1).unwrap();
    start
        .then()
        .while_loop(cuda_graph::Test::nonzero(number), |body| {
            body.root().fill(host, 42)?.then().fill(number, 0)
        })
        .unwrap();
    graph
}

fn memory(context: &Context, _: &Bench, host: &SharedHostBuffer<u32>) -> Graph {
    let graph = context.graph().unwrap();
    let (node, numbers) = graph.root().alloc::<u32>(1).unwrap();
    let filled = node.then().fill(&numbers, 42).unwrap();
    let copied = filled.then().copy(&numbers, host).unwrap();
    copied.then().free(&numbers).unwrap();
    graph
}

/// Runs a graph on these streams, one after the other; drops it and its executables in turn; and
/// asks at once.
fn comes_back(context: &Context, draw: Draw, streams: &[&Stream], executables: usize) {
    let bench = Bench::new(context);
    bench.stream.synchronize_blocking().unwrap();
    let owner = Arc::new(());
    for time in 0..TIMES {
        let host = context.pinned_zeros::<u32>(1).unwrap().share();
        let graph = draw(context, &bench, &host);
        graph.keep(Owner::other(Arc::clone(&owner)));
        let mut execs: Vec<_> = (0..executables).map(|_| graph.instantiate().unwrap()).collect();
        for exec in &mut execs {
            streams.iter().for_each(|stream| exec.launch(stream).unwrap());
        }
        streams.iter().for_each(|stream| stream.synchronize_blocking().unwrap());
        match time % 2 {
            0 => drop((execs, graph)),
            _ => drop((graph, execs)),
        }
        assert_eq!(Arc::strong_count(&owner), 1, "at time {time}");
        let host = host.try_unique().unwrap_or_else(|_| panic!("shared at time {time}"));
        assert_eq!(host[0], if streams.is_empty() { 0 } else { 42 });
    }
}

/// One executable: launched never, once and on two streams by turns.
fn one(draw: Draw) {
    let context = setup();
    no_leaks(|| {
        let (first, second) = (context.stream().unwrap(), context.stream().unwrap());
        comes_back(&context, draw, &[], 1);
        comes_back(&context, draw, &[&first], 1);
        comes_back(&context, draw, &[&first, &second, &first, &second], 1);
    });
}

/// Several executables.
fn several(draw: Draw) {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        comes_back(&context, draw, &[&stream], 3);
        comes_back(&context, draw, &[&stream, &stream], 2);
    });
}

#[test]
fn what_kernels_used() {
    one(kernels);
    several(kernels);
}

#[test]
fn what_copies_used() {
    one(copies);
    several(copies);
}

#[test]
fn what_host_functions_used() {
    one(host_functions);
    several(host_functions);
}

#[test]
fn what_child_graphs_used() {
    one(children);
    several(children);
}

#[test]
fn what_loops_used() {
    drop(setup());
    needs!(Conditionals);
    one(conditionals);
}

#[test]
fn what_graphs_with_memory_used() {
    one(memory);
}

/// Drops executables while they run. Once their stream was waited for they are as idle as others.
fn dropped_in_flight(draw: Draw) {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        bench.stream.synchronize_blocking().unwrap();
        let stream = context.stream().unwrap();
        for time in 0..TIMES {
            let host = context.pinned_zeros::<u32>(1).unwrap().share();
            let graph = draw(&context, &bench, &host);
            let mut exec = graph.instantiate().unwrap();
            let gate = Gate::close(&stream);
            exec.launch(&stream).unwrap();
            drop((exec, graph));
            let host = host.try_unique().unwrap_err();
            assert!(reaper::pending() > 0);
            gate.open();
            stream.synchronize_blocking().unwrap();
            let host = host.try_unique().unwrap_or_else(|_| panic!("shared at time {time}"));
            assert_eq!(host[0], 42);
        }
    });
}

#[test]
fn what_executables_used_that_were_dropped_in_flight() {
    dropped_in_flight(kernels);
    dropped_in_flight(host_functions);
    dropped_in_flight(memory);
    if Need::Conditionals.is_met() {
        dropped_in_flight(conditionals);
    }
}

/// Drops an executable in flight that alone owns memory of the device. Once its stream was waited
/// for, a call finds the memory free.
fn has_memory_back(call: impl Fn(&Context, &Stream)) {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        for time in 0..10 {
            let buffer = stream.zeros::<u32>(1 << 16).unwrap();
            stream.synchronize_blocking().unwrap();
            let memory = Arc::downgrade(buffer.allocation());
            let graph = context.graph().unwrap();
            graph.root().fill(&buffer, 1).unwrap();
            drop(buffer);
            let mut exec = graph.instantiate().unwrap();
            let gate = Gate::close(&stream);
            exec.launch(&stream).unwrap();
            drop((exec, graph));
            // The longer the run takes, the more rarely the reaper looks.
            assert!(!until(Duration::from_millis(40), || memory.strong_count() == 0));
            gate.open();
            stream.synchronize_blocking().unwrap();
            call(&context, &stream);
            assert_eq!(memory.strong_count(), 0, "at time {time}");
        }
    });
}

#[test]
fn an_allocation_that_finds_no_memory_gets_that_of_dropped_executables() {
    alone!();
    has_memory_back(|_, stream| {
        let failing = fail(Call::cuMemAllocAsync, 1, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        drop(stream.zeros::<u32>(1 << 20).unwrap());
        assert!(failing.hit());
    });
}

#[test]
fn memory_of_dropped_executables_counts_as_free() {
    alone!();
    has_memory_back(|context, _| assert_ne!(context.memory_info().unwrap(), (0, 0)));
}

#[test]
fn a_stream_that_is_gone_makes_no_difference() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        bench.stream.synchronize_blocking().unwrap();
        for time in 0..TIMES {
            let stream = context.stream().unwrap();
            let host = context.pinned_zeros::<u32>(1).unwrap().share();
            let graph = copies(&context, &bench, &host);
            let mut exec = graph.instantiate().unwrap();
            exec.launch(&stream).unwrap();
            stream.synchronize_blocking().unwrap();
            drop(stream);
            drop((exec, graph));
            let host = host.try_unique().unwrap_or_else(|_| panic!("shared at time {time}"));
            assert_eq!(host[0], 42);
        }
    });
}

#[test]
fn one_that_other_code_may_launch_is_released_as_soon() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        bench.stream.synchronize_blocking().unwrap();
        let stream = context.stream().unwrap();
        for _ in 0..TIMES {
            let host = context.pinned_zeros::<u32>(1).unwrap().share();
            let mut exec = copies(&context, &bench, &host).instantiate().unwrap();
            exec.launch(&stream).unwrap();
            assert!(!exec.as_raw().is_null());
            stream.synchronize_blocking().unwrap();
            drop(exec);
            assert_eq!(host.try_unique().unwrap()[0], 42);
        }
        // Uploads are known.
        let host = context.pinned_zeros::<u32>(1).unwrap().share();
        let upload = InstantiateOptions::new().upload_on(&stream);
        let mut exec = copies(&context, &bench, &host).instantiate_with(upload).unwrap();
        exec.upload(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        drop(exec);
        assert!(host.try_unique().is_ok());
    });
}

#[test]
fn runs_of_other_code_on_known_streams_are_waited_for() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        bench.stream.synchronize_blocking().unwrap();
        let stream = context.stream().unwrap();
        let host = context.pinned_zeros::<u32>(1).unwrap().share();
        let mut exec = copies(&context, &bench, &host).instantiate().unwrap();
        exec.launch(&bench.stream).unwrap();
        let raw_exec = exec.as_raw();
        let gate = Gate::close(&stream);
        // SAFETY: executable and stream are live, and nobody else launches the executable.
        raw::ok(unsafe { raw::driver().cuGraphLaunch(raw_exec, stream.as_raw()) });
        drop(exec);
        let host = host.try_unique().unwrap_err();
        gate.open();
        stream.synchronize_blocking().unwrap();
        assert_eq!(host.try_unique().unwrap()[0], 42);
    });
}

#[test]
fn nothing_waits_once_nothing_is_pending() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        bench.stream.synchronize_blocking().unwrap();
        let stream = context.stream().unwrap();
        let before = live();
        for _ in 0..TIMES {
            let host = context.pinned_zeros::<u32>(1).unwrap().share();
            let graph = copies(&context, &bench, &host);
            let mut exec = graph.instantiate().unwrap();
            exec.launch(&stream).unwrap();
            drop((exec, graph));
            assert!(until(SOON, || reaper::pending() == 0));
            for kind in [Kind::UserObject, Kind::Exec, Kind::Graph] {
                assert_eq!(live().of(kind), before.of(kind), "{kind:?}");
            }
        }
    });
}

#[test]
fn a_long_line_of_executables_needs_no_deep_stack() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        bench.stream.synchronize_blocking().unwrap();
        let mut line: Option<cuda_graph::GraphExec> = None;
        for _ in 0..5000 {
            let graph = context.graph().unwrap();
            if let Some(before) = line.take() {
                graph.keep(Owner::other(std::sync::Mutex::new(before)));
            }
            line = Some({ graph }.instantiate().unwrap());
        }
        let small = std::thread::Builder::new().stack_size(256 << 10);
        small.spawn(move || drop(line)).unwrap().join().unwrap();
    });
}

#[test]
fn the_drop_of_an_idle_executable_asks_once() {
    alone!();
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let host = context.pinned_zeros::<u32>(1).unwrap().share();
        let bench = Bench::new(&context);
        let mut exec = copies(&context, &bench, &host).instantiate().unwrap();
        exec.launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        let ((), cost) = count(|| drop(exec));
        assert_eq!(cost.calls("cuStreamQuery"), 1, "{cost}");
        assert_eq!(cost.calls("cuGraphExecDestroy"), 1, "{cost}");
        assert_eq!(cost.calls("cuStreamSynchronize") + cost.calls("cuEventRecord"), 0, "{cost}");
    });
}
