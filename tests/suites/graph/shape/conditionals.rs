//! Graphs with loops and branches are shaped level by level: the graph, and each body by itself.

use core::cell::RefCell;

use cuda_graph::{
    CacheOptions, ContextExt, Error, ExecError, Graph, GraphCache, GraphExec, InstantiateOptions, KernelNode,
    Node, Order, RefusalReason, Shape, ShapeReport, Test, WhileNode,
};
use cuda_handles::{Buffer, Context, Stream};
use cuda_launch::{params, per};
use cuda_sys::{CUresult, Call};
use cuda_tests::{count, fail, is_soft, kernel, needs, no_leaks, setup};
use proptest::prelude::*;

use super::{first, shaped, shapes};
use crate::capture::{N, add_to, count_down};
use crate::conditions::branches_and_loops::set_from;

pub(super) const ONE_LESS: u32 = u32::MAX;

/// The notes about bodies.
fn notes_of_bodies(report: &ShapeReport) -> Vec<&str> {
    report.notes().iter().map(String::as_str).filter(|note| note.starts_with("in ")).collect()
}

pub(super) struct Bench {
    pub(super) context: Context,
    pub(super) stream: Stream,
    pub(super) add: add_to,
    pub(super) count_down: count_down,
    pub(super) set_from: set_from,
}

impl Bench {
    pub(super) fn new(context: &Context) -> Self {
        Self {
            context: context.clone(),
            stream: context.stream().unwrap(),
            add: add_to::load(context).unwrap(),
            count_down: count_down::load(context).unwrap(),
            set_from: set_from::load(context).unwrap(),
        }
    }

    pub(super) fn number(&self, value: u32) -> Buffer<u32> {
        self.stream.upload(&[value]).unwrap()
    }

    /// Fills a graph with a fork of two and a join, a redundant edge and an empty node.
    fn diamond(&self, graph: &Graph, amount: u32, memory: [&Buffer<u32>; 2]) -> [KernelNode; 3] {
        let launch = |at: &cuda_graph::Frontier<'_>, amount, memory| {
            at.launch(&self.add, per(1, 1), (amount, memory)).unwrap()
        };
        let begin = launch(&graph.root(), amount, memory[0]);
        let join = begin.then().empty().unwrap();
        let left = launch(&join.then(), amount, memory[0]);
        let right = launch(&join.then(), amount, memory[1]);
        let end = graph.after([&begin, &left, &right]).unwrap();
        [begin, right, launch(&end, amount, memory[1])]
    }
}

/// A loop whose condition a kernel of the user sets, in front of which and in whose body there is
/// something to shape.
struct Rounds {
    graph: Graph,
    node: WhileNode,
    /// Kernels of the body.
    inside: [KernelNode; 3],
    last: KernelNode,
}

impl Rounds {
    /// Adds to two numbers in each round: twice the amount to each.
    fn new(bench: &Bench, counter: &Buffer<u32>, amount: u32, memory: [&Buffer<u32>; 2]) -> Self {
        let graph = bench.context.graph().unwrap();
        let go_on = graph.condition_with_default(1).unwrap();
        let start = graph.root().fill(counter, 3).unwrap();
        let between = start.then().empty().unwrap();
        let node = graph.after([&*start, &*between]).unwrap().while_node(&go_on).unwrap();
        let body = node.body().unwrap();
        let inside = bench.diamond(&body, amount, memory);
        let all = body.nodes().unwrap();
        let last = body.after_all(&all).unwrap();
        let last = last.launch(&bench.count_down, per(1, 1), (counter, &go_on)).unwrap();
        Self { graph, node, inside, last }
    }
}

#[test]
fn loops_and_branches_of_each_kind_do_as_drawn() {
    let context = setup();
    needs!(Branches);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let (x, y, counter) = (bench.number(0), bench.number(0), bench.number(0));
        let (chosen, either) = (bench.number(0), bench.number(0));
        let graph = context.graph().unwrap();
        let memory = [&x, &y];
        // A loop in a loop: the inner one begins with its default in each round.
        let outer = graph.condition_with_default(1).unwrap();
        let inner = graph.condition_with_default(1).unwrap();
        let rounds = bench.number(0);
        let start = graph.root().fill(&counter, 2).unwrap();
        let outer_loop = start.then().while_node(&outer).unwrap();
        let outer_body = outer_loop.body().unwrap();
        let reset = outer_body.root().fill(&rounds, 3).unwrap();
        let inner_loop = reset.then().while_node(&inner).unwrap();
        let inner_body = inner_loop.body().unwrap();
        bench.diamond(&inner_body, 1, memory);
        let all = inner_body.nodes().unwrap();
        let end = inner_body.after_all(&all).unwrap();
        end.launch(&bench.count_down, per(1, 1), (&rounds, &inner)).unwrap();
        let end = inner_loop.then();
        end.launch(&bench.count_down, per(1, 1), (&counter, &outer)).unwrap();
        // A switch, in which one branch holds a child graph.
        let condition = graph.condition().unwrap();
        let set = outer_loop.then().launch(&bench.set_from, per(1, 1), (&chosen, &condition)).unwrap();
        let switch = set.then().switch_node(&condition, 3).unwrap();
        let branches = switch.bodies().unwrap();
        bench.diamond(&branches[0], 100, memory);
        let child = context.graph().unwrap();
        bench.diamond(&child, 1_000, memory);
        branches[2].root().child(&child).unwrap();
        // A ready-made branch with two bodies.
        let test = Test::nonzero(&either);
        let then = |body: &Graph| Ok::<_, Error>(bench.diamond(body, 10_000, memory));
        let otherwise = |body: &Graph| Ok::<_, Error>(bench.diamond(body, 100_000, memory));
        switch.then().if_then_else(test, then, otherwise).unwrap();
        let run = |exec: &mut GraphExec, choice: u32, branch: u32| {
            stream.clear(&x).unwrap();
            stream.clear(&y).unwrap();
            stream.fill(&chosen, choice).unwrap();
            stream.fill(&either, branch).unwrap();
            exec.launch(stream).unwrap();
            (first(&x, stream), first(&y, stream))
        };
        for shape in shapes().into_iter().chain([Shape::AsBuilt]) {
            let mut exec = shaped(&graph, shape);
            if let Some(report) = exec.shape_report() {
                assert!(report.reason_to_leave().is_none(), "{report}");
                let notes = notes_of_bodies(report);
                for body in ["body of", "branch 0 of", "branch 2 of", "then of", "else of"] {
                    assert!(notes.iter().any(|note| note[3..].starts_with(body)), "{body}: {report}");
                }
            }
            for _ in 0..2 {
                for (choice, of_choice) in [(0, 200), (1, 0), (2, 2_000), (3, 0)] {
                    for (branch, of_branch) in [(0, 200_000), (1, 20_000)] {
                        let sum = 12 + of_choice + of_branch;
                        assert_eq!(run(&mut exec, choice, branch), (sum, sum), "{shape:?}");
                    }
                }
            }
        }
    });
}

#[test]
fn ready_made_loops_in_a_child_graph_are_expanded_with_it() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let (x, y, counter) = (bench.number(0), bench.number(0), bench.number(0));
        for shape in shapes() {
            let graph = context.graph().unwrap();
            let start = graph.root().fill(&counter, 4).unwrap();
            let child = start.then().child(&context.graph().unwrap()).unwrap();
            let embedded = child.embedded().unwrap();
            let rounds = embedded
                .root()
                .do_while_loop(Test::nonzero(&counter), |body| {
                    let [.., last] = bench.diamond(body, 1, [&x, &y]);
                    last.then().launch(&bench.add, per(1, 1), (ONE_LESS, &counter))
                })
                .unwrap();
            child.then().launch(&bench.add, per(1, 1), (10, &x)).unwrap();
            let mut exec = shaped(&graph, shape);
            assert!(exec.shape_report().unwrap().reason_to_leave().is_none());
            stream.clear(&x).unwrap();
            stream.clear(&y).unwrap();
            exec.launch(stream).unwrap();
            exec.launch(stream).unwrap();
            assert_eq!((first(&x, stream), first(&y, stream)), (36, 16), "{shape:?}");
            assert_eq!(rounds.rounds_done_blocking(stream).unwrap(), 4);
        }
    });
}

#[test]
fn nodes_of_bodies_are_set_enabled_and_refused_by_the_drawn_nodes() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let [x, y, z, counter] = [0; 4].map(|value| bench.number(value));
        for shape in shapes() {
            [&x, &y, &z].into_iter().for_each(|numbers| stream.clear(numbers).unwrap());
            let rounds = Rounds::new(&bench, &counter, 1, [&x, &y]);
            let Rounds { graph, inside: [begin, right, _], last, .. } = &rounds;
            let mut exec = shaped(graph, shape);
            assert!(!notes_of_bodies(exec.shape_report().unwrap()).is_empty());
            exec.node(begin).set(&bench.add, per(1, 1), (10, &z)).unwrap();
            exec.node(right).set_enabled(false).unwrap();
            assert!(!exec.node(right).is_enabled().unwrap());
            exec.launch(stream).unwrap();
            let read = || [&x, &y, &z].map(|numbers| first(numbers, stream));
            assert_eq!(read(), [3, 3, 30], "{shape:?}");
            exec.node(right).set_enabled(true).unwrap();
            exec.launch(stream).unwrap();
            assert_eq!(read(), [6, 9, 60], "{shape:?}");
            // The kernel that decides stays as it is.
            let refused = exec.node(last).set_enabled(false).unwrap_err().to_string();
            assert!(refused.contains("decides about a condition"), "{refused}");
            assert!(rounds.node.body().is_ok());
        }
    });
}

#[test]
fn parameters_are_used_in_bodies() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let counters: Vec<_> = (0..4).map(|rounds| bench.number(rounds)).collect();
        let totals: Vec<_> = (0..4).map(|_| bench.number(0)).collect();
        let graph = context.graph().unwrap();
        let (counter, total) = (graph.param(&counters[0]).unwrap(), graph.param(&totals[0]).unwrap());
        let amount = graph.param(1_u32).unwrap();
        let start = graph.root().empty().unwrap();
        start
            .then()
            .while_loop(Test::nonzero(&counter), |body| {
                let down = body.root().launch(&bench.add, per(1, 1), (ONE_LESS, &counter))?;
                let join = down.then().empty()?;
                body.after([&*down, &*join])?.launch(&bench.add, per(1, 1), (&amount, &total))
            })
            .unwrap();
        for shape in shapes() {
            let mut exec = shaped(&graph, shape);
            assert!(exec.shape_report().unwrap().reason_to_leave().is_none());
            for (rounds, (given, to)) in (0..).zip(counters.iter().zip(&totals)) {
                stream.fill(given, rounds).unwrap();
                stream.clear(to).unwrap();
                exec.launch_with(stream, ((&counter, given), (&total, to), (&amount, 10))).unwrap();
                assert_eq!((first(given, stream), first(to, stream)), (0, 10 * rounds), "{shape:?}");
            }
            // Two kernels of the library decide, and one counts.
            let other = bench.number(3);
            let ((), calls) = count(|| exec.launch_with(stream, ((&counter, &other),)).unwrap());
            calls.assert_calls(&[("cuGraphExecNodeSetParams", 3), ("cuGraphLaunch", 1)]);
            assert_eq!(first(&other, stream), 0);
        }
    });
}

#[test]
fn whole_updates_take_the_own_graph_and_others_with_their_bodies() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let [x, y, counter, more] = [0; 4].map(|value| bench.number(value));
        for shape in shapes() {
            stream.clear(&x).unwrap();
            stream.clear(&y).unwrap();
            let own = Rounds::new(&bench, &counter, 1, [&x, &y]);
            let mut exec = shaped(&own.graph, shape);
            exec.launch(stream).unwrap();
            own.inside[0].set(&bench.add, per(1, 1), (2, &x)).unwrap();
            assert!(exec.update(&own.graph).unwrap().is_updated());
            exec.launch(stream).unwrap();
            let read = || [&x, &y].map(|numbers| first(numbers, stream));
            assert_eq!(read(), [6 + 9, 12], "{shape:?}");

            let second = Rounds::new(&bench, &more, 100, [&x, &y]);
            assert!(exec.update(&second.graph).unwrap().is_updated(), "{shape:?}");
            exec.launch(stream).unwrap();
            assert_eq!(read(), [615, 612], "{shape:?}");
            // The nodes of both graphs stand for those of the executable.
            exec.node(&second.inside[2]).set(&bench.add, per(1, 1), (0, &y)).unwrap();
            exec.node(&own.inside[1]).set(&bench.add, per(1, 1), (0, &y)).unwrap();
            exec.launch(stream).unwrap();
            assert_eq!(read(), [1_215, 612], "{shape:?}");

            // Other nodes in the body.
            let other = Rounds::new(&bench, &more, 100, [&x, &y]);
            other.node.body().unwrap().root().launch(&bench.add, per(1, 1), (1, &x)).unwrap();
            let refused = exec.update(&other.graph).unwrap();
            assert_eq!(refused.refusal().unwrap().reason, RefusalReason::Shaped);
            exec.launch(stream).unwrap();
            assert_eq!(read(), [1_815, 612]);
            // A branch in place of the loop.
            let branch = context.graph().unwrap();
            let condition = branch.condition_with_default(1).unwrap();
            let start = branch.root().fill(&more, 3).unwrap();
            let between = start.then().empty().unwrap();
            let node = branch.after([&*start, &*between]).unwrap().if_node(&condition).unwrap();
            let body = node.body().unwrap();
            bench.diamond(&body, 1, [&x, &y]);
            let all = body.nodes().unwrap();
            let last = body.after_all(&all).unwrap();
            last.launch(&bench.count_down, per(1, 1), (&more, &condition)).unwrap();
            let refused = exec.update(&branch).unwrap();
            assert!(!refused.is_updated());
            exec.launch(stream).unwrap();
            assert_eq!(read(), [2_415, 612]);
            drop(exec);
            // The graphs can have an executable again.
            second.graph.instantiate().unwrap().launch(stream).unwrap();
            assert_eq!(read(), [3_015, 1_212]);
        }
    });
}

#[test]
fn a_cache_updates_shaped_executables_with_loops() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let [x, y, counter] = [0; 3].map(|value| bench.number(value));
        let cache: GraphCache<u32, ()> = GraphCache::new(CacheOptions::new());
        let options = InstantiateOptions::new().shape(Shape::Auto);
        let mut expected = 0;
        for stamp in 0..4_u32 {
            let build = || Ok((Rounds::new(&bench, &counter, stamp, [&x, &y]).graph, ()));
            let mut cached = cache.get_with(stream, &options, 1, u64::from(stamp), build).unwrap();
            cached.parts().0.launch(stream).unwrap();
            drop(cached);
            expected += 6 * stamp;
            assert_eq!([&x, &y].map(|numbers| first(numbers, stream)), [expected; 2]);
        }
        assert_eq!(cache.statistics().updates, 3, "{:?}", cache.statistics());
    });
}

#[test]
fn such_a_graph_has_one_executable_at_a_time_shaped_or_not() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let [x, y, counter] = [0; 3].map(|value| bench.number(value));
        let rounds = Rounds::new(&bench, &counter, 1, [&x, &y]);
        let exec = shaped(&rounds.graph, Shape::Reduced);
        for shape in [Shape::AsBuilt, Shape::Reduced] {
            let second = rounds.graph.instantiate_with(InstantiateOptions::new().shape(shape));
            let expected = Error::Exec(ExecError::OneExecutable { of: "conditional nodes" });
            assert_eq!(second.unwrap_err(), expected);
        }
        drop(exec);
        drop(shaped(&rounds.graph, Shape::AsBuilt));
        drop(shaped(&rounds.graph, Shape::Reduced));
    });
}

#[test]
fn a_driver_that_refuses_a_condition_or_a_body_is_asked_for_the_graph_as_drawn() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let stream = &bench.stream;
        let [x, y, counter] = [0; 3].map(|value| bench.number(value));
        let rounds = Rounds::new(&bench, &counter, 1, [&x, &y]);
        // The fill, the loop, and the body's nodes.
        let steps = [(Call::cuGraphConditionalHandleCreate, 1)]
            .into_iter()
            .chain((1..=4).map(|nth| (Call::cuGraphAddNode, nth)));
        let mut expected = 0;
        for (step, nth) in steps {
            let failure = fail(step, nth, CUresult::CUDA_ERROR_OUT_OF_MEMORY);
            let mut exec = shaped(&rounds.graph, Shape::Reduced);
            assert!(failure.hit(), "{step:?}");
            drop(failure);
            let why = exec.shape_report().unwrap().reason_to_leave().unwrap().to_owned();
            assert!(why.contains("OUT_OF_MEMORY"), "{why}");
            exec.launch(stream).unwrap();
            expected += 6;
            assert_eq!([&x, &y].map(|numbers| first(numbers, stream)), [expected; 2]);
        }
    });
}

#[test]
fn nothing_is_done_in_a_body_beside_a_kernel_that_may_wait() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let bench = Bench::new(&context);
        let increment = kernel(&context, "increment");
        let [x, counter] = [0; 2].map(|value| bench.number(value));
        let numbers = bench.stream.zeros::<u32>(N).unwrap();
        let many: Vec<_> = (0..4).map(|_| bench.number(0)).collect();
        let report = |is_beside: bool, options: InstantiateOptions| {
            let graph = context.graph().unwrap();
            let start = graph.root().fill(&counter, 1).unwrap();
            let branch = start
                .then()
                .if_then(Test::nonzero(&counter), |body| {
                    let begin = body.root().launch(&bench.add, per(1, 1), (1, &x))?;
                    for number in &many {
                        begin.then().launch(&bench.add, per(1, 1), (1, number))?;
                    }
                    Ok::<_, Error>(())
                })
                .unwrap();
            let at = if is_beside { start.then() } else { branch.then() };
            // SAFETY: the kernel increments the numbers that it is given.
            unsafe { at.launch_untyped(&increment, per(1, 1), params![&numbers, 1_u32]) }.unwrap();
            let lanes = shapes()[2];
            let exec = graph.instantiate_with(options.shape(lanes)).unwrap();
            exec.shape_report().unwrap().to_string()
        };
        let (threaded, around) = ("threaded 4 nodes", "beside the conditional node may wait");
        let found = report(false, InstantiateOptions::new());
        assert!(found.contains(threaded) && !found.contains(around), "{found}");
        let found = report(true, InstantiateOptions::new());
        assert!(!found.contains(threaded) && found.contains(around), "{found}");
        let found = report(true, InstantiateOptions::new().assume_progress());
        assert!(found.contains(threaded) && !found.contains(around), "{found}");
    });
}

const ORDERS: [Order; 2] = [Order::AsDrawn, Order::ByData];

const CELLS: usize = 3;
type Cells = [u32; CELLS];

#[derive(Clone, Debug)]
enum Operation {
    Fill { cell: usize, value: u32 },
    Add { cell: usize, amount: u32 },
    Copy { from: usize, to: usize },
    Repeat { times: u32, body: Vec<Step> },
    Branch { cell: usize, least: u32, then: Vec<Step>, otherwise: Vec<Step> },
    Child { inside: Vec<Step> },
}

/// An operation, and the operations before that it waits for without need.
#[derive(Clone, Debug)]
struct Step {
    operation: Operation,
    more: Vec<prop::sample::Index>,
    /// Whether it waits for an empty node that waits for all of them.
    is_joined: bool,
}

impl Operation {
    fn run(&self, cells: &mut Cells) {
        match self {
            Self::Fill { cell, value } => cells[*cell] = *value,
            Self::Add { cell, amount } => cells[*cell] = cells[*cell].wrapping_add(*amount),
            Self::Copy { from, to } => cells[*to] = cells[*from],
            Self::Repeat { times, body } => (0..*times).for_each(|_| run_all(body, cells)),
            Self::Child { inside } => run_all(inside, cells),
            Self::Branch { cell, least, then, otherwise } => {
                let body = if cells[*cell] >= *least { then } else { otherwise };
                run_all(body, cells);
            }
        }
    }

    fn uses(&self, cell: usize) -> bool {
        let any = |steps: &[Step]| steps.iter().any(|step| step.operation.uses(cell));
        match self {
            Self::Fill { cell: used, .. } | Self::Add { cell: used, .. } => *used == cell,
            Self::Copy { from, to } => *from == cell || *to == cell,
            Self::Repeat { body: inside, .. } | Self::Child { inside } => any(inside),
            Self::Branch { cell: tested, then, otherwise, .. } => {
                *tested == cell || any(then) || any(otherwise)
            }
        }
    }

    fn conflicts(&self, other: &Self) -> bool {
        (0..CELLS).any(|cell| self.uses(cell) && other.uses(cell))
    }
}

/// The amounts that are added, in the order in which the kernels are made.
fn amounts<'s>(steps: &'s mut [Step], found: &mut Vec<&'s mut u32>) {
    for step in steps {
        match &mut step.operation {
            Operation::Fill { .. } | Operation::Copy { .. } => {}
            Operation::Add { amount, .. } => found.push(amount),
            Operation::Repeat { body: inside, .. } | Operation::Child { inside } => amounts(inside, found),
            Operation::Branch { then, otherwise, .. } => {
                amounts(then, found);
                amounts(otherwise, found);
            }
        }
    }
}

fn run_all(steps: &[Step], cells: &mut Cells) {
    steps.iter().for_each(|step| step.operation.run(cells));
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = |operation: BoxedStrategy<Operation>| {
        let more = prop::collection::vec(any::<prop::sample::Index>(), 0..3);
        let parts = (operation, more, any::<bool>());
        parts.prop_map(|(operation, more, is_joined)| Step { operation, more, is_joined })
    };
    let (cell, number) = (0..CELLS, 1..9_u32);
    let plain = prop_oneof![
        (cell.clone(), number.clone()).prop_map(|(cell, value)| Operation::Fill { cell, value }),
        (cell.clone(), number.clone()).prop_map(|(cell, amount)| Operation::Add { cell, amount }),
        (cell.clone(), 1..CELLS)
            .prop_map(|(from, apart)| Operation::Copy { from, to: (from + apart) % CELLS }),
    ];
    let nested = step(plain.boxed()).prop_recursive(2, 24, 6, move |inner| {
        let body = prop::collection::vec(inner, 1..6);
        let nested = prop_oneof![
            (0..4_u32, body.clone()).prop_map(|(times, body)| Operation::Repeat { times, body }),
            body.clone().prop_map(|inside| Operation::Child { inside }),
            (cell.clone(), number.clone(), body.clone(), body).prop_map(|(cell, least, then, otherwise)| {
                Operation::Branch { cell, least: 3 * least, then, otherwise }
            }),
        ];
        step(nested.boxed())
    });
    prop::collection::vec(nested, 1..8)
}

struct Programs<'b> {
    bench: &'b Bench,
    cells: Vec<Buffer<u32>>,
    /// The kernels that add, of the programs built since it was emptied.
    added: RefCell<Vec<(usize, KernelNode)>>,
}

impl Programs<'_> {
    fn build(&self, graph: &Graph, steps: &[Step]) {
        let mut nodes: Vec<Node> = Vec::new();
        for (at, step) in steps.iter().enumerate() {
            let mut before: Vec<usize> =
                (0..at).filter(|other| steps[*other].operation.conflicts(&step.operation)).collect();
            if at > 0 {
                before.extend(step.more.iter().map(|index| index.index(at)));
            }
            before.sort_unstable();
            before.dedup();
            let after = graph.after_all(before.iter().map(|other| &nodes[*other])).unwrap();
            let joined = step.is_joined.then(|| after.empty().unwrap());
            nodes.push(self.add(&joined.map_or(after, |joined| graph.after_all([&*joined]).unwrap()), step));
        }
    }

    fn add(&self, at: &cuda_graph::Frontier<'_>, step: &Step) -> Node {
        let (bench, cells) = (self.bench, &self.cells);
        match &step.operation {
            Operation::Fill { cell, value } => at.fill(&cells[*cell], *value).unwrap().into(),
            Operation::Add { cell, amount } => {
                let node = at.launch(&bench.add, per(1, 1), (*amount, &cells[*cell])).unwrap();
                self.added.borrow_mut().push((*cell, node.clone()));
                node.into()
            }
            Operation::Child { inside } => {
                let child = at.child(&bench.context.graph().unwrap()).unwrap();
                self.build(&child.embedded().unwrap(), inside);
                child.into()
            }
            Operation::Copy { from, to } => at.copy(&cells[*from], &cells[*to]).unwrap().into(),
            Operation::Repeat { times, body: steps } => {
                let counter = bench.number(0);
                let start = at.fill(&counter, *times).unwrap();
                let rounds = start.then().while_loop(Test::nonzero(&counter), |body| {
                    self.build(body, steps);
                    let all = body.nodes()?;
                    body.after_all(&all)?.launch(&bench.add, per(1, 1), (ONE_LESS, &counter))
                });
                (**rounds.unwrap()).clone()
            }
            Operation::Branch { cell, least, then, otherwise } => {
                let fill = |body: &Graph, steps: &[Step]| {
                    self.build(body, steps);
                    Ok::<_, Error>(())
                };
                let test = Test::at_least(&cells[*cell], *least);
                let branch = at.if_then_else(test, |body| fill(body, then), |body| fill(body, otherwise));
                (**branch.unwrap()).clone()
            }
        }
    }

    fn read(&self) -> Cells {
        core::array::from_fn(|cell| first(&self.cells[cell], &self.bench.stream))
    }
}

#[test]
fn each_shape_of_random_loops_and_branches_computes_what_the_operations_do_in_turn() {
    let context = setup();
    needs!(Branches);
    let cases = if is_soft() { 40 } else { 150 };
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    no_leaks(|| {
        // Kernels that can be at programmatic edges.
        let add = add_to::load_waiting(&context).unwrap();
        let bench = Bench { add, ..Bench::new(&context) };
        let cells = (0..CELLS).map(|_| bench.number(0)).collect();
        let programs = Programs { bench: &bench, cells, added: RefCell::default() };
        let mut runner = proptest::test_runner::TestRunner::new(config.clone());
        let checked = runner.run(&steps(), |steps| {
            let graph = bench.context.graph().unwrap();
            programs.build(&graph, &steps);
            for (shape, order) in shapes().into_iter().flat_map(|shape| ORDERS.map(|order| (shape, order))) {
                let mut expected = programs.read();
                let options = InstantiateOptions::new().shape(shape).order(order).programmatic_edges(true);
                let mut exec = graph.instantiate_with(options).unwrap();
                let report = exec.shape_report().unwrap();
                let reason = report.reason_to_leave();
                prop_assert!(reason.is_none_or(|why| why == "no change would make it faster"), "{}", report);
                for _ in 0..2 {
                    exec.launch(&bench.stream).unwrap();
                    run_all(&steps, &mut expected);
                }
                prop_assert_eq!(programs.read(), expected, "{:?}: {}", shape, exec.shape_report().unwrap());
            }
            Ok(())
        });
        checked.unwrap();
    });
}

#[test]
fn random_loops_and_branches_are_updated_by_their_nodes_and_as_a_whole() {
    let context = setup();
    needs!(Branches);
    let cases = if is_soft() { 40 } else { 100 };
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    no_leaks(|| {
        let bench = Bench::new(&context);
        let cells = (0..CELLS).map(|_| bench.number(0)).collect();
        let programs = Programs { bench: &bench, cells, added: RefCell::default() };
        let build = |steps: &[Step]| {
            let graph = bench.context.graph().unwrap();
            programs.added.take();
            programs.build(&graph, steps);
            (graph, programs.added.take())
        };
        let mut runner = proptest::test_runner::TestRunner::new(config.clone());
        let changes = prop::collection::vec((any::<prop::sample::Index>(), 0..20_u32, any::<bool>()), 1..6);
        let checked = runner.run(&(steps(), changes.clone(), changes), |(first, changes, more)| {
            for (shape, order) in shapes().into_iter().flat_map(|shape| ORDERS.map(|order| (shape, order))) {
                let options = InstantiateOptions::new().shape(shape).order(order).programmatic_edges(true);
                let mut steps = first.clone();
                let (own, nodes) = build(&steps);
                let mut exec = own.instantiate_with(options.fills_by_kernels(true)).unwrap();
                let mut disabled = Vec::new();
                let check = |exec: &mut GraphExec, steps: &[Step], disabled: &[usize]| {
                    let mut steps = steps.to_vec();
                    let mut found = Vec::new();
                    amounts(&mut steps, &mut found);
                    disabled.iter().for_each(|at| *found[*at] = 0);
                    let mut expected = programs.read();
                    exec.launch(&bench.stream).unwrap();
                    run_all(&steps, &mut expected);
                    prop_assert_eq!(programs.read(), expected, "{:?} {:?}", shape, order);
                    Ok(())
                };
                let change = |exec: &mut GraphExec,
                              steps: &mut [Step],
                              nodes: &[(usize, KernelNode)],
                              disabled: &mut Vec<usize>,
                              changes: &[(prop::sample::Index, u32, bool)]| {
                    let mut found = Vec::new();
                    amounts(steps, &mut found);
                    assert_eq!(found.len(), nodes.len());
                    for (at, amount, disables) in changes.iter().filter(|_| !nodes.is_empty()) {
                        let at = at.index(nodes.len());
                        let (cell, node) = &nodes[at];
                        if *disables {
                            if exec.node(node).set_enabled(false).is_ok() {
                                disabled.push(at);
                            }
                        } else {
                            *found[at] = *amount;
                            let new = (*amount, &programs.cells[*cell]);
                            exec.node(node).set(&bench.add, per(1, 1), new).unwrap();
                        }
                    }
                };
                check(&mut exec, &steps, &disabled)?;
                change(&mut exec, &mut steps, &nodes, &mut disabled, &changes);
                check(&mut exec, &steps, &disabled)?;
                let mut found = Vec::new();
                amounts(&mut steps, &mut found);
                found.into_iter().for_each(|amount| *amount += 3);
                let (other, others) = build(&steps);
                prop_assert!(exec.update(&other).unwrap().is_updated(), "{:?} {:?}", shape, order);
                check(&mut exec, &steps, &disabled)?;
                let half = others.len() / 2;
                let mixed: Vec<_> = nodes[..half].iter().chain(&others[half..]).cloned().collect();
                change(&mut exec, &mut steps, &mixed, &mut disabled, &more);
                drop(other);
                check(&mut exec, &steps, &disabled)?;
                steps = first.clone();
                prop_assert!(exec.update(&own).unwrap().is_updated());
                check(&mut exec, &steps, &disabled)?;
            }
            Ok(())
        });
        checked.unwrap();
    });
}
