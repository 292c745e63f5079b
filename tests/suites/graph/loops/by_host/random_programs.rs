//! Random programs of nested loops, branches and child graphs.

use cuda_graph::{ConditionError, Error, Fallback, Graph, InstantiateOptions, Node, NodeError, Test};
use cuda_handles::Buffer;
use cuda_tests::{alone, no_leaks, setup};

use super::{By, ONE_LESS, Steps, scenarios};

scenarios! {
    random_programs_come_to_what_they_come_to_here
}

/// An operation on the numbers.
enum Do {
    /// To which how much is added.
    Add(usize, u32),
    Loop(u32, Vec<Do>),
    /// The program for less than a number, and the other.
    Choose(usize, u32, Vec<Do>, Vec<Do>),
    Child(Vec<Do>),
    /// Without an order, each with numbers of its own.
    Beside(Vec<Vec<Do>>),
}

/// Programs, from a seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }

    /// A program for the numbers of a range.
    fn program(&mut self, cells: core::ops::Range<usize>, depth: u32) -> Vec<Do> {
        let length = 1 + self.below(3);
        (0..length).map(|_| self.statement(cells.clone(), depth)).collect()
    }

    fn statement(&mut self, cells: core::ops::Range<usize>, depth: u32) -> Do {
        let cell = cells.start + self.below(cells.len() as u64) as usize;
        match if depth == 0 { 0 } else { self.below(6) } {
            0 | 1 => Do::Add(cell, 1 + self.below(9) as u32),
            2 => Do::Loop(self.below(4) as u32, self.program(cells, depth - 1)),
            3 => {
                let (then, or) = (self.program(cells.clone(), depth - 1), self.program(cells, depth - 1));
                Do::Choose(cell, self.below(30) as u32, then, or)
            }
            4 => Do::Child(self.program(cells, depth - 1)),
            _ if cells.len() > 1 => {
                let middle = cells.start + cells.len() / 2;
                let halves = [cells.start..middle, middle..cells.end];
                Do::Beside(halves.into_iter().map(|half| self.program(half, depth - 1)).collect())
            }
            _ => Do::Add(cell, 1),
        }
    }
}

fn here(program: &[Do], cells: &mut [u32]) {
    for statement in program {
        match statement {
            Do::Add(cell, amount) => cells[*cell] = cells[*cell].wrapping_add(*amount),
            Do::Loop(rounds, body) => (0..*rounds).for_each(|_| here(body, cells)),
            Do::Choose(cell, value, then, or) => {
                here(if cells[*cell] < *value { then } else { or }, cells);
            }
            Do::Child(inner) => here(inner, cells),
            Do::Beside(lanes) => lanes.iter().for_each(|lane| here(lane, cells)),
        }
    }
}

/// Whether there is a loop or a branch in it.
fn decides(program: &[Do]) -> bool {
    program.iter().any(|statement| match statement {
        Do::Add(..) => false,
        Do::Loop(..) | Do::Choose(..) => true,
        Do::Child(inner) => decides(inner),
        Do::Beside(lanes) => lanes.iter().any(|lane| decides(lane)),
    })
}

/// Draws a program behind a node; the last node of it.
fn draw(
    steps: &Steps,
    graph: &Graph,
    after: Option<Node>,
    program: &[Do],
    cells: &Buffer<u32>,
) -> Result<Option<Node>, Error> {
    let mut last = after;
    for statement in program {
        let at = last.as_ref().map_or_else(|| graph.root(), |node| node.then());
        let cell = |cell: usize| cells.slice(cell..=cell);
        let node: Node = match statement {
            Do::Add(which, amount) => steps.add(&at, *amount, cell(*which)?)?.into(),
            Do::Loop(rounds, inner) => {
                let number = steps.number(0);
                let start = at.fill(&number, *rounds)?;
                let node = start.then().while_loop(cuda_graph::Test::nonzero(&number), |body| {
                    let last = draw(steps, body, None, inner, cells)?;
                    let at = last.as_ref().map_or_else(|| body.root(), |node| node.then());
                    steps.add(&at, ONE_LESS, number.as_slice())
                })?;
                (**node).clone()
            }
            Do::Choose(which, value, then, or) => {
                let fill = |program| move |body: &Graph| draw(steps, body, None, program, cells);
                let test = Test::less(cell(*which)?, *value);
                (**at.if_then_else(test, fill(then), fill(or))?).clone()
            }
            Do::Child(inner) => match at.child(&steps.graph()) {
                Ok(child) => {
                    draw(steps, &child.embedded()?, None, inner, cells)?;
                    child.into()
                }
                // In a body of two on a driver that mixes them up: the nodes go into the body
                // itself.
                Err(Error::Condition(ConditionError::ChildInTwoBodies { .. })) => {
                    let start = Some(Node::from(at.empty()?));
                    draw(steps, graph, start.clone(), inner, cells)?
                        .or(start)
                        .ok_or(Error::Node(NodeError::GraphRemoved))?
                }
                Err(error) => return Err(error),
            },
            Do::Beside(lanes) => {
                let start: Node = at.empty()?.into();
                let ends = lanes.iter().map(|lane| draw(steps, graph, Some(start.clone()), lane, cells));
                let ends: Vec<Node> = ends.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect();
                graph.after_all(&ends)?.empty()?.into()
            }
        };
        last = Some(node);
    }
    Ok(last)
}

fn random_programs_come_to_what_they_come_to_here(steps: &Steps) {
    const CELLS: usize = 4;
    for seed in 0..40 {
        let program = Random(seed).program(0..CELLS, 4);
        let (graph, cells) = (steps.graph(), steps.stream.zeros::<u32>(CELLS).unwrap());
        draw(steps, &graph, None, &program, &cells).unwrap();
        let needs_host = steps.by == By::Need && decides(&program);
        let fallback = if steps.by == By::Host { Fallback::HostLoopAlways } else { Fallback::HostLoop };
        let mut exec = graph.instantiate_with_fallback(fallback, InstantiateOptions::new()).unwrap();
        assert_eq!(exec.is_on_host(), needs_host || steps.by == By::Host);
        let mut expected = [0; CELLS];
        for run in 0..3 {
            exec.run_blocking(&steps.stream).unwrap();
            here(&program, &mut expected);
            let found = cells.read_blocking(&steps.stream).unwrap();
            assert_eq!(found, expected, "seed {seed}, run {run}: {}", graph.to_dot().unwrap());
        }
    }
}
