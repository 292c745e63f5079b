//! Ready-made loops and branches about which the host decides: what the device comes to, on drivers that have nodes for them and on those that have none.

use cuda_graph::{
    ContextExt, Error, Fallback, Frontier, Graph, HostCounts, HostLoopExec, InstantiateOptions, KernelNode,
    Loop, LoopBody, NodeKind, Test,
};
use cuda_handles::{Buffer, Context, Slice, Stream};
use cuda_launch::per;
use cuda_tests::{alone, count, no_leaks, setup};

use crate::conditionals::increment_by;

/// What is added to count one down.
const ONE_LESS: u32 = u32::MAX;

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

/// Each scenario runs by the device, by the host, and where the driver leaves it to the host.
macro_rules! scenarios {
    ($($name:ident)*) => { $(
        mod $name {
            use super::*;

            #[test]
            fn by_the_device() {
                let context = setup();
                if !has_all() {
                    cuda_tests::skip!("the driver has not all conditional nodes");
                }
                no_leaks(|| super::$name(&Steps::new(&context, By::Device)));
            }

            #[test]
            fn by_the_host() {
                let context = setup();
                let by = if has_all() { By::Host } else { By::Need };
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

fn has_all() -> bool {
    cuda_tests::raw::driver().version() >= cuda_sys::Version::new(12, 8)
}

scenarios! {
    a_loop_runs_as_long_as_a_number_is_not_0
    a_while_may_run_no_round_and_a_do_while_runs_one
    a_limit_ends_loops
    loops_in_loops_begin_anew
    a_branch_runs_one_of_two_bodies
}

fn a_loop_runs_as_long_as_a_number_is_not_0(steps: &Steps) {
    let (graph, number) = (steps.graph(), steps.number(0));
    let start = graph.root().fill(&number, 7).unwrap();
    let rounds = start.then().while_nonzero(&number, |body| steps.round(body, number.as_slice())).unwrap();
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
            true => at.then().do_while_nonzero(&number, fill),
            false => at.then().while_nonzero(&number, fill),
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
        for is_do_while in [false, true] {
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
    let this = start.then().while_nonzero(number, |body| -> Result<(), Error> {
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
    branch.then().if_nonzero(&number, |body| steps.count(&body.root(), 100)).unwrap();
    let mut exec = steps.exec(&graph);
    for (value, expected) in [(0, 1), (2, 101), (3, 110), (0, 1)] {
        steps.stream.fill(&number, value).unwrap();
        exec.run_blocking(&steps.stream).unwrap();
        assert_eq!(steps.counted(), expected, "with {value}");
    }
}

#[test]
fn without_asking_an_older_driver_is_named_and_the_way_out() {
    alone!("CUDA_SOFT_VERSION" = "12.2", "CUDA_TEST_DRIVER" = "soft");
    let context = setup();
    no_leaks(|| {
        let steps = Steps::new(&context, By::Need);
        let (graph, number) = (steps.graph(), steps.number(0));
        graph.root().while_nonzero(&number, |body| steps.round(body, number.as_slice())).unwrap().named("it");
        let (error, cost) = count(|| graph.instantiate().unwrap_err());
        let text = error.to_string();
        assert!(matches!(error, Error::NeedsHost { .. }), "{text}");
        for part in ["`it`", "12.3", "12.2", "Fallback::HostLoop"] {
            assert!(text.contains(part), "{text}");
        }
        cost.assert_calls(&[]);
        assert!(matches!(graph.lend().unwrap_err(), Error::NeedsHost { .. }));
        assert_eq!(steps.run(&graph), 0);
        assert_eq!(steps.exec(&graph).counts(), HostCounts::default());
    });
}
