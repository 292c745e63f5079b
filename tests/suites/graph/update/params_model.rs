//! Random graphs with random parameters, compared with a plain model of what each launch computes.

use core::ops::Range;

use cuda_graph::{ContextExt, Graph, GraphExec, GraphParam, Node, Result};
use cuda_handles::{Buffer, NodeMemory, Slice, Stream, reaper};
use cuda_launch::per;
use cuda_tests::{Need, is_soft, no_leaks, setup};
use proptest::prelude::*;

use super::params::scale;

const BUFFERS: usize = 4;
const LEN: usize = 12;
const MEMORIES: usize = 3;
const NUMBERS: usize = 2;
const FLAGS: usize = 2;

/// A part of a buffer.
#[derive(Clone, Debug, PartialEq)]
struct Part {
    buffer: usize,
    range: Range<usize>,
}

impl Part {
    fn overlaps(&self, other: &Self) -> bool {
        self.buffer == other.buffer
            && self.range.start.max(other.range.start) < self.range.end.min(other.range.end)
    }

    fn first(&self, len: usize) -> Self {
        let start = self.range.start;
        Self { buffer: self.buffer, range: start..start + len.min(self.range.len()) }
    }
}

/// A value, or a parameter by its number.
#[derive(Clone, Debug)]
enum Given<V> {
    Fixed(V),
    Param(usize),
}

#[derive(Clone, Debug)]
enum Work {
    /// The number of elements is the length of the source.
    Scale(Given<u32>, Given<Part>, Given<Part>),
    Fill(Given<Part>, Given<u32>),
    Copy(Given<Part>, Given<Part>),
}

#[derive(Clone, Debug)]
struct Drawn {
    work: Work,
    flag: Option<usize>,
    in_body: bool,
}

#[derive(Clone, Debug)]
enum Change {
    Memory(usize, Part),
    Number(usize, u32),
    Flag(usize, bool),
}

/// The values of all parameters.
#[derive(Clone, Debug)]
struct Values {
    memory: [Part; MEMORIES],
    numbers: [u32; NUMBERS],
    flags: [bool; FLAGS],
}

type Memory = [[u32; LEN]; BUFFERS];

impl Values {
    fn part<'v>(&'v self, given: &'v Given<Part>) -> &'v Part {
        match given {
            Given::Fixed(part) => part,
            Given::Param(param) => &self.memory[*param],
        }
    }

    fn number(&self, given: &Given<u32>) -> u32 {
        match given {
            Given::Fixed(number) => *number,
            Given::Param(param) => self.numbers[*param],
        }
    }

    fn apply(&mut self, change: &Change) {
        match change {
            Change::Memory(param, part) => self.memory[*param] = part.clone(),
            Change::Number(param, number) => self.numbers[*param] = *number,
            Change::Flag(param, flag) => self.flags[*param] = *flag,
        }
    }

    /// What a node does, on the memory that the nodes before it leave. `Err` if it is refused.
    fn run(&self, node: &Drawn, memory: &mut Memory) -> Result<(), ()> {
        if node.flag.is_some_and(|flag| !self.flags[flag]) {
            return Ok(());
        }
        match &node.work {
            Work::Scale(factor, from, to) => {
                let (factor, from, to) = (self.number(factor), self.part(from), self.part(to));
                if from.range.is_empty() {
                    return Ok(());
                }
                if to.range.len() < from.range.len() || from.overlaps(to) {
                    return Err(());
                }
                copy(memory, from, to, |value| value.wrapping_mul(factor));
            }
            Work::Fill(target, value) => {
                let (target, value) = (self.part(target), self.number(value));
                memory[target.buffer][target.range.clone()].fill(value);
            }
            Work::Copy(source, destination) => {
                let lengths = [source, destination].map(|side| match side {
                    Given::Fixed(_) => None,
                    Given::Param(_) => Some(self.part(side).range.len()),
                });
                let (source, destination) = (self.part(source), self.part(destination));
                let rooms = [source, destination].map(|part| part.range.len());
                let len = lengths.into_iter().flatten().max().unwrap_or(rooms[0]);
                let (source, destination) = (source.first(len), destination.first(len));
                if len > 0 && (rooms.iter().any(|room| *room < len) || source.overlaps(&destination)) {
                    return Err(());
                }
                copy(memory, &source, &destination, |value| value);
            }
        }
        Ok(())
    }
}

fn copy(memory: &mut Memory, from: &Part, to: &Part, change: impl Fn(u32) -> u32) {
    let values: Vec<u32> =
        memory[from.buffer][from.range.clone()].iter().map(|value| change(*value)).collect();
    for (at, value) in values.into_iter().enumerate() {
        memory[to.buffer][to.range.start + at] = value;
    }
}

fn part() -> impl Strategy<Value = Part> {
    (0..BUFFERS, 0..LEN, prop_oneof![4 => 4..=4_usize, 1 => 0..=LEN])
        .prop_map(|(buffer, start, len)| Part { buffer, range: start..(start + len).min(LEN) })
}

fn given<V: core::fmt::Debug + Clone + 'static>(
    value: impl Strategy<Value = V>,
    params: usize,
) -> impl Strategy<Value = Given<V>> {
    prop_oneof![1 => value.prop_map(Given::Fixed), 2 => (0..params).prop_map(Given::Param)]
}

fn memory_operand() -> impl Strategy<Value = Given<Part>> {
    given(part(), MEMORIES)
}

fn number_operand() -> impl Strategy<Value = Given<u32>> {
    given(0..9_u32, NUMBERS)
}

fn drawn() -> impl Strategy<Value = Drawn> {
    let work = prop_oneof![
        (number_operand(), memory_operand(), memory_operand())
            .prop_map(|(n, from, to)| Work::Scale(n, from, to)),
        (memory_operand(), number_operand()).prop_map(|(target, value)| Work::Fill(target, value)),
        (memory_operand(), memory_operand()).prop_map(|(from, to)| Work::Copy(from, to)),
    ];
    let flag = prop_oneof![2 => Just(None), 1 => (0..FLAGS).prop_map(Some)];
    (work, flag, prop::bool::weighted(0.3)).prop_map(|(work, flag, in_body)| Drawn { work, flag, in_body })
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        3 => (0..MEMORIES, part()).prop_map(|(param, part)| Change::Memory(param, part)),
        2 => (0..NUMBERS, 0..9_u32).prop_map(|(param, number)| Change::Number(param, number)),
        1 => (0..FLAGS, any::<bool>()).prop_map(|(param, flag)| Change::Flag(param, flag)),
    ]
}

fn values() -> impl Strategy<Value = Values> {
    let memory = [part(), part(), part()];
    (memory, [0..9_u32, 0..9_u32], [prop::bool::weighted(0.8), prop::bool::weighted(0.8)])
        .prop_map(|(memory, numbers, flags)| Values { memory, numbers, flags })
}

/// The parameters of a graph.
struct Params {
    memory: Vec<GraphParam<[u32]>>,
    numbers: Vec<GraphParam<u32>>,
    flags: Vec<GraphParam<bool>>,
}

fn slice<'b>(buffers: &'b [Buffer<u32>], part: &Part) -> Slice<'b, u32> {
    buffers[part.buffer].slice(part.range.clone()).unwrap()
}

impl Params {
    fn new(graph: &Graph, buffers: &[Buffer<u32>], values: &Values) -> Self {
        Self {
            memory: values.memory.iter().map(|part| graph.param(slice(buffers, part)).unwrap()).collect(),
            numbers: values.numbers.iter().map(|number| graph.param(*number).unwrap()).collect(),
            flags: values.flags.iter().map(|flag| graph.param(*flag).unwrap()).collect(),
        }
    }

    fn set(&self, exec: &mut GraphExec, buffers: &[Buffer<u32>], change: &Change) {
        match change {
            Change::Memory(param, part) => exec.set(&self.memory[*param], slice(buffers, part)),
            Change::Number(param, number) => exec.set(&self.numbers[*param], *number),
            Change::Flag(param, flag) => exec.set(&self.flags[*param], *flag),
        }
        .unwrap();
    }
}

/// Memory of either sort as one type.
enum Either<'a> {
    Fixed(Slice<'a, u32>),
    Param(&'a GraphParam<[u32]>),
}

impl<'a> NodeMemory<'a, u32> for Either<'a> {
    fn operand(self) -> Slice<'a, u32> {
        match self {
            Self::Fixed(slice) => slice,
            Self::Param(param) => param.operand(),
        }
    }

    fn placeholder(&self) -> Option<cuda_handles::Placeholder> {
        match self {
            Self::Fixed(_) => None,
            Self::Param(param) => NodeMemory::<u32>::placeholder(param),
        }
    }
}

struct Builder<'g> {
    params: &'g Params,
    buffers: &'g [Buffer<u32>],
    scale: &'g scale,
}

impl Builder<'_> {
    fn memory<'m>(&'m self, given: &Given<Part>) -> Either<'m> {
        match given {
            Given::Fixed(part) => Either::Fixed(slice(self.buffers, part)),
            Given::Param(param) => Either::Param(&self.params.memory[*param]),
        }
    }

    /// Adds a node behind another one. A node that does not fit is not added.
    fn add(&self, at: &cuda_graph::Frontier<'_>, node: &Drawn) -> Result<Node> {
        let flag = node.flag.map(|flag| &self.params.flags[flag]);
        macro_rules! enabled {
            ($node:expr) => {{
                let node = $node;
                flag.iter().try_for_each(|flag| node.enabled_by(flag))?;
                Ok((*node).clone())
            }};
        }
        match &node.work {
            Work::Fill(target, Given::Fixed(value)) => enabled!(at.fill(self.memory(target), *value)?),
            Work::Fill(target, Given::Param(value)) => {
                enabled!(at.fill(self.memory(target), &self.params.numbers[*value])?)
            }
            Work::Copy(from, to) => enabled!(at.copy(self.memory(from), self.memory(to))?),
            Work::Scale(factor, from, to) => {
                macro_rules! launch {
                    ($n:expr, $per:expr, $from:expr, $to:expr) => {
                        match factor {
                            Given::Fixed(factor) => {
                                at.launch(self.scale, per($per, 5), ($n, *factor, $from, $to))
                            }
                            Given::Param(factor) => {
                                let factor = &self.params.numbers[*factor];
                                at.launch(self.scale, per($per, 5), ($n, factor, $from, $to))
                            }
                        }
                    };
                }
                let fixed = |given: &Part| slice(self.buffers, given);
                let param = |given: &usize| &self.params.memory[*given];
                enabled!(match (from, to) {
                    (Given::Fixed(from), Given::Fixed(to)) => {
                        let from = fixed(from);
                        launch!(from.len() as u32, from.len(), from, fixed(to))?
                    }
                    (Given::Fixed(from), Given::Param(to)) => {
                        let from = fixed(from);
                        launch!(from.len() as u32, from.len(), from, param(to))?
                    }
                    (Given::Param(from), Given::Fixed(to)) => {
                        let from = param(from);
                        launch!(from.len(), from.len(), from, fixed(to))?
                    }
                    (Given::Param(from), Given::Param(to)) => {
                        let from = param(from);
                        launch!(from.len(), from.len(), from, param(to))?
                    }
                })
            }
        }
    }
}

/// Adds nodes, in a chain. Those for the body are in the body of a branch that is taken.
fn build(graph: &Graph, builder: &Builder<'_>, nodes: &[Drawn], has_bodies: bool) -> Vec<Drawn> {
    let mut last = (*graph.root().empty().unwrap()).clone();
    let mut body: Option<(Graph, Option<Node>)> = None;
    let mut added = Vec::new();
    for node in nodes {
        if !(node.in_body && has_bodies) {
            body = None;
            if let Ok(new) = builder.add(&last.then(), node) {
                last = new;
                added.push(node.clone());
            }
            continue;
        }
        let (inside, before) = body.get_or_insert_with(|| {
            let condition = graph.condition_with_default(1).unwrap();
            let branch = last.then().if_node(&condition).unwrap();
            last = (*branch).clone();
            (branch.body().unwrap(), None)
        });
        let at = before.as_ref().map_or_else(|| inside.root(), |before| before.then());
        if let Ok(new) = builder.add(&at, node) {
            *before = Some(new);
            added.push(node.clone());
        }
    }
    added
}

fn read(buffers: &[Buffer<u32>], stream: &Stream) -> Memory {
    core::array::from_fn(|at| buffers[at].read_blocking(stream).unwrap().try_into().unwrap())
}

fn check(
    initial: &Values,
    nodes: &[Drawn],
    launches: &[(usize, Vec<Change>)],
) -> core::result::Result<(), TestCaseError> {
    let context = setup();
    let stream = context.stream().unwrap();
    let scale = scale::load(&context).unwrap();
    let start: Memory = core::array::from_fn(|at| core::array::from_fn(|n| (10 * at + n) as u32));
    let buffers: Vec<_> = start.iter().map(|values| stream.upload(values).unwrap()).collect();
    let graph = context.graph().unwrap();
    let params = Params::new(&graph, &buffers, initial);
    let has_bodies = Need::Conditionals.is_met() && nodes.first().is_some_and(|node| node.in_body);
    let builder = Builder { params: &params, buffers: &buffers, scale: &scale };
    let nodes = build(&graph, &builder, nodes, has_bodies);
    let count = if has_bodies { 1 } else { 2 };
    let mut execs: Vec<_> = (0..count).map(|_| (graph.instantiate().unwrap(), initial.clone())).collect();
    let mut memory = start;
    for (which, changes) in launches {
        let (exec, values) = &mut execs[which % count];
        for change in changes {
            params.set(exec, &buffers, change);
            values.apply(change);
        }
        let mut after = memory;
        let expected = nodes.iter().try_for_each(|node| values.run(node, &mut after));
        let launched = exec.launch(&stream);
        prop_assert_eq!(launched.is_ok(), expected.is_ok(), "{:?} with {:?}", launched, values);
        if expected.is_ok() {
            memory = after;
        }
        prop_assert_eq!(read(&buffers, &stream), memory, "{:?}", values);
    }
    Ok(())
}

#[test]
fn random_graphs_compute_what_the_model_says() {
    drop(setup());
    let cases = if is_soft() { 150 } else { 1_000 };
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    no_leaks(|| {
        let launches = prop::collection::vec((0..2_usize, prop::collection::vec(change(), 0..4)), 1..10);
        let nodes = prop::collection::vec(drawn(), 1..8);
        let mut runner = proptest::test_runner::TestRunner::new(config.clone());
        let result = runner.run(&(values(), nodes, launches), |(values, nodes, launches)| {
            let outcome = check(&values, &nodes, &launches);
            reaper::drain();
            outcome
        });
        result.unwrap();
    });
}
