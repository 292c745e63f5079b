//! What keeps what alive, and for how long.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use cuda_graph::{ContextExt, Graph};
use cuda_handles::{Buffer, Context, Owner, Stream, reaper};
use cuda_launch::{params, per};
use cuda_tests::{Gate, Kind, SOON, count, in_callback, kernel, live, no_leaks, settle, setup, until};

const N: usize = 1000;

fn allocations() -> i64 {
    live().of(Kind::Allocation)
}

fn input(stream: &Stream) -> Buffer<u32> {
    stream.upload(&(0..N as u32).collect::<Vec<_>>()).unwrap()
}

fn right(out: &Buffer<u32>, stream: &Stream, add: u32) {
    assert_eq!(out.read_blocking(stream).unwrap(), (add..add + N as u32).collect::<Vec<_>>());
}

/// A graph that copies its input plus `add` to `out`; the input's last handle is dropped right after the node was added.
fn graph_with_dropped_input(context: &Context, home: &Stream, out: &Buffer<u32>, add: u32) -> Graph {
    let offset_copy = kernel(context, "offset_copy");
    let graph = context.graph().unwrap();
    let input = input(home);
    // SAFETY: the arguments are the kernel's, and both buffers have N elements.
    unsafe { graph.root().launch_untyped(&offset_copy, per(N, 128), params![&input, out, add, N as u32]) }
        .unwrap();
    graph
}

/// Takes what freed blocks of this size would be given out for, and writes over it.
fn overwrite(stream: &Stream) -> Vec<Buffer<u32>> {
    let buffers: Vec<_> = (0..16).map(|_| stream.zeros::<u32>(N).unwrap()).collect();
    for buffer in &buffers {
        stream.fill(buffer, u32::MAX).unwrap();
    }
    stream.synchronize_blocking().unwrap();
    buffers
}

#[test]
fn a_buffer_dropped_after_its_node_was_added_is_valid_in_every_replay_and_freed_at_last() {
    let context = setup();
    no_leaks(|| {
        let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
        let out = other.zeros::<u32>(N).unwrap();
        let before = allocations();
        let graph = graph_with_dropped_input(&context, &home, &out, 5);
        let mut exec = graph.instantiate().unwrap();
        for stream in [&home, &other, &home, &other] {
            drop(overwrite(&home));
            stream.fill(&out, 0).unwrap();
            exec.launch(stream).unwrap();
            right(&out, stream, 5);
        }
        settle();
        assert_eq!(allocations(), before + 1);
        drop(exec);
        settle();
        assert_eq!(allocations(), before + 1, "the graph still has it");
        drop(graph);
        assert!(until(SOON, || allocations() == before));
        let ((), cost) = count(settle);
        assert_eq!(cost.calls_anywhere("cuMemFreeAsync"), 0, "it was freed once");
    });
}

#[test]
fn with_launches_in_flight_it_is_freed_after_they_end() {
    let context = setup();
    no_leaks(|| {
        let (home, other) = (context.stream().unwrap(), context.stream().unwrap());
        let out = other.zeros::<u32>(N).unwrap();
        other.synchronize_blocking().unwrap();
        let before = allocations();
        let graph = graph_with_dropped_input(&context, &home, &out, 9);
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&other).unwrap();
        right(&out, &other, 9);
        other.fill(&out, 0).unwrap();
        let gate = Gate::close(&other);
        for _ in 0..3 {
            exec.launch(&other).unwrap();
        }
        drop(exec);
        drop(graph);
        assert!(!until(Duration::from_millis(200), || allocations() <= before), "launches are in flight");
        let others = overwrite(&home);
        gate.open();
        right(&out, &other, 9);
        drop(others);
        assert!(until(SOON, || allocations() == before));
    });
}

#[test]
fn one_that_never_ran_frees_what_it_owns_too() {
    let context = setup();
    no_leaks(|| {
        let home = context.stream().unwrap();
        let out = home.zeros::<u32>(N).unwrap();
        let before = allocations();
        let graph = graph_with_dropped_input(&context, &home, &out, 9);
        let exec = graph.instantiate().unwrap();
        drop(graph);
        settle();
        assert_eq!(allocations(), before + 1);
        drop(exec);
        assert!(until(SOON, || allocations() == before));
    });
}

#[test]
fn an_executable_outlives_its_graph() {
    let context = setup();
    no_leaks(|| {
        let home = context.stream().unwrap();
        let out = home.zeros::<u32>(N).unwrap();
        let graph = graph_with_dropped_input(&context, &home, &out, 2);
        let mut exec = graph.instantiate().unwrap();
        drop(graph);
        settle();
        for _ in 0..3 {
            drop(overwrite(&home));
            home.fill(&out, 0).unwrap();
            exec.launch(&home).unwrap();
            right(&out, &home, 2);
        }
    });
}

#[test]
fn each_of_two_executables_has_its_own_share() {
    let context = setup();
    no_leaks(|| {
        let home = context.stream().unwrap();
        let out = home.zeros::<u32>(N).unwrap();
        let before = allocations();
        let graph = graph_with_dropped_input(&context, &home, &out, 4);
        let (mut first, mut second) = (graph.instantiate().unwrap(), graph.instantiate().unwrap());
        first.launch(&home).unwrap();
        second.launch(&home).unwrap();
        drop(graph);
        drop(first);
        settle();
        drop(overwrite(&home));
        assert_eq!(allocations(), before + 1);
        home.fill(&out, 0).unwrap();
        second.launch(&home).unwrap();
        right(&out, &home, 4);
        drop(second);
        assert!(until(SOON, || allocations() == before));
    });
}

#[test]
fn a_removed_node_lets_go_of_its_buffer_at_once() {
    let context = setup();
    no_leaks(|| {
        let home = context.stream().unwrap();
        let graph = context.graph().unwrap();
        let before = allocations();
        let buffer = home.zeros::<u32>(N).unwrap();
        let fill = graph.root().fill(&buffer, 1).unwrap();
        drop(buffer);
        assert_eq!(allocations(), before + 1);
        fill.remove().unwrap();
        assert_eq!(allocations(), before, "nobody else had it");
        assert_eq!(graph.len().unwrap(), 0);
    });
}

#[test]
fn a_node_removed_from_the_graph_stays_in_executables_with_its_buffer() {
    let context = setup();
    no_leaks(|| {
        let home = context.stream().unwrap();
        let out = home.zeros::<u32>(N).unwrap();
        let before = allocations();
        let graph = graph_with_dropped_input(&context, &home, &out, 3);
        let mut exec = graph.instantiate().unwrap();
        graph.nodes().unwrap()[0].remove().unwrap();
        settle();
        drop(overwrite(&home));
        assert_eq!(allocations(), before + 1);
        exec.launch(&home).unwrap();
        right(&out, &home, 3);
        drop(exec);
        assert!(until(SOON, || allocations() == before), "the graph no longer has it");
        drop(graph);
    });
}

#[test]
fn memset_and_memcpy_nodes_keep_their_memory_too() {
    let context = setup();
    no_leaks(|| {
        let home = context.stream().unwrap();
        let out = home.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        {
            let (first, second) = (home.zeros::<u32>(2 * N).unwrap(), home.zeros::<u32>(N).unwrap());
            let part = first.sub_buffer(N..).unwrap();
            let fill = graph.root().fill(&part, 6).unwrap();
            let copy = fill.then().copy(first.slice(N..).unwrap(), &second).unwrap();
            copy.then().copy(&second, &out).unwrap();
        }
        drop(overwrite(&home));
        let mut exec = graph.instantiate().unwrap();
        drop(graph);
        let others = overwrite(&home);
        for _ in 0..3 {
            exec.launch(&home).unwrap();
            assert_eq!(out.read_blocking(&home).unwrap(), [6; N]);
        }
        for other in &others {
            assert!(other.read_blocking(&home).unwrap().iter().all(|value| *value == u32::MAX));
        }
    });
}

#[test]
fn a_graph_keeps_the_library_of_its_kernels() {
    let context = setup();
    no_leaks(|| {
        let home = context.stream().unwrap();
        let out = home.zeros::<u32>(N).unwrap();
        let before = live().of(Kind::Library);
        let graph = graph_with_dropped_input(&context, &home, &out, 1);
        settle();
        assert_eq!(live().of(Kind::Library), before + 1);
        let mut exec = graph.instantiate().unwrap();
        drop(graph);
        settle();
        for _ in 0..3 {
            exec.launch(&home).unwrap();
            right(&out, &home, 1);
        }
        drop(exec);
        assert!(until(SOON, || {
            reaper::drain();
            live().of(Kind::Library) == before
        }));
    });
}

#[test]
fn a_node_keeps_its_graph() {
    let context = setup();
    no_leaks(|| {
        let before = live().of(Kind::Graph);
        let graph = context.graph().unwrap();
        let node = graph.root().empty().unwrap().named("kept");
        drop(graph);
        assert_eq!(live().of(Kind::Graph), before + 1);
        assert_eq!(node.graph().nodes().unwrap()[0].name(), "kept");
        node.then().empty().unwrap();
        drop(node);
        assert!(until(SOON, || live().of(Kind::Graph) == before));
    });
}

struct Flag(Arc<AtomicBool>);

impl Drop for Flag {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn anything_can_be_kept_by_a_graph_and_its_executables() {
    let context = setup();
    no_leaks(|| {
        let gone = Arc::new(AtomicBool::new(false));
        let is_gone = || gone.load(Ordering::SeqCst);
        let graph = context.graph().unwrap();
        graph.root().empty().unwrap();
        graph.keep(Owner::Other(Arc::new(Flag(gone.clone()))));
        let exec = graph.instantiate().unwrap();
        settle();
        assert!(!is_gone());
        drop(graph);
        settle();
        assert!(!is_gone(), "the executable keeps it");
        drop(exec);
        assert!(until(SOON, is_gone));
    });
}

#[test]
fn an_executable_dropped_in_a_host_callback_breaks_nothing() {
    let context = setup();
    no_leaks(|| {
        let home = context.stream().unwrap();
        let out = home.zeros::<u32>(N).unwrap();
        let graph = graph_with_dropped_input(&context, &home, &out, 1);
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&home).unwrap();
        let (sender, receiver) = channel();
        in_callback(&home, move || {
            drop((exec, graph));
            sender.send(()).unwrap();
        });
        receiver.recv_timeout(SOON).unwrap();
        right(&out, &home, 1);
    });
}

#[test]
fn a_graph_that_holds_the_last_handle_of_its_stream_lets_go_of_it() {
    let context = setup();
    no_leaks(|| {
        let before = live().of(Kind::Stream);
        let graph = context.graph().unwrap();
        let stream = context.stream().unwrap();
        graph.root().fill(&stream.zeros::<u32>(8).unwrap(), 1).unwrap();
        drop(stream);
        assert_eq!(live().of(Kind::Stream), before + 1);
        drop(graph);
        assert!(until(SOON, || {
            reaper::drain();
            live().of(Kind::Stream) == before
        }));
    });
}
