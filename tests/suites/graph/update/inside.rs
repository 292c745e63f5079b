//! Nodes of executables inside of child graphs and bodies, nodes of captured graphs, and child
//! graphs as a whole.

use cuda_graph::{
    ChildGraphNode, ContextExt, EmbedError, Error, EventRecordNode, Graph, KernelNode, MemcpyNode,
    MemsetNode, StreamExt, UpdateError,
};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Buffer, Context, Stream};
use cuda_launch::per;
use cuda_tests::{Kind, SOON, live, needs, no_leaks, settle, setup, until};

use crate::capture::{N, add_to, count_down, set_to};
use crate::common::events::{is_captured, record_in_capture};

/// A graph that adds an amount to a number, and fills the second number.
fn step(context: &Context, add: &add_to, amount: u32, numbers: &Buffer<u32>) -> Graph {
    let graph = context.graph().unwrap();
    let node = graph.root().launch(add, per(1, 1), (amount, numbers)).unwrap();
    node.then().fill(numbers.slice(1..2).unwrap(), amount).unwrap();
    graph
}

fn kernel_of(graph: &Graph) -> KernelNode {
    graph.nodes().unwrap().into_iter().find_map(|node| KernelNode::try_from(node).ok()).unwrap()
}

fn fill_of(graph: &Graph) -> MemsetNode {
    graph.nodes().unwrap().into_iter().find_map(|node| MemsetNode::try_from(node).ok()).unwrap()
}

fn read(numbers: &Buffer<u32>, stream: &Stream) -> [u32; 2] {
    let numbers = numbers.read_blocking(stream).unwrap();
    [numbers[0], numbers[1]]
}

#[test]
fn nodes_of_child_graphs_are_set_at_any_depth() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let (x, y) = (stream.zeros::<u32>(N).unwrap(), stream.zeros::<u32>(N).unwrap());
        let inner = step(&context, &add, 1, &x);
        let middle = context.graph().unwrap();
        middle.root().child(&inner).unwrap();
        let graph = context.graph().unwrap();
        let first = graph.root().child(&middle).unwrap();
        let second = first.then().child(&inner).unwrap();
        let deep = first.embedded().unwrap().children().unwrap().remove(0).embedded().unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.node(&kernel_of(&deep)).set(&add, per(1, 1), (10, &y)).unwrap();
        exec.node(&kernel_of(&second.embedded().unwrap())).set_enabled(false).unwrap();
        exec.node(&fill_of(&second.embedded().unwrap())).set(y.slice(1..2).unwrap(), 5).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!((read(&x, &stream), read(&y, &stream)), ([0, 1], [10, 5]));
        // Nodes of the graph that was embedded are no nodes of the executable.
        let refused = exec.node(&kernel_of(&inner)).set(&add, per(1, 1), (1, &x)).unwrap_err();
        assert!(matches!(refused, Error::Update(UpdateError::NotInExecutable { .. })), "{refused}");
    });
}

#[test]
fn nodes_of_bodies_are_set_and_loops_run_with_them() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let count_down = count_down::load(&context).unwrap();
        let (x, y) = (stream.zeros::<u32>(N).unwrap(), stream.zeros::<u32>(N).unwrap());
        let counter = stream.upload(&[3_u32]).unwrap();
        let graph = context.graph().unwrap();
        let condition = graph.condition_with_default(1).unwrap();
        let body = graph.root().while_node(&condition).unwrap().body().unwrap();
        let step = body.root().launch(&add, per(1, 1), (1, &x)).unwrap();
        let fill = step.then().fill(x.slice(1..2).unwrap(), 1).unwrap();
        let last = fill.then().launch(&count_down, per(1, 1), (&counter, &condition)).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.node(&step).set(&add, per(1, 1), (7, &y)).unwrap();
        exec.node(&fill).set(y.slice(1..2).unwrap(), 4).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!((read(&x, &stream), read(&y, &stream)), ([0, 0], [21, 4]));
        exec.node(&step).set_enabled(false).unwrap();
        counter.write_blocking(&stream, &[2]).unwrap();
        stream.fill(&y, 0).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(read(&y, &stream), [0, 4]);
        // The kernel that decides stays as it is.
        let refused = exec.node(&last).set_enabled(false).unwrap_err().to_string();
        assert!(refused.contains("decides about a condition"), "{refused}");
        let refused = exec.node(&last).set(&count_down, per(1, 1), (&counter, &condition)).unwrap_err();
        assert!(matches!(refused, Error::Update(UpdateError::NotPossible { .. })), "{refused}");
    });
}

#[test]
fn nodes_of_captured_graphs_are_set() {
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let (x, y) = (stream.zeros::<u32>(N).unwrap(), stream.zeros::<u32>(N).unwrap());
        stream.synchronize_blocking().unwrap();
        let graph = stream
            .capture(CaptureMode::ThreadLocal, |capture| {
                add.launch(capture, per(1, 1), (1, &x))?;
                capture.fill(x.slice(1..2)?, 8)?;
                capture.copy(&x, &y)
            })
            .unwrap();
        let z = stream.zeros::<u32>(N).unwrap();
        let copy =
            graph.nodes().unwrap().into_iter().find_map(|node| MemcpyNode::try_from(node).ok()).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.node(&kernel_of(&graph)).set(&add, per(1, 1), (3, &x)).unwrap();
        exec.node(&fill_of(&graph)).set(x.slice(1..2).unwrap(), 9).unwrap();
        exec.node(&copy).set(&x, &z).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!((read(&z, &stream), read(&y, &stream)), ([3, 9], [0, 0]));
    });
}

#[test]
fn a_child_graph_is_replaced_by_one_of_the_same_shape() {
    cuda_tests::as_drawn!("shaping expands child graphs");
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let before = live().of(Kind::Allocation);
        let x = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        let child = graph.root().child(&step(&context, &add, 1, &x)).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        let y = stream.zeros::<u32>(N).unwrap();
        let other = step(&context, &add, 20, &y);
        exec.node(&child).set_graph(&other).unwrap();
        // The executable has the graph as it was.
        kernel_of(&other).set(&add, per(1, 1), (1000, &x)).unwrap();
        drop(other);
        exec.launch(&stream).unwrap();
        assert_eq!((read(&x, &stream), read(&y, &stream)), ([1, 1], [20, 20]));
        // Its nodes still go by the nodes of the embedded graph.
        let embedded = child.embedded().unwrap();
        exec.node(&kernel_of(&embedded)).set(&add, per(1, 1), (300, &x)).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!((read(&x, &stream), read(&y, &stream)), ([301, 1], [20, 20]));
        // Another graph replaces what updates of its nodes have set.
        let z = stream.zeros::<u32>(N).unwrap();
        exec.node(&child).set_graph(&step(&context, &add, 5, &z)).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!((read(&x, &stream), read(&z, &stream)), ([301, 1], [5, 5]));
        drop(y);
        exec.release();
        let is_freed = until(SOON, || {
            settle();
            live().of(Kind::Allocation) == before + 2
        });
        assert!(is_freed, "what the first update has brought goes: {}", live().of(Kind::Allocation) - before);
    });
}

#[test]
fn a_disabled_node_in_a_child_graph_stays_disabled_when_that_is_replaced() {
    cuda_tests::as_drawn!("shaping expands child graphs");
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let x = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        let child = graph.root().child(&step(&context, &add, 1, &x)).unwrap();
        let kernel = kernel_of(&child.embedded().unwrap());
        let mut exec = graph.instantiate().unwrap();
        exec.node(&kernel).set_enabled(false).unwrap();
        exec.node(&child).set_graph(&step(&context, &add, 20, &x)).unwrap();
        assert!(!exec.node(&kernel).is_enabled().unwrap());
        exec.launch(&stream).unwrap();
        assert_eq!(read(&x, &stream), [0, 20]);
        exec.node(&kernel).set_enabled(true).unwrap();
        exec.launch(&stream).unwrap();
        assert_eq!(read(&x, &stream), [20, 20]);
    });
}

#[test]
fn a_child_graph_of_another_shape_is_refused_and_the_executable_as_before() {
    cuda_tests::as_drawn!("shaping expands child graphs");
    let context = setup();
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let x = stream.zeros::<u32>(N).unwrap();
        let inner = step(&context, &add, 1, &x);
        let graph = context.graph().unwrap();
        let child = graph.root().child(&inner).unwrap().named("the child");
        let mut exec = graph.instantiate().unwrap();
        let longer = step(&context, &add, 2, &x);
        kernel_of(&longer).then().empty().unwrap();
        let unordered = context.graph().unwrap();
        unordered.root().launch(&add, per(1, 1), (2, &x)).unwrap();
        unordered.root().fill(x.slice(1..2).unwrap(), 2).unwrap();
        let empty = context.graph().unwrap();
        let of_memory = context.graph().unwrap();
        of_memory.root().alloc::<u32>(4).unwrap();
        for wrong in [&longer, &unordered, &empty] {
            let refused = exec.node(&child).set_graph(wrong).unwrap_err().to_string();
            assert!(refused.contains("the child") && refused.contains("keeps the number"), "{refused}");
        }
        exec.node(&child).set_graph(&of_memory).unwrap_err();
        let refused = exec.node(&child).set_graph(&graph).unwrap_err();
        assert!(matches!(refused, Error::Embed(EmbedError::EmbedsItself)), "{refused}");
        let embedded = child.embedded().unwrap();
        let refused = exec.node(&child).set_graph(&embedded).unwrap_err();
        assert!(matches!(refused, Error::Embed(EmbedError::Embedded { .. })), "{refused}");
        exec.launch(&stream).unwrap();
        assert_eq!(read(&x, &stream), [1, 1]);
    });
}

#[test]
fn a_child_graph_with_a_kernel_that_decides_is_not_replaced() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let add = add_to::load(&context).unwrap();
        let set_to = set_to::load(&context).unwrap();
        let x = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        let condition = graph.condition().unwrap();
        let child: ChildGraphNode = graph.root().child(&step(&context, &add, 1, &x)).unwrap();
        let inside = child.embedded().unwrap();
        inside.root().launch(&set_to, per(1, 1), (1, &condition)).unwrap();
        let body = child.then().if_node(&condition).unwrap().body().unwrap();
        body.root().launch(&add, per(1, 1), (100, &x)).unwrap();
        let mut exec = graph.instantiate().unwrap();
        let other = step(&context, &add, 2, &x);
        other.root().launch(&add, per(1, 1), (2, &x)).unwrap();
        let refused = exec.node(&child).set_graph(&other).unwrap_err().to_string();
        assert!(refused.contains("decides about a condition"), "{refused}");
        exec.launch(&stream).unwrap();
        assert_eq!(read(&x, &stream), [101, 1]);
    });
}

#[test]
fn a_replaced_child_graph_records_its_own_events() {
    cuda_tests::as_drawn!("shaping expands child graphs");
    let context = setup();
    no_leaks(|| {
        let (stream, other) = (context.stream().unwrap(), context.stream().unwrap());
        let events = [(); 3].map(|()| context.event().unwrap());
        let recording = |event: &cuda_handles::Event| {
            let graph = context.graph().unwrap();
            graph.root().record(event).unwrap();
            graph
        };
        let captured = || {
            for event in &events {
                record_in_capture(event, &other);
            }
        };
        let graph = context.graph().unwrap();
        graph.root().record(&events[2]).unwrap();
        let child = graph.root().child(&recording(&events[0])).unwrap();
        let inner = EventRecordNode::try_from(child.embedded().unwrap().nodes().unwrap().remove(0)).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.node(&child).set_graph(&recording(&events[1])).unwrap();
        captured();
        exec.launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        assert!(!is_captured(&events[1]) && !is_captured(&events[2]));
        assert!(is_captured(&events[0]), "a capture recorded it last");
        let refused = exec.node(&inner).set_event(&events[0]).unwrap_err().to_string();
        assert!(refused.contains("set the child graph node"), "{refused}");
        exec.node(&child).set_graph(&recording(&events[0])).unwrap();
        captured();
        exec.launch(&stream).unwrap();
        stream.synchronize_blocking().unwrap();
        assert!(!is_captured(&events[0]) && !is_captured(&events[2]));
        assert!(is_captured(&events[1]), "a capture recorded it last");
    });
}

#[test]
fn a_replaced_child_graph_waits_for_the_homes_of_its_memory() {
    cuda_tests::as_drawn!("shaping expands child graphs");
    let context = setup();
    no_leaks(|| {
        let (stream, home) = (context.stream().unwrap(), context.stream().unwrap());
        let add = add_to::load(&context).unwrap();
        let x = stream.zeros::<u32>(N).unwrap();
        let graph = context.graph().unwrap();
        let child = graph.root().child(&step(&context, &add, 1, &x)).unwrap();
        let mut exec = graph.instantiate().unwrap();
        exec.launch(&stream).unwrap();
        let gate = cuda_tests::Gate::close(&home);
        let y = home.zeros::<u32>(N).unwrap();
        exec.node(&child).set_graph(&step(&context, &add, 4, &y)).unwrap();
        exec.launch(&stream).unwrap();
        assert!(!stream.query().unwrap(), "its memory is not there yet");
        gate.open();
        assert_eq!(read(&y, &stream), [4, 4]);
    });
}
