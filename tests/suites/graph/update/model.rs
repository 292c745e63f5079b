//! Random updates of random graphs, compared with plain Rust: what each of several executables of
//! one graph computes at each launch, and how many owners are left at the end.

use std::collections::HashMap;

use cuda_graph::{ContextExt, Graph, GraphExec, KernelNode, MemcpyNode, MemsetNode, Node};
use cuda_handles::{Buffer, Context, Stream};
use cuda_launch::per;
use cuda_tests::{Kind, SOON, live, settle, setup, until, used_stream};
use proptest::prelude::*;

use crate::capture::add_to;

/// The elements of a buffer.
const LEN: usize = 4;
const EXECS: usize = 3;

/// What a node does. Buffers go by their numbers.
#[derive(Clone, Copy, Debug)]
enum Work {
    /// Adds to the first element.
    Add(u32, usize),
    Fill(usize, u32),
    Copy(usize, usize),
}

#[derive(Clone, Debug)]
enum Op {
    /// Of an executable's node, by numbers modulo how many there are.
    Set(usize, usize, Work),
    Enable(usize, usize, bool),
    /// On one of two streams.
    Launch(usize, usize),
    /// Of the graph's own node: later executables have it.
    Draw(usize, Work),
    Make(usize),
    Remove(usize),
    /// A new buffer under a number whose handle was dropped or is dropped now.
    Renew(usize),
    Drop(usize),
    Release(usize),
    Settle,
    Check,
}

fn work(kind: usize) -> BoxedStrategy<Work> {
    let buffer = || 0..5_usize;
    match kind {
        0 => (1..100_u32, buffer()).prop_map(|(amount, to)| Work::Add(amount, to)).boxed(),
        1 => (buffer(), any::<u32>()).prop_map(|(to, value)| Work::Fill(to, value)).boxed(),
        _ => (buffer(), buffer()).prop_map(|(from, to)| Work::Copy(from, to)).boxed(),
    }
}

fn any_work() -> impl Strategy<Value = Work> {
    (0..3_usize).prop_flat_map(work)
}

fn op() -> impl Strategy<Value = Op> {
    let number = || 0..8_usize;
    prop_oneof![
        10 => (number(), number(), any_work()).prop_map(|(exec, node, work)| Op::Set(exec, node, work)),
        3 => (number(), number(), any::<bool>()).prop_map(|(exec, node, on)| Op::Enable(exec, node, on)),
        8 => (number(), 0..2_usize).prop_map(|(exec, stream)| Op::Launch(exec, stream)),
        2 => (number(), any_work()).prop_map(|(node, work)| Op::Draw(node, work)),
        1 => number().prop_map(Op::Make),
        1 => number().prop_map(Op::Remove),
        4 => (0..5_usize).prop_map(Op::Renew),
        3 => (0..5_usize).prop_map(Op::Drop),
        1 => number().prop_map(Op::Release),
        1 => Just(Op::Settle),
        2 => Just(Op::Check),
    ]
}

#[derive(Clone)]
enum Handle {
    Add(KernelNode),
    Fill(MemsetNode),
    Copy(MemcpyNode),
}

impl Handle {
    fn node(&self) -> &Node {
        match self {
            Self::Add(node) => node,
            Self::Fill(node) => node,
            Self::Copy(node) => node,
        }
    }
}

/// Memory in the model: the number of an allocation, whatever has it.
type Memory = usize;

/// What a node does, with allocations in place of the numbers of buffers.
#[derive(Clone, Copy, Debug)]
enum Does {
    Add(u32, Memory),
    Fill(Memory, u32),
    Copy(Memory, Memory),
}

impl Does {
    fn memory(self) -> Vec<Memory> {
        match self {
            Self::Add(_, to) | Self::Fill(to, _) => vec![to],
            Self::Copy(from, to) => vec![from, to],
        }
    }
}

struct DrawnNode {
    handle: Handle,
    does: Does,
    is_removed: bool,
}

struct ExecModel {
    /// What each node does here, and whether it is enabled; nodes of the graph when it was made.
    nodes: Vec<(usize, Does, bool)>,
    /// The memory that it was made with.
    base: Vec<Memory>,
    /// The memory that updates have brought, by node.
    brought: HashMap<usize, Vec<Memory>>,
}

struct World {
    streams: [Stream; 2],
    add: add_to,
    graph: Graph,
    nodes: Vec<DrawnNode>,
    execs: Vec<(GraphExec, ExecModel)>,
    /// The handles of buffers, with their allocations.
    buffers: Vec<Option<(Buffer<u32>, Memory)>>,
    /// What each allocation holds.
    values: Vec<[u32; LEN]>,
    /// The allocations of before.
    allocations: i64,
}

impl World {
    fn new(context: &Context, works: &[Work]) -> Self {
        let streams = [used_stream(context), used_stream(context)];
        settle();
        let allocations = live().of(Kind::Allocation);
        let mut world = Self {
            streams,
            add: add_to::load(context).unwrap(),
            graph: context.graph().unwrap(),
            nodes: Vec::new(),
            execs: Vec::new(),
            buffers: (0..5).map(|_| None).collect(),
            values: Vec::new(),
            allocations,
        };
        (0..5).for_each(|buffer| world.renew(buffer));
        // A chain, so that the order is known.
        let mut last: Option<Node> = None;
        for &work in works {
            let does = world.does(work);
            let at = last.as_ref().map_or_else(|| world.graph.root(), Node::then);
            let handle = match work {
                Work::Add(amount, to) => {
                    Handle::Add(at.launch(&world.add, per(1, 1), (amount, world.buffer(to))).unwrap())
                }
                Work::Fill(to, value) => Handle::Fill(at.fill(world.buffer(to), value).unwrap()),
                Work::Copy(from, to) => Handle::Copy(at.copy(world.buffer(from), world.buffer(to)).unwrap()),
            };
            last = Some(handle.node().clone());
            world.nodes.push(DrawnNode { handle, does, is_removed: false });
        }
        (0..EXECS).for_each(|_| world.make());
        world
    }

    fn renew(&mut self, number: usize) {
        let memory = self.values.len();
        let value = [memory as u32; LEN];
        // From a stream that launches use, so that unsettled homes are among them.
        let buffer = self.streams[memory % 2].upload(&value).unwrap();
        self.values.push(value);
        self.buffers[number] = Some((buffer, memory));
    }

    /// The buffer of a number; a new one if its handle was dropped.
    fn ensure(&mut self, number: usize) {
        if self.buffers[number].is_none() {
            self.renew(number);
        }
    }

    fn buffer(&self, number: usize) -> &Buffer<u32> {
        &self.buffers[number].as_ref().unwrap().0
    }

    fn does(&mut self, work: Work) -> Does {
        let mut memory = |number: usize| {
            self.ensure(number);
            self.buffers[number].as_ref().unwrap().1
        };
        match work {
            Work::Add(amount, to) => Does::Add(amount, memory(to)),
            Work::Fill(to, value) => Does::Fill(memory(to), value),
            Work::Copy(from, to) => Does::Copy(memory(from), memory(to)),
        }
    }

    fn make(&mut self) {
        let exec = self.graph.instantiate().unwrap();
        let there = self.nodes.iter().enumerate().filter(|(_, node)| !node.is_removed);
        let nodes: Vec<_> = there.map(|(number, node)| (number, node.does, true)).collect();
        let base = nodes.iter().flat_map(|(_, does, _)| does.memory()).collect();
        self.execs.push((exec, ExecModel { nodes, base, brought: HashMap::new() }));
    }

    /// Whether it copies a buffer onto itself, which is refused.
    fn is_odd(work: Work) -> bool {
        matches!(work, Work::Copy(from, to) if from == to)
    }

    fn set(&mut self, exec: usize, node: usize, work: Work) {
        let (exec, node) = (exec % self.execs.len(), node % self.nodes.len());
        let is_kind = matches!(
            (&self.nodes[node].handle, work),
            (Handle::Add(_), Work::Add(..))
                | (Handle::Fill(_), Work::Fill(..))
                | (Handle::Copy(_), Work::Copy(..))
        );
        if !is_kind || Self::is_odd(work) {
            return;
        }
        let does = self.does(work);
        let handle = self.nodes[node].handle.clone();
        let Self { execs, buffers, add, nodes, .. } = self;
        let buffer = |number: usize| &buffers[number].as_ref().unwrap().0;
        let (exec, model) = &mut execs[exec];
        let outcome = match (&handle, work) {
            (Handle::Add(node), Work::Add(amount, to)) => {
                exec.node(node).set(&*add, per(1, 1), (amount, buffer(to)))
            }
            (Handle::Fill(node), Work::Fill(to, value)) => exec.node(node).set(buffer(to), value),
            (Handle::Copy(node), Work::Copy(from, to)) => exec.node(node).set(buffer(from), buffer(to)),
            _ => return,
        };
        let known = model.nodes.iter_mut().find(|(number, ..)| *number == node);
        match known {
            Some(known) if !nodes[node].is_removed => {
                outcome.unwrap();
                known.1 = does;
                model.brought.insert(node, does.memory());
            }
            _ => drop(outcome.unwrap_err()),
        }
    }

    fn enable(&mut self, exec: usize, node: usize, on: bool) {
        let (exec, node) = (exec % self.execs.len(), node % self.nodes.len());
        let (exec, model) = &mut self.execs[exec];
        let outcome = match &self.nodes[node].handle {
            Handle::Add(node) => exec.node(node).set_enabled(on),
            Handle::Fill(node) => exec.node(node).set_enabled(on),
            Handle::Copy(node) => exec.node(node).set_enabled(on),
        };
        let known = model.nodes.iter_mut().find(|(number, ..)| *number == node);
        // A fill of a row is never disabled.
        let may = on || !matches!(self.nodes[node].handle, Handle::Fill(_));
        match known {
            Some(known) if !self.nodes[node].is_removed && may => {
                outcome.unwrap();
                known.2 = on;
            }
            _ => drop(outcome.unwrap_err()),
        }
    }

    fn draw(&mut self, node: usize, work: Work) {
        let node = node % self.nodes.len();
        if Self::is_odd(work) || self.nodes[node].is_removed {
            return;
        }
        let does = self.does(work);
        match (&self.nodes[node].handle, work) {
            (Handle::Add(node), Work::Add(amount, to)) => {
                node.set(&self.add, per(1, 1), (amount, self.buffer(to))).unwrap();
            }
            (Handle::Fill(node), Work::Fill(to, value)) => node.set(self.buffer(to), value).unwrap(),
            (Handle::Copy(node), Work::Copy(from, to)) => {
                node.set(self.buffer(from), self.buffer(to)).unwrap();
            }
            _ => return,
        }
        self.nodes[node].does = does;
    }

    /// Runs on one stream after the other, so that the order of all launches is known.
    fn launch(&mut self, exec: usize, stream: usize) {
        let exec = exec % self.execs.len();
        let (here, other) = (&self.streams[stream], &self.streams[1 - stream]);
        here.wait_for(other).unwrap();
        let (exec, model) = &mut self.execs[exec];
        exec.launch(here).unwrap();
        other.wait_for(here).unwrap();
        for (_, does, is_enabled) in &model.nodes {
            if !is_enabled {
                continue;
            }
            match *does {
                Does::Add(amount, to) => self.values[to][0] = self.values[to][0].wrapping_add(amount),
                Does::Fill(to, value) => self.values[to] = [value; LEN],
                Does::Copy(from, to) => self.values[to] = self.values[from],
            }
        }
    }

    fn check(&self) {
        for (buffer, memory) in self.buffers.iter().flatten() {
            assert_eq!(buffer.read_blocking(&self.streams[0]).unwrap(), self.values[*memory], "of {memory}");
        }
    }

    /// The allocations that something has.
    fn owned(&self) -> usize {
        let drawn = self.nodes.iter().filter(|node| !node.is_removed).flat_map(|node| node.does.memory());
        let execs = self.execs.iter().flat_map(|(_, model)| {
            model.base.iter().copied().chain(model.brought.values().flatten().copied())
        });
        let handles = self.buffers.iter().flatten().map(|(_, memory)| *memory);
        let all: std::collections::HashSet<Memory> = drawn.chain(execs).chain(handles).collect();
        all.len()
    }

    /// Once all work is over, what updates have replaced is gone, and nothing else.
    fn count(&mut self) {
        self.streams.iter().for_each(|stream| stream.synchronize_blocking().unwrap());
        self.execs.iter_mut().for_each(|(exec, _)| exec.release());
        let expected = self.owned() as i64;
        let found = || live().of(Kind::Allocation) - self.allocations;
        let is_right = until(SOON, || {
            settle();
            found() == expected
        });
        assert!(is_right, "{} allocations instead of {expected}", found());
    }

    fn step(&mut self, op: &Op) {
        match *op {
            Op::Set(exec, node, work) => self.set(exec, node, work),
            Op::Enable(exec, node, on) => self.enable(exec, node, on),
            Op::Launch(exec, stream) => self.launch(exec, stream),
            Op::Draw(node, work) => self.draw(node, work),
            Op::Make(exec) => {
                let at = exec % self.execs.len();
                drop(self.execs.swap_remove(at));
                self.make();
            }
            Op::Remove(node) => {
                let node = node % self.nodes.len();
                if !self.nodes[node].is_removed {
                    // The order of the others stays.
                    self.nodes[node].handle.node().clone().remove_bridging().unwrap();
                    self.nodes[node].is_removed = true;
                }
            }
            Op::Renew(buffer) => self.renew(buffer),
            Op::Drop(buffer) => self.buffers[buffer] = None,
            Op::Release(exec) => {
                let at = exec % self.execs.len();
                self.execs[at].0.release();
            }
            Op::Settle => settle(),
            Op::Check => self.check(),
        }
    }
}

#[test]
fn executables_compute_what_their_updates_say_and_let_go_of_the_rest() {
    let context = setup();
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|cases| cases.parse().ok()).unwrap_or(48);
    let config = ProptestConfig { cases, ..ProptestConfig::default() };
    let works = prop::collection::vec(any_work().prop_filter("itself", |work| !World::is_odd(*work)), 1..7);
    proptest!(config, |(works in works, ops in prop::collection::vec(op(), 1..80))| {
        let before = live();
        {
            let mut world = World::new(&context, &works);
            ops.iter().for_each(|op| world.step(op));
            world.check();
            world.count();
            world.check();
        }
        let is_gone = until(SOON, || {
            settle();
            live().of(Kind::Allocation) == before.of(Kind::Allocation)
                && live().of(Kind::Exec) == before.of(Kind::Exec)
        });
        prop_assert!(is_gone, "left behind: {}", live().since(&before));
    });
}
