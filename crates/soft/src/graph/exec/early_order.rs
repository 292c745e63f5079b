//! The order of a level with programmatic edges: kernels behind such edges begin early.
//!
//! ```text
//! full edge            A ends ──► B begins
//! programmatic edge    A begins ──► B begins, and A ends ──► B passes its griddepcontrol.wait
//! launch-order edge    A begins ──► B begins
//! ```
//!
//! Kernels begin as early as their edges allow, and those in front of an early one run as late as
//! possible, so that a kernel that does not wait comes too early. The rest is drawn from a seed.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::order::mix;
use crate::graph::model::edge::Edge;
use crate::graph::model::program::{Level, Step};

/// What to do with a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Action {
    /// Begin a kernel: kernels in front may not have ended.
    Begin(usize),
    /// Run a step as a whole.
    Run(usize),
    /// Run the rest of a kernel that has begun.
    Finish(usize),
}

impl Action {
    pub(super) fn step(self) -> usize {
        match self {
            Self::Begin(step) | Self::Run(step) | Self::Finish(step) => step,
        }
    }
}

/// Which of several actions comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Urgency {
    Begins,
    /// A step in front of it has not ended.
    Overtakes,
    Usual,
    /// A kernel behind it begins early.
    IsOvertaken,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Stage {
    Waiting,
    Ready,
    Begun,
    Done,
}

#[derive(Debug)]
struct Node {
    stage: Stage,
    /// Steps in front over full edges that have not ended.
    unended: usize,
    /// Steps in front over other edges that have not begun.
    unbegun: usize,
    /// Steps in front over programmatic edges that have not ended.
    unwaited: usize,
    begins_early: bool,
    /// Whether it and everything in front of it has ended.
    is_settled: bool,
    dependents: Vec<(usize, Edge)>,
}

pub(super) struct EarlyOrder<'a> {
    steps: &'a [Step],
    seed: u64,
    nodes: HashMap<usize, Node>,
    ready: BTreeSet<(Urgency, u64, Action)>,
}

impl<'a> EarlyOrder<'a> {
    pub(super) fn new(level: &Level, steps: &'a [Step], seed: u64) -> Self {
        let nodes = level.order.iter().map(|index| (*index, Node::of(dependencies(steps, *index)))).collect();
        let mut order = Self { steps, seed, nodes, ready: BTreeSet::new() };
        for index in &level.order {
            for (from, edge) in dependencies(steps, *index) {
                if let Some(node) = order.nodes.get_mut(from) {
                    node.dependents.push((*index, *edge));
                }
            }
        }
        for index in &level.order {
            order.start_if_possible(*index);
        }
        order
    }

    /// The next action. [`begun`](Self::begun) or [`ended`](Self::ended) follows it.
    pub(super) fn next(&mut self) -> Option<Action> {
        self.ready.pop_first().map(|(_, _, action)| action)
    }

    /// The step has begun; its rest is a later action.
    pub(super) fn begun(&mut self, step: usize) {
        let Some(node) = self.nodes.get_mut(&step) else { return };
        node.stage = Stage::Begun;
        if node.unwaited == 0 {
            self.push(Action::Finish(step));
        }
        self.let_others_begin(step);
    }

    /// The step has ended.
    pub(super) fn ended(&mut self, step: usize) {
        let Some(node) = self.nodes.get_mut(&step) else { return };
        let never_began = node.begins_early && node.stage != Stage::Begun;
        node.stage = Stage::Done;
        if never_began {
            self.let_others_begin(step);
        }
        for (other, edge) in self.dependents(step) {
            let Some(node) = self.nodes.get_mut(&other) else { continue };
            if edge.is_plain() {
                node.unended -= 1;
                self.start_if_possible(other);
            } else if edge.is_waited_for() {
                node.unwaited -= 1;
                if node.unwaited == 0 && node.stage == Stage::Begun {
                    self.push(Action::Finish(other));
                }
            }
        }
        self.settle(step);
    }

    pub(super) fn has_ended(&self, step: usize) -> bool {
        self.nodes.get(&step).is_none_or(|node| node.stage == Stage::Done)
    }

    /// The steps in front, over edges of any kind, that have not ended.
    pub(super) fn unended_before(&self, step: usize) -> HashSet<usize> {
        let mut found = HashSet::new();
        let (mut seen, mut open) = (HashSet::from([step]), vec![step]);
        while let Some(next) = open.pop() {
            for (from, _) in dependencies(self.steps, next) {
                if self.is_settled(*from) || !seen.insert(*from) {
                    continue;
                }
                if !self.has_ended(*from) {
                    found.insert(*from);
                }
                open.push(*from);
            }
        }
        found
    }

    fn dependents(&self, step: usize) -> Vec<(usize, Edge)> {
        self.nodes.get(&step).map(|node| node.dependents.clone()).unwrap_or_default()
    }

    fn start_if_possible(&mut self, step: usize) {
        let Some(node) = self.nodes.get_mut(&step) else { return };
        if node.stage != Stage::Waiting || node.unended + node.unbegun > 0 {
            return;
        }
        node.stage = Stage::Ready;
        if node.begins_early {
            self.push(Action::Begin(step));
        } else {
            self.push(Action::Run(step));
            // It could be running already.
            self.let_others_begin(step);
        }
    }

    fn let_others_begin(&mut self, step: usize) {
        for (other, edge) in self.dependents(step) {
            if let Some(node) = self.nodes.get_mut(&other).filter(|_| !edge.is_plain()) {
                node.unbegun -= 1;
                self.start_if_possible(other);
            }
        }
    }

    fn push(&mut self, action: Action) {
        let step = action.step();
        let is_overtaken = self.nodes.get(&step).is_some_and(Node::is_overtaken);
        let urgency = match action {
            Action::Begin(_) => Urgency::Begins,
            _ if !self.is_settled_before(step) => Urgency::Overtakes,
            _ if is_overtaken => Urgency::IsOvertaken,
            _ => Urgency::Usual,
        };
        self.ready.insert((urgency, mix(self.seed, step), action));
    }

    fn is_settled(&self, step: usize) -> bool {
        self.nodes.get(&step).is_none_or(|node| node.is_settled)
    }

    fn is_settled_before(&self, step: usize) -> bool {
        dependencies(self.steps, step).iter().all(|(from, _)| self.is_settled(*from))
    }

    /// Settles a step and those behind it, as far as possible.
    fn settle(&mut self, step: usize) {
        let mut open = vec![step];
        while let Some(next) = open.pop() {
            if !self.has_ended(next) || self.is_settled(next) || !self.is_settled_before(next) {
                continue;
            }
            if let Some(node) = self.nodes.get_mut(&next) {
                node.is_settled = true;
                open.extend(node.dependents.iter().map(|(other, _)| *other));
            }
        }
    }
}

impl Node {
    fn of(dependencies: &[(usize, Edge)]) -> Self {
        let count = |counts: fn(&Edge) -> bool| dependencies.iter().filter(|(_, edge)| counts(edge)).count();
        let unbegun = count(|edge| !edge.is_plain());
        Self {
            stage: Stage::Waiting,
            unended: count(|edge| edge.is_plain()),
            unbegun,
            unwaited: count(|edge| edge.is_waited_for()),
            begins_early: unbegun > 0,
            is_settled: false,
            dependents: Vec::new(),
        }
    }

    fn is_overtaken(&self) -> bool {
        self.dependents.iter().any(|(_, edge)| !edge.is_plain())
    }
}

fn dependencies(steps: &[Step], index: usize) -> &[(usize, Edge)] {
    steps.get(index).map(|step| &step.dependencies[..]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::model::program::Work;
    use crate::graph::model::task::Task;

    const FULL: Edge = Edge { from_port: 0, kind: 0 };
    const PROGRAMMATIC: Edge = Edge { from_port: 1, kind: 1 };
    const LAUNCH_ORDER: Edge = Edge { from_port: 2, kind: 0 };

    /// The actions for a graph of `count` nodes. Those in `waiting` wait.
    fn actions(count: usize, edges: &[(usize, usize, Edge)], waiting: &[usize], seed: u64) -> Vec<Action> {
        let steps: Vec<Step> = (0..count)
            .map(|index| Step {
                node: 0,
                uid: 0,
                enabled: true,
                work: Work::Task(Task::Empty),
                dependencies: edges
                    .iter()
                    .filter(|(_, to, _)| *to == index)
                    .map(|(from, _, edge)| (*from, *edge))
                    .collect(),
                dependents: 0,
            })
            .collect();
        let level = Level { order: (0..count).collect(), ..Level::default() };
        let mut order = EarlyOrder::new(&level, &steps, seed);
        let mut made = Vec::new();
        while let Some(action) = order.next() {
            made.push(action);
            match action {
                Action::Begin(step) if waiting.contains(&step) => order.begun(step),
                action => order.ended(action.step()),
            }
        }
        assert!((0..count).all(|step| order.has_ended(step) && order.is_settled(step)), "{made:?}");
        made
    }

    use Action::{Begin, Finish, Run};

    #[test]
    fn waiting_kernels_begin_first_and_end_in_order() {
        let chain = [(0, 1, PROGRAMMATIC), (1, 2, PROGRAMMATIC)];
        for seed in 0..8 {
            let expected = [Begin(1), Begin(2), Run(0), Finish(1), Finish(2)];
            assert_eq!(actions(3, &chain, &[1, 2], seed), expected);
        }
    }

    #[test]
    fn a_kernel_that_does_not_wait_lets_those_behind_it_overtake() {
        let edges = [(0, 1, PROGRAMMATIC), (1, 2, PROGRAMMATIC), (1, 3, FULL)];
        for seed in 0..8 {
            let made = actions(4, &edges, &[2], seed);
            let last = made.iter().position(|action| *action == Run(0)).unwrap();
            assert_eq!(made[0], Begin(1));
            assert_eq!(last, made.len() - 1, "{made:?}");
        }
    }

    #[test]
    fn launch_order_is_not_waited_for() {
        let made = actions(2, &[(0, 1, LAUNCH_ORDER)], &[1], 0);
        assert_eq!(made, [Begin(1), Finish(1), Run(0)]);
    }

    #[test]
    fn full_edges_hold_back_what_begins_early() {
        let edges = [(0, 2, PROGRAMMATIC), (1, 2, FULL), (2, 3, FULL)];
        let made = actions(4, &edges, &[2], 0);
        assert_eq!(made, [Run(1), Begin(2), Run(0), Finish(2), Run(3)]);
    }

    #[test]
    fn the_seed_decides_between_equals() {
        let edges: Vec<_> = (0..6).map(|index| (index, index + 6, PROGRAMMATIC)).collect();
        let waiting: Vec<usize> = (6..12).collect();
        let orders: BTreeSet<_> = (0..16).map(|seed| actions(12, &edges, &waiting, seed)).collect();
        assert!(orders.len() > 10, "{}", orders.len());
    }
}
