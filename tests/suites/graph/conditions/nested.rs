//! Nested branches and loops whose conditions kernels set in each round, compared with plain Rust
//! over ten launches, as drawn and in each shape.

use cuda_graph::{Condition, ContextExt, Error, Frontier, Graph, GraphExec, Node};
use cuda_handles::{Buffer, Context, Slice, Stream};
use cuda_launch::per;
use cuda_tests::{is_soft, needs, no_leaks, setup};
use proptest::prelude::*;

use crate::conditions::branches_and_loops::{count_down, increment_by, set_from};
use crate::shape::{shaped, shapes};

/// Added to a number, this takes one away.
const ONE_LESS: u32 = u32::MAX;

/// A step of a body.
#[derive(Clone, Debug)]
enum Step {
    /// Adds to the count.
    Count(u32),
    Conditional(Conditional),
}

/// A conditional node that goes by the number of its own among the inputs of a launch.
#[derive(Clone, Debug)]
struct Conditional {
    class: Class,
    set: Set,
    number: usize,
    bodies: Vec<Vec<Step>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    If,
    IfElse,
    While,
    Switch,
}

/// How its condition comes to its value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Set {
    /// A kernel sets it before the node, and in a loop after each round.
    ByKernel,
    /// The same, and it has a default that is set before.
    AfterDefault,
    /// The library's own kernels do that, where it has them.
    ByLibrary,
}

impl Conditional {
    fn step(class: Class, set: Set, bodies: Vec<Vec<Step>>) -> Step {
        Step::Conditional(Self { class, set, number: 0, bodies })
    }
}

/// Gives conditionals their numbers.
fn number(steps: &mut [Step], next: &mut usize) {
    for step in steps {
        if let Step::Conditional(conditional) = step {
            conditional.number = *next;
            *next += 1;
            conditional.bodies.iter_mut().for_each(|body| number(body, next));
        }
    }
}

/// The counters.
fn expected(steps: &[Step], inputs: &[u32]) -> u32 {
    let one = |step: &Step| match step {
        Step::Count(amount) => *amount,
        Step::Conditional(Conditional { class, number, bodies, .. }) => {
            let input = inputs[*number];
            let run = |body: usize| bodies.get(body).map_or(0, |body| expected(body, inputs));
            match class {
                Class::If if input == 0 => 0,
                Class::If => run(0),
                Class::IfElse => run(usize::from(input == 0)),
                Class::While => input * run(0),
                Class::Switch => run(input as usize),
            }
        }
    };
    steps.iter().map(one).sum()
}

struct Machine {
    stream: Stream,
    set_from: set_from,
    count_down: count_down,
    increment_by: increment_by,
    counted: Buffer<u32>,
    /// The input of a launch, and the counters of loops.
    inputs: Buffer<u32>,
    numbers: Buffer<u32>,
}

impl Machine {
    fn new(context: &Context, conditionals: usize) -> Self {
        let stream = context.stream().unwrap();
        Self {
            set_from: set_from::load(context).unwrap(),
            count_down: count_down::load(context).unwrap(),
            increment_by: increment_by::load(context).unwrap(),
            counted: stream.zeros(1).unwrap(),
            inputs: stream.zeros(conditionals.max(1)).unwrap(),
            numbers: stream.zeros(conditionals.max(1)).unwrap(),
            stream,
        }
    }

    fn build(&self, graph: &Graph, steps: &[Step]) {
        let mut last: Option<Node> = None;
        for step in steps {
            let at = last.as_ref().map_or_else(|| graph.root(), Node::then);
            last = Some(match step {
                Step::Count(amount) => self.add(&at, *amount, self.counted.as_slice()),
                Step::Conditional(conditional) => self.conditional(&at, conditional),
            });
        }
    }

    fn add(&self, at: &Frontier<'_>, amount: u32, to: Slice<'_, u32>) -> Node {
        at.launch(&self.increment_by, per(1, 1), (amount, to)).unwrap().into()
    }

    fn number(&self, conditional: &Conditional) -> Slice<'_, u32> {
        self.numbers.slice(conditional.number..=conditional.number).unwrap()
    }

    /// Each time it is got to, it begins with its input.
    fn conditional(&self, at: &Frontier<'_>, conditional: &Conditional) -> Node {
        let (number, of) = (self.number(conditional), conditional.number);
        let copy = at.copy(self.inputs.slice(of..=of).unwrap(), number).unwrap();
        match (conditional.set, conditional.class) {
            (Set::ByLibrary, Class::If | Class::IfElse | Class::While) => {
                self.ready_made(&copy.then(), conditional)
            }
            _ => self.with_condition(&copy.then(), conditional),
        }
    }

    fn with_condition(&self, at: &Frontier<'_>, conditional: &Conditional) -> Node {
        let graph = at.graph();
        let condition = match conditional.set {
            Set::AfterDefault => graph.condition_with_default(1).unwrap(),
            _ => graph.condition().unwrap(),
        };
        let number = self.number(conditional);
        let set = at.launch(&self.set_from, per(1, 1), (number, &condition)).unwrap();
        let node = self.node(&set.then(), conditional, &condition);
        for (body, steps) in node.all_bodies().unwrap().iter().zip(&conditional.bodies) {
            self.build(body, steps);
            if conditional.class == Class::While {
                let all = body.nodes().unwrap();
                let last = body.after_all(&all).unwrap();
                last.launch(&self.count_down, per(1, 1), (number, &condition)).unwrap();
            }
        }
        node
    }

    fn node(&self, at: &Frontier<'_>, conditional: &Conditional, condition: &Condition) -> Node {
        match conditional.class {
            Class::If => at.if_node(condition).unwrap().into(),
            Class::IfElse => at.if_else_node(condition).unwrap().into(),
            Class::While => at.while_node(condition).unwrap().into(),
            Class::Switch => at.switch_node(condition, conditional.bodies.len()).unwrap().into(),
        }
    }

    fn ready_made(&self, at: &Frontier<'_>, conditional: &Conditional) -> Node {
        let number = self.number(conditional);
        let fill = |body: &Graph, index: usize| -> Result<(), Error> {
            self.build(body, &conditional.bodies[index]);
            Ok(())
        };
        match conditional.class {
            Class::If => {
                (**at.if_then(cuda_graph::Test::nonzero(number), |body| fill(body, 0)).unwrap()).clone()
            }
            Class::IfElse => {
                let test = cuda_graph::Test::nonzero(number);
                (**at.if_then_else(test, |body| fill(body, 0), |body| fill(body, 1)).unwrap()).clone()
            }
            _ => {
                let round = |body: &cuda_graph::LoopBody| {
                    fill(body, 0)?;
                    let all = body.nodes()?;
                    self.add(&body.after_all(&all)?, ONE_LESS, number);
                    Ok::<_, Error>(())
                };
                (**at.while_loop(cuda_graph::Test::nonzero(number), round).unwrap()).clone()
            }
        }
    }

    /// Runs an executable of each shape.
    fn check(&self, steps: &[Step], inputs: &[Vec<u32>]) {
        let graph = self.stream.context().graph().unwrap();
        self.build(&graph, steps);
        self.check_exec(graph.instantiate().unwrap(), steps, inputs);
        for shape in shapes() {
            let exec = shaped(&graph, shape);
            let report = exec.shape_report().unwrap();
            let left = report.reason_to_leave();
            assert!(left.is_none_or(|why| why == "no change would make it faster"), "{report}");
            self.check_exec(exec, steps, inputs);
        }
    }

    /// Runs one executable with one row of inputs after the other.
    fn check_exec(&self, mut exec: GraphExec, steps: &[Step], inputs: &[Vec<u32>]) {
        for row in inputs {
            self.inputs.write_blocking(&self.stream, row).unwrap();
            self.stream.fill(&self.counted, 0).unwrap();
            exec.launch(&self.stream).unwrap();
            let counted = self.counted.read_blocking(&self.stream).unwrap();
            assert_eq!(counted, [expected(steps, row)], "{row:?}");
        }
        // The same in a row, without a look in between.
        self.stream.fill(&self.counted, 0).unwrap();
        (0..10).for_each(|_| exec.launch(&self.stream).unwrap());
        let all = inputs.last().map_or(0, |row| 10 * expected(steps, row));
        assert_eq!(self.counted.read_blocking(&self.stream).unwrap(), [all]);
    }
}

fn run(context: &Context, mut steps: Vec<Step>, inputs: &[Vec<u32>]) {
    let mut conditionals = 0;
    number(&mut steps, &mut conditionals);
    Machine::new(context, conditionals).check(&steps, inputs);
}

#[test]
fn three_levels_of_loops_begin_with_the_number_that_a_kernel_sets() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        for set in [Set::ByKernel, Set::AfterDefault, Set::ByLibrary] {
            let inner = Conditional::step(Class::While, set, vec![vec![Step::Count(1)]]);
            let middle = Conditional::step(Class::While, set, vec![vec![inner, Step::Count(100)]]);
            let outer = Conditional::step(Class::While, set, vec![vec![middle, Step::Count(10_000)]]);
            let rows = [
                [2, 3, 4],
                [1, 1, 1],
                [0, 3, 4],
                [2, 0, 4],
                [2, 3, 0],
                [0, 0, 0],
                [4, 1, 2],
                [1, 5, 1],
                [3, 3, 3],
                [2, 2, 2],
            ];
            run(&context, vec![outer], &rows.map(Vec::from));
        }
    });
}

#[test]
fn a_switch_in_a_loop_in_a_branch_goes_by_each_number() {
    let context = setup();
    needs!(Branches);
    no_leaks(|| {
        for set in [Set::ByKernel, Set::AfterDefault] {
            let branches = (0..3).map(|branch| vec![Step::Count(10_u32.pow(branch))]).collect();
            let switch = Conditional::step(Class::Switch, set, branches);
            let rounds = Conditional::step(Class::While, set, vec![vec![switch]]);
            let branch = Conditional::step(Class::IfElse, set, vec![vec![rounds], vec![Step::Count(7)]]);
            let switches = [0, 1, 2, 3, 4, 1 << 8, 1 << 16, 1 << 31, u32::MAX];
            let mut rows: Vec<Vec<u32>> = switches.iter().map(|switch| vec![1, 3, *switch]).collect();
            rows.extend([vec![0, 3, 0], vec![u32::MAX, 2, 1]]);
            run(&context, vec![branch], &rows);
        }
    });
}

/// A loop's body reads what the loop counts down.
#[test]
fn an_inner_loop_begins_with_a_number_that_the_outer_one_changes() {
    let context = setup();
    needs!(Conditionals);
    no_leaks(|| {
        let machine = Machine::new(&context, 3);
        let graph = context.graph().unwrap();
        let [outer, middle, inner] = [0, 1, 2].map(|of| machine.numbers.slice(of..=of).unwrap());
        let begin = |at: &Frontier<'_>, from: Slice<'_, u32>, to: Slice<'_, u32>| {
            let condition = at.graph().condition().unwrap();
            let copy = at.copy(from, to).unwrap();
            // One less than the outer number, so that its last round has no inner one.
            let less = machine.add(&copy.then(), ONE_LESS, to);
            let set = less.then().launch(&machine.set_from, per(1, 1), (to, &condition)).unwrap();
            let node = set.then().while_node(&condition).unwrap();
            (node.body().unwrap(), condition)
        };
        let end = |body: &Graph, number: Slice<'_, u32>, condition: &Condition| {
            let all = body.nodes().unwrap();
            let last = body.after_all(&all).unwrap();
            last.launch(&machine.count_down, per(1, 1), (number, condition)).unwrap();
        };
        let first = machine.inputs.slice(..1).unwrap();
        let (outer_body, outer_goes) = begin(&graph.root(), first, outer);
        let (middle_body, middle_goes) = begin(&outer_body.root(), outer, middle);
        let (inner_body, inner_goes) = begin(&middle_body.root(), middle, inner);
        machine.add(&inner_body.root(), 1, machine.counted.as_slice());
        end(&inner_body, inner, &inner_goes);
        end(&middle_body, middle, &middle_goes);
        end(&outer_body, outer, &outer_goes);
        let mut exec = graph.instantiate().unwrap();
        for n in [1, 2, 3, 4, 5, 6, 7, 1, 4, 3] {
            machine.inputs.write_blocking(&machine.stream, &[n, 0, 0]).unwrap();
            machine.stream.fill(&machine.counted, 0).unwrap();
            exec.launch(&machine.stream).unwrap();
            let rounds = (1..n).map(|i| (1..i).map(|j| (1..j).count()).sum::<usize>()).sum::<usize>();
            assert_eq!(machine.counted.read_blocking(&machine.stream).unwrap(), [rounds as u32], "{n}");
        }
    });
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let class = prop_oneof![
        2 => Just((Class::While, 1)),
        1 => Just((Class::If, 1)),
        1 => Just((Class::IfElse, 2)),
        1 => (1_usize..4).prop_map(|branches| (Class::Switch, branches)),
    ];
    let set = prop_oneof![Just(Set::ByKernel), Just(Set::AfterDefault), Just(Set::ByLibrary)];
    let step = (0_u32..100).prop_map(Step::Count).prop_recursive(4, 24, 3, move |step| {
        let bodies = prop::collection::vec(prop::collection::vec(step, 1..4), 3);
        (class.clone(), set.clone(), bodies).prop_map(|((class, bodies_of), set, mut bodies)| {
            bodies.truncate(bodies_of);
            Conditional::step(class, set, bodies)
        })
    });
    prop::collection::vec(step, 1..4)
}

#[test]
fn whatever_lies_in_whatever_does_what_it_says() {
    let context = setup();
    needs!(Branches);
    let cases = if is_soft() { 48 } else { 200 };
    let rows = prop::collection::vec(prop::collection::vec(0_u32..4, 64), 10);
    proptest!(ProptestConfig::with_cases(cases), |(mut steps in steps(), rows in rows)| {
        no_leaks(|| {
            let mut conditionals = 0;
            number(&mut steps, &mut conditionals);
            let rows: Vec<Vec<u32>> =
                rows.iter().map(|row| row.iter().copied().cycle().take(conditionals.max(1)).collect()).collect();
            Machine::new(&context, conditionals).check(&steps, &rows);
        });
    });
}
