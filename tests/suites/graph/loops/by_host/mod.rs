//! Ready-made loops and branches decided by the host: the results are those of the device, on
//! drivers with and without conditional nodes.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use cuda_graph::{
    ConditionError, ContextExt, Error, Fallback, Frontier, Graph, HostLoopExec, InstantiateOptions,
    KernelNode, Loop, LoopBody, Node, NodeError, NodeKind, Test,
};
use cuda_handles::{Batch, Buffer, Context, Copy2d, Slice, Stream};
use cuda_launch::{LaunchConfig, per};
use cuda_tests::{SOON, alone, no_leaks, setup, until};

mod costs;
mod failures;
mod foreign_nodes;
mod one_at_a_time;
mod place_holders;
mod random_programs;
mod rebuild;
mod replaced_values;
pub(crate) mod states;

use crate::conditions::branches_and_loops::increment_by;
use crate::loops::ready_made::{ONE_LESS, compare};

/// How a scenario is run.
#[derive(Clone, Copy, Debug, PartialEq)]
enum By {
    /// By the device, as the driver has nodes for all.
    Device,
    /// By the host, though it need not.
    Host,
    /// By the host, as the driver has no such nodes.
    Need,
}

/// Steps of bodies, and a count of runs.
struct Steps {
    context: Context,
    stream: Stream,
    add: increment_by,
    runs: Buffer<u32>,
    by: By,
}

impl Steps {
    fn new(context: &Context, by: By) -> Self {
        let stream = context.stream().unwrap();
        let (add, runs) = (increment_by::load(context).unwrap(), stream.zeros(1).unwrap());
        Self { context: context.clone(), stream, add, runs, by }
    }

    fn graph(&self) -> Graph {
        self.context.graph().unwrap()
    }

    fn number(&self, value: u32) -> Buffer<u32> {
        self.stream.upload(&[value]).unwrap()
    }

    fn add(&self, at: &Frontier<'_>, amount: u32, to: Slice<'_, u32>) -> Result<KernelNode, Error> {
        at.launch(&self.add, per(1, 1), (amount, to))
    }

    fn count(&self, at: &Frontier<'_>, amount: u32) -> Result<KernelNode, Error> {
        self.add(at, amount, self.runs.as_slice())
    }

    /// A round: it is counted, and the number counted down.
    fn round(&self, body: &Graph, number: Slice<'_, u32>) -> Result<KernelNode, Error> {
        let counted = self.count(&body.root(), 1)?;
        self.add(&counted.then(), ONE_LESS, number)
    }

    fn exec(&self, graph: &Graph) -> HostLoopExec {
        let fallback = match self.by {
            By::Device | By::Need => Fallback::HostLoop,
            By::Host => Fallback::HostLoopAlways,
        };
        let exec = graph.instantiate_with_fallback(fallback, InstantiateOptions::new()).unwrap();
        assert_eq!(exec.is_on_host(), self.by != By::Device);
        exec
    }

    fn counted(&self) -> u32 {
        let counted = self.runs.read_blocking(&self.stream).unwrap()[0];
        self.stream.fill(&self.runs, 0).unwrap();
        counted
    }

    /// Runs the graph once: the runs counted.
    fn run(&self, graph: &Graph) -> u32 {
        self.exec(graph).run_blocking(&self.stream).unwrap();
        self.counted()
    }

    fn read(&self, number: &Buffer<u32>) -> u32 {
        number.read_blocking(&self.stream).unwrap()[0]
    }
}

/// Each scenario, a function of [`Steps`], runs by the device, by the host, and where the driver
/// leaves it to the host.
macro_rules! scenarios {
    ($($name:ident)*) => { $(
        mod $name {
            use super::*;
            use crate::loops::by_host::{By, Steps, has_some};

            #[test]
            fn by_the_device() {
                let context = setup();
                cuda_tests::needs!(Branches);
                no_leaks(|| super::$name(&Steps::new(&context, By::Device)));
            }

            #[test]
            fn by_the_host() {
                let context = setup();
                let by = if has_some() { By::Host } else { By::Need };
                no_leaks(|| super::$name(&Steps::new(&context, by)));
            }

            #[test]
            fn where_the_driver_cannot() {
                alone!("CUDA_SOFT_VERSION" = "12.2", "CUDA_TEST_DRIVER" = "soft");
                let context = setup();
                no_leaks(|| super::$name(&Steps::new(&context, By::Need)));
            }
        }
    )* };
}

use scenarios;

/// Whether the driver has nodes for loops and for branches with one body.
fn has_some() -> bool {
    cuda_tests::Need::Conditionals.is_met()
}

/// Whether it has nodes for all.
fn has_all() -> bool {
    cuda_tests::Need::Branches.is_met()
}

scenarios! {
    a_loop_runs_as_long_as_a_number_is_not_0
    a_while_may_run_no_round_and_a_do_while_runs_one
    a_limit_ends_loops
    loops_in_loops_begin_anew
    a_branch_runs_one_of_two_bodies
    kernels_can_read_the_number_of_the_round
    numbers_compare_as_here
    numbers_lie_in_the_middle_of_memory_and_in_pinned_memory
    branches_beside_loops_come_to_the_same
    loops_stand_in_edges_before_nodes_and_in_embedded_graphs
    child_graphs_are_run_in_and_beside_bodies
    nodes_of_every_kind_run_beside_a_loop
    changes_of_the_graph_are_in_the_next_executable
    nodes_may_come_before_and_after_the_decision
    a_loop_without_its_first_decision_runs_no_round
    what_a_run_uses_outlives_its_handles
    bodies_lie_in_bodies_however_deep
}

fn a_loop_runs_as_long_as_a_number_is_not_0(steps: &Steps) {
    let (graph, number) = (steps.graph(), steps.number(0));
    let start = graph.root().fill(&number, 7).unwrap();
    let rounds = start
        .then()
        .while_loop(cuda_graph::Test::nonzero(&number), |body| steps.round(body, number.as_slice()))
        .unwrap();
    let rounds = rounds.named("rounds");
    assert_eq!((rounds.kind(), rounds.name()), (NodeKind::While, "rounds".into()));
    let after = steps.count(&rounds.then(), 100).unwrap();
    assert_eq!(after.predecessors().unwrap(), [(**rounds).clone()]);
    let mut exec = steps.exec(&graph);
    for _ in 0..10 {
        exec.run_blocking(&steps.stream).unwrap();
    }
    assert_eq!((steps.counted(), steps.read(&number)), (1070, 0));
    assert_eq!(rounds.rounds_done_blocking(&steps.stream).unwrap(), 7);
}

fn a_while_may_run_no_round_and_a_do_while_runs_one(steps: &Steps) {
    for (is_do_while, start, expected) in
        [(false, 0, 0), (false, 1, 1), (false, 5, 5), (true, 0, 1), (true, 1, 1), (true, 5, 5)]
    {
        let (graph, number) = (steps.graph(), steps.number(0));
        let at = graph.root().fill(&number, start).unwrap();
        // A 0 stays one, so that it is no large number after the first round.
        let fill = |body: &LoopBody| match start {
            0 => steps.count(&body.root(), 1),
            _ => steps.round(body, number.as_slice()),
        };
        let rounds = match is_do_while {
            true => at.then().do_while_loop(cuda_graph::Test::nonzero(&number), fill),
            false => at.then().while_loop(cuda_graph::Test::nonzero(&number), fill),
        }
        .unwrap();
        for _ in 0..2 {
            assert_eq!(steps.run(&graph), expected, "do-while: {is_do_while}, from {start}");
            assert_eq!(rounds.rounds_done_blocking(&steps.stream).unwrap(), u64::from(expected));
        }
    }
}

fn a_limit_ends_loops(steps: &Steps) {
    for (limit, expected) in [(0, 0), (1, 1), (4, 4), (9, 9), (10, 9), (u64::MAX, 9)] {
        // One that runs once at least has no limit of 0.
        for is_do_while in [false, true].into_iter().take(1 + usize::from(limit > 0)) {
            let (graph, number) = (steps.graph(), steps.number(0));
            let start = graph.root().fill(&number, 9).unwrap();
            let going = Test::greater(&number, 0).limit(limit);
            let fill = |body: &LoopBody| steps.round(body, number.as_slice());
            let rounds = match is_do_while {
                true => start.then().do_while_loop(going, fill),
                false => start.then().while_loop(going, fill),
            }
            .unwrap();
            assert_eq!(steps.run(&graph), expected, "limit {limit}, do-while: {is_do_while}");
            assert_eq!(rounds.rounds_done_blocking(&steps.stream).unwrap(), u64::from(expected));
        }
    }
}

/// Loops in loops that each go round so often; the innermost counts.
fn nest(
    steps: &Steps,
    at: &Frontier<'_>,
    numbers: Slice<'_, u32>,
    rounds: &[u32],
) -> Result<Vec<Loop>, Error> {
    let Some((&own, inner)) = rounds.split_first() else { return steps.count(at, 1).map(|_| Vec::new()) };
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

fn loops_in_loops_begin_anew(steps: &Steps) {
    let (graph, numbers) = (steps.graph(), steps.stream.zeros::<u32>(3).unwrap());
    let loops = nest(steps, &graph.root(), numbers.as_slice(), &[2, 3, 4]).unwrap();
    let mut exec = steps.exec(&graph);
    for _ in 0..10 {
        exec.run_blocking(&steps.stream).unwrap();
    }
    assert_eq!(steps.counted(), 240);
    let done = loops.iter().map(|one| one.rounds_done_blocking(&steps.stream).unwrap());
    assert_eq!(done.collect::<Vec<_>>(), [4, 3, 2]);
}

fn a_branch_runs_one_of_two_bodies(steps: &Steps) {
    let (graph, number) = (steps.graph(), steps.number(0));
    let branch = graph
        .root()
        .if_then_else(
            Test::less(&number, 3),
            |then| steps.count(&then.root(), 1),
            |or| steps.count(&or.root(), 10),
        )
        .unwrap()
        .named("branch");
    assert_eq!(branch.inside().0.graph(), &branch.then_body().unwrap());
    assert_eq!(branch.inside().1.graph(), &branch.else_body().unwrap());
    branch.then().if_then(cuda_graph::Test::nonzero(&number), |body| steps.count(&body.root(), 100)).unwrap();
    let mut exec = steps.exec(&graph);
    for (value, expected) in [(0, 1), (2, 101), (3, 110), (0, 1)] {
        steps.stream.fill(&number, value).unwrap();
        exec.run_blocking(&steps.stream).unwrap();
        assert_eq!(steps.counted(), expected, "with {value}");
    }
}

fn kernels_can_read_the_number_of_the_round(steps: &Steps) {
    let (graph, number) = (steps.graph(), steps.number(0));
    let seen = steps.stream.zeros::<u64>(2).unwrap();
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
    assert_eq!(seen.read_blocking(&steps.stream).unwrap(), [4, 5], "in the last round, and after it");
}

fn numbers_compare_as_here(steps: &Steps) {
    let run = |graph: &Graph, stream: &Stream| steps.exec(graph).run_blocking(stream).unwrap();
    compare(&steps.context, &[0_u32, 1, i32::MAX as u32, 1 << 31, u32::MAX], 0, run);
    compare(&steps.context, &[0_i32, 1, -1, i32::MAX, i32::MIN], 0, run);
    compare(&steps.context, &[0_u64, 1 << 32, i64::MAX as u64, 1 << 63, u64::MAX], 0, run);
    compare(&steps.context, &[0_i64, 1, -1, i64::MAX, i64::MIN], 0, run);
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    compare(&steps.context, &[0_f32, -0.0, 1.5, f32::from_bits(1), inf, -inf, nan], 0.0, run);
    compare(&steps.context, &[0_f64, -0.0, 1.5 + f64::EPSILON, f64::from_bits(1), f64::NAN], 0.0, run);
}

fn numbers_lie_in_the_middle_of_memory_and_in_pinned_memory(steps: &Steps) {
    let (graph, numbers) = (steps.graph(), steps.stream.upload(&[1_u32, 1, 6, 1]).unwrap());
    let flag = steps.context.pinned_zeros::<u32>(1).unwrap().share();
    let number = numbers.slice(2..3).unwrap();
    let rounds =
        graph.root().while_loop(cuda_graph::Test::nonzero(number), |body| steps.round(body, number)).unwrap();
    rounds.then().if_then(cuda_graph::Test::nonzero(&flag), |body| steps.count(&body.root(), 100)).unwrap();
    assert_eq!(steps.run(&graph), 6);
    assert_eq!(numbers.read_blocking(&steps.stream).unwrap(), [1, 1, 0, 1]);
    steps.stream.fill(&flag, 2).unwrap();
    assert_eq!(steps.run(&graph), 100);
}

fn branches_beside_loops_come_to_the_same(steps: &Steps) {
    let (graph, number) = (steps.graph(), steps.number(0));
    let cells = steps.stream.zeros::<u32>(4).unwrap();
    let cell = |at: usize| cells.slice(at..=at).unwrap();
    let start = graph.root().fill(&number, 3).unwrap();
    // One branch is a loop with something before and after it, one has none, one is a second loop,
    // and all meet.
    let left = steps.add(&start.then(), 5, cell(0)).unwrap();
    let left = left.then().while_loop(cuda_graph::Test::nonzero(&number), |body| {
        steps.add(&body.root(), 7, cell(0))?;
        steps.add(&body.root(), ONE_LESS, number.as_slice())
    });
    let left = steps.add(&left.unwrap().then(), 11, cell(0)).unwrap();
    let beside = steps.add(&start.then(), 1, cell(1)).unwrap();
    let beside = steps.add(&beside.then(), 2, cell(1)).unwrap();
    let right = start.then().fill(cell(2), 4).unwrap();
    let right = right.then().while_loop(Test::greater(cell(2), 1), |body| {
        let less = steps.add(&body.root(), ONE_LESS, cell(2))?;
        less.then().if_then(Test::equal(cell(2), 2), |body| steps.add(&body.root(), 9, cell(1)))
    });
    let right = right.unwrap();
    beside.then().before([&right]).unwrap().empty().unwrap();
    let join = graph.after([&*left, &*beside, &*right]).unwrap().copy(cell(0), cell(3)).unwrap();
    steps.count(&join.then(), 1).unwrap();
    let mut exec = steps.exec(&graph);
    for round in 1..=10 {
        exec.run_blocking(&steps.stream).unwrap();
        let first = round * (5 + 3 * 7 + 11);
        assert_eq!(cells.read_blocking(&steps.stream).unwrap(), [first, round * 12, 1, first]);
    }
    assert_eq!(steps.counted(), 10);
}

fn loops_stand_in_edges_before_nodes_and_in_embedded_graphs(steps: &Steps) {
    let (graph, number) = (steps.graph(), steps.number(0));
    let start = graph.root().fill(&number, 3).unwrap();
    let last = steps.count(&start.then(), 100).unwrap();
    let fill = |body: &LoopBody| steps.round(body, number.as_slice());
    let first =
        graph.between(&start, &last).unwrap().while_loop(cuda_graph::Test::nonzero(&number), fill).unwrap();
    assert_eq!(last.predecessors().unwrap(), [(**first).clone()]);
    let again = first.then().before([&last]).unwrap();
    let again = again.do_while_loop(Test::nonzero(&number).limit(5), fill).unwrap();
    assert_eq!(last.predecessors().unwrap().len(), 2);
    assert_eq!(steps.run(&graph), 108, "3 rounds, 5 more, and the last node");
    let child = again.then().child(&steps.graph()).unwrap().embedded().unwrap();
    let start = child.root().fill(&number, 1000).unwrap();
    start.then().while_loop(Test::greater(&number, 990), fill).unwrap();
    assert_eq!(steps.run(&graph), 118);
}

fn child_graphs_are_run_in_and_beside_bodies(steps: &Steps) {
    let (graph, inner, outer) = (steps.graph(), steps.graph(), steps.graph());
    let number = steps.number(0);
    let one = steps.count(&inner.root(), 1).unwrap();
    steps.count(&one.then(), 2).unwrap();
    let child = outer.root().child(&inner).unwrap();
    let empty = child.then().child(&steps.graph()).unwrap();
    steps.count(&empty.then(), 10).unwrap();
    let start = graph.root().fill(&number, 3).unwrap();
    let before = start.then().child(&outer).unwrap();
    let rounds = before.then().while_loop(cuda_graph::Test::nonzero(&number), |body| {
        let child = body.root().child(&outer)?;
        steps.add(&child.then(), ONE_LESS, number.as_slice())
    });
    rounds.unwrap().then().child(&outer).unwrap();
    assert_eq!(steps.run(&graph), 5 * 13);
}

fn nodes_of_every_kind_run_beside_a_loop(steps: &Steps) {
    let (graph, stream) = (steps.graph(), &steps.stream);
    let number = steps.number(0);
    let (source, target) =
        (stream.upload(&[1_u32, 2, 3, 4, 5, 6, 7, 8]).unwrap(), stream.zeros::<u32>(8).unwrap());
    let pinned = steps.context.pinned_zeros::<u32>(8).unwrap().share();
    let plain = steps.context.alloc_blocking::<u32>(1).unwrap();
    let (begin, end) = (steps.context.event().unwrap(), steps.context.event().unwrap());
    let calls = Arc::new(AtomicU32::new(0));
    let mut batch = Batch::new();
    batch.write(&plain, 0, 77).unwrap();
    let draw = |at: &Frontier<'_>| -> Result<Node, Error> {
        let fill = at.fill_2d(&target, 4, [2, 2], 9)?;
        let (from, to) = (source.slice(2..)?, target.slice(2..)?);
        let (source, destination, pitch) = (from, to, 4);
        let corner = Copy2d {
            source,
            source_pitch: pitch,
            destination,
            destination_pitch: pitch,
            width: 2,
            height: 2,
        };
        let copy = fill.then().copy_2d(corner)?;
        let copied = copy.then().copy(&target, &pinned)?;
        let calls = Arc::clone(&calls);
        let host = copied.then().host(move || {
            calls.fetch_add(1, Ordering::SeqCst);
        })?;
        let waits = host.then().record(&begin)?.then().wait(&begin)?.then().record(&end)?;
        let config = LaunchConfig::new(1, 1).priority(-1);
        let kernel = waits.then().batch(&batch)?.then().launch(&steps.add, config, (1, &steps.runs))?;
        Ok(kernel.then().empty()?.into())
    };
    let before = draw(&graph.root()).unwrap();
    let start = before.then().fill(&number, 2).unwrap();
    let rounds = start
        .then()
        .while_loop(cuda_graph::Test::nonzero(&number), |body| steps.round(body, number.as_slice()))
        .unwrap();
    draw(&rounds.then()).unwrap();
    let mut exec = steps.exec(&graph);
    exec.run_blocking(stream).unwrap();
    assert_eq!((steps.counted(), calls.load(Ordering::SeqCst), steps.read(&plain)), (4, 2, 77));
    assert_eq!(pinned.read_blocking(stream).unwrap(), [9, 9, 3, 4, 9, 9, 7, 8]);
    assert!(begin.query().unwrap() && end.elapsed_since(&begin).is_ok());
}

fn changes_of_the_graph_are_in_the_next_executable(steps: &Steps) {
    let (graph, number) = (steps.graph(), steps.number(0));
    let start = graph.root().fill(&number, 3).unwrap();
    let rounds = start
        .then()
        .while_loop(cuda_graph::Test::nonzero(&number), |body| steps.round(body, number.as_slice()))
        .unwrap();
    let mut before = steps.exec(&graph);
    start.set(&number, 5).unwrap();
    let counted = KernelNode::try_from(rounds.inside().predecessors().unwrap().remove(0)).unwrap();
    let counts = |amount| counted.set(&steps.add, per(1, 1), (amount, &steps.runs)).unwrap();
    counts(10);
    before.run_blocking(&steps.stream).unwrap();
    assert_eq!(steps.counted(), 3, "as the graph was");
    drop(before);
    assert_eq!(steps.run(&graph), 50);
    counts(100);
    steps.count(&counted.then(), 1000).unwrap();
    assert_eq!(steps.run(&graph), 5500);
    rounds.remove().unwrap();
    if steps.by == By::Need {
        // The place holders of the decisions decide about nothing.
        assert_eq!(graph.len().unwrap(), 2);
        graph.instantiate().unwrap().launch(&steps.stream).unwrap();
        assert_eq!((steps.read(&number), steps.counted()), (5, 0));
    } else {
        assert!(matches!(
            graph.instantiate().unwrap_err(),
            Error::Condition(ConditionError::UnusedCondition { .. })
        ));
    }
}

fn nodes_may_come_before_and_after_the_decision(steps: &Steps) {
    let (graph, number) = (steps.graph(), steps.number(3));
    let rounds =
        graph.root().while_loop(Test::nonzero(&number).limit(4), |body| steps.round(body, number.as_slice()));
    let rounds = rounds.unwrap();
    let body = rounds.body().unwrap();
    let decides = body.nodes().unwrap().pop().unwrap();
    // What is done after the decision changes the number for the next one only.
    let more = steps.add(&decides.then(), 1, number.as_slice()).unwrap();
    steps.count(&more.then(), 10).unwrap();
    let first = rounds.inside().predecessors().unwrap().remove(0);
    body.root().before([&first]).unwrap().fill(&steps.runs, 1000).unwrap();
    assert_eq!(steps.run(&graph), 1011);
    assert_eq!((rounds.rounds_done_blocking(&steps.stream).unwrap(), steps.read(&number)), (4, 3));
    // It is 0 at the decision of the first round, and 1 after it.
    steps.stream.fill(&number, 1).unwrap();
    assert_eq!(steps.run(&graph), 1011);
    assert_eq!((rounds.rounds_done_blocking(&steps.stream).unwrap(), steps.read(&number)), (1, 1));
}

fn a_loop_without_its_first_decision_runs_no_round(steps: &Steps) {
    let (graph, number) = (steps.graph(), steps.number(3));
    let rounds = graph
        .root()
        .while_loop(cuda_graph::Test::nonzero(&number), |body| steps.round(body, number.as_slice()))
        .unwrap();
    rounds.predecessors().unwrap().remove(0).remove().unwrap();
    assert_eq!(steps.run(&graph), 0);
}

fn what_a_run_uses_outlives_its_handles(steps: &Steps) {
    let (graph, number) = (steps.graph(), steps.number(4));
    let rounds = graph
        .root()
        .while_loop(cuda_graph::Test::nonzero(&number), |body| steps.round(body, number.as_slice()))
        .unwrap();
    let memory = [number.allocation(), rounds.rounds_done().allocation()].map(Arc::downgrade);
    drop((number, rounds));
    let mut exec = steps.exec(&graph);
    drop(graph);
    exec.run_blocking(&steps.stream).unwrap();
    assert_eq!(steps.counted(), 4);
    assert!(memory.iter().all(|memory| memory.strong_count() > 0));
    drop(exec);
    assert!(until(SOON, || memory.iter().all(|memory| memory.strong_count() == 0)));
}

fn bodies_lie_in_bodies_however_deep(steps: &Steps) {
    // A GPU's driver took 512 at least.
    let deep = if steps.by == By::Need { 2000 } else { 200 };
    let (graph, number) = (steps.graph(), steps.number(1));
    let mut body = graph.clone();
    for _ in 0..deep {
        let branch = body.root().if_then(cuda_graph::Test::nonzero(&number), |_| Ok::<_, Error>(())).unwrap();
        body = branch.body().unwrap();
        steps.count(&body.root(), 1).unwrap();
    }
    assert_eq!(steps.run(&graph), deep);
    graph.nodes().unwrap().pop().unwrap().remove().unwrap();
    assert!(matches!(body.len().unwrap_err(), Error::Node(NodeError::GraphRemoved)));
}
