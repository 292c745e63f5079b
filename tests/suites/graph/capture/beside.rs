//! Captures beside other changes: threads that end them, graphs that move, processes that fork.

use std::sync::atomic::{AtomicBool, Ordering};

use cuda_graph::capture::{Capturing, Fork, GraphBuilder};
use cuda_graph::{CaptureError, ContextExt, Error, NodeError, StreamExt, Test};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Error as HandleError, Owner};
use cuda_launch::per;
use cuda_tests::{alone, count, in_forked_child, is_soft, needs, no_leaks, setup};

use super::{Bench, N, invalidate, works_again};
use crate::common::chains::moves;

const LOCAL: CaptureMode = CaptureMode::ThreadLocal;

/// Set by the host function, which never runs.
static RAN: AtomicBool = AtomicBool::new(false);

/// A call of a fork.
type ForkCall = fn(&Bench, &GraphBuilder<Fork, Capturing>) -> Result<(), Error>;

/// Calls that each change something if they run: the numbers, or the count of host functions.
const FORK_CALLS: [(&str, ForkCall); 9] = [
    ("launch", |bench, fork| bench.add(fork, 1)),
    ("fill", |bench, fork| fork.fill(&bench.numbers, 9)),
    ("copy", |bench, fork| fork.copy(&bench.others, &bench.numbers)),
    ("write", |bench, fork| fork.write(&bench.numbers, &[9; N])),
    ("zeros", |_, fork| fork.zeros::<u32>(N).map(drop)),
    ("callback", |_, fork| fork.callback(|| RAN.store(true, Ordering::Relaxed))),
    ("keep", |_, fork| fork.keep(Owner::other(1))),
    ("copy_of", |_, fork| fork.copy_of(&[1_u32; N]).map(drop)),
    ("split", |_, fork| fork.split::<1>().map(drop)),
];

#[test]
fn calls_of_a_fork_are_captured_or_refused_while_another_thread_ends_the_capture() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        bench.stream.fill(&bench.others, 1).unwrap();
        let rounds = if is_soft() { 60 } else { 200 };
        for (name, call) in FORK_CALLS {
            for round in 0..rounds {
                ends_beside(&bench, call, round * 20).unwrap_or_else(|wrong| panic!("{name}: {wrong}"));
            }
            bench.stream.synchronize_blocking().unwrap();
            context.synchronize_blocking().unwrap();
            let numbers = bench.numbers.read_blocking(&bench.stream).unwrap();
            assert_eq!(numbers, [0; N], "{name}: nothing of a capture runs");
            assert!(!RAN.load(Ordering::Relaxed), "{name}: nothing of a capture runs");
        }
        bench.works_again();
    });
}

/// Ends a capture while another thread makes the call on a fork, again and again.
fn ends_beside(bench: &Bench, call: ForkCall, spins: u32) -> Result<(), String> {
    let capture = bench.stream.graph_builder().begin_on_any_thread().unwrap();
    let [fork] = capture.split().unwrap();
    let started = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let started = &started;
        let there = scope.spawn(move || {
            loop {
                started.store(true, Ordering::Relaxed);
                if let Err(error) = call(bench, &fork) {
                    return error;
                }
            }
        });
        while !started.load(Ordering::Relaxed) {
            std::hint::spin_loop();
        }
        for _ in 0..spins {
            std::hint::spin_loop();
        }
        let ended = capture.end().map(drop);
        let over = there.join().unwrap();
        // A fork without nodes needs no join.
        if let Err(error) = ended
            && !matches!(error, Error::Capture(CaptureError::Unjoined { kind: "primary", .. }))
        {
            return Err(format!("the end: {error}"));
        }
        match over {
            Error::Capture(CaptureError::Over { kind: "fork" }) => Ok(()),
            other => Err(format!("the call: {other}")),
        }
    })
}

#[test]
fn nodes_of_a_fork_are_placed_or_refused_while_another_thread_ends_the_capture() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let rounds = if is_soft() { 40 } else { 100 };
        for round in 0..rounds {
            let capture = bench.stream.graph_builder().begin_on_any_thread().unwrap();
            let [fork] = capture.split().unwrap();
            std::thread::scope(|scope| {
                let bench = &bench;
                let there = scope.spawn(move || {
                    loop {
                        let always = match fork.condition_with_default(1) {
                            Ok(always) => always,
                            Err(error) => return error,
                        };
                        if let Err(error) = fork.if_node(&always, |body| bench.add(body, 1)) {
                            return error;
                        }
                    }
                });
                for _ in 0..round * 200 {
                    std::hint::spin_loop();
                }
                let ended = capture.end().map(drop);
                let over = there.join().unwrap();
                let is_over = |error: &Error| matches!(error, Error::Capture(CaptureError::Over { .. }));
                // The body's capture may be what ended.
                assert!(is_over(&over), "{over}; the end: {ended:?}");
            });
            bench.works_again();
        }
        assert_eq!(bench.numbers.read_blocking(&bench.stream).unwrap(), [0; N]);
    });
}

#[test]
fn two_captures_into_one_graph_at_once_both_arrive() {
    let context = setup();
    no_leaks(|| {
        let (bench, other) = (Bench::new(&context), context.stream().unwrap());
        let graph = context.graph().unwrap();
        let first = graph.root().fill(&bench.numbers, 0).unwrap();
        first
            .then()
            .capture(&bench.stream, LOCAL, |outer| {
                bench.add(outer, 1)?;
                first.then().capture(&other, LOCAL, |inner| bench.add(inner, 10))?;
                // Into the same graph, it is captured beside.
                bench.add(outer, 100)
            })
            .unwrap();
        assert_eq!(graph.len().unwrap(), 4);
        assert_eq!(first.successors().unwrap().len(), 2);
        assert_eq!(bench.run(&graph), 111);
        bench.works_again();
        works_again(&other);
    });
}

#[test]
fn a_fork_begins_no_capture_of_its_own() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let graph = context.graph().unwrap();
        let capture = bench.begin();
        let [fork] = capture.split().unwrap();
        let again = fork.stream().graph_builder().begin().unwrap_err();
        assert!(matches!(again, Error::Handles(HandleError::Capturing { .. })), "{again}");
        let again = graph.root().capture(fork.stream(), LOCAL, |_| Ok::<_, Error>(())).unwrap_err();
        assert!(matches!(again, Error::Handles(HandleError::Capturing { .. })), "{again}");
        bench.add(&fork, 1).unwrap();
        capture.join([fork]).unwrap();
        assert_eq!(bench.run(capture.end().unwrap().graph()), 1);
        assert!(graph.is_empty().unwrap());
        bench.works_again();
    });
}

#[test]
fn a_graph_that_is_gone_or_moved_at_the_end_is_refused() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        // The node of the body is removed meanwhile.
        let graph = context.graph().unwrap();
        let always = graph.condition_with_default(1).unwrap();
        let node = graph.root().if_node(&always).unwrap();
        let refused = node
            .body()
            .unwrap()
            .root()
            .capture(&bench.stream, LOCAL, |capture| {
                bench.add(capture, 1)?;
                node.remove()
            })
            .unwrap_err();
        assert!(matches!(refused, Error::Node(NodeError::GraphRemoved)), "{refused}");
        bench.works_again();
        // The graph is moved into a node.
        if moves() {
            let (inner, outer) = (context.graph().unwrap(), context.graph().unwrap());
            let mut inside = Some(inner.clone());
            let moved = inner.root().capture(&bench.stream, LOCAL, |capture| {
                bench.add(capture, 5)?;
                outer.root().child_moved(inside.take().unwrap()).map(drop)
            });
            match moved {
                Ok(()) => assert_eq!(bench.run(&outer), 5),
                Err(error) => assert!(matches!(error, Error::Node(NodeError::GraphMoved)), "{error}"),
            }
            bench.works_again();
        }
    });
}

#[test]
fn a_placed_graph_changed_by_hand_during_the_capture_is_run_as_it_is() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let capture = bench.begin();
        bench.add(&capture, 1).unwrap();
        let always = capture.condition_with_default(1).unwrap();
        let node = capture.if_node(&always, |body| bench.add(body, 10)).unwrap();
        // A node behind the placed one, by hand, before the captured ones arrive.
        node.then().launch(&bench.add, per(1, 1), (100, &bench.numbers)).unwrap();
        bench.add(&capture, 1000).unwrap();
        let graph = capture.end().unwrap().into_graph();
        assert_eq!(graph.len().unwrap(), 4);
        assert_eq!(node.successors().unwrap().len(), 2);
        assert_eq!(bench.run(&graph), 1111);
        bench.works_again();
    });
}

#[test]
fn a_captured_graph_is_changed_cloned_and_embedded_like_any_other() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        let graph = bench
            .stream
            .capture(LOCAL, |capture| {
                bench.add(capture, 1)?;
                let [fork] = capture.split()?;
                bench.add(&fork, 10)?;
                bench.add(capture, 100)
            })
            .unwrap();
        let nodes = graph.nodes().unwrap();
        let names: Vec<String> = nodes.iter().map(|node| node.name()).collect();
        assert!(names.iter().all(|name| name.contains("add_to")), "named by kernel: {names:?}");
        let last = graph.after_all(&nodes[1..]).unwrap();
        last.launch(&bench.add, per(1, 1), (1000, &bench.numbers)).unwrap();
        nodes[1].remove().unwrap();
        let expected = bench.run(&graph);
        assert!([1101, 1011].contains(&expected), "{expected}");
        let clone = graph.clone_graph().unwrap();
        drop((graph, nodes));
        assert_eq!(bench.run(&clone), expected);
        let outer = context.graph().unwrap();
        outer.root().child(&clone).unwrap();
        drop(clone);
        assert_eq!(bench.run(&outer), expected);
        bench.works_again();
    });
}

#[test]
fn captures_that_wait_for_each_other_are_refused_and_both_go_on() {
    let context = setup();
    no_leaks(|| {
        let (bench, other) = (Bench::new(&context), context.stream().unwrap());
        let (one, two) = (bench.begin(), other.graph_builder().begin().unwrap());
        let [fork] = two.split().unwrap();
        assert_eq!(one.stream().wait_for(fork.stream()), Err(HandleError::Merge));
        assert_eq!(fork.stream().wait_for(one.stream()), Err(HandleError::Merge));
        let outside = context.stream().unwrap();
        assert_eq!(one.stream().wait_for(&outside), Err(HandleError::Isolated));
        bench.add(&one, 1).unwrap();
        bench.add(&fork, 2).unwrap();
        two.join([fork]).unwrap();
        assert_eq!(bench.run(one.end().unwrap().graph()), 1);
        assert_eq!(bench.run(two.end().unwrap().graph()), 2);
        bench.works_again();
        works_again(&other);
    });
}

#[test]
fn an_invalidated_branch_of_the_family_ends_alone() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        // The parent is invalidated while a body is captured, which ends well.
        let failed = bench
            .stream
            .capture(LOCAL, |capture| {
                let always = capture.condition_with_default(1)?;
                capture.if_node(&always, |body| {
                    bench.add(body, 1)?;
                    invalidate(capture.stream());
                    bench.add(body, 1)
                })
            })
            .unwrap_err();
        let by_other_code = matches!(failed, Error::Handles(HandleError::CaptureInvalidated { by: None }))
            || failed.to_string().contains("STREAM_CAPTURE_INVALIDATED");
        assert!(by_other_code, "{failed}");
        bench.works_again();
    });
}

#[cfg(unix)]
#[test]
fn a_forked_child_refuses_and_drops_builders_and_waits_for_nothing() {
    alone!();
    let context = setup();
    let bench = Bench::new(&context);
    let capture = bench.begin();
    let [fork] = capture.split().unwrap();
    bench.add(&fork, 1).unwrap();
    let mut builders = Some((capture, fork));
    let in_child = || {
        let (refused, cost) = count(|| {
            let (capture, fork) = builders.take().unwrap();
            let calls = [
                bench.add(&capture, 1),
                fork.fill(&bench.others, 1),
                capture.split::<1>().map(drop),
                bench.stream.graph_builder().begin().map(drop),
            ];
            let ended = capture.end().map(drop);
            drop(fork);
            let is_forked = |error: &Error| error.to_string() == HandleError::Forked.to_string();
            calls.iter().chain([&ended]).all(|outcome| outcome.as_ref().is_err_and(is_forked))
        });
        u8::from(!refused) + 2 * u8::from(cost.total_anywhere() != 0)
    };
    // SAFETY: nothing of this waits.
    assert_eq!(unsafe { in_forked_child(in_child) }, 0);
    let (capture, fork) = builders.take().unwrap();
    capture.join([fork]).unwrap();
    assert_eq!(bench.run(capture.end().unwrap().graph()), 1);
    bench.works_again();
}

#[test]
fn loops_on_a_fork_do_not_hold_up_what_is_beside() {
    let context = setup();
    needs!(Branches);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let counter = bench.stream.zeros::<u32>(1).unwrap();
        bench.stream.synchronize_blocking().unwrap();
        let graph = bench
            .stream
            .capture(LOCAL, |capture| {
                capture.fill(&counter, 3)?;
                let [left, right] = capture.split()?;
                left.while_loop(Test::nonzero(&counter), |body| {
                    bench.add(body, 1)?;
                    body.launch(&bench.add, per(1, 1), (u32::MAX, &counter))
                })?;
                bench.add(&right, 10)?;
                capture.join([left])?;
                bench.add(capture, 100)
            })
            .unwrap();
        let nodes = graph.nodes().unwrap();
        let beside = nodes.iter().filter(|node| node.name().contains("add_to")).count();
        assert_eq!(beside, 2);
        assert_eq!(bench.run(&graph), 113);
        bench.works_again();
    });
}
