//! Correct graphs: nothing is found.

use cuda_graph::{EdgeKind, Error, Graph, Test};
use cuda_handles::{Batch, Compare, Copy2d, Copy3d};
use cuda_launch::{per, read_only};
use cuda_tests::{needs, raw, setup};

use super::{Lab, N};
use crate::common::other;

/// A test for each graph.
macro_rules! sound {
    ($($name:ident: |$lab:ident, $graph:ident| $draw:expr;)*) => {$(
        #[test]
        fn $name() {
            let context = setup();
            cuda_tests::no_leaks(|| {
                let $lab = &Lab::new(&context);
                let $graph = &$lab.graph();
                $draw
                silent($graph);
            });
        }
    )*};
}

#[track_caller]
fn silent(graph: &Graph) {
    let report = graph.check().unwrap();
    assert!(report.is_clean() && report.findings().is_empty() && report.stopped().is_none(), "{report}");
    graph.instantiate().unwrap();
}

/// The same for a graph that has no executable of its own.
#[track_caller]
fn silent_inside(graph: &Graph) {
    let report = graph.check().unwrap();
    assert!(report.findings().is_empty(), "{report}");
}

sound! {
    an_empty_node: |_lab, graph| {
        graph.root().empty().unwrap();
    };
    a_line: |lab, graph| {
        let mut last = lab.write(&graph.root(), &lab.a, "first");
        for _ in 0..100 {
            last = lab.change(&last.then(), &lab.a, "next");
        }
    };
    halves: |lab, graph| {
        lab.write(&graph.root(), lab.a.slice(..32).unwrap(), "low");
        lab.write(&graph.root(), lab.a.slice(32..).unwrap(), "high");
    };
    quarters_and_their_neighbours: |lab, graph| {
        for quarter in 0..4 {
            let range = 16 * quarter..16 * quarter + 16;
            let write = lab.write(&graph.root(), lab.a.slice(range.clone()).unwrap(), "write");
            lab.add(&write.then(), lab.a.slice(range.clone()).unwrap(), lab.b.slice(range).unwrap(), "add");
        }
    };
    readers_beside_each_other: |lab, graph| {
        let write = lab.write(&graph.root(), &lab.a, "write");
        lab.add(&write.then(), &lab.a, &lab.b, "read");
        lab.add(&write.then(), &lab.a, &lab.c, "read");
        graph.root().copy(lab.count.slice(..2).unwrap(), lab.count.slice(2..4).unwrap()).unwrap();
        graph.root().copy(lab.count.slice(..2).unwrap(), lab.count.slice(4..6).unwrap()).unwrap();
    };
    a_diamond: |lab, graph| {
        let top = lab.write(&graph.root(), &lab.a, "top");
        let left = lab.add(&top.then(), &lab.a, &lab.b, "left");
        let right = lab.add(&top.then(), &lab.a, &lab.c, "right");
        let join = graph.after([&left, &right]).unwrap();
        let last = lab.add(&join, &lab.b, &lab.c, "last");
        lab.write(&last.then(), &lab.a, "again");
    };
    a_path_over_empty_nodes: |lab, graph| {
        let write = lab.write(&graph.root(), &lab.a, "write");
        let other = lab.write(&graph.root(), &lab.b, "other");
        let join = graph.after([&write, &other]).unwrap().empty().unwrap();
        let out = join.then().empty().unwrap().then().empty().unwrap();
        lab.add(&out.then(), &lab.a, &lab.b, "add");
    };
    a_kernel_after_those_of_both_its_arguments: |lab, graph| {
        let one = lab.write(&graph.root(), &lab.a, "one");
        let two = lab.write(&graph.root(), &lab.b, "two");
        let both = graph.after([&one, &two]).unwrap();
        both.launch(&lab.saxpy, per(N, 32), (N as u32, 1.0, read_only(&lab.a), &lab.b)).unwrap();
    };
    columns: |lab, graph| {
        for at in 0..4_usize {
            graph.root().fill_2d(lab.a.slice(2 * at..).unwrap(), 8, [2, 8], 1.0).unwrap();
        }
    };
    columns_and_what_lies_between: |lab, graph| {
        graph.root().fill_2d(lab.a.slice(..).unwrap(), 8, [7, 8], 1.0).unwrap();
        for row in 0..8_usize {
            lab.write(&graph.root(), lab.a.slice(8 * row + 7..8 * row + 8).unwrap(), "last of a row");
        }
    };
    what_starts_with_a_kernel_comes_after_all_before_it: |lab, graph| {
        needs!(EdgeKinds);
        let mut last = (*graph.root().empty().unwrap()).clone();
        for kind in [EdgeKind::LaunchOrder, EdgeKind::Programmatic] {
            let copy = last.then().copy(&lab.a, &lab.b).unwrap();
            let one = lab.change(&copy.then(), &lab.c, "one");
            let two = lab.write(&one.then_with(kind), &lab.a, "two");
            // The second may end before the first does.
            last = (*graph.after([&*one, &*two]).unwrap().fill(&lab.c, 0.0).unwrap()).clone();
        }
    };
    columns_of_a_very_long_matrix: |lab, graph| {
        let rows = 100_000_usize;
        let matrix = lab.stream.zeros::<u8>(4 * rows).unwrap();
        for at in 0..2_usize {
            graph.root().fill_2d(matrix.slice(2 * at..).unwrap(), 4, [2, rows], 1).unwrap();
        }
    };
    rows_in_turns: |lab, graph| {
        let rows = |at: usize| Copy2d {
            source: lab.b.as_slice(),
            source_pitch: 8,
            destination: lab.a.slice(at..).unwrap(),
            destination_pitch: 16,
            width: 8,
            height: 4,
        };
        graph.root().copy_2d(rows(0)).unwrap();
        graph.root().copy_2d(rows(8)).unwrap();
    };
    boxes_in_turns: |lab, graph| {
        let of = |at: usize| Copy3d {
            source: lab.c.as_slice(),
            source_pitch: 4,
            source_rows: 4,
            destination: lab.a.slice(at..).unwrap(),
            destination_pitch: 4,
            destination_rows: 4,
            width: 2,
            height: 2,
            depth: 4,
        };
        for at in [0, 2, 8, 10] {
            graph.root().copy_3d(of(at)).unwrap();
        }
    };
    two_buffers_of_the_host: |lab, graph| {
        let hosts = [0; 2].map(|_| lab.context.pinned_zeros::<f32>(N).unwrap().share());
        let up = graph.root().copy(&hosts[0], &lab.a).unwrap();
        let change = lab.change(&up.then(), &lab.a, "change");
        change.then().copy(&lab.a, &hosts[1]).unwrap();
        let down = change.then().copy(&lab.a, &hosts[0]).unwrap();
        down.then().fill(&lab.a, 0.0).unwrap().remove().unwrap();
    };
    a_child_between: |lab, graph| {
        let inner = lab.graph();
        let first = lab.change(&inner.root(), &lab.a, "inner");
        lab.change(&first.then(), &lab.a, "inner");
        let before = lab.write(&graph.root(), &lab.a, "before");
        let child = before.then().child(&inner).unwrap();
        let again = child.then().child(&inner).unwrap();
        again.then().copy(&lab.a, &lab.b).unwrap();
    };
    a_child_of_one_half: |lab, graph| {
        let inner = lab.graph();
        lab.change(&inner.root(), lab.a.slice(..32).unwrap(), "inner");
        graph.root().child(&inner).unwrap();
        lab.change(&graph.root(), lab.a.slice(32..).unwrap(), "outer");
    };
    bodies_of_which_one_runs: |lab, graph| {
        needs!(Branches);
        let condition = graph.condition_with_default(1).unwrap();
        let branch = graph.root().if_else_node(&condition).unwrap();
        lab.write(&branch.then_body().unwrap().root(), &lab.a, "then");
        lab.add(&branch.else_body().unwrap().root(), &lab.b, &lab.a, "else");
        branch.then().copy(&lab.a, &lab.c).unwrap();
    };
    branches_of_a_switch: |lab, graph| {
        needs!(Branches);
        let condition = graph.condition().unwrap();
        let switch = graph.root().switch_node(&condition, 5).unwrap();
        for body in switch.bodies().unwrap() {
            let first = lab.write(&body.root(), &lab.a, "first");
            lab.add(&first.then(), &lab.a, &lab.b, "second");
        }
    };
    loops_in_a_loop: |lab, graph| {
        needs!(Conditionals);
        let outer = graph.condition_with_default(1).unwrap();
        let inner = graph.condition_with_default(1).unwrap();
        let rounds = graph.root().while_node(&outer).unwrap();
        let body = rounds.body().unwrap();
        let fill = body.root().fill(&lab.count, 3).unwrap();
        let counter = lab.count.slice(1..2).unwrap();
        let nested = fill.then().while_node(&inner).unwrap();
        nested.body().unwrap().root().launch(&lab.count_down, per(1, 1), (counter, &inner)).unwrap();
        let counter = lab.count.slice(..1).unwrap();
        nested.then().launch(&lab.count_down, per(1, 1), (counter, &outer)).unwrap();
    };
    a_loop_that_a_kernel_in_a_branch_in_its_body_ends: |lab, graph| {
        needs!(Conditionals);
        let [going, last] = [(); 2].map(|()| graph.condition_with_default(1).unwrap());
        let body = graph.root().while_node(&going).unwrap().body().unwrap();
        let branch = body.root().if_node(&last).unwrap();
        branch.body().unwrap().root().launch(&lab.set_to, per(1, 1), (0, &going)).unwrap();
    };
    a_loop_that_an_unknown_kernel_may_end: |lab, graph| {
        needs!(Conditionals);
        let going = graph.condition_with_default(1).unwrap();
        let body = graph.root().while_node(&going).unwrap().body().unwrap();
        let inner = lab.graph();
        lab.untyped(&inner.root(), &lab.a, &lab.b, "unknown");
        body.root().child(&inner).unwrap();
    };
    a_loop_by_a_number: |lab, graph| {
        needs!(Conditionals);
        let number = lab.count.slice(..2).unwrap();
        let start = graph.root().fill(number, 3).unwrap();
        let rounds = start.then().while_loop(Test::nonzero(number).limit(9), |body| {
            body.root().fill(number, 0).map(|_| ())
        });
        rounds.unwrap().then().copy(number, lab.count.slice(2..4).unwrap()).unwrap();
        // The library's kernels look at the first number alone.
        graph.root().fill(lab.count.slice(4..).unwrap(), 1).unwrap();
    };
    a_loop_whose_rounds_are_read_afterwards: |lab, graph| {
        needs!(Branches);
        let number = lab.count.slice(..1).unwrap();
        let end = |body: &cuda_graph::LoopBody| body.root().fill(number, 0).map(|_| ());
        let rounds = graph.root().do_while_loop(Test::nonzero(number), end).unwrap();
        let out = lab.stream.zeros::<u64>(1).unwrap();
        rounds.then().copy(rounds.rounds_done(), &out).unwrap();
        let branch = graph.root().if_then_else(Test::greater(lab.count.slice(7..).unwrap(), 3),
            |body| body.root().fill(&lab.c, 1.0).map(|_| ()), |body| body.root().fill(&lab.c, 2.0).map(|_| ()));
        branch.unwrap();
    };
    events_before_and_after: |lab, graph| {
        let event = lab.context.event().unwrap();
        lab.stream.record(&event).unwrap();
        let wait = graph.root().wait(&event).unwrap();
        let write = lab.write(&wait.then(), &lab.a, "write");
        write.then().record(&event).unwrap();
    };
    batches_that_wait_for_each_other: |lab, graph| {
        let number = lab.context.alloc_blocking::<u32>(4).unwrap();
        let (mut set, mut wait) = (Batch::new(), Batch::new());
        set.write(&number, 0, 1_u32).unwrap();
        wait.wait(&number, 0, Compare::AtLeast, 1_u32).unwrap();
        graph.root().batch(&set).unwrap();
        graph.root().batch(&wait).unwrap();
        graph.root().fill(number.slice(1..).unwrap(), 3).unwrap();
    };
    functions_of_the_host_are_listed: |lab, graph| {
        graph.root().host(|| ()).unwrap().named("call");
        lab.write(&graph.root(), &lab.a, "write");
        let report = graph.check().unwrap();
        let names: Vec<&str> = report.opaque().iter().map(|opaque| opaque.node.name()).collect();
        assert_eq!(names, ["call"]);
    };
    untyped_kernels_are_listed: |lab, graph| {
        lab.untyped(&graph.root(), &lab.a, &lab.b, "one");
        lab.untyped(&graph.root(), &lab.a, &lab.b, "two");
        lab.write(&graph.root(), &lab.a, "three");
        let report = graph.check().unwrap();
        let names: Vec<&str> = report.opaque().iter().map(|opaque| opaque.node.name()).collect();
        assert_eq!(names, ["one", "two"]);
    };
    an_edge_mends: |lab, graph| {
        let one = lab.write(&graph.root(), &lab.a, "one");
        let two = lab.change(&graph.root(), &lab.a, "two");
        assert!(!graph.check().unwrap().is_clean());
        graph.add_edge(&one, &two).unwrap();
    };
    the_edge_that_a_finding_names_mends: |lab, graph| {
        for _ in 0..5 {
            lab.change(&graph.root(), &lab.a, "one of many");
        }
        for _ in 0..20 {
            let report = graph.check().unwrap();
            let Some(cuda_graph::Finding::Race(race)) = report.findings().first() else { break };
            graph.add_edge(race.edge.0.node(), race.edge.1.node()).unwrap();
        }
    };
    other_memory_mends: |lab, graph| {
        let one = lab.write(&graph.root(), &lab.a, "one");
        let copy = graph.root().copy(&lab.b, &lab.a).unwrap();
        assert!(!graph.check().unwrap().is_clean());
        one.set(&lab.fill, per(N, 32), (N as u32, 1.0, &lab.c)).unwrap();
        assert!(graph.check().unwrap().is_clean());
        copy.set(&lab.c, &lab.b).unwrap();
        assert!(!graph.check().unwrap().is_clean());
        // SAFETY: these are the kernel's arguments, within their bounds.
        unsafe {
            use cuda_launch::TypedKernel;
            one.set_untyped(lab.fill.kernel(), per(N, 32), cuda_launch::params![8_u32, 1.0_f32, &lab.c])
        }
        .unwrap();
    };
    a_removed_node_does_nothing: |lab, graph| {
        let one = lab.write(&graph.root(), &lab.a, "one");
        lab.write(&graph.root(), &lab.a, "two");
        one.remove().unwrap();
    };
    a_node_put_into_an_edge: |lab, graph| {
        let one = lab.write(&graph.root(), &lab.a, "one");
        let two = lab.change(&one.then(), &lab.a, "two");
        lab.change(&graph.between(&one, &two).unwrap(), &lab.a, "between");
        lab.write(&graph.root().before([&*one]).unwrap(), &lab.a, "before");
    };
    slices_of_nothing: |lab, graph| {
        let none = lab.a.slice(9..9).unwrap();
        graph.root().launch(&lab.fill, per(N, 32), (0, 1.0, none)).unwrap();
        graph.root().launch(&lab.scale, per(N, 32), (0, 1.0, lab.a.slice(..0).unwrap())).unwrap();
        lab.write(&graph.root(), &lab.a, "write");
    };
    a_clone_and_an_embedded_one: |lab, graph| {
        let source = lab.graph();
        let first = lab.write(&source.root(), lab.a.slice(..9).unwrap(), "first");
        lab.change(&first.then(), lab.a.slice(3..).unwrap(), "second");
        lab.write(&source.root(), lab.a.slice(9..12).unwrap(), "beside").remove().unwrap();
        silent(&source.clone_graph().unwrap());
        graph.root().child(&source.clone_graph().unwrap()).unwrap();
        if raw::driver().version() >= cuda_sys::Version::new(12, 9) {
            let first = graph.nodes().unwrap()[0].clone();
            first.then().child_moved(source).unwrap();
        }
    };
    nodes_of_other_code_in_order: |lab, graph| {
        let source = lab.graph();
        let fill = source.root().fill(&lab.a, 1.0).unwrap();
        let copy = fill.then().copy(&lab.a, &lab.b).unwrap();
        lab.change(&copy.then(), &lab.b, "change");
        // SAFETY: it is of this context, the buffers and kernels outlive it, and it has no other
        // owner.
        let adopted =
            unsafe { Graph::from_raw_owned(&lab.context, other::clone(source.lend().unwrap())) }.unwrap();
        silent(&adopted);
        silent(&source);
        assert_eq!((adopted.check().unwrap().opaque().len(), source.check().unwrap().opaque().len()), (1, 0));
        graph.root().empty().unwrap();
    };
    memory_of_the_graph: |lab, graph| {
        let (alloc, memory) = graph.root().alloc::<f32>(N).unwrap();
        let write = lab.own(&alloc.then(), memory.as_slice(), "write");
        let last = lab.own(&write.then(), memory.as_slice(), "again");
        let free = last.then().free(&memory).unwrap();
        // It has the same address.
        let (again, other) = free.then().alloc::<f32>(N).unwrap();
        assert_eq!(memory.address(), other.address());
        let child = again.then().child(&lab.graph()).unwrap();
        lab.own(&child.embedded().unwrap().root(), other.as_slice(), "inner");
        graph.free(&other).unwrap();
    };
    memory_of_a_graph_that_is_moved: |lab, graph| {
        needs!(MovedGraphs);
        let source = lab.graph();
        let (alloc, memory) = source.root().alloc::<f32>(N).unwrap();
        lab.own(&alloc.then(), memory.as_slice(), "write");
        let child = graph.root().child_moved(source).unwrap();
        child.then().copy(&memory, &lab.a).unwrap();
        graph.free(&memory).unwrap();
        silent_inside(&child.embedded().unwrap());
    };
    peers_are_not_needed_for_this: |lab, graph| {
        let managed = lab.context.managed_zeros::<f32>(N).unwrap().share();
        let write = lab.write(&graph.root(), managed.slice(..32).unwrap(), "managed");
        write.then().copy(managed.slice(..32).unwrap(), managed.slice(32..).unwrap()).unwrap();
        graph.root().fill(&lab.a, 0.0).unwrap();
    };
}

/// The owner given at the adoption no longer matters once other code has changed the graph.
#[test]
fn arguments_of_other_code_are_found_out() {
    let context = setup();
    cuda_tests::no_leaks(|| {
        let lab = Lab::new(&context);
        let graph = lab.graph();
        let one = lab.write(&graph.root(), &lab.a, "one");
        let two = lab.write(&graph.root(), &lab.b, "two");
        let [raw_one, raw_two] = [&one, &two].map(|node| node.as_raw().unwrap());
        let params = raw::kernel(raw_one);
        let params = cuda_sys::CUDA_KERNEL_NODE_PARAMS_v2 { func: core::ptr::null_mut(), ..params };
        // SAFETY: both are live kernel nodes with the same kernel, and the parameters are those of
        // one.
        raw::ok(unsafe { raw::driver().cuGraphKernelNodeSetParams(raw_two, &raw const params) });
        let report = graph.check().unwrap();
        let names: Vec<&str> = report.opaque().iter().map(|opaque| opaque.node.name()).collect();
        assert!(names == ["two"] && report.is_clean(), "{report}");
        let failed = one.remove().and_then(|()| two.remove());
        assert_eq!(failed, Ok::<(), Error>(()));
    });
}
