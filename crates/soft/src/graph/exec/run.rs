//! One launch of an executable: its nodes one after the other, in an order that their edges allow.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cuda_sys::CUresult;

use crate::device::loss::{self, Loss};
use crate::graph::exec::driver_bugs;
use crate::graph::exec::memory_plan::MemoryPlan;
use crate::graph::model::payload::ConditionalKind;
use crate::graph::model::program::{Level, Program, Work};
use crate::graph::model::task::Task;
use crate::launch::{self, ConditionSetter};
use crate::stream::callback;
use crate::stream::event::Marker;
use crate::stream::mem_op;
use crate::stream::poll::poll;

/// What an event node does in this launch, by its step.
#[derive(Debug)]
pub(crate) enum EventAction {
    Record(Arc<Marker>),
    Wait(Arc<Marker>),
}

/// A level that runs.
struct RunningLevel<'a> {
    order: &'a [usize],
    /// Which of its steps comes next.
    next: usize,
    /// The condition by which it runs again, of the body of a loop.
    again: Option<u64>,
}

/// A level some of whose steps wait.
struct WaitingLevel {
    /// Its steps with how far each is, in the order of the level.
    left: Vec<(usize, usize)>,
    done: HashSet<usize>,
}

impl WaitingLevel {
    fn of(level: &Level) -> Self {
        let left: Vec<_> = level.order.iter().map(|index| (*index, 0)).collect();
        Self { done: HashSet::with_capacity(left.len()), left }
    }
}

/// A launch.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) program: Arc<Program>,
    /// Pageable sources as they were at the launch call, by step.
    pub(crate) staged: HashMap<usize, Vec<u8>>,
    pub(crate) events: HashMap<usize, EventAction>,
    pub(crate) memory: MemoryPlan,
    /// The context of the stream.
    pub(crate) context: u64,
    pub(crate) device: i32,
}

impl Drop for Run {
    /// Nobody may wait for ever for a launch that was cut short.
    fn drop(&mut self) {
        for event in self.events.values() {
            if let EventAction::Record(marker) = event {
                marker.reach();
            }
        }
    }
}

/// The loss with the node that caused it.
fn in_node(loss: Loss, node: u64) -> Loss {
    Loss::new(loss.code, format!("{}; in the graph node {node:#x}", loss.sentence))
}

impl Run {
    /// Runs all nodes.
    pub(crate) fn run(&self) -> Result<(), Loss> {
        for (handle, default) in &self.program.conditions {
            if let Some(default) = default {
                self.program.values.set(*handle, *default);
            }
        }
        self.memory.start();
        let top = &self.program.top;
        if top.waits { self.waiting_level(top) } else { self.steps(&top.order) }
    }

    /// Runs steps of which none waits, nor anything in them, with a stack of its own: they may be
    /// nested deeper than the thread's is.
    fn steps<'a>(&'a self, order: &'a [usize]) -> Result<(), Loss> {
        let mut open = vec![RunningLevel { order, next: 0, again: None }];
        while let Some(level) = open.last_mut() {
            let Some(index) = level.order.get(level.next) else {
                if level.again.is_some_and(|handle| self.goes_on(handle)) {
                    level.next = 0;
                } else {
                    open.pop();
                }
                continue;
            };
            level.next += 1;
            let Some(step) = self.program.steps.get(*index).filter(|step| step.enabled) else { continue };
            match &step.work {
                Work::Task(task) => {
                    self.task(*index, step.node, task).map_err(|loss| in_node(loss, step.node))?;
                }
                Work::Child(level) => open.push(RunningLevel { order: &level.order, next: 0, again: None }),
                Work::Conditional { handle, condition, bodies } => {
                    driver_bugs::check(&self.program, step.node, *condition, bodies)?;
                    open.extend(self.chosen(*handle, *condition, bodies));
                }
            }
        }
        Ok(())
    }

    /// Runs a level in which steps wait: the other branches go on meanwhile, as what they do may
    /// end the wait. With a stack, as above.
    fn waiting_level(&self, level: &Level) -> Result<(), Loss> {
        let mut open = vec![WaitingLevel::of(level)];
        poll(self.device, || {
            while let Some(waiting) = open.last_mut() {
                let before = waiting.done.len();
                match self.pass(waiting)? {
                    Some(child) => open.push(child),
                    None if waiting.left.is_empty() => {
                        open.pop();
                    }
                    None if waiting.done.len() == before => return Ok(false),
                    None => {}
                }
            }
            Ok(true)
        })
    }

    /// Runs what can be run of the steps that are left. A child that may wait is for when nothing
    /// else is: it is given back to be run to its end, and counts as done.
    fn pass(
        &self,
        WaitingLevel { left: open, done }: &mut WaitingLevel,
    ) -> Result<Option<WaitingLevel>, Loss> {
        let before = done.len();
        let (mut left, mut child) = (Vec::new(), None);
        for (index, mut progress) in open.drain(..) {
            let Some(step) = self.program.steps.get(index) else { continue };
            let is_ready = step.dependencies.iter().all(|(before, _)| done.contains(before));
            let is_done = match &step.work {
                _ if !is_ready => false,
                Work::Task(Task::Batch(node)) => mem_op::advance(&node.ops, &mut progress)?,
                Work::Task(Task::Wait(node)) => node.advance(&mut progress),
                Work::Child(level) if level.waits => {
                    child = child.or(Some((index, level)));
                    false
                }
                Work::Task(_) | Work::Child(_) | Work::Conditional { .. } => {
                    self.steps(&[index])?;
                    true
                }
            };
            if is_done {
                done.insert(index);
            } else {
                left.push((index, progress));
            }
        }
        *open = left;
        match child {
            Some((index, level)) if done.len() == before => {
                done.insert(index);
                open.retain(|(other, _)| *other != index);
                Ok(Some(WaitingLevel::of(level)))
            }
            Some(_) | None => Ok(None),
        }
    }

    fn task(&self, index: usize, node: u64, task: &Task) -> Result<(), Loss> {
        match task {
            Task::Kernel(spec) => {
                let values: &dyn ConditionSetter = &*self.program.values;
                // Without any condition a kernel that sets one does it as in no graph.
                let values = (!self.program.conditions.is_empty()).then_some(values);
                launch::run(&spec.function, &spec.sizes, &spec.arguments.bytes, values)
            }
            Task::Copy(node) => {
                let staged = self.staged.get(&index).map(Vec::as_slice);
                // SAFETY: pageable sources were read at the launch, pageable destinations are kept
                // by the launch call, which waits.
                unsafe { node.copy.run(staged) }
            }
            Task::Fill(node) => node.fill.run(CUresult::CUDA_ERROR_LAUNCH_FAILED),
            Task::Host(callback) => {
                let callback = *callback;
                callback::on_host_thread(self.context, move || callback.call());
                Ok(())
            }
            Task::Empty => Ok(()),
            Task::EventRecord(_) | Task::EventWait(_) => {
                match self.events.get(&index) {
                    Some(EventAction::Record(marker)) => marker.reach(),
                    Some(EventAction::Wait(marker)) => marker.wait(),
                    None => {}
                }
                Ok(())
            }
            Task::Alloc(alloc) => self.memory.allocate(&alloc.memory, self.context),
            Task::Free(memory) => self.memory.free(memory, node),
            Task::Batch(node) => mem_op::run_all(&node.ops, self.device),
            Task::Signal(node) => {
                node.signal();
                Ok(())
            }
            Task::Wait(node) => node.wait(self.device),
        }
    }

    /// The body of a conditional node that the value chooses.
    fn chosen<'a>(
        &self,
        handle: u64,
        condition: ConditionalKind,
        bodies: &'a [Level],
    ) -> Option<RunningLevel<'a>> {
        let value = self.program.values.get(handle);
        let (number, again) = match condition {
            ConditionalKind::If => (usize::from(value == 0), None),
            ConditionalKind::Switch => (value as usize, None),
            ConditionalKind::While if value != 0 => (0, Some(handle)),
            ConditionalKind::While => return None,
        };
        bodies.get(number).map(|body| RunningLevel { order: &body.order, next: 0, again })
    }

    /// Whether a loop takes another round.
    fn goes_on(&self, handle: u64) -> bool {
        self.program.values.get(handle) != 0 && !loss::is_lost(self.device)
    }
}
