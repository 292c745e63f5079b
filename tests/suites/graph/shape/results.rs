//! Random programs: each shape computes what their operations do one after the other.

use cuda_graph::{ContextExt, Graph, InstantiateOptions, Node};
use cuda_handles::{Buffer, Context, Stream};
use cuda_launch::per;
use cuda_tests::{is_soft, no_leaks, setup};
use proptest::prelude::*;

use super::shapes;
use crate::capture::add_to;

const CELLS: usize = 4;
type Cells = [u32; CELLS];

#[derive(Clone, Copy, Debug)]
enum Operation {
    Fill {
        cell: usize,
        value: u32,
    },
    Add {
        cell: usize,
        amount: u32,
    },
    Copy {
        from: usize,
        to: usize,
    },
    /// A child graph that adds twice.
    Child {
        cell: usize,
        amount: u32,
    },
}

impl Operation {
    fn run(self, cells: &mut Cells) {
        match self {
            Self::Fill { cell, value } => cells[cell] = value,
            Self::Add { cell, amount } => cells[cell] += amount,
            Self::Copy { from, to } => cells[to] = cells[from],
            Self::Child { cell, amount } => cells[cell] += 2 * amount,
        }
    }

    fn uses(self, cell: usize) -> bool {
        match self {
            Self::Fill { cell: used, .. } | Self::Add { cell: used, .. } | Self::Child { cell: used, .. } => {
                used == cell
            }
            Self::Copy { from, to } => from == cell || to == cell,
        }
    }

    fn conflicts(self, other: Self) -> bool {
        (0..CELLS).any(|cell| self.uses(cell) && other.uses(cell))
    }
}

/// An operation, the operations before that it waits for without need, and whether it waits for an
/// empty node that waits for all of them; and whether its kernels wait at their entry.
type Step = (Operation, Vec<prop::sample::Index>, bool, bool);

fn step() -> impl Strategy<Value = Step> {
    let (cell, number) = (0..CELLS, 1..9_u32);
    let operation = prop_oneof![
        (cell.clone(), number.clone()).prop_map(|(cell, value)| Operation::Fill { cell, value }),
        (cell.clone(), number.clone()).prop_map(|(cell, amount)| Operation::Add { cell, amount }),
        (cell.clone(), 1..CELLS)
            .prop_map(|(from, apart)| Operation::Copy { from, to: (from + apart) % CELLS }),
        (cell, number).prop_map(|(cell, amount)| Operation::Child { cell, amount }),
    ];
    (
        operation,
        prop::collection::vec(any::<prop::sample::Index>(), 0..3),
        any::<bool>(),
        prop::bool::weighted(0.8),
    )
}

struct Bench {
    context: Context,
    stream: Stream,
    add: add_to,
    /// The same kernel, waiting at its entry.
    waiting: add_to,
    cells: Vec<Buffer<u32>>,
}

impl Bench {
    fn add(&self, graph: &Graph, (operation, waits): (Operation, bool), after: &[&Node]) -> Node {
        let add = if waits { &self.waiting } else { &self.add };
        let frontier = graph.after_all(after.iter().copied()).unwrap();
        match operation {
            Operation::Fill { cell, value } => (*frontier.fill(&self.cells[cell], value).unwrap()).clone(),
            Operation::Add { cell, amount } => {
                (*frontier.launch(add, per(1, 1), (amount, &self.cells[cell])).unwrap()).clone()
            }
            Operation::Copy { from, to } => {
                (*frontier.copy(&self.cells[from], &self.cells[to]).unwrap()).clone()
            }
            Operation::Child { cell, amount } => {
                let child = self.context.graph().unwrap();
                let first = child.root().launch(add, per(1, 1), (amount, &self.cells[cell])).unwrap();
                first.then().launch(add, per(1, 1), (amount, &self.cells[cell])).unwrap();
                (*frontier.child(&child).unwrap()).clone()
            }
        }
    }

    fn graph(&self, steps: &[Step]) -> Graph {
        let graph = self.context.graph().unwrap();
        let mut nodes: Vec<Node> = Vec::new();
        for (at, (operation, more, joined, waits)) in steps.iter().enumerate() {
            let mut before: Vec<usize> =
                (0..at).filter(|other| steps[*other].0.conflicts(*operation)).collect();
            if at > 0 {
                before.extend(more.iter().map(|index| index.index(at)));
            }
            before.sort_unstable();
            before.dedup();
            let after: Vec<&Node> = before.iter().map(|other| &nodes[*other]).collect();
            let join = joined.then(|| (*graph.after_all(after.clone()).unwrap().empty().unwrap()).clone());
            let node = match &join {
                Some(join) => self.add(&graph, (*operation, *waits), &[join]),
                None => self.add(&graph, (*operation, *waits), &after),
            };
            nodes.push(node);
        }
        graph
    }

    fn read(&self) -> Cells {
        core::array::from_fn(|cell| self.cells[cell].read_blocking(&self.stream).unwrap()[0])
    }
}

#[test]
fn each_shape_computes_what_the_operations_do_in_turn() {
    let context = setup();
    let cases = if is_soft() { 60 } else { 200 };
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    no_leaks(|| {
        let stream = context.stream().unwrap();
        let cells = (0..CELLS).map(|_| stream.zeros(1).unwrap()).collect();
        let (add, waiting) = (add_to::load(&context).unwrap(), add_to::load_waiting(&context).unwrap());
        let bench = Bench { add, waiting, context: context.clone(), stream, cells };
        let mut runner = proptest::test_runner::TestRunner::new(config.clone());
        let checked = runner.run(&prop::collection::vec(step(), 1..14), |steps| {
            let graph = bench.graph(&steps);
            for shape in shapes() {
                let mut expected = bench.read();
                let options = InstantiateOptions::new().shape(shape).programmatic_edges(true);
                let mut exec = graph.instantiate_with(options).unwrap();
                let report = exec.shape_report().unwrap();
                let reason = report.reason_to_leave();
                prop_assert!(reason.is_none_or(|why| why == "no change would make it faster"), "{}", report);
                let (before, after) = (report.before().unwrap(), report.after().unwrap());
                prop_assert!(after.roots <= before.roots.max(1), "{}", report);
                for _ in 0..2 {
                    exec.launch(&bench.stream).unwrap();
                    steps.iter().for_each(|step| step.0.run(&mut expected));
                }
                prop_assert_eq!(bench.read(), expected, "{:?}: {}", shape, exec.shape_report().unwrap());
            }
            Ok(())
        });
        checked.unwrap();
    });
}
