//! How long values of graph parameters live, and what setting them costs.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cuda_graph::{ContextExt, Graph, GraphExec, GraphParam};
use cuda_handles::{Buffer, Context, Stream};
use cuda_launch::per;
use cuda_tests::{Gate, Kind, SOON, count, live, no_leaks, resident, setup, until};

use super::params::scale;

const SET: &str = "cuGraphExecNodeSetParams";
const LEN: usize = 16;

/// A chain of kernels, each with a factor and a destination of its own.
struct Chain {
    from: Buffer<u32>,
    factors: Vec<GraphParam<u32>>,
    targets: Vec<GraphParam<[u32]>>,
    graph: Graph,
    exec: GraphExec,
}

impl Chain {
    fn new(context: &Context, stream: &Stream, nodes: usize) -> Self {
        let scale = scale::load(context).unwrap();
        let from = stream.upload(&[1_u32; LEN]).unwrap();
        let graph = context.graph().unwrap();
        let factors: Vec<_> = (0..nodes).map(|_| graph.param(0_u32).unwrap()).collect();
        let target = || graph.param(&stream.zeros::<u32>(LEN).unwrap()).unwrap();
        let targets: Vec<_> = (0..nodes).map(|_| target()).collect();
        let mut last = (*graph.root().empty().unwrap()).clone();
        for (factor, target) in factors.iter().zip(&targets) {
            let arguments = (LEN as u32, factor, &from, target);
            last = (*last.then().launch(&scale, per(LEN, 32), arguments).unwrap()).clone();
        }
        let exec = graph.instantiate().unwrap();
        Self { from, factors, targets, graph, exec }
    }
}

fn is_all(buffer: &Buffer<u32>, stream: &Stream, value: u32) {
    assert_eq!(buffer.read_blocking(stream).unwrap(), [value; LEN]);
}

#[test]
fn a_hundred_unsynchronised_replays_have_a_hundred_results() {
    let context = setup();
    no_leaks(|| {
        let (stream, other) = (context.stream().unwrap(), context.stream().unwrap());
        let mut chain = Chain::new(&context, &stream, 2);
        let mut results = Vec::new();
        let gate = Gate::close(&stream);
        for round in 0..100_u32 {
            let (one, two) = (stream.zeros::<u32>(LEN).unwrap(), other.zeros::<u32>(LEN).unwrap());
            let on = if round % 3 == 0 { &other } else { &stream };
            let values = (
                (&chain.factors[0], round),
                (&chain.targets[0], &one),
                (&chain.factors[1], 1_000 + round),
                (&chain.targets[1], &two),
            );
            chain.exec.launch_with(on, values).unwrap();
            results.push((one, two));
        }
        gate.open();
        other.wait_for(&stream).unwrap();
        for (round, (one, two)) in (0..).zip(&results) {
            is_all(one, &other, round);
            is_all(two, &other, 1_000 + round);
        }
    });
}

/// Buffers that may live between two waits of the test below: those of 64 launches and of 64 before
/// whose end the reaper has still to see, and a few.
const MOST_BUFFERS: i64 = 130;

/// `bench --replays` does the same a million times.
#[test]
fn replays_with_a_new_buffer_each_are_flat_in_memory() {
    const ROUNDS: u32 = 10_000;
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let pool = context.default_pool().unwrap();
        let mut chain = Chain::new(&context, &stream, 1);
        let mut replay = |round: u32| {
            let buffer = stream.zeros::<u32>(LEN).unwrap();
            chain
                .exec
                .launch_with(&stream, ((&chain.targets[0], &buffer), (&chain.factors[0], round)))
                .unwrap();
            buffer
        };
        let before = live();
        let used_before = pool.usage().unwrap().used;
        drop(replay(0));
        let each = pool.usage().unwrap().used - used_before;
        let most_used = used_before + MOST_BUFFERS as u64 * each;
        for round in 1..1_000 {
            drop(replay(round));
        }
        stream.synchronize_blocking().unwrap();
        let start = resident();
        for round in 0..ROUNDS {
            let buffer = replay(round);
            if round % 1_000 == 999 {
                is_all(&buffer, &stream, round);
                drop(buffer);
                let buffers = || live().since(&before).of(Kind::Allocation);
                assert!(until(SOON, || buffers() <= MOST_BUFFERS), "after {round}: {}", buffers());
                let used = || pool.usage().unwrap().used;
                assert!(
                    until(SOON, || used() <= most_used),
                    "after {round}: {} of {most_used} bytes",
                    used()
                );
            }
        }
        if let (Some(start), Some(end)) = (start, resident()) {
            assert!(end < start + 16 * 1_024, "from {start} to {end} KiB");
        }
        // The last buffer takes the place of the first one.
        chain.exec.release();
        let is_flat = until(SOON, || live().since(&before).of(Kind::Allocation) <= 1);
        assert!(is_flat, "{}", live().since(&before));
        let used = || pool.usage().unwrap().used;
        assert!(until(SOON, || used() <= used_before + each), "{} of {used_before} bytes", used());
    });
}

#[test]
fn a_buffer_dropped_right_after_its_launch_lives_until_that_has_ended() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let mut chain = Chain::new(&context, &stream, 1);
        let dropped = Arc::new(AtomicUsize::new(0));
        let mut results = Vec::new();
        let noted = |buffer: &Buffer<u32>| {
            let owner = (Noted(Arc::clone(&dropped)), buffer.clone());
            // SAFETY: the owner keeps the memory.
            unsafe { Buffer::<u32>::from_foreign(&context, buffer.address(), LEN, owner) }.unwrap()
        };
        let (first, second) = (stream.zeros::<u32>(LEN).unwrap(), stream.zeros::<u32>(LEN).unwrap());
        stream.synchronize_blocking().unwrap();
        let gate = Gate::close(&stream);
        for (buffer, factor) in [(&first, 3), (&second, 4)] {
            let value = noted(buffer);
            chain
                .exec
                .launch_with(&stream, ((&chain.targets[0], &value), (&chain.factors[0], factor)))
                .unwrap();
            drop(value);
            results.push((buffer, factor));
        }
        chain.exec.release();
        assert_eq!(dropped.load(Ordering::SeqCst), 0, "both launches are to come");
        gate.open();
        assert!(until(SOON, || dropped.load(Ordering::SeqCst) == 1), "the first launch has ended");
        for (buffer, factor) in results {
            is_all(buffer, &stream, factor);
        }
        drop(chain);
        assert!(until(SOON, || {
            cuda_handles::reaper::drain();
            dropped.load(Ordering::SeqCst) == 2
        }));
    });
}

struct Noted(Arc<AtomicUsize>);

impl Drop for Noted {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// Uses its graph and makes an executable of it when it is dropped.
struct Reentrant(Graph, Arc<AtomicUsize>);

impl Drop for Reentrant {
    fn drop(&mut self) {
        let number = self.0.param(1_u32).unwrap();
        let node = self.0.root().empty().unwrap();
        drop((number, node.remove()));
        drop(self.0.instantiate().unwrap());
        self.1.fetch_add(1, Ordering::SeqCst);
    }
}

#[test]
fn destructors_of_replaced_values_may_use_the_graph() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let mut chain = Chain::new(&context, &stream, 2);
        let dropped = Arc::new(AtomicUsize::new(0));
        let memory = stream.zeros::<u32>(LEN).unwrap();
        stream.synchronize_blocking().unwrap();
        let value = || {
            let owner = (Reentrant(chain.graph.clone(), Arc::clone(&dropped)), memory.clone());
            // SAFETY: the owner keeps the memory.
            unsafe { Buffer::<u32>::from_foreign(&context, memory.address(), LEN, owner) }.unwrap()
        };
        let [one, two] = [&chain.targets[0], &chain.targets[1]];
        // Replaced before a launch, by a launch that is refused, and by launches.
        chain.exec.set(one, &value()).unwrap();
        chain.exec.set(one, &value()).unwrap();
        assert_eq!(dropped.load(Ordering::SeqCst), 1);
        let short = value();
        chain.exec.launch_with(&stream, ((one, short.slice(..2).unwrap()),)).unwrap_err();
        drop(short);
        for _ in 0..3 {
            chain.exec.launch_with(&stream, ((one, &value()), (two, &value()))).unwrap();
        }
        chain.exec.launch_with(&stream, ((one, &memory), (two, &memory))).unwrap();
        chain.exec.release();
        stream.synchronize_blocking().unwrap();
        let made = 1 + 1 + 1 + 6;
        assert!(until(SOON, || {
            cuda_handles::reaper::drain();
            dropped.load(Ordering::SeqCst) == made
        }));
        drop(chain);
    });
}

#[test]
fn changed_nodes_cost_a_call_each_and_no_allocation() {
    const NODES: usize = 8;
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let mut chain = Chain::new(&context, &stream, NODES);
        let buffers: Vec<_> = (0..2 * NODES).map(|_| stream.zeros::<u32>(LEN).unwrap()).collect();
        stream.synchronize_blocking().unwrap();
        // Each node once: the tables have room for all of them then.
        for round in 0..200 {
            for at in 0..NODES {
                chain.exec.set(&chain.targets[at], &buffers[at + NODES * (round % 2)]).unwrap();
            }
            chain.exec.launch(&stream).unwrap();
        }
        stream.synchronize_blocking().unwrap();
        chain.exec.release();
        let mut allocating = 0;
        for round in 0..128_usize {
            let changed = round % (NODES + 1);
            let ((), cost) = count(|| {
                for at in 0..changed {
                    chain.exec.set(&chain.factors[at], round as u32).unwrap();
                    chain.exec.set(&chain.targets[at], &buffers[at + NODES * (round % 2)]).unwrap();
                }
                chain.exec.launch(&stream).unwrap();
            });
            cost.assert_calls(&[(SET, changed as u64), ("cuGraphLaunch", 1)]);
            allocating += u64::from(cost.heap_allocations() > 0);
        }
        // Two batches of replaced memory went to the reaper; the first outgrew its list.
        assert!(allocating <= 4, "{allocating} launches allocate");
        assert_eq!(chain.from.read_blocking(&stream).unwrap(), [1; LEN]);
    });
}

#[test]
fn a_home_that_is_not_settled_costs_two_calls() {
    let context = setup();
    no_leaks(|| {
        let (stream, home) = (context.stream().unwrap(), context.stream().unwrap());
        let mut chain = Chain::new(&context, &stream, 3);
        chain.exec.launch(&stream).unwrap();
        stream.wait_for(&home).unwrap();
        stream.synchronize_blocking().unwrap();
        let mut launch = |buffers: [&Buffer<u32>; 3]| {
            let [one, two, three] = [&chain.targets[0], &chain.targets[1], &chain.targets[2]];
            let values = ((one, buffers[0]), (two, buffers[1]), (three, buffers[2]));
            count(|| chain.exec.launch_with(&stream, values).unwrap()).1
        };
        let new = |stream: &Stream| stream.zeros::<u32>(LEN).unwrap();
        let (at_home, elsewhere, also) = (new(&stream), new(&home), new(&home));
        let cost = launch([&at_home, &elsewhere, &also]);
        cost.assert_calls(&[(SET, 3), ("cuEventRecord", 1), ("cuStreamWaitEvent", 1), ("cuGraphLaunch", 1)]);
        let settled = new(&home);
        home.synchronize_blocking().unwrap();
        let cost = launch([&at_home, &elsewhere, &settled]);
        cost.assert_calls(&[(SET, 1), ("cuGraphLaunch", 1)]);
        stream.synchronize_blocking().unwrap();
    });
}
