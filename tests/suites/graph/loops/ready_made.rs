//! Loops and branches that compare numbers in memory, without device code of the user.

use core::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};

use cuda_graph::{
    Branch, ConditionError, ContextExt, EdgeError, Error, ExecError, Frontier, Graph, IfNode, KernelNode,
    Loop, LoopBody, LoopError, Node, NodeError, NodeKind, Test, Testable,
};
use cuda_handles::{Buffer, Context, Slice, Stream};
use cuda_launch::per;
use cuda_sys::{CUresult, Call};
use cuda_tests::{
    alone, count, fail, fail_any, needs, no_leaks, other_device, raw, setup, sweep, used_stream,
};

use crate::conditions::branches_and_loops::{Kernels, filler, increment_by};
use crate::rollback::broken::assert_broken;

/// What is added to count one down.
pub(crate) const ONE_LESS: u32 = u32::MAX;

/// Steps of bodies, and a count of all rounds.
struct Steps {
    kernels: Kernels,
    add: increment_by,
}

impl Steps {
    fn new(context: &Context) -> Self {
        Self { kernels: Kernels::new(context), add: increment_by::load(context).unwrap() }
    }

    /// Them with a new graph and a number, which is 0.
    fn with_graph(context: &Context) -> (Self, Graph, Buffer<u32>) {
        let steps = Self::new(context);
        let number = steps.number(0);
        (steps, context.graph().unwrap(), number)
    }

    fn stream(&self) -> &Stream {
        &self.kernels.stream
    }

    fn number(&self, value: u32) -> Buffer<u32> {
        self.stream().upload(&[value]).unwrap()
    }

    fn add(&self, at: &Frontier<'_>, amount: u32, to: Slice<'_, u32>) -> Result<KernelNode, Error> {
        at.launch(&self.add, per(1, 1), (amount, to))
    }

    /// A round: it is counted, and the number counted down.
    fn round(&self, body: &Graph, number: Slice<'_, u32>) -> Result<KernelNode, Error> {
        let counted = self.add(&body.root(), 1, self.kernels.runs.as_slice())?;
        self.add(&counted.then(), ONE_LESS, number)
    }

    /// Launches the graph once: the rounds counted.
    #[track_caller]
    fn run(&self, graph: &Graph) -> u32 {
        graph.instantiate().unwrap().launch(self.stream()).unwrap();
        self.kernels.counted()
    }
}

#[test]
fn a_loop_runs_as_long_as_a_number_is_not_0() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let steps = Steps::new(&context);
        let graph = context.graph().unwrap();
        let number = steps.number(0);
        let start = graph.root().fill(&number, 7).unwrap();
        let rounds: Loop<KernelNode> = start
            .then()
            .while_loop(cuda_graph::Test::nonzero(&number), |body| steps.round(body, number.as_slice()))
            .unwrap();
        let rounds = rounds.named("rounds");
        assert_eq!((rounds.kind(), rounds.name()), (NodeKind::While, "rounds".into()));
        let names = |graph: &Graph| -> Vec<String> {
            graph.nodes().unwrap().iter().map(|node| node.name()).collect()
        };
        assert_eq!(names(&graph)[1..], ["decides about rounds", "rounds"]);
        let body = rounds.body().unwrap();
        let filler = filler() as usize;
        assert_eq!(names(&body)[2 + filler..], ["decides about rounds"]);
        let nodes = body.nodes().unwrap();
        let ends = [&nodes[..filler], &[(**rounds.inside()).clone()]].concat();
        assert_eq!(nodes[2 + filler].predecessors().unwrap(), ends);
        let mut exec = graph.instantiate().unwrap();
        for _ in 0..10 {
            exec.launch(steps.stream()).unwrap();
        }
        assert_eq!(steps.kernels.counted(), 70);
        assert_eq!(rounds.rounds_done_blocking(steps.stream()).unwrap(), 7);
        assert_eq!(
            graph.instantiate().unwrap_err(),
            Error::Exec(ExecError::OneExecutable { of: "conditional nodes" })
        );
    });
}

#[test]
fn a_while_may_run_no_round_and_a_do_while_runs_one() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let steps = Steps::new(&context);
        for (is_do_while, start, expected) in
            [(false, 0, 0), (false, 1, 1), (false, 5, 5), (true, 0, 1), (true, 1, 1), (true, 5, 5)]
        {
            let graph = context.graph().unwrap();
            let number = steps.number(0);
            let at = graph.root().fill(&number, start).unwrap();
            // A 0 stays one, so that it is no large number after the first round.
            let fill = |body: &LoopBody| match start {
                0 => steps.add(&body.root(), 1, steps.kernels.runs.as_slice()),
                _ => steps.round(body, number.as_slice()),
            };
            let rounds = match is_do_while {
                true => at.then().do_while_loop(cuda_graph::Test::nonzero(&number), fill),
                false => at.then().while_loop(cuda_graph::Test::nonzero(&number), fill),
            }
            .unwrap();
            for _ in 0..2 {
                assert_eq!(steps.run(&graph), expected, "do-while: {is_do_while}, from {start}");
                assert_eq!(rounds.rounds_done_blocking(steps.stream()).unwrap(), u64::from(expected));
            }
        }
    });
}

/// All comparisons of each number with each, on the device and here.
#[track_caller]
pub(crate) fn compare<T: Testable + PartialOrd + Debug>(
    context: &Context,
    numbers: &[T],
    zero: T,
    run: impl Fn(&Graph, &Stream),
) {
    let stream = context.stream().unwrap();
    let found = stream.upload(numbers).unwrap();
    let graph = context.graph().unwrap();
    let answers = stream.zeros::<u8>(numbers.len() * (numbers.len() * 6 + 2)).unwrap();
    let mut expected = Vec::new();
    for (place, &left) in numbers.iter().enumerate() {
        let memory = found.slice(place..).unwrap();
        let mut ask = |test: Test<'_>, answer: bool| {
            let slot = answers.slice(expected.len()..=expected.len()).unwrap();
            graph.root().if_then(test, |body| body.root().fill(slot, 1)).unwrap();
            expected.push(u8::from(answer));
        };
        ask(Test::nonzero(memory), left != zero);
        ask(Test::zero(memory), left == zero);
        for &right in numbers {
            ask(Test::equal(memory, right), left == right);
            ask(Test::not_equal(memory, right), left != right);
            ask(Test::less(memory, right), left < right);
            ask(Test::at_most(memory, right), left <= right);
            ask(Test::greater(memory, right), left > right);
            ask(Test::at_least(memory, right), left >= right);
        }
    }
    run(&graph, &stream);
    assert_eq!(answers.read_blocking(&stream).unwrap(), expected, "{numbers:?}");
}

#[test]
fn numbers_of_every_type_compare_as_here() {
    let context = setup();
    needs!(Conditionals);
    let run = |graph: &Graph, stream: &Stream| graph.instantiate().unwrap().launch(stream).unwrap();
    no_leaks(|| {
        compare(&context, &[0_u32, 1, 2, i32::MAX as u32, 1 << 31, u32::MAX], 0, run);
        compare(&context, &[0_i32, 1, -1, 2, i32::MAX, i32::MIN], 0, run);
        compare(&context, &[0_u64, 1, 1 << 32, i64::MAX as u64, 1 << 63, u64::MAX], 0, run);
        compare(&context, &[0_i64, 1, -1, 1 << 32, i64::MAX, i64::MIN], 0, run);
        let (inf, nan) = (f32::INFINITY, f32::NAN);
        compare(&context, &[0_f32, -0.0, 1.5, -1.5, f32::from_bits(1), inf, -inf, nan], 0.0, run);
        let (inf, nan) = (f64::INFINITY, f64::NAN);
        compare(
            &context,
            &[0_f64, -0.0, 1.5, 1.5 + f64::EPSILON, f64::from_bits(1), inf, -inf, nan],
            0.0,
            run,
        );
    });
}

#[test]
fn a_branch_runs_one_of_two_bodies() {
    let context = setup();
    needs!(Branches);
    no_leaks(|| {
        let (steps, graph, number) = Steps::with_graph(&context);
        let runs = steps.kernels.runs.as_slice();
        let branch = graph
            .root()
            .if_then_else(
                Test::less(&number, 3),
                |then| steps.add(&then.root(), 1, runs),
                |or| steps.add(&or.root(), 10, runs),
            )
            .unwrap()
            .named("branch");
        assert_eq!(branch.inside().0.graph(), &branch.then_body().unwrap());
        assert_eq!(branch.inside().1.graph(), &branch.else_body().unwrap());
        let small = branch
            .then()
            .if_then(cuda_graph::Test::nonzero(&number), |body| steps.add(&body.root(), 100, runs))
            .unwrap();
        assert_eq!(
            (branch.kind(), branch.name(), small.kind()),
            (NodeKind::IfElse, "branch".into(), NodeKind::If)
        );
        let mut exec = graph.instantiate().unwrap();
        for (value, expected) in [(0, 1), (2, 101), (3, 110), (0, 1)] {
            steps.stream().fill(&number, value).unwrap();
            exec.launch(steps.stream()).unwrap();
            assert_eq!(steps.kernels.counted(), expected, "with {value}");
        }
    });
}

#[test]
fn a_limit_ends_loops_that_would_go_on() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let steps = Steps::new(&context);
        for (limit, from, expected) in
            [(0, 9, 0), (1, 9, 1), (4, 9, 4), (9, 9, 9), (10, 9, 9), (u64::MAX, 9, 9)]
        {
            for is_do_while in [false, true].into_iter().take(1 + usize::from(limit > 0)) {
                let (graph, number) = (context.graph().unwrap(), steps.number(0));
                let start = graph.root().fill(&number, from).unwrap();
                let going = Test::greater(&number, 0).limit(limit);
                let fill = |body: &LoopBody| steps.round(body, number.as_slice());
                let rounds = match is_do_while {
                    true => start.then().do_while_loop(going, fill),
                    false => start.then().while_loop(going, fill),
                }
                .unwrap();
                assert_eq!(steps.run(&graph), expected, "limit {limit}, do-while: {is_do_while}");
                assert_eq!(rounds.rounds_done_blocking(steps.stream()).unwrap(), u64::from(expected));
            }
        }
    });
}

#[test]
fn kernels_can_read_the_number_of_the_round() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let (steps, graph, number) = Steps::with_graph(&context);
        let seen = steps.stream().zeros::<u64>(2).unwrap();
        let start = graph.root().fill(&number, 5).unwrap();
        let rounds = start
            .then()
            .while_loop(cuda_graph::Test::nonzero(&number), |body| {
                body.root().copy(body.rounds_done(), seen.slice(..1).unwrap())?;
                steps.round(body, number.as_slice())
            })
            .unwrap();
        rounds.then().copy(rounds.rounds_done(), seen.slice(1..).unwrap()).unwrap();
        assert_eq!(steps.run(&graph), 5);
        assert_eq!(seen.read_blocking(steps.stream()).unwrap(), [4, 5], "in the last round, and after it");
    });
}

/// Loops in loops that each go round so often; the innermost counts.
fn nest(
    steps: &Steps,
    at: &Frontier<'_>,
    numbers: Slice<'_, u32>,
    rounds: &[u32],
) -> Result<Vec<Loop>, Error> {
    let Some((&own, inner)) = rounds.split_first() else {
        return steps.add(at, 1, steps.kernels.runs.as_slice()).map(|_| Vec::new());
    };
    let number = numbers.slice(..1)?;
    let start = at.fill(number, own)?;
    let mut loops = Vec::new();
    let this = start.then().while_loop(cuda_graph::Test::nonzero(number), |body| -> Result<(), Error> {
        loops = nest(steps, &body.root(), numbers.slice(1..)?, inner)?;
        steps.add(&body.root(), ONE_LESS, number).map(drop)
    })?;
    loops.push(this);
    Ok(loops)
}

#[test]
fn loops_in_loops_begin_anew_in_each_round() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let steps = Steps::new(&context);
        let graph = context.graph().unwrap();
        let numbers = steps.stream().zeros::<u32>(3).unwrap();
        let loops = nest(&steps, &graph.root(), numbers.as_slice(), &[2, 3, 4]).unwrap();
        let mut exec = graph.instantiate().unwrap();
        for _ in 0..10 {
            exec.launch(steps.stream()).unwrap();
        }
        assert_eq!(steps.kernels.counted(), 240);
        let done = loops.iter().map(|one| one.rounds_done_blocking(steps.stream()).unwrap());
        assert_eq!(done.collect::<Vec<_>>(), [4, 3, 2]);
    });
}

#[test]
fn a_number_in_the_middle_of_memory_outlives_its_handles() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let steps = Steps::new(&context);
        let (graph, numbers) = (context.graph().unwrap(), steps.stream().zeros::<u32>(9).unwrap());
        let number = numbers.slice(4..).unwrap();
        let start = graph.root().fill(numbers.slice(4..5).unwrap(), 6).unwrap();
        let rounds = start
            .then()
            .while_loop(cuda_graph::Test::nonzero(number), |body| steps.round(body, number))
            .unwrap();
        let counted = rounds.rounds_done().allocation().clone();
        let weak = [std::sync::Arc::downgrade(&counted), std::sync::Arc::downgrade(numbers.allocation())];
        drop((numbers, start, rounds, counted));
        assert_eq!(steps.run(&graph), 6);
        let mut exec = graph.instantiate().unwrap();
        drop(graph);
        exec.launch(steps.stream()).unwrap();
        assert_eq!(steps.kernels.counted(), 6);
        assert!(weak.iter().all(|memory| memory.strong_count() > 0));
    });
}

#[test]
fn pinned_memory_of_the_host_can_be_tested() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let steps = Steps::new(&context);
        let (graph, flag) = (context.graph().unwrap(), context.pinned_zeros::<u32>(1).unwrap().share());
        let runs = steps.kernels.runs.as_slice();
        graph
            .root()
            .if_then(cuda_graph::Test::nonzero(&flag), |body| steps.add(&body.root(), 1, runs))
            .unwrap();
        assert_eq!(steps.run(&graph), 0);
        steps.stream().fill(&flag, 2).unwrap();
        assert_eq!(steps.run(&graph), 1);
    });
}

#[test]
fn loops_stand_in_edges_before_nodes_and_in_embedded_graphs() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let (steps, graph, number) = Steps::with_graph(&context);
        let start = graph.root().fill(&number, 3).unwrap();
        let last = steps.add(&start.then(), 100, steps.kernels.runs.as_slice()).unwrap();
        let fill = |body: &LoopBody| steps.round(body, number.as_slice());
        let first = graph
            .between(&start, &last)
            .unwrap()
            .while_loop(cuda_graph::Test::nonzero(&number), fill)
            .unwrap();
        assert_eq!(last.predecessors().unwrap(), [(**first).clone()]);
        let again = first.then().before([&last]).unwrap();
        let again = again.do_while_loop(Test::nonzero(&number).limit(5), fill).unwrap();
        assert_eq!(last.predecessors().unwrap().len(), 2);
        assert_eq!(steps.run(&graph), 108, "3 rounds, 5 more, and the last node");
        let inner = context.graph().unwrap();
        let child = again.then().child(&inner).unwrap().embedded().unwrap();
        let start = child.root().fill(&number, 1000).unwrap();
        start.then().while_loop(Test::greater(&number, 990), fill).unwrap();
        assert_eq!(steps.run(&graph), 118);
    });
}

/// What there is of a graph, by the library and by the driver.
pub(crate) fn state(graph: &Graph) -> (Vec<String>, usize, usize) {
    let nodes = graph.nodes().unwrap().iter().map(|node| format!("{node:?} {node}")).collect();
    (nodes, graph.edges().unwrap().len(), raw::nodes(graph.as_raw().unwrap()).len())
}

#[derive(Debug, PartialEq)]
enum Own {
    Graph(Error),
    Stopped(u32),
}

impl From<Error> for Own {
    fn from(error: Error) -> Self {
        Self::Graph(error)
    }
}

#[test]
fn a_closure_that_fails_or_panics_leaves_nothing_of_the_loop() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let (steps, graph, number) = Steps::with_graph(&context);
        let (runs, number) = (steps.kernels.runs.as_slice(), number.as_slice());
        let start = graph.root().fill(number, 3).unwrap();
        let last = steps.add(&start.then(), 100, runs).unwrap();
        let before = state(&graph);
        for step in 0..6 {
            // Each fails after one step more of the work.
            let fill = |body: &Graph, step: u32| -> Result<(), Own> {
                for _ in 0..step {
                    steps.round(body, number)?;
                }
                Err(Own::Stopped(step))
            };
            let at = graph.between(&start, &last).unwrap();
            let test = Test::nonzero(number);
            let error = match step {
                0 | 1 => at.while_loop(test.limit(7), |body| fill(body, step)).unwrap_err(),
                2 => at.do_while_loop(test, |body| fill(body, step)).unwrap_err(),
                3 => at.if_then(test, |body| fill(body, step)).unwrap_err(),
                4 => at.if_then_else(test, |body| fill(body, step), |_| Ok(())).unwrap_err(),
                _ => at.if_then_else(test, |_| Ok(()), |body| fill(body, step)).unwrap_err(),
            };
            assert_eq!((error, state(&graph)), (Own::Stopped(step), before.clone()));
        }
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            let at = graph.between(&start, &last).unwrap();
            let _none = at.while_loop(cuda_graph::Test::nonzero(number), |_| -> Result<(), Error> {
                panic!("of the closure")
            });
        }));
        assert!(panicked.is_err());
        assert_eq!(state(&graph), before);
        // The closure's errors of the library come as such.
        let outcome: Result<Loop, Own> = graph.root().while_loop(cuda_graph::Test::nonzero(number), |body| {
            body.root().host(|| {})?;
            Ok(())
        });
        assert!(
            matches!(outcome, Err(Own::Graph(Error::Condition(ConditionError::NotInBody { .. })))),
            "{outcome:?}"
        );
        assert_eq!(state(&graph), before);
        // One condition was made for all of these, and is used now.
        let (rounds, cost) = count(|| {
            start
                .then()
                .before([&last])
                .unwrap()
                .while_loop(cuda_graph::Test::nonzero(number), |body| steps.round(body, number))
        });
        rounds.unwrap();
        assert_eq!(cost.calls("cuGraphConditionalHandleCreate"), 0, "{cost}");
        assert_eq!(steps.run(&graph), 103);
    });
}

#[test]
fn a_closure_may_do_what_it_likes_to_the_graph() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let (steps, graph, number) = Steps::with_graph(&context);
        let (runs, number) = (steps.kernels.runs.as_slice(), number.as_slice());
        let before = state(&graph);
        // Removing the loop, its decision, or both.
        for which in 1..=3 {
            let outcome: Result<Loop, Error> =
                graph.root().while_loop(cuda_graph::Test::nonzero(number), |body| {
                    let node = body.parent()?.unwrap();
                    let decides = node.predecessors()?.remove(0);
                    if which & 1 != 0 {
                        node.remove()?;
                    }
                    if which & 2 != 0 {
                        decides.remove()?;
                    }
                    Ok(())
                });
            assert!(matches!(outcome, Err(Error::Node(NodeError::Removed { .. }))), "{outcome:?}");
            assert_eq!(state(&graph), before);
        }
        // Conditionals of its own, and nodes elsewhere, which stay when it fails.
        let mut elsewhere = None;
        let outcome: Result<Loop, Error> =
            graph.root().while_loop(cuda_graph::Test::nonzero(number), |body| {
                elsewhere = Some(body.parent()?.unwrap().then().fill(number, 1)?);
                body.root().host(|| {}).map(drop)
            });
        assert!(matches!(outcome, Err(Error::Condition(ConditionError::NotInBody { .. }))));
        assert_eq!(graph.len().unwrap(), 1);
        let start = elsewhere.unwrap();
        start
            .then()
            .while_loop(cuda_graph::Test::nonzero(number), |body| {
                let condition = graph.condition_with_default(1)?;
                let branch = body.root().if_node(&condition)?;
                steps.add(&branch.body()?.root(), 10, runs)?;
                steps.round(body, number)
            })
            .unwrap();
        assert_eq!(steps.run(&graph), 11);
        // An empty body and one loop right after another.
        let last = graph.nodes().unwrap().pop().unwrap();
        last.then().while_loop(cuda_graph::Test::nonzero(number), |_| Ok::<_, Error>(())).unwrap();
        assert_eq!(steps.run(&graph), 11);
    });
}

#[test]
fn the_decision_waits_for_all_ends_of_the_body() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let steps = Steps::new(&context);
        let (graph, number) = (context.graph().unwrap(), steps.number(1));
        let (runs, number) = (steps.kernels.runs.as_slice(), number.as_slice());
        let rounds = graph
            .root()
            .while_loop(cuda_graph::Test::nonzero(number), |body| {
                let first = steps.add(&body.root(), 1, runs)?;
                // Starts after the first one's trigger, and so may end before it.
                let second =
                    steps.add(&first.then_with(cuda_graph::EdgeKind::Programmatic), ONE_LESS, number)?;
                let (empty, inner) = (second.then().empty()?, body.root().empty()?);
                Ok::<_, Error>([first.into(), empty.into(), inner.into()])
            })
            .unwrap();
        let nodes = rounds.body().unwrap().nodes().unwrap();
        let (fillers, decides) = (&nodes[..filler() as usize], &nodes[nodes.len() - 1]);
        let mut awaited: Vec<String> =
            decides.predecessors().unwrap().iter().map(|node| format!("{node:?}")).collect();
        let mut ends: Vec<String> = rounds
            .inside()
            .iter()
            .chain(fillers)
            .map(|node: &cuda_graph::Node| format!("{node:?}"))
            .collect();
        awaited.sort_unstable();
        ends.sort_unstable();
        assert_eq!(awaited, ends);
        assert_eq!(steps.run(&graph), 1);
    });
}

#[test]
fn what_cannot_be_tested_is_refused_without_a_call() {
    let context = setup();
    no_leaks(|| {
        let (steps, graph, number) = Steps::with_graph(&context);
        let none = number.slice(1..).unwrap();
        let step = steps.add(&graph.root(), 1, number.as_slice()).unwrap();
        let ((), cost) = count(|| {
            let fill = |_: &Graph| -> Result<(), Error> { unreachable!() };
            let outcome = graph.root().if_then(cuda_graph::Test::nonzero(none), fill);
            assert_eq!(outcome.unwrap_err(), Error::Loop(LoopError::NothingToTest));
            let outcome = graph.root().do_while_loop(cuda_graph::Test::nonzero(none), |body| fill(body));
            assert_eq!(outcome.unwrap_err(), Error::Loop(LoopError::NothingToTest));
        });
        cost.assert_calls(&[]);
        let before = state(&graph);
        let outcome = step
            .then_with(cuda_graph::EdgeKind::Programmatic)
            .while_loop(cuda_graph::Test::nonzero(&number), |_| Ok::<_, Error>(()));
        assert!(matches!(outcome.unwrap_err(), Error::Edge(EdgeError::EdgeKind { .. })));
        assert_eq!(state(&graph), before);
        drop(graph.instantiate().unwrap());
    });
}

#[test]
fn memory_of_another_context_is_refused() {
    alone!("CUDA_SOFT_DEVICES" = "2");
    let context = setup();
    needs!(TwoDevices);
    let other = other_device().context().unwrap();
    let number = other.stream().unwrap().zeros::<u32>(1).unwrap();
    let graph = context.graph().unwrap();
    let error = graph.root().if_then(cuda_graph::Test::nonzero(&number), |_| Ok::<_, Error>(())).unwrap_err();
    assert!(error.to_string().contains("the memory that a loop or branch tests"), "{error}");
    assert_eq!(graph.len().unwrap(), 0);
}

#[test]
fn loops_cost_three_nodes_and_the_image_is_loaded_once() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let steps = Steps::new(&context);
        let (graph, other) = (context.graph().unwrap(), context.graph().unwrap());
        let number = steps.number(0);
        let add = |graph: &Graph| {
            graph
                .root()
                .while_loop(cuda_graph::Test::nonzero(&number), |body| body.root().fill(&number, 0))
                .unwrap();
        };
        let ((), cost) = count(|| add(&graph));
        assert_eq!(
            (cost.calls("cuLibraryLoadData"), cost.calls("cuGraphAddNode")),
            (1, 4 + filler()),
            "{cost}"
        );
        for graph in [&graph, &other] {
            let ((), cost) = count(|| add(graph));
            cost.assert_calls(&[
                ("cuMemAlloc", 1),
                // Around that.
                ("cuCtxPushCurrent", 1),
                ("cuCtxPopCurrent", 1),
                ("cuThreadExchangeStreamCaptureMode", 2),
                ("cuGraphConditionalHandleCreate", 1),
                // Before the loop, the loop, the fill, and the last of the body, behind what these
                // tell.
                ("cuGraphAddNode", 4 + filler()),
                ("cuGraphGetEdges", 1),
                ("cuGraphGetNodes", 2),
            ]);
        }
        let branch = || {
            graph
                .root()
                .if_then(cuda_graph::Test::nonzero(&number), |body| body.root().fill(&number, 0))
                .unwrap()
        };
        let (_, cost) = count(branch);
        cost.assert_calls(&[("cuGraphConditionalHandleCreate", 1), ("cuGraphAddNode", 3 + filler())]);
    });
}

/// Puts a loop of 3 rounds, a branch and one with two bodies into the edge between two nodes, of
/// which the second counts 100, while each call fails in turn: the graph is as it was.
pub(crate) fn each_call_fails(
    graph: &Graph,
    [start, last]: [&Node; 2],
    build: impl Fn(usize) -> Result<(), Error>,
    run: impl Fn(&Graph) -> u32,
) {
    let before = state(graph);
    let remove_rest = || graph.nodes().unwrap()[2..].iter().for_each(|node| node.remove().unwrap());
    for which in 0..3 {
        let mut nth = 1;
        loop {
            let failing = fail_any(nth, CUresult::CUDA_ERROR_INVALID_VALUE);
            let outcome = build(which);
            let hit = failing.hit_call();
            drop(failing);
            match (hit, outcome) {
                (None, outcome) => break outcome.unwrap(),
                // Of calls that only help, nobody is told.
                (Some(_), Ok(())) => remove_rest(),
                (Some(call), Err(error)) => {
                    assert!(!matches!(error, Error::Broken(_)), "{}: {error}", call.name());
                    assert_eq!(state(graph), before, "{}: {error}", call.name());
                }
            }
            if graph.edges().unwrap().is_empty() {
                graph.add_edge(start, last).unwrap();
            }
            nth += 1;
        }
        assert!(nth > 8, "{nth}");
        assert_eq!(run(graph), [103, 101, 101][which]);
        remove_rest();
        graph.add_edge(start, last).unwrap();
    }
}

#[test]
fn a_driver_that_fails_at_any_call_leaves_the_graph_as_it_was() {
    let context = setup();
    needs!(Branches);
    no_leaks(|| {
        let (steps, graph, number) = Steps::with_graph(&context);
        let (runs, number) = (steps.kernels.runs.as_slice(), number.as_slice());
        let start = graph.root().fill(number, 3).unwrap();
        let last = steps.add(&start.then(), 100, runs).unwrap();
        let build = |which: usize| -> Result<(), Error> {
            let at = graph.between(&start, &last)?;
            let test = Test::nonzero(number);
            match which {
                0 => at.while_loop(test, |body| steps.round(body, number)).map(drop),
                1 => at.if_then(test, |body| steps.round(body, number)).map(drop),
                _ => {
                    let fill = |body: &Graph| steps.round(body, number);
                    at.if_then_else(test, fill, fill).map(drop)
                }
            }
        };
        each_call_fails(&graph, [&start, &last], build, |graph| steps.run(graph));
    });
}

#[test]
fn a_loop_that_cannot_be_taken_out_again_breaks_the_graph() {
    let context = setup();
    no_leaks(|| {
        for nth in [1, 2] {
            let (_steps, graph, number) = Steps::with_graph(&context);
            let failing = fail(Call::cuGraphDestroyNode, nth, CUresult::CUDA_ERROR_INVALID_VALUE);
            let outcome: Result<Loop, Own> =
                graph.root().while_loop(cuda_graph::Test::nonzero(&number), |_| Err(Own::Stopped(1)));
            assert!(failing.hit());
            drop(failing);
            let Err(Own::Graph(error)) = outcome else { panic!("{outcome:?}") };
            let Error::Broken(broken) = &error else { panic!("{error:?}") };
            assert_eq!(broken.cause, Error::Loop(LoopError::NotFilled));
            assert!(broken.undo.to_string().contains("cuGraphDestroyNode"), "{error}");
            assert_broken(&graph, &error);
        }
    });
}

/// What the closure has to say of it is what the caller hears.
#[test]
fn a_loop_in_whose_closure_the_graph_breaks_ends_with_the_closures_error() {
    let context = setup();
    no_leaks(|| {
        let (_steps, graph, number) = Steps::with_graph(&context);
        let code = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
        let mut seen = None;
        let outcome: Result<Loop, Error> =
            graph.root().while_loop(cuda_graph::Test::nonzero(&number), |body| {
                let last = body.root().empty()?;
                let fails =
                    [fail(Call::cuGraphAddDependencies, 1, code), fail(Call::cuGraphDestroyNode, 1, code)];
                let error = body.root().before([&*last])?.empty().unwrap_err();
                assert!(fails.iter().all(cuda_tests::Injection::hit));
                seen = Some(error.clone());
                Err(error)
            });
        let error = outcome.unwrap_err();
        assert_eq!(Some(&error), seen.as_ref());
        assert_broken(&graph, &error);
    });
}

/// In an edge, a loop that counts 3 down to 0, and in it a branch that counts how often less than 2
/// is left.
pub(crate) fn a_loop_and_a_branch(
    graph: &Graph,
    add: &increment_by,
    number: &Buffer<u32>,
    runs: &Buffer<u32>,
) -> Result<Loop<Branch<IfNode, KernelNode>>, Error> {
    let start = graph.root().fill(number, 3)?;
    let last = start.then().empty()?;
    graph.between(&start, &last)?.while_loop(Test::nonzero(number).limit(5), |body| {
        let step = body.root().launch(add, per(1, 1), (ONE_LESS, number))?;
        step.then().if_then(Test::less(number, 2), |body| body.root().launch(add, per(1, 1), (1, runs)))
    })
}

#[test]
fn sweeping_loops_and_branches() {
    cuda_tests::as_drawn!("a step of shaping that fails is no error");
    let context = setup();
    needs!(Conditionals);
    let home = used_stream(&context);
    let add = increment_by::load(&context).unwrap();
    let cases = sweep("loops and branches", || -> Result<(), Error> {
        let (number, runs) = (home.zeros::<u32>(1)?, home.zeros::<u32>(1)?);
        let graph = context.graph()?;
        let rounds = a_loop_and_a_branch(&graph, &add, &number, &runs)?;
        graph.instantiate()?.launch(&home)?;
        assert_eq!((rounds.rounds_done_blocking(&home)?, runs.read_blocking(&home)?), (3, vec![2]));
        Ok(())
    });
    assert!(cases >= 60, "{cases}");
}

#[test]
fn the_first_drivers_with_conditionals_run_loops() {
    alone!("CUDA_SOFT_VERSION" = "12.4", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    let steps = Steps::new(&context);
    let graph = context.graph().unwrap();
    let numbers = steps.stream().zeros::<u32>(3).unwrap();
    nest(&steps, &graph.root(), numbers.as_slice(), &[2, 3, 4]).unwrap();
    assert_eq!(steps.run(&graph), 24);
    // For the host alone; see `host_loop.rs`.
    graph.root().if_then_else(Test::nonzero(&numbers), |_| Ok::<_, Error>(()), |_| Ok(())).unwrap();
    assert!(matches!(graph.instantiate().unwrap_err(), Error::Loop(LoopError::NeedsHost { .. })));
}
