//! Captured graphs keep what their calls use, each at the node of the call.

use std::collections::HashMap;
use std::sync::{Arc, Barrier, Weak};

use cuda_graph::capture::Kind;
use cuda_graph::{
    CaptureError, ContextExt, Error, Graph, KernelNode, MemsetNode, Node, NodeKind, Result, StreamExt,
};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Allocation, Buffer, Owner, Stream};
use cuda_launch::per;
use cuda_sys::{CUDA_KERNEL_NODE_PARAMS_v2, CUgraph, CUgraphNode, CUresult};
use cuda_tests::{SOON, is_soft, needs, no_leaks, raw, settle, setup, until};

use super::{Bench, Capture, MODES, add_to, is_free, works_again};
use crate::common::gone::{flag, soon};

const LOCAL: CaptureMode = CaptureMode::ThreadLocal;

/// Memory of calls, known by address, without owning it.
#[derive(Default)]
struct Known(HashMap<u64, Weak<Allocation>>);

impl Known {
    fn add(&mut self, buffer: &Buffer<u32>) {
        self.0.insert(buffer.address(), Arc::downgrade(buffer.allocation()));
    }

    fn is_alive(&self, address: u64) -> bool {
        self.0[&address].strong_count() > 0
    }

    fn alive(&self) -> usize {
        self.0.values().filter(|weak| weak.strong_count() > 0).count()
    }

    /// Exactly these are alive, after a moment.
    #[track_caller]
    fn are_alive(&self, expected: &[u64], when: &str) {
        let same = || {
            settle();
            self.alive() == expected.len() && expected.iter().all(|address| self.is_alive(*address))
        };
        assert!(until(SOON, same), "{when}: {} are alive, expected {}", self.alive(), expected.len());
    }
}

/// The graph into which the driver captures: its handle stays the same.
fn raw_graph(capture: &Capture) -> CUgraph {
    capture.info().unwrap().graph
}

/// The memory of each kernel node, which is the second argument, as the driver has it.
fn memory_of_kernels(raw: CUgraph) -> Vec<Option<u64>> {
    let is_kernel = |node| raw::kind(node) == cuda_sys::CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL;
    let memory = |node| {
        let params = raw::kernel(node);
        // SAFETY: all kernels of these tests have two parameters, the second an address.
        unsafe { **params.kernelParams.add(1).cast::<*const u64>() }
    };
    raw::nodes(raw).into_iter().map(|node| is_kernel(node).then(|| memory(node))).collect()
}

/// Removes the nodes one by one, in another order than that of their creation: each lets go of its
/// own memory, and of nothing else.
#[track_caller]
fn each_node_has_its_own(graph: &Graph, memory: &[Option<u64>], known: &Known) {
    let mut nodes: Vec<(Node, Option<u64>)> =
        graph.nodes().unwrap().into_iter().zip(memory.iter().copied()).collect();
    assert_eq!(nodes.len(), memory.len());
    let mut step = 7;
    while !nodes.is_empty() {
        step = (step * 5 + 3) % nodes.len().max(1);
        let (node, address) = nodes.swap_remove(step);
        node.remove().unwrap();
        let mut left: Vec<u64> = nodes.iter().filter_map(|(_, address)| *address).collect();
        left.sort_unstable();
        left.dedup();
        known.are_alive(&left, &format!("after the removal of the node with {address:?}"));
    }
}

/// Settled memory for as many calls.
fn buffers(stream: &Stream, count: usize, known: &mut Known) -> Vec<Buffer<u32>> {
    let made: Vec<_> = (0..count).map(|_| stream.zeros::<u32>(4).unwrap()).collect();
    stream.synchronize_blocking().unwrap();
    made.iter().for_each(|buffer| known.add(buffer));
    made
}

fn add_on(add: &add_to, stream: &Stream, buffer: &Buffer<u32>) {
    add.launch(stream, per(1, 1), (1, buffer)).unwrap();
}

#[test]
fn launches_by_clones_events_and_threads_keep_their_memory_on_their_nodes() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let mut known = Known::default();
        let other = context.stream().unwrap();
        let made = buffers(&bench.stream, 11, &mut known);
        let capture = bench.begin();
        let raw = raw_graph(&capture);
        let mut next = made.into_iter();
        let mut next = || next.next().unwrap();
        add_on(&bench.add, capture.stream(), &next());
        add_on(&bench.add, &bench.stream.clone(), &next());
        // The same call twice: each node has it.
        let twice = next();
        add_on(&bench.add, capture.stream(), &twice);
        add_on(&bench.add, capture.stream(), &twice);
        drop(twice);
        // A stream that an event draws in, before and after work here.
        let event = context.event().unwrap();
        capture.stream().record(&event).unwrap();
        add_on(&bench.add, capture.stream(), &next());
        other.wait(&event).unwrap();
        add_on(&bench.add, &other, &next());
        add_on(&bench.add, capture.stream(), &next());
        let (one, two) = (next(), next());
        std::thread::scope(|scope| {
            scope.spawn(|| add_on(&bench.add, &bench.stream, &one));
            scope.spawn(|| add_on(&bench.add, &other.clone(), &two));
        });
        drop((one, two));
        capture.launch(&bench.add, per(1, 1), (1, &next())).unwrap();
        let [fork] = capture.split().unwrap();
        fork.launch(&bench.add, per(1, 1), (1, &next())).unwrap();
        add_on(&bench.add, fork.stream(), &next());
        capture.join([fork]).unwrap();
        capture.stream().wait_for(&other).unwrap();
        let ended = capture.end().unwrap();
        assert_eq!(ended.unmatched().unwrap(), 0);
        let memory = memory_of_kernels(raw);
        assert_eq!(memory.len(), 12);
        assert_eq!(known.alive(), 11, "one is used twice");
        each_node_has_its_own(ended.graph(), &memory, &known);
        bench.works_again();
        works_again(&other);
    });
}

/// Launches by one thread of a race, with some buffers used again.
fn race<K: Kind>(
    add: &add_to,
    at: &cuda_graph::GraphBuilder<K, cuda_graph::capture::Capturing>,
    made: Vec<Buffer<u32>>,
    start: &Barrier,
) -> Result<()> {
    start.wait();
    for (place, buffer) in made.into_iter().enumerate() {
        at.launch(add, per(1, 1), (1, &buffer))?;
        if place % 5 == 0 {
            add.launch(at.stream(), per(1, 1), (1, &buffer))?;
        }
    }
    Ok(())
}

#[test]
fn two_threads_and_two_forks_race_and_every_node_keeps_its_own() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let rounds = if is_soft() { 6 } else { 3 };
        for mode in MODES.into_iter().cycle().take(rounds) {
            let mut known = Known::default();
            let (left, right) =
                (buffers(&bench.stream, 40, &mut known), buffers(&bench.stream, 40, &mut known));
            let capture = bench.stream.graph_builder().mode(mode).begin().unwrap();
            let raw = raw_graph(&capture);
            let [one, two] = capture.split().unwrap();
            let start = Barrier::new(2);
            let forks = std::thread::scope(|scope| {
                let add = &bench.add;
                let start = &start;
                let there = scope.spawn(move || race(add, &one, left, start).map(|()| one));
                let here = scope.spawn(move || race(add, &two, right, start).map(|()| two));
                [there, here].map(|thread| thread.join().unwrap().unwrap())
            });
            capture.join(forks).unwrap();
            let ended = capture.end().unwrap();
            assert_eq!(ended.unmatched().unwrap(), 0);
            let memory = memory_of_kernels(raw);
            assert_eq!(memory.len(), 96);
            settle();
            assert_eq!(known.alive(), 80, "nothing live was let go");
            each_node_has_its_own(ended.graph(), &memory, &known);
            bench.works_again();
        }
    });
}

#[test]
fn a_node_that_is_set_lets_go_of_its_old_memory_alone() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let mut known = Known::default();
        let made = buffers(&bench.stream, 6, &mut known);
        let mut address: Vec<u64> = made.iter().map(Buffer::address).collect();
        let fresh = buffers(&bench.stream, 6, &mut Known::default());
        let graph = bench
            .stream
            .capture(LOCAL, |capture| {
                made.iter().try_for_each(|buffer| capture.launch(&bench.add, per(1, 1), (1, buffer)))
            })
            .unwrap();
        drop(made);
        known.are_alive(&address, "at first");
        for (place, node) in graph.nodes().unwrap().into_iter().enumerate().rev() {
            let node = KernelNode::try_from(node).unwrap();
            node.set(&bench.add, per(1, 1), (2, &fresh[place])).unwrap();
            address.pop();
            known.are_alive(&address, "after a node was set");
        }
        graph.instantiate().unwrap().launch(&bench.stream).unwrap();
        for buffer in &fresh {
            assert_eq!(buffer.read_blocking(&bench.stream).unwrap()[0], 2);
        }
        bench.works_again();
    });
}

#[test]
fn every_kind_of_call_keeps_what_it_uses_on_its_node() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let mut known = Known::default();
        let made = buffers(&bench.stream, 4, &mut known);
        let address: Vec<u64> = made.iter().map(Buffer::address).collect();
        let closures = [flag(), flag()];
        let [(first, first_gone), (second, second_gone)] = closures;
        let (kept, kept_gone) = flag();
        let graph = bench
            .stream
            .capture(LOCAL, |capture| {
                capture.fill(&made[0], 1)?;
                capture.callback(move || drop(first.clone()))?;
                capture.copy(&made[1], &made[2])?;
                capture.stream().host(move || drop(second.clone()))?;
                capture.launch(&bench.add, per(1, 1), (1, &made[3]))?;
                capture.keep(kept)
            })
            .unwrap();
        drop(made);
        let nodes = graph.nodes().unwrap();
        let kinds: Vec<NodeKind> = nodes.iter().map(|node| node.kind()).collect();
        let host = NodeKind::HostCallback;
        assert_eq!(kinds, [NodeKind::Memset, host, NodeKind::Memcpy, host, NodeKind::Kernel]);
        let fill = MemsetNode::try_from(nodes[0].clone()).unwrap();
        assert_eq!(fill.address().unwrap(), address[0]);
        known.are_alive(&address, "at first");
        nodes[3].remove().unwrap();
        assert!(soon(&second_gone) && !first_gone());
        nodes[2].remove().unwrap();
        known.are_alive(&[address[0], address[3]], "without the copy");
        nodes[0].remove().unwrap();
        known.are_alive(&address[3..], "without the fill");
        nodes[1].remove().unwrap();
        assert!(soon(&first_gone));
        nodes[4].remove().unwrap();
        known.are_alive(&[], "without the launch");
        assert!(!kept_gone(), "what is kept for the graph is");
        drop((graph, nodes, fill));
        assert!(soon(&kept_gone));
        bench.works_again();
    });
}

#[test]
fn owners_stay_on_their_nodes_in_bodies_and_given_graphs() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        for in_body in [false, true] {
            if in_body {
                cuda_tests::needs!(Conditionals);
            }
            let mut known = Known::default();
            let made = buffers(&bench.stream, 5, &mut known);
            let mut address: Vec<u64> = made.iter().map(Buffer::address).collect();
            let graph = context.graph().unwrap();
            let body = if in_body {
                let always = graph.condition_with_default(1).unwrap();
                graph.root().if_node(&always).unwrap().body().unwrap()
            } else {
                graph.clone()
            };
            body.root()
                .capture(&bench.stream, LOCAL, |capture| {
                    // On forks, so that the order in the graph is not that of the calls.
                    for buffer in &made {
                        let [fork] = capture.split()?;
                        fork.launch(&bench.add, per(1, 1), (1, buffer))?;
                        capture.join([fork])?;
                    }
                    Ok::<_, Error>(())
                })
                .unwrap();
            drop(made);
            known.are_alive(&address, "at first");
            graph.instantiate().unwrap().launch(&bench.stream).unwrap();
            bench.stream.synchronize_blocking().unwrap();
            let filler = body.len().unwrap() - 5;
            for node in body.nodes().unwrap().into_iter().skip(filler).rev() {
                node.remove().unwrap();
                address.pop();
                known.are_alive(&address, "after a node was removed");
            }
            bench.works_again();
        }
    });
}

/// Gives a captured kernel node another grid, as other code may. It can remove none.
fn change(node: CUgraphNode) {
    // By its kernel: no context is current here.
    let func = core::ptr::null_mut();
    let params = CUDA_KERNEL_NODE_PARAMS_v2 { func, gridDimX: 2, ..raw::kernel(node) };
    // SAFETY: a live kernel node; kernel and arguments are its own.
    unsafe {
        raw::ok(raw::driver().cuGraphKernelNodeSetParams(node, &raw const params));
        assert_eq!(raw::driver().cuGraphDestroyNode(node), CUresult::CUDA_ERROR_ILLEGAL_STATE);
    }
}

#[test]
fn a_call_whose_node_other_code_changes_is_counted_and_its_owners_are_kept() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let mut known = Known::default();
        let made = buffers(&bench.stream, 3, &mut known);
        let address: Vec<u64> = made.iter().map(Buffer::address).collect();
        let capture = bench.begin();
        for buffer in &made {
            capture.launch(&bench.add, per(1, 1), (1, buffer)).unwrap();
        }
        change(raw::nodes(raw_graph(&capture))[1]);
        let ended = capture.end().unwrap();
        assert_eq!((ended.unmatched().unwrap(), ended.graph().len().unwrap()), (1, 3));
        drop(made);
        known.are_alive(&address, "the graph keeps what no node has");
        ended.graph().nodes().unwrap().iter().for_each(|node| node.remove().unwrap());
        known.are_alive(&address[1..2], "without nodes");
        drop(ended);
        known.are_alive(&[], "without the graph");
        bench.works_again();
    });
}

#[test]
fn a_launch_that_sets_a_condition_and_that_other_code_changes_makes_the_end_fail() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let branch = |capture: &Capture| {
            bench.add(capture, 1)?;
            let is_set = capture.condition()?;
            bench.set(capture, &is_set, 1)?;
            capture.if_node(&is_set, |body| bench.add(body, 10)).map(drop)
        };
        let changed = |capture: &Capture| {
            branch(capture)?;
            change(raw::nodes(raw_graph(capture))[1]);
            Ok::<_, Error>(())
        };
        let refused = Error::Capture(CaptureError::LaunchChanged { kernel: "set_to".into() });
        let capture = bench.begin();
        changed(&capture).unwrap();
        assert_eq!(capture.end().unwrap_err(), refused);
        assert_eq!(bench.stream.capture(LOCAL, changed).unwrap_err(), refused);
        // A graph that exists is as before, but for the condition, which the next one uses.
        let graph = context.graph().unwrap();
        let first = graph.root().fill(&bench.numbers, 100).unwrap();
        assert_eq!(first.then().capture(&bench.stream, LOCAL, changed).unwrap_err(), refused);
        assert_eq!(graph.nodes().unwrap(), [(*first).clone()]);
        first.then().capture(&bench.stream, LOCAL, branch).unwrap();
        assert_eq!(bench.run(&graph), 111);
        bench.works_again();
    });
}

#[test]
fn a_refused_call_keeps_nothing() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let mut known = Known::default();
        let made = buffers(&bench.stream, 2, &mut known);
        let capture = bench.begin();
        let code = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
        let injection = cuda_tests::fail(cuda_sys::Call::cuLaunchKernel, 1, code);
        capture.launch(&bench.add, per(1, 1), (1, &made[0])).unwrap_err();
        drop(injection);
        capture.launch(&bench.add, per(1, 1), (1, &made[1])).unwrap();
        let address = made[1].address();
        drop(made);
        assert_eq!(known.alive(), 1, "during the capture");
        let ended = capture.end().unwrap();
        known.are_alive(&[address], "after it");
        drop(ended);
        known.are_alive(&[], "without the graph");
    });
}

#[test]
fn threads_capture_at_once_in_every_mode() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let threads = 4;
        let rounds = if is_soft() { 40 } else { 100 };
        let start = Barrier::new(threads);
        std::thread::scope(|scope| {
            for number in 0..threads {
                let (context, add, start) = (&*context, &bench.add, &start);
                scope.spawn(move || {
                    let stream = context.stream().unwrap();
                    let total = stream.zeros::<u32>(1).unwrap();
                    stream.synchronize_blocking().unwrap();
                    start.wait();
                    for round in 0..rounds {
                        let mode = MODES[(number + round) % 3];
                        let graph = stream
                            .capture(mode, |capture| {
                                capture.launch(add, per(1, 1), (1, &total))?;
                                let [fork] = capture.split()?;
                                fork.launch(add, per(1, 1), (1, &total))
                            })
                            .unwrap();
                        // What is allocated, copied and freed beside the others' captures.
                        let beside = stream.upload(&[round as u32]).unwrap();
                        assert_eq!(beside.read_blocking(&stream).unwrap(), [round as u32]);
                        graph.instantiate().unwrap().launch(&stream).unwrap();
                    }
                    let all = total.read_blocking(&stream).unwrap()[0];
                    assert_eq!(all, 2 * rounds as u32);
                    assert!(is_free(&stream));
                });
            }
        });
        bench.works_again();
    });
}

#[test]
fn thousands_of_captures_beside_launches_on_other_streams() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stop = std::sync::atomic::AtomicBool::new(false);
        let captures = if is_soft() { 3000 } else { 5000 };
        let launched = std::thread::scope(|scope| {
            let beside = scope.spawn(|| {
                let stream = context.stream().unwrap();
                let count = stream.zeros::<u32>(1).unwrap();
                let mut launched = 0;
                while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                    add_on(&bench.add, &stream, &count);
                    launched += 1;
                    if launched % 64 == 0 {
                        stream.synchronize_blocking().unwrap();
                    }
                }
                assert_eq!(count.read_blocking(&stream).unwrap(), [launched]);
                launched
            });
            for round in 0..captures {
                let mode = MODES[round % 3];
                let graph = bench
                    .stream
                    .capture(mode, |capture| {
                        bench.add(capture, 1)?;
                        bench.add(capture, 1)
                    })
                    .unwrap();
                assert_eq!(graph.len().unwrap(), 2, "nothing of the other stream");
            }
            stop.store(true, std::sync::atomic::Ordering::Relaxed);
            beside.join().unwrap()
        });
        assert!(launched > 0);
        assert_eq!(bench.numbers.read_blocking(&bench.stream).unwrap()[0], 0, "a capture runs nothing");
        bench.works_again();
    });
}

#[test]
fn owners_given_by_other_threads_are_kept() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let capture = bench.stream.graph_builder().begin_on_any_thread().unwrap();
        let flags: Vec<_> = (0..8).map(|_| flag()).collect();
        let (owners, gone): (Vec<Owner>, Vec<_>) = flags.into_iter().unzip();
        std::thread::scope(|scope| {
            for owner in owners {
                scope.spawn(|| capture.keep(owner).unwrap());
            }
        });
        let graph = capture.end().unwrap().into_graph();
        assert!(gone.iter().all(|is_gone| !is_gone()));
        let exec = graph.instantiate().unwrap();
        drop(graph);
        settle();
        assert!(gone.iter().all(|is_gone| !is_gone()));
        drop(exec);
        assert!(gone.iter().all(soon));
    });
}
