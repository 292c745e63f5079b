//! Updates that are refused, in words; the executable stays as it was.

use cuda_graph::{
    ContextExt, Error, Fallback, Graph, GraphExec, InstantiateOptions, KernelNode, NodeError, RawCopy,
    RawMemory, Test, UpdateError,
};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Buffer, Context, Error as HandleError, Stream};
use cuda_launch::per;
use cuda_tests::{Gate, count, in_callback, is_soft, needs, no_leaks, other_device, settle, setup};
use std::sync::mpsc::channel;

use crate::capture::{N, add_to, count_down, increment_all, set_to};

/// A graph that adds 1 to a number, with an executable.
struct Bench {
    stream: Stream,
    add: add_to,
    x: Buffer<u32>,
    graph: Graph,
    node: KernelNode,
    exec: GraphExec,
}

impl Bench {
    fn new(context: &Context) -> Self {
        let stream = context.stream().unwrap();
        let x = stream.zeros::<u32>(N).unwrap();
        stream.synchronize_blocking().unwrap();
        let add = add_to::load(context).unwrap();
        let graph = context.graph().unwrap();
        let node = graph.root().launch(&add, per(1, 1), (1, &x)).unwrap().named("the adder");
        let exec = graph.instantiate().unwrap();
        Self { stream, add, x, graph, node, exec }
    }

    /// Makes the executable again, of a graph that can have one at a time.
    fn make_again(&mut self) {
        self.exec = self.stream.context().graph().unwrap().instantiate().unwrap();
        self.exec = self.graph.instantiate().unwrap();
    }

    /// The number that a launch adds.
    fn adds(&mut self) -> u32 {
        self.stream.fill(&self.x, 0).unwrap();
        self.exec.launch(&self.stream).unwrap();
        self.x.read_blocking(&self.stream).unwrap()[0]
    }
}

#[track_caller]
fn not_possible(error: Error, node: &str, why: &str) {
    assert!(matches!(error, Error::Update(UpdateError::NotPossible { .. })), "{error:?}");
    let text = error.to_string();
    assert!(text.contains(node) && text.contains(why), "{text}");
}

#[track_caller]
fn not_in_it(error: Error) {
    assert!(matches!(error, Error::Update(UpdateError::NotInExecutable { .. })), "{error:?}");
}

#[test]
fn attributes_that_the_node_does_not_have() {
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let Bench { exec, node, add, x, .. } = &mut bench;
        let refused = exec.node(node).set(add, per(1, 1).priority(-1), (5, &*x)).unwrap_err();
        not_possible(refused, "the adder", "other attributes than the node's");
        let refused = exec.node(node).set(add, per(1, 1).cooperative(), (5, &*x)).unwrap_err();
        not_possible(refused, "the adder", "other attributes than the node's");
        assert_eq!(bench.adds(), 1);
        // The same attributes with another grid are taken; without them, not.
        let other = bench.graph.root().launch(&bench.add, per(1, 1).priority(-1), (3, &bench.x)).unwrap();
        let mut exec = bench.graph.instantiate().unwrap();
        exec.node(&other).set(&bench.add, per(2, 1).priority(-1), (10, &bench.x)).unwrap();
        exec.node(&other).set(&bench.add, per(2, 1), (10, &bench.x)).unwrap_err();
        exec.node(&other).set(&bench.add, per(2, 1).priority(0), (10, &bench.x)).unwrap_err();
        bench.exec = exec;
        assert_eq!(bench.adds(), 21);
    });
}

#[test]
fn updates_start_from_the_executable_and_not_from_the_graph() {
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        // The graph's node has an attribute now, and the executable's does not.
        bench.node.set(&bench.add, per(1, 1).priority(-1), (7, &bench.x)).unwrap();
        let Bench { exec, node, add, x, .. } = &mut bench;
        exec.node(node).set(add, per(1, 1).priority(-1), (5, &*x)).unwrap_err();
        exec.node(node).set(add, per(1, 1), (5, &*x)).unwrap();
        assert_eq!(bench.adds(), 5);
        assert_eq!(bench.graph.instantiate().map(|exec| bench.exec = exec), Ok(()));
        assert_eq!(bench.adds(), 7);
    });
}

#[test]
fn handles_of_conditions_and_kernels_that_have_them() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let (set_to, count_down) = (set_to::load(&context).unwrap(), count_down::load(&context).unwrap());
        let condition = bench.graph.condition().unwrap();
        let decider =
            bench.graph.root().launch(&set_to, per(1, 1), (1, &condition)).unwrap().named("decider");
        let body = decider.then().if_node(&condition).unwrap().body().unwrap();
        body.root().launch(&bench.add, per(1, 1), (10, &bench.x)).unwrap();
        bench.make_again();
        let Bench { exec, node, add, x, .. } = &mut bench;
        let refused = exec.node(node).set(&set_to, per(1, 1), (0, &condition)).unwrap_err();
        not_possible(refused, "the adder", "handle of a condition");
        let refused = exec.node(&decider).set(&set_to, per(1, 1), (0, &condition)).unwrap_err();
        not_possible(refused, "decider", "handle of a condition");
        let refused = exec.node(&decider).set(add, per(1, 1), (0, &*x)).unwrap_err();
        not_possible(refused, "decider", "decides about a condition");
        let refused = exec.node(&decider).set_enabled(false).unwrap_err();
        not_possible(refused, "decider", "a loop might never end");
        exec.node(&decider).set_enabled(true).unwrap();
        // What counts is what the executable's node has, whatever the graph's has by now.
        decider.set(add, per(1, 1), (1000, &*x)).unwrap();
        let refused = exec.node(&decider).set_enabled(false).unwrap_err();
        not_possible(refused, "decider", "decides about a condition");
        exec.node(&decider).set(add, per(1, 1), (0, &*x)).unwrap_err();
        assert_eq!(bench.adds(), 11);
        drop(count_down);
    });
}

#[test]
fn deciding_kernels_of_ready_made_loops() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let flag = bench.stream.upload(&[1_u32]).unwrap();
        bench
            .node
            .then()
            .if_then(Test::nonzero(&flag), |body| body.root().launch(&bench.add, per(1, 1), (10, &bench.x)))
            .unwrap();
        bench.make_again();
        let nodes = bench.graph.nodes().unwrap();
        let kernels = nodes.into_iter().filter_map(|node| KernelNode::try_from(node).ok());
        let mut deciders = 0;
        for decider in kernels.filter(|kernel| **kernel != *bench.node) {
            deciders += 1;
            bench.exec.node(&decider).set_enabled(false).unwrap_err();
            bench.exec.node(&decider).set(&bench.add, per(1, 1), (5, &bench.x)).unwrap_err();
        }
        assert_eq!(deciders, 1);
        assert_eq!(bench.adds(), 11);
    });
}

#[test]
fn memory_of_allocation_nodes() {
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let (alloc, memory) = bench.graph.root().alloc::<u32>(N).unwrap();
        let fill = alloc.then().fill(&memory, 4).unwrap().named("the filler");
        let copy = fill.then().copy(&memory, &bench.x).unwrap().named("the copier");
        bench.graph.add_edge(&copy, &bench.node).unwrap();
        bench.make_again();
        let Bench { exec, node, add, x, .. } = &mut bench;
        let refused = exec.node(node).set(add, per(1, 1), (5, &memory)).unwrap_err();
        not_possible(refused, "the adder", "memory of an allocation node");
        let refused = exec.node(&fill).set(&memory, 5).unwrap_err();
        not_possible(refused, "the filler", "memory of an allocation node");
        let refused = exec.node(&copy).set(&memory, &*x).unwrap_err();
        not_possible(refused, "the copier", "memory of an allocation node");
        // Other kernels of such a graph are set.
        exec.node(node).set(add, per(1, 1), (2, &*x)).unwrap();
        assert_eq!(bench.adds(), 6);
        // Memory that a launch has left is of an allocation node, too.
        let stream = bench.stream.clone();
        let mut other = Bench::new(&context);
        let mut outputs = bench.exec.launch_with_outputs(&stream).unwrap();
        let output = outputs.take(&memory).unwrap();
        let Bench { exec, node, add, .. } = &mut other;
        let refused = exec.node(node).set(add, per(1, 1), (5, &output)).unwrap_err();
        not_possible(refused, "the adder", "memory of an allocation node");
        drop(output);
        assert_eq!(other.adds(), 1);
    });
    context.synchronize_blocking().unwrap();
    context.trim_graph_memory().unwrap();
}

#[test]
fn nodes_that_are_not_in_the_executable() {
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let mut other = Bench::new(&context);
        let clone = bench.graph.clone_graph().unwrap();
        let of_clone = clone.find_clone_of(&bench.node).unwrap();
        let of_clone = KernelNode::try_from(of_clone).unwrap();
        let late = bench.graph.root().launch(&bench.add, per(1, 1), (1, &bench.x)).unwrap();
        for node in [&other.node, &of_clone, &late] {
            not_in_it(bench.exec.node(node).set(&bench.add, per(1, 1), (5, &bench.x)).unwrap_err());
            not_in_it(bench.exec.node(node).set_enabled(false).unwrap_err());
            not_in_it(bench.exec.node(node).is_enabled().unwrap_err());
        }
        // An executable that was made with it takes it.
        let mut later = bench.graph.instantiate().unwrap();
        later.node(&late).set(&bench.add, per(1, 1), (5, &bench.x)).unwrap();
        not_in_it(other.exec.node(&bench.node).set(&bench.add, per(1, 1), (5, &bench.x)).unwrap_err());
        assert_eq!((bench.adds(), other.adds()), (1, 1));
        bench.exec = later;
        assert_eq!(bench.adds(), 6);
    });
}

#[test]
fn removed_nodes_and_nodes_at_their_address() {
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        bench.graph.root().empty().unwrap();
        for round in 0..20 {
            let node = bench.node.clone();
            bench.node.clone().remove().unwrap();
            let next = bench.graph.root().launch(&bench.add, per(1, 1), (100, &bench.x)).unwrap();
            let refused = bench.exec.node(&node).set(&bench.add, per(1, 1), (5, &bench.x)).unwrap_err();
            assert!(matches!(refused, Error::Node(NodeError::Removed { .. })), "{refused:?}");
            bench.exec.node(&node).set_enabled(false).unwrap_err();
            // Often at the address of the removed one.
            not_in_it(bench.exec.node(&next).set(&bench.add, per(1, 1), (5, &bench.x)).unwrap_err());
            not_in_it(bench.exec.node(&next).set_enabled(false).unwrap_err());
            bench.node = next;
            assert_eq!(bench.adds(), if round == 0 { 1 } else { 100 });
            bench.exec = bench.graph.instantiate().unwrap();
            let Bench { exec, node, add, x, .. } = &mut bench;
            exec.node(node).set(add, per(1, 1), (round + 7, &*x)).unwrap();
            assert_eq!(bench.adds(), round + 7);
            bench.exec = bench.graph.instantiate().unwrap();
        }
    });
}

#[test]
fn nodes_of_a_graph_that_was_moved_into_the_executables_graph() {
    let context = setup();
    needs!(MovedGraphs);
    no_leaks(|| {
        // With few nodes, and with many more than the graph around.
        for count in [1, 100_u32] {
            let mut bench = Bench::new(&context);
            let moved = context.graph().unwrap();
            for _ in 0..count {
                moved.root().launch(&bench.add, per(1, 1), (1000, &bench.x)).unwrap();
            }
            let mut of_moved = moved.instantiate().unwrap();
            let first = KernelNode::try_from(moved.nodes().unwrap().remove(0)).unwrap();
            let child = bench.graph.root().child_moved(moved).unwrap();
            let Bench { exec, node, add, x, .. } = &mut bench;
            for inner in child.embedded().unwrap().nodes().unwrap() {
                let inner = KernelNode::try_from(inner).unwrap();
                not_in_it(exec.node(&inner).set(add, per(1, 1), (5, &*x)).unwrap_err());
                not_in_it(of_moved.node(&inner).set_enabled(false).unwrap_err());
            }
            of_moved.node(&first).set_enabled(false).unwrap_err();
            exec.node(node).set(add, per(1, 1), (3, &*x)).unwrap();
            assert_eq!(bench.adds(), 3);
            bench.exec = of_moved;
            assert_eq!(bench.adds(), 1000 * count);
            bench.exec = bench.graph.instantiate().unwrap();
            let Bench { exec, add, x, .. } = &mut bench;
            for inner in child.embedded().unwrap().nodes().unwrap() {
                exec.node(&KernelNode::try_from(inner).unwrap()).set(add, per(1, 1), (2, &*x)).unwrap();
            }
            assert_eq!(bench.adds(), 2 * count + 1);
        }
    });
}

#[test]
fn nodes_in_a_child_graph_that_the_graph_has_replaced() {
    cuda_tests::as_drawn!("shaping expands child graphs");
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let graph = context.graph().unwrap();
        let child = graph.root().child(&bench.graph).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let inner = |child: &cuda_graph::ChildGraphNode| {
            KernelNode::try_from(child.embedded().unwrap().nodes().unwrap().remove(0)).unwrap()
        };
        let former = inner(&child);
        child.set_graph(&bench.graph).unwrap();
        exec.node(&former).set(&bench.add, per(1, 1), (5, &bench.x)).unwrap_err();
        not_in_it(exec.node(&inner(&child)).set(&bench.add, per(1, 1), (5, &bench.x)).unwrap_err());
        // The node itself is still there.
        bench.node.set(&bench.add, per(1, 1), (8, &bench.x)).unwrap();
        exec.node(&child).set_graph(&bench.graph).unwrap();
        bench.exec = exec;
        assert_eq!(bench.adds(), 8);
    });
}

#[test]
fn executables_that_other_code_or_kernels_launch() {
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let _raw = bench.exec.as_raw();
        let Bench { exec, node, add, x, .. } = &mut bench;
        let is_lent = |error: Error| {
            assert!(matches!(error, Error::Update(UpdateError::Lent)), "{error:?}");
            assert!(error.to_string().contains("instantiate the graph again"), "{error}");
        };
        is_lent(exec.node(node).set(add, per(1, 1), (5, &*x)).unwrap_err());
        is_lent(exec.node(node).set_enabled(false).unwrap_err());
        assert_eq!(bench.adds(), 1);
        let mut of_device = bench.graph.instantiate_with(InstantiateOptions::new().device_launch()).unwrap();
        is_lent(of_device.node(&bench.node).set(&bench.add, per(1, 1), (5, &bench.x)).unwrap_err());
        of_device.upload(&bench.stream).unwrap();
        bench.exec = of_device;
        assert_eq!(bench.adds(), 1);
    });
}

#[test]
fn arguments_that_an_added_node_could_not_have_either() {
    cuda_tests::as_drawn!("kernels in place of fills and copies do not reach the memory");
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let all = increment_all::load(&context).unwrap();
        let host = context.pinned_zeros::<u32>(N).unwrap().share();
        let fill = bench.graph.root().fill(&bench.x, 1).unwrap();
        let copy = bench.graph.root().copy(&host, &bench.x).unwrap();
        let record = bench.graph.root().record(&context.event().unwrap()).unwrap();
        for node in [&*fill, &*copy, &*record] {
            bench.graph.add_edge(node, &bench.node).unwrap();
        }
        bench.graph.add_edge(&fill, &copy).unwrap();
        let mut exec = bench.graph.instantiate().unwrap();
        let Bench { node, x, .. } = &bench;
        let empty = bench.stream.zeros::<u32>(0).unwrap();
        let (refusals, cost) = count(|| {
            [
                // More elements than the buffer has, and no block at all.
                exec.node(node).set(&all, per(N, 4), (N as u32 + 1, x)),
                exec.node(node).set(&all, per(N, 0), (N as u32, x)),
                exec.node(node).set(&all, per(N, 1 << 20), (N as u32, x)),
                // Of unlike lengths, of no length, and not aligned.
                exec.node(&copy).set(host.slice(1..).unwrap(), x),
                exec.node(&copy).set(&empty, &empty),
                exec.node(&fill).set(&empty, 1),
                exec.node(&fill).set_2d(x, 4, [5, 4], 1),
                // SAFETY: refused.
                unsafe {
                    let at = |address| RawMemory::at(address);
                    exec.node(&copy).set_raw(RawCopy::new(at(0), at(0), 16))
                },
            ]
        });
        for refused in refusals {
            refused.unwrap_err();
        }
        assert_eq!(cost.calls("cuGraphExecNodeSetParams"), 0, "{cost}");
        // What the driver alone knows: another direction.
        let refused = exec.node(&copy).set(x, &host).unwrap_err();
        not_possible(refused, "memcpy", "keeps its direction");
        bench.exec = exec;
        assert_eq!(bench.adds(), 1);
        assert_eq!(bench.x.read_blocking(&bench.stream).unwrap()[1], 0);
    });
}

#[test]
fn things_of_another_context() {
    let context = setup();
    needs!(TwoDevices);
    let second = other_device().context().unwrap();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let record = bench.graph.root().record(&context.event().unwrap()).unwrap();
        let fill = bench.graph.root().fill(&bench.x, 0).unwrap();
        bench.graph.add_edge(&fill, &bench.node).unwrap();
        bench.exec = bench.graph.instantiate().unwrap();
        let other = Bench::new(&second);
        let Bench { exec, node, add, x, .. } = &mut bench;
        let refused = [
            exec.node(node).set(&other.add, per(1, 1), (5, &*x)),
            exec.node(node).set(add, per(1, 1), (5, &other.x)),
            exec.node(&fill).set(&other.x, 5),
            exec.node(&record).set_event(&second.event().unwrap()),
            exec.launch(&other.stream),
        ];
        for refused in refused {
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("context"), "{refused}");
        }
        assert_eq!(bench.adds(), 1);
    });
}

#[test]
fn a_launch_waits_for_unsettled_homes_by_two_calls_each() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let homes = [context.stream().unwrap(), context.stream().unwrap()];
        // Each has its event from here on.
        for home in &homes {
            bench.stream.fill(&home.zeros::<u32>(4).unwrap(), 1).unwrap();
        }
        // The reaper uses the homes meanwhile.
        settle();
        let fill = bench.graph.root().fill(&bench.x, 0).unwrap();
        bench.graph.add_edge(&fill, &bench.node).unwrap();
        let mut exec = bench.graph.instantiate().unwrap();
        exec.launch(&bench.stream).unwrap();
        let (x, y) = (homes[0].zeros::<u32>(4).unwrap(), homes[1].zeros::<u32>(4).unwrap());
        let also = homes[1].zeros::<u32>(4).unwrap();
        let own = bench.stream.zeros::<u32>(4).unwrap();
        let set = |exec: &mut GraphExec, at: &Buffer<u32>, to: &Buffer<u32>| {
            exec.node(&bench.node).set(&bench.add, per(1, 1), (5, at)).unwrap();
            exec.node(&fill).set(to, 2).unwrap();
        };
        let launch = |exec: &mut GraphExec| {
            let (launched, cost) = count(|| exec.launch(&bench.stream));
            launched.unwrap();
            let calls = ["cuGraphLaunch", "cuEventRecord", "cuStreamWaitEvent"].map(|name| cost.calls(name));
            assert_eq!(calls.iter().sum::<u64>(), cost.total(), "{cost}");
            assert_eq!(cost.heap_allocations(), 0, "{cost}");
            calls
        };
        // Two homes, then none again.
        set(&mut exec, &x, &y);
        assert_eq!(launch(&mut exec), [1, 2, 2]);
        assert_eq!(launch(&mut exec), [1, 0, 0]);
        // The same home twice, and memory of the stream of the launch itself.
        set(&mut exec, &y, &also);
        assert_eq!(launch(&mut exec), [1, 1, 1]);
        set(&mut exec, &own, &own);
        assert_eq!(launch(&mut exec), [1, 0, 0]);
        // Memory that is there by now.
        homes.iter().for_each(|home| home.synchronize_blocking().unwrap());
        set(&mut exec, &x, &y);
        assert_eq!(launch(&mut exec), [1, 0, 0]);
        assert_eq!(x.read_blocking(&bench.stream).unwrap()[0], 15);
    });
}

#[test]
fn a_launch_waits_until_unsettled_memory_is_there() {
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let home = context.stream().unwrap();
        let gate = Gate::close(&home);
        let y = home.zeros::<u32>(N).unwrap();
        let Bench { exec, node, add, stream, .. } = &mut bench;
        exec.node(node).set(add, per(1, 1), (5, &y)).unwrap();
        exec.launch(&*stream).unwrap();
        assert!(!stream.query().unwrap());
        gate.open();
        assert_eq!(y.read_blocking(&*stream).unwrap()[0], 5);
    });
}

#[test]
fn memory_whose_home_captures_keeps_the_next_launch_until_that_is_over() {
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let home = context.stream().unwrap();
        let y = home.zeros::<u32>(N).unwrap();
        let capture = home.begin_capture(CaptureMode::ThreadLocal).unwrap();
        let Bench { exec, node, add, stream, .. } = &mut bench;
        exec.node(node).set(add, per(1, 1), (5, &y)).unwrap();
        for _ in 0..2 {
            let refused = exec.launch(&*stream).unwrap_err();
            assert!(matches!(refused, Error::Handles(HandleError::Capturing { .. })), "{refused:?}");
        }
        assert!(home.capture_id().is_some(), "the capture goes on");
        drop(capture);
        exec.launch(&*stream).unwrap();
        assert_eq!(y.read_blocking(&*stream).unwrap()[0], 5);
    });
}

#[test]
fn updates_beside_captures_leave_these_alone() {
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let capturing = context.stream().unwrap();
        let y = bench.stream.zeros::<u32>(N).unwrap();
        bench.stream.synchronize_blocking().unwrap();
        for mode in crate::capture::MODES {
            let capture = capturing.begin_capture(mode).unwrap();
            let Bench { exec, node, add, x, stream, .. } = &mut bench;
            exec.node(node).set(add, per(1, 1), (5, &y)).unwrap();
            exec.launch(&*stream).unwrap();
            exec.node(node).set_enabled(false).unwrap();
            exec.node(node).set_enabled(true).unwrap();
            exec.node(node).set(add, per(1, 1), (6, &*x)).unwrap();
            exec.launch(&*stream).unwrap();
            exec.release();
            capturing.fill(&y, 1).unwrap();
            let graph = capture.end().unwrap();
            drop(graph);
        }
        assert_eq!(bench.adds(), 6);
    });
}

#[test]
fn inside_a_host_function_it_is_refused() {
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let stream = bench.stream.clone();
        let (sender, receiver) = channel();
        in_callback(&stream, move || {
            let Bench { exec, node, add, x, .. } = &mut bench;
            let set = exec.node(node).set(add, per(1, 1), (5, &*x)).map_err(|error| error.to_string());
            let enabled = exec.node(node).set_enabled(false).map_err(|error| error.to_string());
            sender.send((set, enabled, bench)).unwrap();
        });
        let (set, enabled, mut bench) = receiver.recv_timeout(cuda_tests::SOON).unwrap();
        // The driver permits both there, and the software driver says what a GPU says.
        stream.synchronize_blocking().unwrap();
        let expected = if set.is_ok() { 5 } else { 1 };
        if enabled.is_ok() {
            bench.exec.node(&bench.node).set_enabled(true).unwrap();
        }
        assert_eq!(bench.adds(), expected, "{set:?} {enabled:?}");
    });
}

#[test]
fn host_loops_have_no_nodes_to_be_set() {
    let context = setup();
    no_leaks(|| {
        let mut bench = Bench::new(&context);
        let flag = bench.stream.upload(&[1_u32]).unwrap();
        let add = bench.add.clone();
        bench
            .node
            .then()
            .if_then(Test::nonzero(&flag), |body| body.root().launch(&add, per(1, 1), (10, &bench.x)))
            .unwrap();
        let options = InstantiateOptions::new();
        let mut by_host = bench.graph.instantiate_with_fallback(Fallback::HostLoopAlways, options).unwrap();
        // An executable from before the branch is set beside it.
        let Bench { exec, node, x, stream, .. } = &mut bench;
        exec.node(node).set(&add, per(1, 1), (5, &*x)).unwrap();
        by_host.run_blocking(&*stream).unwrap();
        assert_eq!(x.read_blocking(&*stream).unwrap()[0], 11);
        if is_soft() {
            assert_eq!(bench.adds(), 5);
        }
    });
}

#[test]
fn a_kernel_that_may_have_attributes_in_the_executable_is_not_set_without_knowing_them() {
    let context = setup();
    needs!(LaunchAttributes);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let graph = context.graph().unwrap();
        let node = graph.root().launch(&bench.add, per(1, 1).cooperative(), (1, &bench.x)).unwrap();
        let mut exec = graph.instantiate().unwrap();
        // The executable's node stays cooperative, whatever becomes of the graph's.
        node.set(&bench.add, per(1, 1), (2, &bench.x)).unwrap();
        let refused = exec.node(&node).set(&bench.add, per(1, 1), (3, &bench.x)).unwrap_err();
        assert!(matches!(refused, Error::Update(UpdateError::NotPossible { .. })), "{refused}");
        exec.launch(&bench.stream).unwrap();
        assert_eq!(bench.x.read_blocking(&bench.stream).unwrap()[0], 1);
    });
}
