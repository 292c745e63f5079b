//! Who keeps the values of graph parameters, and until when.

use std::time::Duration;

use cuda_graph::{ContextExt, Error, Fallback, Graph, GraphParam, InstantiateOptions, NodeError, StreamExt};
use cuda_handles::{Buffer, Context, Stream, reaper};
use cuda_launch::{kernel, per};
use cuda_tests::{Gate, SOON, count, is_soft, no_leaks, settle, setup, until};

use crate::capture::{Bench, N};
use crate::common::gone::{allocations, flag, soon};

kernel! {
    // SAFETY: the kernel in the file has these parameters, and reads and writes the elements below
    // `n`, after a while.
    unsafe in "../../../kernels/spin.ptx";

    fn spin_copy(nanoseconds: u64, n: u32, from: In<u32>, to: Out<u32>)
    where from.len() >= n, to.len() >= n;
}

const SET: &str = "cuGraphExecNodeSetParams";

fn settled(stream: &Stream) -> Buffer<u32> {
    let memory = stream.zeros::<u32>(N).unwrap();
    stream.synchronize_blocking().unwrap();
    memory
}

fn is_all(stream: &Stream, memory: &Buffer<u32>, value: u32) {
    assert_eq!(memory.read_blocking(stream).unwrap(), [value; N]);
}

/// Memory with another owner, and whether that is gone.
fn owned(context: &Context, memory: &Buffer<u32>) -> (Buffer<u32>, impl Fn() -> bool + use<>) {
    let (owner, is_gone) = flag();
    let owners = (owner, memory.clone());
    // SAFETY: the owner keeps the memory.
    let value = unsafe { Buffer::from_foreign(context, memory.address(), N, owners) };
    (value.unwrap(), is_gone)
}

/// A graph that fills memory, which is a parameter as the value is.
fn filling(context: &Context, memory: &Buffer<u32>) -> (Graph, GraphParam<[u32]>, GraphParam<u32>) {
    let graph = context.graph().unwrap();
    let (target, value) = (graph.param(memory).unwrap(), graph.param(1_u32).unwrap());
    graph.root().fill(&target, &value).unwrap();
    (graph, target, value)
}

fn gives_back(count: i64) -> bool {
    until(SOON, || {
        reaper::drain();
        allocations() == count
    })
}

/// A kernel that takes its time on a GPU, and waits behind a gate in software.
#[test]
fn a_buffer_dropped_after_its_launch_is_freed_when_the_kernel_has_ended_and_not_before() {
    let context = setup();
    no_leaks(|| {
        let (stream, home) = (context.stream().unwrap(), context.stream().unwrap());
        let spin = spin_copy::load(&context).unwrap();
        let (from, last) = (stream.upload(&[7_u32; N]).unwrap(), settled(&stream));
        let graph = context.graph().unwrap();
        let (time, source) = (graph.param(0_u64).unwrap(), graph.param(&from).unwrap());
        let target = graph.param(&last).unwrap();
        let launch = (&time, N as u32, &source, &target);
        graph.root().launch(&spin, per(N, 32), launch).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        let before = allocations();
        let gate = Gate::close(&stream);
        let (input, output) = (home.upload(&[9_u32; N]).unwrap(), home.zeros::<u32>(N).unwrap());
        let copy = stream.zeros::<u32>(N).unwrap();
        let addresses = [input.address(), output.address()];
        let long = if is_soft() { 0 } else { 300_000_000 };
        exec.launch_with(&stream, ((&time, long), (&source, &input), (&target, &output))).unwrap();
        stream.copy(&output, &copy).unwrap();
        drop((input, output));
        if !is_soft() {
            gate.open();
        }
        // The values are replaced, and everybody wants memory.
        exec.set(&source, &from).unwrap();
        exec.set(&target, &last).unwrap();
        exec.set(&time, 0).unwrap();
        exec.launch(&stream).unwrap();
        exec.release();
        let new: Vec<_> = (0..8).map(|_| home.upload(&[u32::MAX; N]).unwrap()).collect();
        assert!(new.iter().all(|new| !addresses.contains(&new.address())), "a launch in flight has it");
        assert!(allocations() > before + 9, "a launch in flight has them");
        if is_soft() {
            gate.open();
        }
        is_all(&stream, &copy, 9);
        is_all(&stream, &last, 7);
        drop((new, copy));
        assert!(gives_back(before), "{}", allocations() - before);
    });
}

#[test]
fn addresses_that_recur_with_another_owner_are_other_values() {
    cuda_tests::as_drawn!("kernels in place of fills and copies do not reach the memory");
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (last, memory) = (settled(&stream), settled(&stream));
        let (graph, target, value) = filling(&context, &last);
        let mut exec = graph.instantiate().unwrap();
        let fallback = Fallback::HostLoopAlways;
        let mut hosted = graph.instantiate_with_fallback(fallback, InstantiateOptions::new()).unwrap();
        exec.launch(&stream).unwrap();
        // In flight, one after the other has had the address.
        let gate = Gate::close(&stream);
        let mut gone = Vec::new();
        for round in 0..5_u32 {
            let (again, is_gone) = owned(&context, &memory);
            let launch = || exec.launch_with(&stream, ((&target, &again), (&value, round)));
            let (outcome, cost) = count(launch);
            outcome.unwrap();
            cost.assert_calls(&[(SET, 1), ("cuGraphLaunch", 1)]);
            gone.push(is_gone);
        }
        exec.release();
        assert!(!until(Duration::from_millis(50), || gone.iter().any(|is_gone| is_gone())));
        gate.open();
        let current = gone.pop().unwrap();
        assert!(gone.iter().all(soon) && !current());
        is_all(&stream, &memory, 4);
        // The same where the host decides: a run has ended when the next one begins.
        let mut before: Option<Box<dyn Fn() -> bool>> = None;
        for round in 0..5_u32 {
            let (again, is_gone) = owned(&context, &memory);
            let run = || hosted.run_blocking_with(&stream, ((&target, &again), (&value, round)));
            let (outcome, cost) = count(run);
            outcome.unwrap();
            assert_eq!(cost.calls(SET), 1, "{cost}");
            assert!(before.is_none_or(|before| before()));
            before = Some(Box::new(is_gone));
        }
        exec.launch_with(&stream, ((&target, &last),)).unwrap();
        exec.release();
        assert!(soon(&current));
    });
}

#[test]
fn memory_that_the_driver_gives_out_again_is_another_value() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let last = settled(&stream);
        let (graph, target, value) = filling(&context, &last);
        let mut exec = graph.instantiate().unwrap();
        for round in 0..50_u32 {
            // A GPU's driver gives it the address of the one before.
            let memory = settled(&stream);
            let (outcome, cost) = count(|| exec.launch_with(&stream, ((&target, &memory), (&value, round))));
            outcome.unwrap();
            assert_eq!((cost.calls(SET), cost.calls("cuGraphLaunch")), (1, 1), "{cost}");
            is_all(&stream, &memory, round);
            drop(memory);
            // From now on nobody has it.
            exec.launch_with(&stream, ((&target, &last),)).unwrap();
            exec.release();
            settle();
        }
    });
}

#[test]
fn a_value_lives_from_the_call_that_sets_it() {
    cuda_tests::as_drawn!("kernels in place of fills and copies do not reach the memory");
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (last, memory) = (settled(&stream), settled(&stream));
        let (graph, target, value) = filling(&context, &last);
        let mut exec = graph.instantiate().unwrap();
        let (set, is_gone) = owned(&context, &memory);
        exec.set(&target, &set).unwrap();
        drop(set);
        settle();
        assert!(!is_gone(), "the next launch will use it");
        exec.launch_with(&stream, ((&value, 3),)).unwrap();
        is_all(&stream, &memory, 3);
        // A value that no launch has used goes at once: when another is set, and with the
        // executable.
        let (unused, is_unused_gone) = owned(&context, &memory);
        exec.set(&target, &unused).unwrap();
        drop(unused);
        exec.set(&target, &last).unwrap();
        assert!(is_unused_gone());
        let (unused, is_unused_gone) = owned(&context, &memory);
        exec.set(&target, &unused).unwrap();
        drop((unused, exec));
        assert!(soon(&is_unused_gone) && soon(&is_gone));
    });
}

#[test]
fn the_first_value_lives_as_long_as_graph_parameter_clone_and_executable() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let memory = settled(&stream);
        let (first, is_gone) = owned(&context, &memory);
        let (graph, target, value) = filling(&context, &first);
        drop(first);
        let mut exec = graph.instantiate().unwrap();
        let clone = graph.clone_graph().unwrap();
        drop((graph, target, value));
        settle();
        exec.launch(&stream).unwrap();
        is_all(&stream, &memory, 1);
        drop(exec);
        settle();
        assert!(!is_gone(), "the clone has it");
        let mut exec = clone.instantiate().unwrap();
        drop(clone);
        stream.clear(&memory).unwrap();
        exec.launch(&stream).unwrap();
        is_all(&stream, &memory, 1);
        drop(exec);
        assert!(soon(&is_gone));
    });
}

#[test]
fn what_a_removed_node_used_goes_with_the_node_and_its_executables() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let (stream, memory) = (&bench.stream, settled(&bench.stream));
        let graph = context.graph().unwrap();
        let (amount, on) = (graph.param(1_u32).unwrap(), graph.param(true).unwrap());
        let (fixed, is_gone) = owned(&context, &memory);
        // The memory is no parameter, and the binding of the node has it as well.
        let node = graph.root().launch(&bench.add, per(1, 1), (&amount, &fixed)).unwrap().named("adds");
        node.enabled_by(&on).unwrap();
        drop(fixed);
        let mut exec = graph.instantiate().unwrap();
        node.clone().remove().unwrap();
        settle();
        exec.launch(stream).unwrap();
        assert_eq!(memory.read_blocking(stream).unwrap()[0], 1);
        assert!(!is_gone(), "the executable has it");
        let refused = exec.launch_with(stream, ((&amount, 2),)).unwrap_err();
        assert!(matches!(refused, Error::Node(NodeError::Removed { .. })), "{refused}");
        assert!(refused.to_string().contains("`adds`"), "{refused}");
        drop(exec);
        assert!(soon(&is_gone), "graph, node and parameters have it no more");
        drop((graph, node, amount, on));
    });
}

#[test]
fn nodes_at_the_address_of_a_removed_one_are_not_taken_for_it_where_the_host_decides() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (x, y) = (settled(&stream), settled(&stream));
        let graph = context.graph().unwrap();
        let (value, other) = (graph.param(1_u32).unwrap(), graph.param(1_u32).unwrap());
        let gone = graph.root().fill(&x, &value).unwrap().named("gone");
        graph.root().fill(x.slice(..4).unwrap(), &other).unwrap();
        let exec = || graph.instantiate_with_fallback(Fallback::HostLoopAlways, InstantiateOptions::new());
        let mut before = exec().unwrap();
        gone.remove().unwrap();
        let again = graph.root().fill(&y, &value).unwrap();
        before.run_blocking_with(&stream, ((&other, 4),)).unwrap();
        let refused = before.run_blocking_with(&stream, ((&value, 5),)).unwrap_err();
        assert!(refused.to_string().contains("`gone`"), "{refused}");
        is_all(&stream, &y, 0);
        exec().unwrap().run_blocking_with(&stream, ((&value, 6),)).unwrap();
        is_all(&stream, &y, 6);
        drop(again);
    });
}

#[test]
fn pinned_memory_is_unique_again_once_its_runs_are_over() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let memory = settled(&stream);
        let [first, pinned] = [(); 2].map(|()| context.pinned_zeros::<u32>(N).unwrap().share());
        let graph = context.graph().unwrap();
        let source = graph.param(&first).unwrap();
        graph.root().copy(&source, &memory).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        let gate = Gate::close(&stream);
        exec.launch_with(&stream, ((&source, &pinned),)).unwrap();
        let pinned = pinned.try_unique().expect_err("the executable has it");
        exec.set(&source, &first).unwrap();
        let pinned = pinned.try_unique().expect_err("a launch in flight has it");
        exec.launch(&stream).unwrap();
        let pinned = pinned.try_unique().expect_err("a launch in flight has it");
        gate.open();
        stream.synchronize_blocking().unwrap();
        assert_eq!(pinned.try_unique().expect("its runs are over").len(), N);
        let first = first.try_unique().expect_err("the parameter has it");
        drop((exec, source, graph));
        assert_eq!(first.try_unique().expect("nobody has it").len(), N);
    });
}

/// Panics when it is dropped.
struct Panics;

impl Drop for Panics {
    fn drop(&mut self) {
        panic!("on purpose");
    }
}

#[test]
fn a_panic_in_the_destructor_of_a_value_does_no_harm() {
    cuda_tests::as_drawn!("kernels in place of fills and copies do not reach the memory");
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let (last, memory) = (settled(&stream), settled(&stream));
        let (graph, target, value) = filling(&context, &last);
        let mut exec = graph.instantiate().unwrap();
        let fallback = Fallback::HostLoopAlways;
        let mut hosted = graph.instantiate_with_fallback(fallback, InstantiateOptions::new()).unwrap();
        let panicking = || {
            let owner = (Panics, memory.clone());
            // SAFETY: the owner keeps the memory.
            unsafe { Buffer::<u32>::from_foreign(&context, memory.address(), N, owner) }.unwrap()
        };
        let (kept, is_gone) = owned(&context, &memory);
        exec.set(&target, &panicking()).unwrap();
        exec.set(&target, &panicking()).unwrap();
        for round in 0..3_u32 {
            exec.launch_with(&stream, ((&target, &panicking()), (&value, round))).unwrap();
            hosted.run_blocking_with(&stream, ((&target, &panicking()), (&value, round))).unwrap();
        }
        exec.launch_with(&stream, ((&target, &kept),)).unwrap();
        hosted.run_blocking_with(&stream, ((&target, &kept),)).unwrap();
        drop(kept);
        exec.launch_with(&stream, ((&target, &last),)).unwrap();
        hosted.run_blocking_with(&stream, ((&target, &last),)).unwrap();
        exec.release();
        assert!(soon(&is_gone));
        is_all(&stream, &last, 2);
    });
}

#[test]
fn captured_graphs_outlive_what_they_were_captured_with() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let (memory, other) = (settled(stream), settled(stream));
        let (first, is_first_gone) = owned(&context, &memory);
        let (fixed, is_fixed_gone) = owned(&context, &other);
        let capture = stream.graph_builder().begin().unwrap();
        let (target, amount) = (capture.param(&first).unwrap(), capture.param(2_u32).unwrap());
        capture.fill(&target, &amount).unwrap();
        capture.copy(&target, &fixed).unwrap();
        capture.launch(&bench.add, per(1, 1), (&amount, &fixed)).unwrap();
        let graph = capture.end().unwrap().into_graph();
        let mut exec = graph.instantiate().unwrap();
        drop((first, fixed, graph));
        settle();
        exec.launch(stream).unwrap();
        assert_eq!(other.read_blocking(stream).unwrap()[..2], [4, 2]);
        exec.launch_with(stream, ((&target, &memory), (&amount, 5))).unwrap();
        assert_eq!(other.read_blocking(stream).unwrap()[..2], [10, 5]);
        drop((exec, target));
        assert!(soon(&is_first_gone) && soon(&is_fixed_gone));
    });
}
