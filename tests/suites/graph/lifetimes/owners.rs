//! Owners: what a graph, an executable and a launch keep alive, and for how long.

use std::sync::mpsc::channel;
use std::time::Duration;

use crate::common::chains::Bench;
use crate::common::gone::{flag, soon};
use cuda_graph::{ContextExt, Graph};
use cuda_handles::{Buffer, Context, Stream, reaper};
use cuda_launch::{params, per};
use cuda_tests::{Gate, Kind, SOON, count, in_callback, kernel, live, needs, no_leaks, settle, setup, until};

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

/// A graph that copies its input plus `add` to `out`; the input's last handle is dropped right
/// after the node was added.
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

#[test]
fn anything_can_be_kept_by_a_graph_and_its_executables() {
    let context = setup();
    no_leaks(|| {
        let (owner, is_gone) = flag();
        let graph = context.graph().unwrap();
        graph.root().empty().unwrap();
        graph.keep(owner);
        let exec = graph.instantiate().unwrap();
        settle();
        assert!(!is_gone());
        drop(graph);
        settle();
        assert!(!is_gone(), "the executable keeps it");
        drop(exec);
        assert!(soon(&is_gone));
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

#[test]
fn what_is_kept_with_a_node_goes_with_it_but_not_from_executables_and_clones() {
    let context = setup();
    no_leaks(|| {
        let graph = context.graph().unwrap();
        let (owner, gone) = flag();
        let node = graph.root().empty().unwrap();
        node.keep(owner).unwrap();
        node.remove().unwrap();
        assert!(gone(), "nobody else had it");
        let (refused, refused_gone) = flag();
        assert!(matches!(
            node.keep(refused),
            Err(cuda_graph::Error::Node(cuda_graph::NodeError::Removed { .. }))
        ));
        assert!(refused_gone());

        let (owner, gone) = flag();
        let node = graph.root().empty().unwrap();
        node.keep(owner).unwrap();
        let exec = graph.instantiate().unwrap();
        let clone = graph.clone_graph().unwrap();
        node.remove().unwrap();
        drop(exec);
        settle();
        assert!(!gone(), "the clone has it");
        let exec = clone.instantiate().unwrap();
        drop(clone);
        settle();
        assert!(!gone(), "the clone's executable has it");
        drop(exec);
        assert!(soon(&gone));
    });
}

#[test]
fn what_is_added_after_the_instantiation_is_not_the_executables() {
    let context = setup();
    no_leaks(|| {
        let graph = context.graph().unwrap();
        graph.root().empty().unwrap();
        let exec = graph.instantiate().unwrap();
        let (owner, gone) = flag();
        let late = graph.root().empty().unwrap();
        late.keep(owner).unwrap();
        let (kept, kept_gone) = flag();
        graph.keep(kept);
        assert!(!gone() && !kept_gone());
        late.remove().unwrap();
        assert!(gone());
        drop((graph, late));
        // The executable keeps the graph, whose nodes are its keys.
        assert!(!kept_gone());
        drop(exec);
        assert!(soon(&kept_gone));
    });
}

#[test]
fn an_embedded_clone_has_its_own_share_and_lets_go_of_it_node_by_node() {
    let context = setup();
    no_leaks(|| {
        let home = context.stream().unwrap();
        let source = context.graph().unwrap();
        let graph = context.graph().unwrap();
        let before = allocations();
        for _ in 0..3 {
            source.root().fill(&home.zeros::<u32>(N).unwrap(), 1).unwrap();
        }
        let (kept, kept_gone) = flag();
        source.keep(kept);
        let child = graph.root().child(&source).unwrap();
        drop(source);
        settle();
        assert_eq!(allocations(), before + 3);
        assert!(!kept_gone());
        let inside = child.embedded().unwrap();
        inside.nodes().unwrap()[1].remove().unwrap();
        assert_eq!(allocations(), before + 2, "nobody else had it");
        let exec = graph.instantiate().unwrap();
        inside.nodes().unwrap()[0].remove().unwrap();
        settle();
        assert_eq!(allocations(), before + 2, "the executable has it");
        child.remove().unwrap();
        settle();
        assert!(!kept_gone() && allocations() == before + 2);
        drop(exec);
        assert!(soon(&|| kept_gone() && allocations() == before));
    });
}

#[test]
fn a_removed_or_replaced_child_lets_go_of_all_that_lies_in_it_at_once() {
    let context = setup();
    no_leaks(|| {
        let home = context.stream().unwrap();
        let graph = context.graph().unwrap();
        let before = allocations();
        let nested = |depth: usize| {
            let mut source = context.graph().unwrap();
            source.root().fill(&home.zeros::<u32>(N).unwrap(), 1).unwrap();
            for _ in 0..depth {
                let outer = context.graph().unwrap();
                outer.root().child(&source).unwrap();
                source = outer;
            }
            source
        };
        let child = graph.root().child(&nested(3)).unwrap();
        assert_eq!(allocations(), before + 1);
        let (with_node, with_node_gone) = flag();
        child.keep(with_node).unwrap();
        let (with_graph, with_graph_gone) = flag();
        child.embedded().unwrap().keep(with_graph);
        child.set_graph(&nested(1)).unwrap();
        assert_eq!(allocations(), before + 1);
        assert!(with_graph_gone(), "it went with the graph");
        assert!(!with_node_gone(), "it is the node's, whatever graph is in it");
        child.set_graph(&context.graph().unwrap()).unwrap();
        assert_eq!(allocations(), before);
        child.set_graph(&nested(2)).unwrap();
        child.remove().unwrap();
        assert_eq!(allocations(), before);
        assert!(with_node_gone());
    });
}

#[test]
fn graphs_with_children_in_flight_keep_what_they_use() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let home = context.stream().unwrap();
        let stream = &bench.stream;
        let out = stream.zeros::<u32>(N).unwrap();
        stream.synchronize_blocking().unwrap();
        let before = allocations();
        let gate = {
            let source = graph_with_dropped_input(&context, &home, &out, 9);
            let graph = context.graph().unwrap();
            let child = graph.root().child(&source).unwrap();
            let mut exec = graph.instantiate().unwrap();
            exec.launch(stream).unwrap();
            right(&out, stream, 9);
            stream.fill(&out, 0).unwrap();
            let gate = Gate::close(stream);
            exec.launch(stream).unwrap();
            child.remove().unwrap();
            gate
        };
        assert!(!until(Duration::from_millis(100), || allocations() <= before), "a launch is in flight");
        let others = overwrite(&home);
        gate.open();
        right(&out, stream, 9);
        drop(others);
        assert!(soon(&|| allocations() == before));
    });
}

#[test]
fn handles_of_an_embedded_graph_and_its_nodes_keep_the_hierarchy() {
    let context = setup();
    no_leaks(|| {
        let before = live().of(Kind::Graph);
        let bench = Bench::new(&context);
        let deep = {
            let graph = context.graph().unwrap();
            let middle = graph.root().child(&bench.chain(&context, 1)).unwrap().embedded().unwrap();
            middle.root().child(&bench.chain(&context, 2)).unwrap().embedded().unwrap()
        };
        settle();
        assert_eq!(live().of(Kind::Graph), before + 1);
        let node = deep.nodes().unwrap().remove(1);
        drop(deep);
        bench.step(&node.then());
        assert_eq!(bench.adds(&node.graph().clone_graph().unwrap()), 3);
        let middle = node.graph().parent().unwrap().unwrap().graph().clone();
        drop(node);
        assert_eq!(middle.len().unwrap(), 2);
        let root = middle.parent().unwrap().unwrap().graph().clone();
        drop(middle);
        assert_eq!(root.len().unwrap(), 1);
        drop(root);
        assert!(soon(&|| live().of(Kind::Graph) == before));
    });
}

#[test]
fn a_moved_graph_takes_its_owners_along() {
    let context = setup();
    needs!(MovedGraphs);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let out = stream.zeros::<u32>(N).unwrap();
        let before = allocations();
        let graphs = live().of(Kind::Graph);
        let source = graph_with_dropped_input(&context, &stream, &out, 4);
        let (kept, kept_gone) = flag();
        source.keep(kept);
        let mut earlier = source.instantiate().unwrap();
        let graph = context.graph().unwrap();
        let child = graph.root().child_moved(source.clone()).unwrap();
        drop(source);
        settle();
        assert_eq!(live().of(Kind::Graph), graphs + 1, "the outer one alone is somebody's to destroy");
        let mut exec = graph.instantiate().unwrap();
        for exec in [&mut earlier, &mut exec] {
            drop(overwrite(&stream));
            stream.fill(&out, 0).unwrap();
            exec.launch(&stream).unwrap();
            right(&out, &stream, 4);
        }
        drop(exec);
        child.remove().unwrap();
        settle();
        assert!(!kept_gone() && allocations() == before + 1, "the earlier executable has its own share");
        drop(overwrite(&stream));
        earlier.launch(&stream).unwrap();
        right(&out, &stream, 4);
        drop(earlier);
        assert!(soon(&|| kept_gone() && allocations() == before));
        drop(graph);
    });
}

#[test]
fn a_clone_has_its_own_share() {
    let context = setup();
    no_leaks(|| {
        let home = context.stream().unwrap();
        let out = home.zeros::<u32>(N).unwrap();
        let before = allocations();
        let graph = graph_with_dropped_input(&context, &home, &out, 6);
        let clone = graph.clone_graph().unwrap();
        graph.nodes().unwrap()[0].remove().unwrap();
        drop(graph);
        drop(overwrite(&home));
        assert_eq!(allocations(), before + 1);
        let mut exec = clone.instantiate().unwrap();
        exec.launch(&home).unwrap();
        right(&out, &home, 6);
        clone.nodes().unwrap()[0].remove().unwrap();
        drop(exec);
        assert!(soon(&|| allocations() == before));
    });
}

/// Memory that several nodes use is held once; it goes with the last of them, however they let go
/// of it, and each executable has its own share.
#[test]
fn memory_used_by_several_nodes_goes_with_the_last_of_them() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let offset_copy = kernel(&context, "offset_copy");
        let (out, spare) = (stream.zeros::<u32>(N).unwrap(), stream.zeros::<u32>(N).unwrap());
        let before = allocations();
        let graph = context.graph().unwrap();
        let shared = input(&stream);
        let add = |add: u32| {
            let arguments = params![&shared, &out, add, N as u32];
            // SAFETY: the arguments are the kernel's, and both buffers have N elements.
            unsafe { graph.root().launch_untyped(&offset_copy, per(N, 128), arguments) }.unwrap()
        };
        let nodes: Vec<_> = (0..5).map(add).collect();
        // A node of the same memory that is not a kernel's.
        let copied = graph.root().copy(&shared, &spare).unwrap();
        let clone = graph.clone_graph().unwrap();
        drop(shared);
        settle();
        assert_eq!(allocations(), before + 1);
        let still = |what: &str| {
            settle();
            assert_eq!(allocations(), before + 1, "{what}");
        };
        nodes[0].remove().unwrap();
        graph.remove_nodes(&[&nodes[1], &copied]).unwrap();
        still("three nodes use it");
        for node in &nodes[2..4] {
            // SAFETY: the arguments are the kernel's, and both buffers have N elements.
            unsafe { node.set_untyped(&offset_copy, per(N, 128), params![&spare, &out, 1_u32, N as u32]) }
                .unwrap();
        }
        still("one node uses it");
        let exec = graph.instantiate().unwrap();
        nodes[4].remove().unwrap();
        still("the executable and the clone use it");
        drop(exec);
        still("the clone uses it");
        drop(clone);
        assert!(until(SOON, || allocations() == before));
        // The owners that the nodes use now are alive.
        graph.instantiate().unwrap().launch(&stream).unwrap();
        assert_eq!(out.read_blocking(&stream).unwrap(), [1; N]);
    });
}

/// More memory than the table remembers where it has it.
#[test]
fn many_buffers_of_many_nodes_are_freed_once_each() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let increment = kernel(&context, "increment");
        let before = allocations();
        let graph = context.graph().unwrap();
        let buffers: Vec<_> = (0..300).map(|_| stream.zeros::<u32>(8).unwrap()).collect();
        for turn in 0..3 {
            for buffer in &buffers {
                // SAFETY: the arguments are the kernel's, and the count is the buffer's.
                let node =
                    unsafe { graph.root().launch_untyped(&increment, per(8, 8), params![buffer, 8_u32]) };
                let node = node.unwrap();
                if turn == 1 {
                    node.remove().unwrap();
                }
            }
        }
        drop(buffers);
        settle();
        assert_eq!(allocations(), before + 300);
        drop(graph);
        assert!(until(SOON, || allocations() == before));
    });
}
