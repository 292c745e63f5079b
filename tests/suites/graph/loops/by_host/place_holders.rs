//! Placeholders of loops and branches on drivers without conditional nodes: how they are built, and
//! what is refused.

use std::panic::{AssertUnwindSafe, catch_unwind};

use cuda_graph::{
    ConditionError, EmbedError, Error, ExecError, Fallback, Graph, HostCounts, InstantiateOptions,
    KernelNode, Loop, LoopBody, LoopError, MemoryError, NodeError, NodeKind, Test,
};
use cuda_handles::Stream;
use cuda_tests::{Kind, alone, count, live, needs, no_leaks, settle, setup};

use super::{By, ONE_LESS, Steps};
use crate::common::other;
use crate::loops::ready_made::{each_call_fails, state};

#[test]
fn without_asking_an_older_driver_is_named_and_the_way_out() {
    alone!("CUDA_SOFT_VERSION" = "12.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    no_leaks(|| {
        let steps = Steps::new(&context, By::Need);
        let (graph, number) = (steps.graph(), steps.number(0));
        graph
            .root()
            .while_loop(cuda_graph::Test::nonzero(&number), |body| steps.round(body, number.as_slice()))
            .unwrap()
            .named("it");
        let (error, cost) = count(|| graph.instantiate().unwrap_err());
        let text = error.to_string();
        assert!(matches!(error, Error::Loop(LoopError::NeedsHost { .. })), "{text}");
        for part in ["`it`", "12.3", "12.2", "Fallback::HostLoop"] {
            assert!(text.contains(part), "{text}");
        }
        cost.assert_calls(&[]);
        assert!(
            matches!(graph.lend().unwrap_err(), Error::Loop(LoopError::NeedsHost { .. })),
            "other code would run nothing"
        );
        assert_eq!(steps.run(&graph), 0);
        assert_eq!(steps.exec(&graph).counts(), HostCounts::default());
        // Conditions that kernels set are for the device alone.
        let text = graph.condition().unwrap_err().to_string();
        assert!(text.contains("12.3") && text.contains("12.2"), "{text}");
    });
}

#[test]
fn a_place_holder_is_drawn_as_the_loop_it_stands_for() {
    alone!("CUDA_SOFT_VERSION" = "12.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    no_leaks(|| {
        let steps = Steps::new(&context, By::Need);
        let (graph, number) = (steps.graph(), steps.number(0));
        let before = live();
        let rounds = graph
            .root()
            .while_loop(cuda_graph::Test::nonzero(&number), |body| steps.round(body, number.as_slice()));
        let rounds: Loop<KernelNode> = rounds.unwrap().named("rounds");
        let names = |graph: &Graph| -> Vec<String> {
            graph.nodes().unwrap().iter().map(|node| node.name()).collect()
        };
        assert_eq!(names(&graph), ["decides about rounds", "rounds"]);
        let body = rounds.body().unwrap();
        assert_eq!(names(&body)[2..], ["decides about rounds"]);
        assert_eq!(body.parent().unwrap().unwrap(), **rounds);
        assert_eq!(rounds.describe().unwrap(), "by the host");
        assert_eq!(body.nodes().unwrap()[2].predecessors().unwrap(), [(**rounds.inside()).clone()]);
        let picture = graph.to_dot().unwrap();
        assert!(picture.contains("rounds") && picture.contains("body"), "{picture}");
        assert_eq!(rounds.kind(), NodeKind::While);
        assert_eq!(names(&body).len(), 3);
        // SAFETY: the body lives as long as the handle.
        let again = unsafe { Graph::from_raw(&context, body.as_raw().unwrap()) }.unwrap();
        assert_eq!(again, body);
        // It holds what a body of the device holds, and no more.
        assert!(matches!(
            body.root().host(|| {}).unwrap_err(),
            Error::Condition(ConditionError::NotInBody { .. })
        ));
        for refused in [
            graph.clone_graph().unwrap_err(),
            steps.graph().root().child(&graph).unwrap_err(),
            body.instantiate().unwrap_err(),
        ] {
            assert!(
                matches!(
                    refused,
                    Error::Condition(ConditionError::HasConditions { .. })
                        | Error::Embed(EmbedError::Embedded { .. })
                ),
                "{refused}"
            );
        }
        assert_eq!(live().since(&before).of(Kind::Graph), 1, "the body");
        rounds.remove().unwrap();
        assert!(matches!(body.len().unwrap_err(), Error::Node(NodeError::GraphRemoved)));
        settle();
        assert_eq!(live().since(&before).of(Kind::Graph), 0);
    });
}

#[derive(Debug, PartialEq)]
enum Own {
    Graph(Error),
    Stopped,
}

impl From<Error> for Own {
    fn from(error: Error) -> Self {
        Self::Graph(error)
    }
}

#[test]
fn a_closure_that_fails_or_panics_leaves_nothing_of_a_place_holder() {
    alone!("CUDA_SOFT_VERSION" = "12.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    no_leaks(|| {
        let steps = Steps::new(&context, By::Need);
        let (graph, number) = (steps.graph(), steps.number(0));
        let (start, test) = (graph.root().fill(&number, 3).unwrap(), Test::nonzero(&number));
        let last = steps.count(&start.then(), 100).unwrap();
        let before = state(&graph);
        let fill = |body: &Graph| -> Result<(), Own> {
            steps.round(body, number.as_slice())?;
            Err(Own::Stopped)
        };
        for which in 0..4 {
            let at = graph.between(&start, &last).unwrap();
            let error = match which {
                0 => at.while_loop(test.limit(7), |body| fill(body)).unwrap_err(),
                1 => at.if_then(test, fill).unwrap_err(),
                2 => at.if_then_else(test, fill, |_| Ok(())).unwrap_err(),
                _ => at.if_then_else(test, |_| Ok(()), fill).unwrap_err(),
            };
            assert_eq!((error, state(&graph)), (Own::Stopped, before.clone()));
        }
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let at = graph.between(&start, &last).unwrap();
            let _none = at.while_loop(cuda_graph::Test::nonzero(&number), |_| -> Result<(), Error> {
                panic!("of the closure")
            });
        }));
        assert!(panicked.is_err());
        assert_eq!(state(&graph), before);
        // Nothing of these stays in the way.
        graph.instantiate().unwrap().launch(&steps.stream).unwrap();
        assert_eq!(steps.counted(), 100);
    });
}

#[test]
fn a_driver_that_fails_at_any_call_leaves_the_graph_as_it_was() {
    alone!("CUDA_SOFT_VERSION" = "12.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    no_leaks(|| {
        let steps = Steps::new(&context, By::Need);
        let (graph, number) = (steps.graph(), steps.number(0));
        let start = graph.root().fill(&number, 3).unwrap();
        let last = steps.count(&start.then(), 100).unwrap();
        let build = |which: usize| -> Result<(), Error> {
            let at = graph.between(&start, &last)?;
            let test = Test::nonzero(&number);
            let fill = |body: &Graph| steps.round(body, number.as_slice());
            match which {
                0 => at.while_loop(test, |body| fill(body)).map(drop),
                1 => at.if_then(test, fill).map(drop),
                _ => at.if_then_else(test, fill, fill).map(drop),
            }
        };
        each_call_fails(&graph, [&start, &last], build, |graph| steps.run(graph));
    });
}

#[test]
fn graphs_that_other_code_runs_get_no_place_holders() {
    alone!("CUDA_SOFT_VERSION" = "12.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    no_leaks(|| {
        let steps = Steps::new(&context, By::Need);
        let (number, lent, foreign) = (steps.number(0), steps.graph(), other::graph());
        lent.lend().unwrap();
        // SAFETY: the graph lives longer than the handles.
        let adopted = unsafe { Graph::from_raw(&context, foreign) }.unwrap();
        for graph in [&lent, &adopted] {
            let draw = || {
                graph
                    .root()
                    .while_loop(cuda_graph::Test::nonzero(&number), |_| Ok::<_, Error>(()))
                    .unwrap_err()
            };
            let (error, cost) = count(draw);
            let text = error.to_string();
            assert!(matches!(error, Error::TooOld { .. }), "{text}");
            assert!(text.contains("12.3") && text.contains("12.2"), "{text}");
            cost.assert_calls(&[]);
            assert!(graph.is_empty().unwrap());
        }
        drop(adopted);
        other::destroy(foreign);
    });
}

#[test]
fn the_memory_of_a_test_is_of_its_graph() {
    alone!("CUDA_SOFT_VERSION" = "12.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    no_leaks(|| {
        let (graph, other) = (Graph::new(&context).unwrap(), Graph::new(&context).unwrap());
        let (_, memory) = graph.root().alloc::<u32>(1).unwrap();
        let error =
            other.root().if_then(cuda_graph::Test::nonzero(&memory), |_| Ok::<_, Error>(())).unwrap_err();
        assert_eq!(error, Error::Memory(MemoryError::ForeignMemory { node: "decide_u32".into() }));
        assert!(other.is_empty().unwrap());
    });
}

#[test]
fn a_graph_that_is_lent_meanwhile_gets_no_place_holder() {
    alone!("CUDA_SOFT_VERSION" = "12.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    no_leaks(|| {
        let steps = Steps::new(&context, By::Need);
        let number = steps.number(0);
        for round in 0..400 {
            let graph = steps.graph();
            let start = std::sync::Barrier::new(2);
            let (drawn, lent) = std::thread::scope(|scope| {
                let lent = scope.spawn(|| {
                    start.wait();
                    // At another moment each time.
                    (0..round % 50 * 40).for_each(|_| core::hint::spin_loop());
                    graph.lend().is_ok()
                });
                start.wait();
                let drawn =
                    graph.root().if_then(cuda_graph::Test::nonzero(&number), |_| Ok::<_, Error>(())).is_ok();
                (drawn, lent.join().unwrap())
            });
            assert!(!(drawn && lent), "in round {round}");
            assert_eq!(graph.is_empty().unwrap(), !drawn);
        }
    });
}

#[test]
fn drivers_with_some_conditionals_run_these_and_the_host_the_others() {
    alone!("CUDA_SOFT_VERSION" = "12.4", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    no_leaks(|| {
        let steps = Steps::new(&context, By::Need);
        let (graph, number) = (steps.graph(), steps.number(0));
        let draw = |graph: &Graph| {
            let start = graph.root().fill(&number, 6).unwrap();
            let rounds = start.then().while_loop(cuda_graph::Test::nonzero(&number), |body| {
                let less = steps.add(&body.root(), ONE_LESS, number.as_slice())?;
                // A loop in its body is for the host as well, though the driver has loops.
                let then = |body: &Graph| {
                    let inner = steps.number(0);
                    let start = body.root().fill(&inner, 2)?;
                    start
                        .then()
                        .while_loop(cuda_graph::Test::nonzero(&inner), |body| {
                            steps.round(body, inner.as_slice())
                        })
                        .map(drop)
                };
                let or = |body: &Graph| steps.count(&body.root(), 10);
                less.then()
                    .if_then_else(Test::less(&number, 2), then, or)
                    .map(|branch| branch.named("choice"))
            });
            rounds.unwrap()
        };
        let rounds = draw(&graph);
        let text = graph.instantiate().unwrap_err().to_string();
        assert!(text.contains("`choice`") && text.contains("12.8") && text.contains("12.4"), "{text}");
        assert_eq!(steps.run(&graph), 4 * 10 + 2 * 2);
        assert_eq!(rounds.rounds_done_blocking(&steps.stream).unwrap(), 6);
        // In a body of the loop, which the driver has, conditions go; in one of the branch they do
        // not.
        let condition = graph.condition().unwrap();
        let body = rounds.inside().then_body().unwrap();
        let error = body.root().while_node(&condition).unwrap_err();
        assert!(
            matches!(&error, Error::Loop(LoopError::HostDecides { .. }))
                && error.to_string().contains("`choice`"),
            "{error}"
        );
        let node = rounds.body().unwrap().root().if_node(&condition).unwrap();
        let options = InstantiateOptions::new();
        let error = graph.instantiate_with_fallback(Fallback::HostLoop, options.clone()).unwrap_err();
        assert!(
            matches!(&error, Error::Loop(LoopError::NotOnHost { .. }))
                && error.to_string().contains(&node.name()),
            "{error}"
        );
        node.remove().unwrap();
        // The condition is still there, without a node.
        let error = graph.instantiate_with_fallback(Fallback::HostLoop, options.clone()).unwrap_err();
        assert!(matches!(error, Error::Condition(ConditionError::UnusedCondition { .. })), "{error}");
        // A graph with what the driver has is the device's.
        let graph = steps.graph();
        let rounds = graph
            .root()
            .while_loop(cuda_graph::Test::nonzero(&number), |body| steps.round(body, number.as_slice()))
            .unwrap();
        let mut exec = graph.instantiate_with_fallback(Fallback::HostLoop, options).unwrap();
        assert!(!exec.is_on_host());
        steps.stream.fill(&number, 3).unwrap();
        exec.run_blocking(&steps.stream).unwrap();
        assert_eq!((rounds.rounds_done_blocking(&steps.stream).unwrap(), steps.counted()), (3, 3));
    });
}

#[test]
fn what_only_the_device_can_decide_is_refused_by_node() {
    let context = setup();
    needs!(Branches);
    no_leaks(|| {
        let steps = Steps::new(&context, By::Host);
        let (graph, number) = (steps.graph(), steps.number(0));
        let condition = graph.condition_with_default(1).unwrap();
        let own = graph.root().if_node(&condition).unwrap().named("own");
        graph
            .root()
            .while_loop(cuda_graph::Test::nonzero(&number), |body| steps.round(body, number.as_slice()))
            .unwrap();
        let host =
            |graph: &Graph, options| graph.instantiate_with_fallback(Fallback::HostLoopAlways, options);
        let error = host(&graph, InstantiateOptions::new()).unwrap_err();
        assert!(
            matches!(&error, Error::Loop(LoopError::NotOnHost { .. })) && error.to_string().contains("`own`"),
            "{error}"
        );
        drop(host(&graph, InstantiateOptions::new().device_launch()).unwrap_err());
        let body = own.body().unwrap();
        assert!(matches!(
            host(&body, InstantiateOptions::new()).unwrap_err(),
            Error::Embed(EmbedError::Embedded { .. })
        ));
        // The device has no difficulty.
        let mut exec =
            graph.instantiate_with_fallback(Fallback::HostLoop, InstantiateOptions::new()).unwrap();
        exec.run_blocking(&steps.stream).unwrap();
        assert!(!exec.is_on_host());
        drop(exec);
        let graph = steps.graph();
        let step = |body: &LoopBody| steps.round(body, number.as_slice());
        graph.root().while_loop(cuda_graph::Test::nonzero(&number), step).unwrap();
        let error = host(&graph, InstantiateOptions::new().device_launch()).unwrap_err();
        assert!(matches!(error, Error::Exec(ExecError::DeviceLaunch { .. })), "{error}");
        let options = InstantiateOptions::new().node_priorities().upload_on(&steps.stream);
        host(&graph, options).unwrap().run_blocking(&steps.stream).unwrap();
    });
}

fn one_executable_at_a_time(steps: &Steps) {
    let (graph, number) = (steps.graph(), steps.number(2));
    graph
        .root()
        .while_loop(cuda_graph::Test::nonzero(&number), |body| steps.round(body, number.as_slice()))
        .unwrap();
    let make = || graph.instantiate_with_fallback(Fallback::HostLoopAlways, InstantiateOptions::new());
    let exec = make().unwrap();
    assert_eq!(make().unwrap_err(), Error::Exec(ExecError::OneExecutable { of: "conditional nodes" }));
    drop(exec);
    let mut exec = make().unwrap();
    exec.run_blocking(&steps.stream).unwrap();
    assert_eq!(steps.counted(), 2);
}

#[test]
fn there_is_one_executable_at_a_time() {
    let context = setup();
    no_leaks(|| {
        let steps = Steps::new(&context, By::Host);
        one_executable_at_a_time(&steps);
        if super::has_all() {
            let (graph, number) = (steps.graph(), steps.number(2));
            graph
                .root()
                .while_loop(cuda_graph::Test::nonzero(&number), |body| steps.round(body, number.as_slice()))
                .unwrap();
            let by_host = steps.exec(&graph);
            assert_eq!(
                graph.instantiate().unwrap_err(),
                Error::Exec(ExecError::OneExecutable { of: "conditional nodes" })
            );
            drop(by_host);
            let by_device = graph.instantiate().unwrap();
            let again = graph.instantiate_with_fallback(Fallback::HostLoopAlways, InstantiateOptions::new());
            assert_eq!(again.unwrap_err(), Error::Exec(ExecError::OneExecutable { of: "conditional nodes" }));
            drop(by_device);
        }
    });
}

#[test]
fn there_is_one_executable_at_a_time_of_place_holders() {
    alone!("CUDA_SOFT_VERSION" = "12.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    no_leaks(|| one_executable_at_a_time(&Steps::new(&context, By::Need)));
}

#[test]
fn memory_of_other_streams_is_waited_for_once() {
    let context = setup();
    no_leaks(|| {
        let steps = Steps::new(&context, By::Host);
        let home: Stream = context.stream().unwrap();
        let (graph, number) = (steps.graph(), home.upload(&[3_u32]).unwrap());
        let (start, fresh) = (graph.root().empty().unwrap(), home.zeros::<u32>(1).unwrap());
        let body = |body: &LoopBody| steps.round(body, number.as_slice());
        let rounds = start.then().while_loop(cuda_graph::Test::nonzero(&number), body).unwrap();
        rounds.then().fill(&fresh, 5).unwrap();
        let mut exec = steps.exec(&graph);
        let ((), first) = count(|| exec.run_blocking(&steps.stream).unwrap());
        assert!(first.calls("cuStreamWaitEvent") >= 1, "{first}");
        assert_eq!((steps.counted(), steps.read(&fresh)), (3, 5));
        let ((), second) = count(|| exec.run_blocking(&steps.stream).unwrap());
        assert_eq!(second.calls("cuStreamWaitEvent"), 0, "{second}");
    });
}
