//! Planted faults: each is found, by the names of its nodes, and nothing else.

use cuda_graph::{
    ChildGraphNode, ConditionError, ContextExt, Disorder, EdgeKind, Error, ExecError, Finding, Graph,
    IfElseNode, RawCopy, RawMemory, Test,
};
use cuda_handles::{Batch, Copy2d, Copy3d};
use cuda_launch::{TypedKernel, per};
use cuda_sys::CUgraph;
use cuda_tests::{alone, needs, other_device, raw, setup};

use super::{Lab, N, seen};
use crate::common::other;

/// The expected finding: its class and the names of its nodes.
type Expected = Vec<(&'static str, Vec<&'static str>)>;

/// Checks a graph in which something was planted.
#[track_caller]
fn found(graph: &Graph, expected: Expected) {
    let report = graph.check().unwrap();
    let mut expected: Vec<(&str, Vec<String>)> = expected
        .into_iter()
        .map(|(class, names)| {
            let mut names: Vec<String> = names.into_iter().map(str::to_owned).collect();
            names.sort();
            (class, names)
        })
        .collect();
    expected.sort();
    assert_eq!(seen(&report), expected, "{report}");
    assert!(
        !report.is_clean()
            && report.stopped().is_none_or(|_| expected.iter().any(|(class, _)| *class == "cycle"))
    );
}

fn race<const N: usize>(pairs: [[&'static str; 2]; N]) -> Expected {
    pairs.into_iter().map(|pair| ("data race", pair.to_vec())).collect()
}

/// A test for each fault.
macro_rules! planted {
    ($($name:ident: |$lab:ident, $graph:ident| $plant:expr;)*) => {$(
        #[test]
        fn $name() {
            let context = setup();
            cuda_tests::no_leaks(|| {
                let $lab = &Lab::new(&context);
                let $graph = &$lab.graph();
                let expected: Expected = $plant;
                found($graph, expected);
            });
        }
    )*};
}

planted! {
    two_kernels_write: |lab, graph| {
        lab.write(&graph.root(), &lab.a, "one");
        lab.write(&graph.root(), &lab.a, "two");
        race([["one", "two"]])
    };
    a_kernel_reads_what_another_writes: |lab, graph| {
        lab.write(&graph.root(), &lab.a, "write");
        lab.add(&graph.root(), &lab.a, &lab.b, "read");
        race([["read", "write"]])
    };
    a_copy_reads_what_a_kernel_writes: |lab, graph| {
        lab.write(&graph.root(), &lab.a, "write");
        graph.root().copy(&lab.a, &lab.b).unwrap().named("copy");
        race([["copy", "write"]])
    };
    a_kernel_reads_what_a_copy_writes: |lab, graph| {
        graph.root().copy(&lab.b, &lab.a).unwrap().named("copy");
        lab.add(&graph.root(), &lab.a, &lab.c, "read");
        race([["copy", "read"]])
    };
    two_fills: |lab, graph| {
        graph.root().fill(&lab.a, 1.0).unwrap().named("one");
        graph.root().fill(lab.a.slice(60..).unwrap(), 2.0).unwrap().named("two");
        race([["one", "two"]])
    };
    a_fill_of_what_a_copy_reads: |lab, graph| {
        let first = graph.root().empty().unwrap();
        first.then().fill(&lab.a, 1.0).unwrap().named("fill");
        first.then().copy(&lab.a, &lab.b).unwrap().named("copy");
        race([["copy", "fill"]])
    };
    slices_with_one_element_in_common: |lab, graph| {
        lab.write(&graph.root(), lab.a.slice(..33).unwrap(), "low");
        lab.write(&graph.root(), lab.a.slice(32..).unwrap(), "high");
        race([["high", "low"]])
    };
    a_join_that_waits_for_one_of_two: |lab, graph| {
        let left = lab.write(&graph.root(), lab.a.slice(..32).unwrap(), "left");
        lab.write(&graph.root(), lab.a.slice(32..).unwrap(), "right");
        left.then().copy(&lab.a, &lab.b).unwrap().named("join");
        race([["join", "right"]])
    };
    an_edge_that_was_removed: |lab, graph| {
        let first = lab.write(&graph.root(), &lab.a, "first");
        let second = lab.change(&first.then(), &lab.a, "second");
        lab.change(&second.then(), &lab.a, "third");
        graph.remove_edges(&[(&first, &second)]).unwrap();
        race([["first", "second"]])
    };
    columns_with_one_in_common: |lab, graph| {
        let columns = |at: usize, width| Copy2d {
            source: lab.b.slice(at..).unwrap(),
            source_pitch: 8,
            destination: lab.a.slice(at..).unwrap(),
            destination_pitch: 8,
            width,
            height: 8,
        };
        graph.root().copy_2d(columns(0, 5)).unwrap().named("left");
        graph.root().copy_2d(columns(4, 4)).unwrap().named("right");
        race([["left", "right"]])
    };
    a_rectangle_that_meets_a_row: |lab, graph| {
        graph.root().fill_2d(lab.a.slice(2..).unwrap(), 8, [3, 7], 1.0).unwrap().named("rectangle");
        lab.write(&graph.root(), lab.a.slice(28..34).unwrap(), "row");
        race([["rectangle", "row"]])
    };
    boxes_in_each_other: |lab, graph| {
        let of = |at: usize| Copy3d {
            source: lab.c.as_slice(),
            source_pitch: 4,
            source_rows: 4,
            destination: lab.a.slice(at..).unwrap(),
            destination_pitch: 4,
            destination_rows: 4,
            width: 2,
            height: 2,
            depth: 2,
        };
        graph.root().copy_3d(of(0)).unwrap().named("corner");
        graph.root().copy_3d(of(5)).unwrap().named("middle");
        race([["corner", "middle"]])
    };
    pinned_memory_both_ways: |lab, graph| {
        let host = lab.context.pinned_zeros::<f32>(N).unwrap().share();
        graph.root().copy(&host, &lab.a).unwrap().named("up");
        graph.root().copy(&lab.b, &host).unwrap().named("down");
        race([["down", "up"]])
    };
    a_kernel_in_a_child_and_a_fill_outside: |lab, graph| {
        let inner = lab.graph();
        lab.change(&inner.root(), &lab.a, "inner");
        graph.root().child(&inner).unwrap().named("child");
        graph.root().fill(&lab.a, 0.0).unwrap().named("outer");
        race([["inner", "outer"]])
    };
    two_children_of_one_graph: |lab, graph| {
        let inner = lab.graph();
        lab.change(&inner.root(), &lab.a, "inner");
        graph.root().child(&inner).unwrap().named("one");
        graph.root().child(&inner).unwrap().named("two");
        race([["inner", "inner"]])
    };
    nodes_of_a_child: |lab, graph| {
        let inner = lab.graph();
        lab.change(&inner.root(), &lab.a, "one");
        graph.root().child(&inner).unwrap();
        let embedded = ChildGraphNode::try_from(graph.nodes().unwrap()[0].clone()).unwrap().embedded().unwrap();
        lab.change(&embedded.root(), &lab.a, "two");
        race([["one", "two"]])
    };
    a_body_and_a_node_beside_it: |lab, graph| {
        needs!(Conditionals);
        let condition = graph.condition_with_default(1).unwrap();
        let branch = graph.root().if_node(&condition).unwrap().named("branch");
        lab.write(&branch.body().unwrap().root(), &lab.a, "inside");
        graph.root().copy(&lab.a, &lab.b).unwrap().named("outside");
        race([["inside", "outside"]])
    };
    nodes_of_a_loops_body: |lab, graph| {
        needs!(Conditionals);
        let condition = graph.condition_with_default(1).unwrap();
        let rounds = graph.root().while_node(&condition).unwrap();
        let body = rounds.body().unwrap();
        lab.change(&body.root(), &lab.a, "one");
        lab.add(&body.root(), &lab.a, &lab.b, "two");
        body.root().launch(&lab.count_down, per(1, 1), (lab.count.slice(..1).unwrap(), &condition)).unwrap();
        race([["one", "two"]])
    };
    a_loop_whose_condition_only_a_kernel_before_it_gets: |lab, graph| {
        needs!(Conditionals);
        let condition = graph.condition_with_default(1).unwrap();
        let start = graph.root().launch(&lab.set_to, per(1, 1), (1, &condition)).unwrap();
        let rounds = start.then().while_node(&condition).unwrap().named("rounds");
        lab.change(&rounds.body().unwrap().root(), &lab.a, "step");
        let after = rounds.then().launch(&lab.set_to, per(1, 1), (0, &condition)).unwrap();
        after.then().fill(&lab.a, 1.0).unwrap();
        vec![("endless loop", vec!["rounds"])]
    };
    a_loop_in_a_loop_that_sets_the_outer_condition_alone: |lab, graph| {
        needs!(Conditionals);
        let [outer, inner] = [(); 2].map(|()| graph.condition_with_default(1).unwrap());
        let rounds = graph.root().while_node(&outer).unwrap().named("outer");
        let nested = rounds.body().unwrap().root().while_node(&inner).unwrap().named("inner");
        let counter = lab.count.slice(..1).unwrap();
        nested.body().unwrap().root().launch(&lab.count_down, per(1, 1), (counter, &outer)).unwrap();
        vec![("endless loop", vec!["inner"])]
    };
    a_loop_with_an_empty_body_beside_one_that_ends: |lab, graph| {
        needs!(EmptyBodies);
        let [endless, ends] = [(); 2].map(|()| graph.condition().unwrap());
        graph.root().while_node(&endless).unwrap().named("empty");
        let rounds = graph.root().while_node(&ends).unwrap();
        rounds.body().unwrap().root().launch(&lab.set_to, per(1, 1), (0, &ends)).unwrap();
        vec![("endless loop", vec!["empty"])]
    };
    a_loop_that_a_kernel_beside_it_may_end: |lab, graph| {
        needs!(Conditionals);
        let condition = graph.condition_with_default(1).unwrap();
        let rounds = graph.root().while_node(&condition).unwrap().named("rounds");
        lab.change(&rounds.body().unwrap().root(), &lab.a, "step");
        graph.root().launch(&lab.set_to, per(1, 1), (0, &condition)).unwrap().named("beside");
        // It comes too late or too early, and that is what is told.
        vec![("unordered condition", vec!["beside", "rounds"])]
    };
    a_branch_of_a_switch_and_what_comes_after_another_node: |lab, graph| {
        needs!(Branches);
        let condition = graph.condition_with_default(1).unwrap();
        let first = graph.root().empty().unwrap();
        let switch = first.then().switch_node(&condition, 3).unwrap();
        let bodies = switch.bodies().unwrap();
        lab.write(&bodies[0].root(), &lab.a, "zero");
        lab.write(&bodies[2].root(), &lab.a, "two");
        first.then().copy(&lab.a, &lab.b).unwrap().named("copy");
        race([["copy", "zero"], ["copy", "two"]])
    };
    a_node_that_was_given_other_memory: |lab, graph| {
        let one = lab.change(&graph.root(), &lab.a, "one");
        lab.change(&graph.root(), &lab.b, "two");
        assert!(graph.check().unwrap().is_clean());
        one.set(&lab.scale, per(N, 32), (8, 2.0, lab.b.slice(8..16).unwrap())).unwrap();
        race([["one", "two"]])
    };
    a_copy_that_was_given_other_memory: |lab, graph| {
        lab.change(&graph.root(), &lab.a, "one");
        let copy = graph.root().copy(&lab.b, &lab.c).unwrap().named("copy");
        assert!(graph.check().unwrap().is_clean());
        copy.set(lab.b.slice(..4).unwrap(), lab.a.slice(..4).unwrap()).unwrap();
        race([["copy", "one"]])
    };
    a_number_of_a_batch_and_a_kernel: |lab, graph| {
        let numbers = lab.context.alloc_blocking::<f32>(4).unwrap();
        let plain = numbers.clone().cast::<u32>().unwrap();
        let mut batch = Batch::new();
        batch.write(&plain, 2, 7_u32).unwrap();
        graph.root().batch(&batch).unwrap().named("batch");
        lab.write(&graph.root(), &numbers, "kernel");
        race([["batch", "kernel"]])
    };
    the_number_that_a_branch_goes_by: |lab, graph| {
        let number = lab.count.slice(2..4).unwrap();
        graph.root().if_then(Test::nonzero(number), |body| body.root().empty().map(|_| ())).unwrap();
        graph.nodes().unwrap()[0].clone().named("decider");
        graph.root().fill(lab.count.slice(1..3).unwrap(), 9).unwrap().named("beside");
        // It looks at the first number alone.
        graph.root().fill(lab.count.slice(3..).unwrap(), 9).unwrap();
        race([["beside", "decider"]])
    };
    the_rounds_that_a_loop_counts: |lab, graph| {
        let number = lab.count.slice(..1).unwrap();
        let step = |body: &cuda_graph::LoopBody| {
            body.root().fill(number, 0)?;
            let node = graph.root().copy(body.rounds_done(), body.rounds_done());
            assert!(node.is_err(), "a copy to itself");
            Ok::<_, Error>(())
        };
        let rounds = graph.root().while_loop(Test::nonzero(number).limit(3), step).unwrap();
        graph.nodes().unwrap()[0].clone().named("before");
        let out = lab.stream.zeros::<u64>(1).unwrap();
        graph.root().copy(rounds.rounds_done(), &out).unwrap().named("copy");
        let body = rounds.body().unwrap();
        body.nodes().unwrap().into_iter().next_back().unwrap().named("after");
        // The edge that it names would put it behind the one before the loop, too.
        race([["after", "copy"]])
    };
    an_unsafe_kernel_that_is_declared: |lab, graph| {
        let arguments = (N as u32, 2.0, &lab.a);
        let prepared = lab.scale.prepare(&per(N, 32), arguments).unwrap();
        // SAFETY: the graph is never launched, and the arguments are the kernel's.
        unsafe { graph.root().launch_untyped(lab.scale.kernel(), per(N, 32), prepared) }.unwrap().named("one");
        lab.write(&graph.root(), &lab.a, "two");
        race([["one", "two"]])
    };
    slices_of_different_lengths: |lab, graph| {
        let source = lab.graph();
        let add = lab.add(&source.root(), lab.a.slice(..9).unwrap(), lab.b.slice(..20).unwrap(), "add");
        lab.write(&source.root(), lab.a.slice(9..).unwrap(), "not that far");
        lab.write(&source.root(), lab.b.slice(19..).unwrap(), "one too far");
        found(&source, race([["add", "one too far"]]));
        found(&source.clone_graph().unwrap(), race([["add", "one too far"]]));
        add.set(&lab.saxpy, per(N, 32), (9, 2.0, lab.a.slice(..10).unwrap(), lab.b.slice(..19).unwrap())).unwrap();
        found(&source, race([["add", "not that far"]]));
        add.set(&lab.saxpy, per(N, 32), (9, 2.0, lab.a.slice(..9).unwrap(), lab.b.slice(..9).unwrap())).unwrap();
        assert!(source.check().unwrap().is_clean());
        add.set(&lab.saxpy, per(N, 32), (9, 2.0, lab.a.slice(..9).unwrap(), lab.b.slice(10..20).unwrap())).unwrap();
        graph.root().child(&source).unwrap();
        race([["add", "one too far"]])
    };
    memory_by_its_address: |lab, graph| {
        let at = |buffer: &cuda_handles::Buffer<f32>, element: u64| {
            RawMemory::at(buffer.address() + 4 * element).keep(cuda_handles::Owner::from(buffer.allocation()))
        };
        // SAFETY: both lie in their buffers, which are kept.
        unsafe { graph.root().copy_raw(RawCopy::new(at(&lab.b, 0), at(&lab.a, 10), 9)) }.unwrap().named("raw");
        lab.write(&graph.root(), lab.a.slice(12..).unwrap(), "write");
        race([["raw", "write"]])
    };
    nodes_that_may_start_in_the_order_of_launches: |lab, graph| {
        needs!(EdgeKinds);
        let one = lab.write(&graph.root(), &lab.a, "one");
        lab.change(&one.then_with(EdgeKind::LaunchOrder), &lab.a, "two");
        race([["one", "two"]])
    };
    a_node_beside_a_line: |lab, graph| {
        let first = lab.change(&graph.root(), &lab.a, "first");
        lab.change(&first.then(), &lab.a, "second");
        lab.write(&graph.root(), &lab.a, "beside");
        // The edge that it names would put it behind the first one, too.
        race([["beside", "second"]])
    };
    a_condition_without_a_node: |lab, graph| {
        needs!(Conditionals);
        let condition = graph.condition_with_default(2).unwrap();
        graph.root().launch(&lab.set_to, per(1, 1), (1, &condition)).unwrap().named("set");
        let error = graph.instantiate().unwrap_err();
        assert!(matches!(error, Error::Condition(ConditionError::UnusedCondition { .. })), "{error}");
        vec![("unused condition", vec!["set"])]
    };
    a_kernel_that_sets_a_condition_too_late: |lab, graph| {
        needs!(Conditionals);
        let condition = graph.condition_with_default(0).unwrap();
        graph.root().launch(&lab.set_to, per(1, 1), (1, &condition)).unwrap().named("set");
        let first = graph.root().empty().unwrap();
        let branch = first.then().if_node(&condition).unwrap().named("branch");
        branch.body().unwrap().root().launch(&lab.set_to, per(1, 1), (1, &condition)).unwrap();
        branch.then().launch(&lab.set_to, per(1, 1), (1, &condition)).unwrap();
        vec![("unordered condition", vec!["branch", "set"])]
    };
    a_cycle_of_other_code: |_lab, graph| {
        let one = graph.root().empty().unwrap().named("one");
        let two = one.then().empty().unwrap().named("two");
        two.then().empty().unwrap().named("three");
        let raw = graph.lend().unwrap();
        let nodes = raw::nodes(raw);
        other::connect(raw, nodes[1], nodes[0]);
        let error = graph.instantiate().unwrap_err();
        assert!(matches!(&error, Error::Exec(ExecError::Unsound { findings }) if findings.len() == 1), "{error}");
        assert!(error.to_string().contains("`one` -> `two` -> `one`") || error.to_string().contains("`two` -> `one` -> `two`"), "{error}");
        vec![("cycle", vec!["one", "two"])]
    };
    a_cycle_in_a_child: |_lab, graph| {
        let inner = graph.context().graph().unwrap();
        let one = inner.root().empty().unwrap().named("one");
        one.then().empty().unwrap().named("two");
        let embedded = graph.root().child(&inner).unwrap().named("child").embedded().unwrap();
        let raw = embedded.lend().unwrap();
        let nodes = raw::nodes(raw);
        other::connect(raw, nodes[1], nodes[0]);
        assert!(matches!(graph.instantiate(), Err(Error::Exec(ExecError::Unsound { .. }))));
        vec![("cycle", vec!["one", "two"])]
    };
    foreign_nodes: |lab, graph| {
        let source = lab.graph();
        source.root().fill(&lab.a, 1.0).unwrap();
        source.root().copy(&lab.a, &lab.b).unwrap();
        let foreign = other::clone(source.lend().unwrap());
        // SAFETY: it is of this context, the buffers outlive it, and it has no other owner.
        let adopted = unsafe { Graph::from_raw_owned(&lab.context, foreign) }.unwrap();
        let nodes = adopted.nodes().unwrap();
        nodes[0].clone().named("fill");
        nodes[1].clone().named("copy");
        found(&adopted, race([["copy", "fill"]]));
        graph.root().fill(&lab.a, 1.0).unwrap().named("x");
        graph.root().fill(&lab.a, 1.0).unwrap().named("y");
        race([["x", "y"]])
    };
    memory_used_before_it_is_allocated: |lab, graph| {
        let (alloc, memory) = graph.root().alloc::<f32>(N).unwrap();
        alloc.named("scratch");
        lab.own(&graph.root(), memory.as_slice(), "early");
        vec![("memory order", vec!["scratch", "early"])]
    };
    memory_used_after_it_is_freed: |lab, graph| {
        let (alloc, memory) = graph.root().alloc::<f32>(N).unwrap();
        let write = lab.own(&alloc.then(), memory.as_slice(), "write");
        let free = write.then().free(&memory).unwrap().named("free");
        alloc.named("scratch");
        let late = lab.own(&free.then(), memory.as_slice(), "late");
        let report = graph.check().unwrap();
        let edges: Vec<_> = report.findings().iter().map(|finding| match finding {
            Finding::MemoryOrder { what, edge, .. } => (*what, edge.is_some()),
            other => panic!("{other}"),
        }).collect();
        // An edge would close a cycle.
        assert_eq!(edges, [(Disorder::UseAfterFree, false)], "{report}");
        assert!(report.to_string().contains("; have `late` come before `free`, which may come first now"), "{report}");
        assert!(late.predecessors().unwrap() == [(*free).clone()]);
        vec![("memory order", vec!["scratch", "late", "free"])]
    };
    memory_used_beside_its_free: |lab, graph| {
        let (alloc, memory) = graph.root().alloc::<f32>(N).unwrap();
        lab.own(&alloc.then(), memory.as_slice(), "write");
        alloc.then().free(&memory).unwrap().named("free");
        alloc.named("scratch");
        vec![("memory order", vec!["scratch", "write", "free"])]
    };
    memory_freed_before_it_is_allocated: |_lab, graph| {
        let (alloc, memory) = graph.root().alloc::<f32>(N).unwrap();
        alloc.named("scratch");
        graph.root().free(&memory).unwrap().named("free");
        vec![("memory order", vec!["scratch", "free"])]
    };
    memory_used_in_a_child_and_in_a_body: |lab, graph| {
        needs!(Conditionals);
        let (alloc, memory) = graph.root().alloc::<f32>(N).unwrap();
        let alloc = alloc.named("scratch");
        let child = graph.root().child(&lab.graph()).unwrap().named("child");
        let inner = child.embedded().unwrap();
        lab.own(&inner.root(), memory.as_slice(), "inner");
        let condition = graph.condition_with_default(1).unwrap();
        let branch = graph.after([&*alloc, &*child]).unwrap().if_node(&condition).unwrap().named("branch");
        lab.own(&branch.body().unwrap().root(), memory.as_slice(), "inside");
        alloc.then().free(&memory).unwrap().named("free");
        // By itself it is in order.
        assert!(inner.check().unwrap().findings().is_empty() && branch.body().unwrap().check().unwrap().is_clean());
        let report = graph.check().unwrap();
        let edges: Vec<_> = report.findings().iter().filter_map(|finding| match finding {
            Finding::MemoryOrder { edge: Some(edge), .. } => Some([edge.0.name().to_owned(), edge.1.name().to_owned()]),
            _ => None,
        }).collect();
        assert_eq!(edges, [["scratch", "child"], ["child", "free"], ["branch", "free"]], "{report}");
        vec![
            ("memory order", vec!["scratch", "inner"]),
            ("memory order", vec!["scratch", "inner", "free"]),
            ("memory order", vec!["scratch", "inside", "free"]),
        ]
    };
    a_race_in_memory_of_the_graph: |lab, graph| {
        let (alloc, memory) = graph.root().alloc::<f32>(N).unwrap();
        lab.own(&alloc.then(), memory.as_slice(), "one");
        lab.own(&alloc.then(), memory.slice(9..).unwrap(), "two");
        graph.free(&memory).unwrap();
        race([["one", "two"]])
    };
    a_clone: |lab, graph| {
        lab.write(&graph.root(), lab.a.slice(3..9).unwrap(), "one");
        lab.write(&graph.root(), lab.a.slice(8..).unwrap(), "two");
        lab.write(&graph.root(), lab.a.slice(..3).unwrap(), "three");
        found(&graph.clone_graph().unwrap(), race([["one", "two"]]));
        race([["one", "two"]])
    };
}

#[test]
fn a_copy_of_other_code_whose_steps_are_as_short_as_can_be() {
    let context = setup();
    cuda_tests::no_leaks(|| {
        let lab = Lab::new(&context);
        let elsewhere = lab.graph();
        let copy = elsewhere.root().copy(&lab.b, &lab.a).unwrap();
        let params = cuda_sys::CUDA_MEMCPY3D_v2 {
            srcPitch: 0,
            srcHeight: 0,
            dstPitch: 0,
            dstHeight: 0,
            WidthInBytes: 8,
            Height: 2,
            Depth: 3,
            ..raw::memcpy(copy.as_raw().unwrap())
        };
        let foreign = other::graph();
        add_copy(&lab, foreign, params);
        // SAFETY: the buffers outlive the graph, which has no other owner.
        let graph = unsafe { Graph::from_raw_owned(&lab.context, foreign) }.unwrap();
        graph.nodes().unwrap()[0].clone().named("copy");
        lab.write(&graph.root(), lab.a.slice(11..12).unwrap(), "last");
        lab.write(&graph.root(), lab.a.slice(12..).unwrap(), "behind");
        found(&graph, race([["copy", "last"]]));
    });
}

/// Other code adds a copy node.
fn add_copy(lab: &Lab, graph: CUgraph, params: cuda_sys::CUDA_MEMCPY3D_v2) {
    let (mut node, context) = (core::ptr::null_mut(), lab.context.as_raw());
    // SAFETY: graph and context live, and the pointers are valid.
    raw::ok(unsafe {
        raw::driver().cuGraphAddMemcpyNode(
            &raw mut node,
            graph,
            core::ptr::null(),
            0,
            &raw const params,
            context,
        )
    });
}

/// A graph of other code with a node that has two bodies, of which the second is filled, and the
/// bodies. Drivers tell of these from CUDA 13.2 on.
fn with_body(lab: &Lab, fill: impl FnOnce(CUgraph)) -> (Graph, [Graph; 2]) {
    let foreign = other::graph();
    let condition = other::condition(&lab.context, foreign, 1);
    let class = cuda_sys::CUgraphConditionalNodeType::CU_GRAPH_COND_TYPE_IF;
    let (_, bodies) = other::conditional(&lab.context, foreign, condition, class, 2);
    fill(bodies[1]);
    // SAFETY: what the nodes use outlives the graph, which has no other owner.
    let graph = unsafe { Graph::from_raw_owned(&lab.context, foreign) }.unwrap();
    let branch = graph.nodes().unwrap().remove(0).named("branch");
    let bodies = IfElseNode::try_from(branch).unwrap().all_bodies().unwrap();
    (graph, bodies.try_into().unwrap())
}

#[test]
fn a_host_function_in_a_body() {
    alone!("CUDA_SOFT_VERSION" = "13.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    let lab = Lab::new(&context);
    let (graph, [_, body]) = with_body(&lab, |body| {
        other::host(body);
    });
    lab.write(&body.root(), &lab.a, "fits");
    assert_eq!(body.nodes().unwrap().remove(0).named("call").name(), "call");
    found(&graph, vec![("not in a body", vec!["branch", "call"])]);
    graph.lend().unwrap();
    let error = graph.instantiate().unwrap_err();
    assert!(error.to_string().contains("`call` (in else of `branch`)"), "{error}");
}

#[test]
fn a_copy_of_pageable_memory_in_a_body() {
    alone!("CUDA_SOFT_VERSION" = "13.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    let lab = Lab::new(&context);
    let (numbers, elsewhere) = (vec![0.0_f32; N], lab.graph());
    let source = RawMemory::at_host(numbers.as_ptr()).pageable();
    let copy = RawCopy::new(source, RawMemory::at(lab.a.address()), 4 * N);
    // SAFETY: the graph is never launched.
    let copy = unsafe { elsewhere.root().copy_raw(copy) }.unwrap();
    let params = raw::memcpy(copy.as_raw().unwrap());
    let (graph, [_, body]) = with_body(&lab, |body| add_copy(&lab, body, params));
    body.nodes().unwrap().remove(0).named("copy");
    found(&graph, vec![("not in a body", vec!["branch", "copy"])]);
}

#[test]
fn an_event_in_a_child_in_a_body() {
    alone!("CUDA_SOFT_VERSION" = "13.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    let lab = Lab::new(&context);
    let event = context.event().unwrap();
    let (graph, [_, body]) = with_body(&lab, |body| {
        let inner = other::graph();
        other::record(inner, &event);
        other::child(body, inner);
        other::destroy(inner);
    });
    let inner = body.children().unwrap().remove(0).named("child").embedded().unwrap();
    inner.nodes().unwrap().remove(0).named("record");
    found(&graph, vec![("not in a body", vec!["branch", "record"])]);
}

#[test]
fn kernels_of_another_context_in_a_body() {
    alone!("CUDA_SOFT_DEVICES" = "2", "CUDA_SOFT_VERSION" = "13.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    let device = other_device();
    let lab = Lab::new(&context);
    let far = Lab::new(&device.context().unwrap());
    let elsewhere = far.graph();
    let there = far.write(&elsewhere.root(), &far.a, "there");
    let params = raw::kernel(there.as_raw().unwrap());
    let (graph, [_, body]) = with_body(&lab, |body| {
        other::kernel(body, &[], params);
    });
    lab.write(&body.root(), &lab.a, "here");
    body.nodes().unwrap().remove(0).named("far");
    found(&graph, vec![("mixed contexts", vec!["branch", "far"])]);
    graph.lend().unwrap();
    let error = graph.instantiate().unwrap_err();
    assert!(matches!(&error, Error::Exec(ExecError::Unsound { .. })), "{error}");
}
