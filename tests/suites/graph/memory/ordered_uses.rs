//! The order of allocation, uses and free: what is accepted and what is refused.

use core::cell::Cell;

use cuda_graph::{ContextExt, Disorder, EdgeKind, Error, Graph, MemoryError, MemoryOrder, Node};
use cuda_handles::GraphBuffer;
use cuda_launch::per;
use cuda_tests::needs;
use proptest::prelude::*;
use proptest::test_runner::{TestCaseError, TestRunner};

use super::{COUNT, N, increment, traceless};

/// The pairs that instantiation reports as unordered.
#[track_caller]
fn found(graph: &Graph) -> Vec<MemoryOrder> {
    match graph.instantiate().unwrap_err() {
        Error::Memory(MemoryError::MemoryOrder { found, more: 0 }) => found,
        other => panic!("{other}"),
    }
}

#[track_caller]
fn in_order(graph: &Graph) {
    graph.instantiate().unwrap();
}

#[test]
fn each_disorder_is_told_by_name() {
    traceless(|context, _| {
        let graph = context.graph().unwrap();
        let (alloc, memory) = graph.root().alloc::<u32>(N).unwrap();
        let alloc = alloc.named("scratch");
        let early = graph.root().fill(&memory, 5).unwrap().named("early");
        let free = graph.root().free(&memory).unwrap().named("gone");
        let error = graph.instantiate().unwrap_err();
        assert_eq!(
            error.to_string(),
            "the graph cannot be instantiated, since its memory may not be there when it is used: node `early` uses the memory of `scratch` and does not \
             wait for it; node `gone` frees the memory of `scratch` and does not wait for it; node `gone` frees the memory of `scratch` and does not wait for \
             the end of `early`, which uses it; add edges"
        );
        let kinds: Vec<Disorder> = found(&graph).iter().map(|order| order.what).collect();
        use Disorder::*;
        assert_eq!(kinds, [UseBeforeAllocation, FreeBeforeAllocation, UseAfterFree]);
        graph.add_edge(&alloc, &early).unwrap();
        graph.add_edge(&alloc, &free).unwrap();
        assert_eq!(found(&graph).len(), 1);
        // By way of another node.
        let between = early.then().before([&free]).unwrap().empty().unwrap();
        assert!(between.successors().unwrap() == [(*free).clone()]);
        in_order(&graph);
    });
}

#[test]
fn many_disorders_are_told_in_short() {
    traceless(|context, _| {
        let graph = context.graph().unwrap();
        let (_, memory) = graph.root().alloc::<u32>(N).unwrap();
        for _ in 0..100 {
            graph.root().fill(&memory, 5).unwrap();
        }
        let error = graph.instantiate().unwrap_err();
        let Error::Memory(MemoryError::MemoryOrder { found, more }) = &error else { panic!("{error}") };
        assert_eq!((found.len(), *more), (8, 92));
        assert!(error.to_string().contains("; and 92 more; add edges"), "{error}");
    });
}

#[test]
fn every_kind_of_use_counts() {
    traceless(|context, stream| {
        let kernel = increment::load(context).unwrap();
        let other = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        let (_, memory) = graph.root().alloc::<u32>(N).unwrap();
        let whole = memory.as_slice();
        graph.root().launch(&kernel, per(N, 32), (whole, COUNT)).unwrap();
        // SAFETY: the graph is never launched.
        unsafe {
            let params = cuda_launch::params![&memory, COUNT];
            graph
                .root()
                .launch_untyped(cuda_launch::TypedKernel::kernel(&kernel), per(N, 32), params)
                .unwrap();
        }
        graph.root().fill_2d(&memory, 8, [4, 4], 1).unwrap();
        graph.root().copy(&memory, &other).unwrap();
        graph.root().copy(&other, &memory).unwrap();
        let layer = cuda_handles::Copy2d {
            source: whole.as_operand(),
            source_pitch: 8,
            destination: other.as_slice(),
            destination_pitch: 8,
            width: 4,
            height: 4,
        };
        graph.root().copy_2d(layer).unwrap();
        // Said to be used.
        graph.root().empty().unwrap().keep(memory.allocation()).unwrap();
        // Used by what was set later.
        let set = graph.root().fill(&other, 1).unwrap();
        assert_eq!(found(&graph).len(), 7);
        set.set(&memory, 2).unwrap();
        let orders = found(&graph);
        assert_eq!(orders.len(), 8);
        assert!(orders.iter().all(|order| order.what == Disorder::UseBeforeAllocation));
        // And no longer used.
        set.set(&other, 2).unwrap();
        assert_eq!(found(&graph).len(), 7);
    });
}

#[test]
fn a_trigger_does_not_say_that_the_memory_is_done_with() {
    traceless(|context, stream| {
        needs!(EdgeKinds);
        let kernel = increment::load(context).unwrap();
        let other = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        let (alloc, memory) = graph.root().alloc::<u32>(N).unwrap();
        let first = alloc.then().launch(&kernel, per(N, 32), (&memory, COUNT)).unwrap();
        let second = first
            .then_with(cuda_graph::EdgeKind::Programmatic)
            .launch(&kernel, per(N, 32), (&other, COUNT))
            .unwrap();
        let third = second
            .then_with(cuda_graph::EdgeKind::Programmatic)
            .launch(&kernel, per(N, 32), (&memory, COUNT))
            .unwrap();
        let free = third.then().free(&memory).unwrap();
        // The third starts after the allocation all the same.
        let orders = found(&graph);
        assert_eq!(
            (orders.len(), orders[0].what, &orders[0].first),
            (1, Disorder::UseAfterFree, &first.name())
        );
        graph.add_edges(&[(&first, &free, EdgeKind::Full)]).unwrap();
        in_order(&graph);
    });
}

#[test]
fn uses_in_child_graphs_and_bodies_are_those_of_their_nodes() {
    traceless(|context, stream| {
        needs!(Conditionals);
        let graph = context.graph().unwrap();
        let plain = context.graph().unwrap();
        let (alloc, memory) = graph.root().alloc::<u32>(N).unwrap();
        let child = graph.root().child(&plain).unwrap().named("child");
        let inner = child.embedded().unwrap().root().fill(&memory, 5).unwrap().named("inner");
        let orders = found(&graph);
        assert_eq!((orders.len(), orders[0].second.as_str()), (1, "inner"));
        graph.add_edge(&alloc, &child).unwrap();
        let out = stream.zeros::<u32>(N).unwrap();
        let last = inner.then().copy(&memory, &out).unwrap();
        let free = alloc.then().free(&memory).unwrap();
        let orders = found(&graph);
        assert_eq!(orders.iter().map(|order| order.what).collect::<Vec<_>>(), [Disorder::UseAfterFree; 2]);
        graph.add_edge(&child, &free).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(stream).unwrap();
        assert_eq!(out.read_blocking(stream).unwrap(), [5; N]);
        drop((exec, last));
        let condition = graph.condition_with_default(1).unwrap();
        let (late, words) = graph.root().alloc::<u32>(N).unwrap();
        let branch = graph.root().if_node(&condition).unwrap();
        branch.body().unwrap().root().fill(&words, 6).unwrap().named("inside");
        assert_eq!(found(&graph)[0].second, "inside");
        graph.add_edge(&late, &branch).unwrap();
        branch.then().copy(&words, &out).unwrap();
        graph.free(&words).unwrap();
        let mut exec = { graph }.instantiate().unwrap();
        exec.launch(stream).unwrap();
        assert_eq!(out.read_blocking(stream).unwrap(), [6; N]);
    });
}

#[test]
fn a_free_of_the_graph_waits_for_all_uses() {
    traceless(|context, stream| {
        let out = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        let (alloc, memory) = graph.root().alloc::<u32>(N).unwrap();
        let child = alloc.then().child(&context.graph().unwrap()).unwrap();
        let inner = child.embedded().unwrap();
        inner.root().fill(memory.slice(..32).unwrap(), 5).unwrap();
        let fill = alloc.then().fill(memory.slice(32..).unwrap(), 6).unwrap();
        let copy = graph.after([&child, &fill]).unwrap().copy(&memory, &out).unwrap();
        let free = graph.free(&memory).unwrap();
        assert_eq!(free.predecessors().unwrap(), [(*child).clone(), (*fill).clone(), (*copy).clone()]);
        graph.instantiate().unwrap().launch(stream).unwrap();
        assert_eq!(out.read_blocking(stream).unwrap(), [[5; 32], [6; 32]].concat());
        // Memory without uses.
        let (alloc, memory) = graph.root().alloc::<u32>(N).unwrap();
        assert_eq!(graph.free(&memory).unwrap().predecessors().unwrap(), [(*alloc).clone()]);
        in_order(&graph);
    });
}

#[test]
fn a_moved_graph_brings_its_memory() {
    traceless(|context, stream| {
        needs!(MovedGraphs);
        let (source, graph) = (context.graph().unwrap(), context.graph().unwrap());
        let out = stream.zeros::<u32>(N).unwrap();
        let (alloc, memory) = source.root().alloc::<u32>(N).unwrap();
        alloc.then().fill(&memory, 5).unwrap();
        let child = graph.root().child_moved(source).unwrap();
        assert_eq!(child.embedded().unwrap().find_clone_of(&alloc).unwrap().kind(), alloc.kind());
        let copy = graph.root().copy(&memory, &out).unwrap();
        assert_eq!(found(&graph).len(), 1);
        graph.add_edge(&child, &copy).unwrap();
        let mut exec = graph.instantiate().unwrap();
        for _ in 0..2 {
            let output = exec.launch_with_outputs(stream).unwrap().take(&memory).unwrap();
            assert_eq!(output.read_blocking(stream).unwrap(), [5; N]);
        }
        assert_eq!(out.read_blocking(stream).unwrap(), [5; N]);
        drop(exec);
        let free = graph.free(&memory).unwrap();
        assert_eq!(free.predecessors().unwrap(), [(*child).clone(), (*copy).clone()]);
        // The graph around frees what the graph inside allocates: also if both are moved on.
        let outer = context.graph().unwrap();
        let moved = outer.root().child_moved(graph).unwrap();
        let mut exec = outer.instantiate().unwrap();
        exec.launch(stream).unwrap();
        assert!(exec.launch_with_outputs(stream).unwrap().is_empty());
        let free = moved.embedded().unwrap().find_clone_of(&free).unwrap();
        let free = cuda_graph::FreeNode::try_from(free).unwrap();
        assert_eq!(free.allocation().unwrap().unwrap().memory::<u32>().unwrap(), memory);
    });
}

#[test]
fn a_thousand_allocations_in_a_long_graph_are_looked_through_in_no_time() {
    traceless(|context, _| {
        let graph = context.graph().unwrap();
        let mut last = (*graph.root().empty().unwrap()).clone();
        for _ in 0..1000 {
            let (alloc, memory) = last.then().alloc::<u32>(1).unwrap();
            let mut step = (*alloc).clone();
            for _ in 0..4 {
                step = (*step.then().fill(&memory, 1).unwrap()).clone();
            }
            last = (*step.then().free(&memory).unwrap()).clone();
        }
        let start = std::time::Instant::now();
        in_order(&graph);
        // A walk for each of them would be some millions of steps more.
        assert!(start.elapsed() < std::time::Duration::from_secs(20), "{:?}", start.elapsed());
    });
}

/// A node of a graph drawn at random: what it does, whether it waits for the allocation of the
/// memory that it does it with, and which earlier nodes it waits for besides.
#[derive(Clone, Debug)]
struct Step {
    what: u8,
    memory: usize,
    waits: bool,
    after: Vec<usize>,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let after = prop::collection::vec(0..30_usize, 0..4);
    let step = (0..12_u8, 0..4_usize, prop::bool::weighted(0.9), after);
    let step = step.prop_map(|(what, memory, waits, after)| Step { what, memory, waits, after });
    prop::collection::vec(step, 1..30)
}

/// Draws the steps.
fn drawn(graph: &Graph, steps: &[Step]) {
    let mut nodes: Vec<Node> = Vec::new();
    // Not freed yet, with the allocation nodes.
    let mut living: Vec<(Node, GraphBuffer<u32>)> = Vec::new();
    for Step { what, memory, waits, after } in steps {
        let mut after: Vec<&Node> = after.iter().filter_map(|place| nodes.get(*place)).collect();
        let known = (!living.is_empty()).then(|| memory % living.len());
        after.extend(known.filter(|_| *waits).map(|place| &living[place].0));
        let frontier = graph.after_all(after).unwrap();
        let node: Node = match (what, known) {
            (0..3, _) | (_, None) => {
                let (node, memory) = frontier.alloc::<u32>(N).unwrap();
                living.push(((*node).clone(), memory));
                node.into()
            }
            (3, Some(place)) => frontier.free(&living.remove(place).1).unwrap().into(),
            (4 | 5, Some(place)) => graph.free(&living.remove(place).1).unwrap().into(),
            (_, Some(place)) => frontier.fill(&living[place].1, 1).unwrap().into(),
        };
        nodes.push(node);
    }
}

/// What passes the check runs, in whatever order the driver takes: the software driver loses the
/// context at a use of memory that is not there.
#[test]
fn what_is_in_order_runs() {
    traceless(|context, stream| {
        let (ran, refused) = (Cell::new(0), Cell::new(0));
        let config = ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() };
        let outcome = TestRunner::new(config).run(&steps(), |steps| {
            let graph = context.graph().unwrap();
            drawn(&graph, &steps);
            match graph.instantiate() {
                Ok(mut exec) => {
                    ran.set(ran.get() + 1);
                    for _ in 0..2 {
                        prop_assert_eq!(exec.launch(stream), Ok(()));
                    }
                    prop_assert_eq!(stream.synchronize_blocking(), Ok(()));
                }
                Err(Error::Memory(MemoryError::MemoryOrder { .. })) => refused.set(refused.get() + 1),
                Err(other) => return Err(TestCaseError::fail(other.to_string())),
            }
            Ok(())
        });
        outcome.unwrap();
        let (ran, refused) = (ran.get(), refused.get());
        assert!(ran >= 30 && refused >= 30, "{ran} ran, {refused} were refused");
        println!("{ran} ran, {refused} were refused");
    });
}
