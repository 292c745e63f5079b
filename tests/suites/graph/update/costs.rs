//! The cost of updates: driver calls and heap allocations.

use cuda_graph::{ContextExt, GraphExec, KernelNode};
use cuda_handles::reaper::pending;
use cuda_handles::{Buffer, Context, Stream};
use cuda_launch::per;
use cuda_sys::Call;
use cuda_tests::{SOON, count, live, no_leaks, settle, setup, trace, until};

use crate::capture::{N, add_to};

const NODES: usize = 8;

/// A chain of kernels, each of which adds to a number.
struct Chain {
    stream: Stream,
    add: add_to,
    nodes: Vec<KernelNode>,
    exec: GraphExec,
    numbers: [Buffer<u32>; 2],
}

impl Chain {
    fn new(context: &Context) -> Self {
        let stream = context.stream().unwrap();
        let add = add_to::load(context).unwrap();
        let numbers = [(); 2].map(|()| stream.zeros::<u32>(N).unwrap());
        let graph = context.graph().unwrap();
        let mut nodes = vec![graph.root().launch(&add, per(1, 1), (1, &numbers[0])).unwrap()];
        while nodes.len() < NODES {
            let last = nodes.last().unwrap();
            let next = last.then().launch(&add, per(1, 1), (1, &numbers[0])).unwrap();
            nodes.push(next);
        }
        stream.synchronize_blocking().unwrap();
        let exec = graph.instantiate().unwrap();
        Self { stream, add, nodes, exec, numbers }
    }

    /// Sets some of the nodes, and launches.
    fn replay(&mut self, changed: usize, round: usize) {
        for node in &self.nodes[..changed] {
            let number = &self.numbers[round % 2];
            self.exec.node(node).set(&self.add, per(1, 1), (round as u32, number)).unwrap();
        }
        self.exec.launch(&self.stream).unwrap();
    }
}

/// Waits until the reaper has taken the batch that is due. A batch that waits for a late reaper
/// takes more room.
fn wait_for_the_reaper() {
    assert!(until(SOON, || pending() == 0), "{}", pending());
}

#[test]
fn a_launch_with_k_changed_nodes_is_k_plus_one_calls_and_allocates_nothing() {
    let context = setup();
    no_leaks(|| {
        let mut chain = Chain::new(&context);
        for round in 0..300 {
            chain.replay(NODES, round);
        }
        settle();
        for changed in [0, 1, 3, NODES] {
            // Batches are handed over several times meanwhile.
            for round in 0..200 {
                let ((), cost) = count(|| chain.replay(changed, round));
                cost.assert_calls(&[("cuGraphExecNodeSetParams", changed as u64), ("cuGraphLaunch", 1)]);
                assert_eq!(cost.heap_allocations(), 0, "{changed} nodes, round {round}: {cost}");
                wait_for_the_reaper();
            }
        }
    });
}

#[test]
fn enabling_is_one_call_if_it_changes_something() {
    let context = setup();
    no_leaks(|| {
        let mut chain = Chain::new(&context);
        let node = chain.nodes[0].clone();
        chain.exec.node(&node).set_enabled(false).unwrap();
        chain.exec.node(&node).set_enabled(true).unwrap();
        for (enabled, calls) in [(true, 0), (false, 1), (false, 0), (true, 1)] {
            let (set, cost) = count(|| chain.exec.node(&node).set_enabled(enabled));
            set.unwrap();
            cost.assert_calls(&[("cuGraphNodeSetEnabled", calls)]);
            assert_eq!(cost.heap_allocations(), 0, "{cost}");
            let (is, cost) = count(|| chain.exec.node(&node).is_enabled().unwrap());
            cost.assert_calls(&[]);
            assert_eq!((is, cost.heap_allocations()), (enabled, 0));
        }
    });
}

#[test]
fn the_other_kinds_are_one_call_and_allocate_nothing() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let [x, y] = [(); 2].map(|()| stream.zeros::<u32>(N).unwrap());
        let events = [(); 2].map(|()| context.event().unwrap());
        stream.synchronize_blocking().unwrap();
        let graph = context.graph().unwrap();
        let fill = graph.root().fill(&x, 1).unwrap();
        let copy = fill.then().copy(&x, &y).unwrap();
        let record = copy.then().record(&events[0]).unwrap();
        let wait = record.then().wait(&events[0]).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let mut replay = |round: usize| {
            let (from, to) = if round.is_multiple_of(2) { (&x, &y) } else { (&y, &x) };
            exec.node(&fill).set(from, round as u32).unwrap();
            exec.node(&copy).set(from, to).unwrap();
            exec.node(&record).set_event(&events[round % 2]).unwrap();
            exec.node(&wait).set_event(&events[round % 2]).unwrap();
            exec.launch(&stream).unwrap();
        };
        (0..300).for_each(&mut replay);
        settle();
        for round in 0..200 {
            let ((), cost) = count(|| replay(round));
            cost.assert_calls(&[("cuGraphExecNodeSetParams", 4), ("cuGraphLaunch", 1)]);
            assert_eq!(cost.heap_allocations(), 0, "round {round}: {cost}");
            wait_for_the_reaper();
        }
    });
}

#[test]
fn a_batch_costs_the_reaper_a_few_calls_of_its_own() {
    let context = setup();
    no_leaks(|| {
        let mut chain = Chain::new(&context);
        // Other streams that memory was used on are not waited for.
        let others: Vec<_> = (0..4).map(|_| context.stream().unwrap()).collect();
        for other in &others {
            other.fill(&chain.numbers[1], 0).unwrap();
            other.synchronize_blocking().unwrap();
        }
        for round in 0..300 {
            chain.replay(1, round);
        }
        settle();
        let ((), cost) = count(|| {
            for round in 0..64 {
                chain.replay(1, round);
            }
            chain.stream.synchronize_blocking().unwrap();
            let waits = pending();
            assert!(until(SOON, || pending() == 0), "{waits}");
        });
        let elsewhere = |name: &str| cost.calls_anywhere(name) - cost.calls(name);
        // Whether the stream of the last launch is idle; if not, an event in it, and questions
        // until it was reached.
        assert_eq!(elsewhere("cuStreamQuery"), 1, "{cost}");
        let event = ["cuEventCreate", "cuEventRecord", "cuEventDestroy"].map(elsewhere);
        let asked = elsewhere("cuEventQuery");
        assert!(event == [0; 3] && asked == 0 || event == [1; 3] && asked >= 1, "{cost}");
        let around = ["cuThreadExchangeStreamCaptureMode", "cuCtxPushCurrent", "cuCtxPopCurrent"];
        let around: u64 = around.map(elsewhere).iter().sum();
        assert!(around <= 2 * asked + 4, "{cost}");
        let sum = 1 + event.iter().sum::<u64>() + asked + around;
        assert_eq!(cost.total_anywhere() - cost.total(), sum, "{cost}");
    });
}

#[test]
fn a_replay_has_its_calls_in_this_order() {
    let context = setup();
    no_leaks(|| {
        let mut chain = Chain::new(&context);
        chain.replay(2, 0);
        let before = live();
        let ((), steps) = trace(|| chain.replay(2, 1));
        let calls: Vec<Call> = steps.iter().map(|step| step.call).collect();
        let set = Call::cuGraphExecNodeSetParams;
        assert_eq!(calls, [set, set, Call::cuGraphLaunch]);
        assert_eq!(live(), before);
    });
}
