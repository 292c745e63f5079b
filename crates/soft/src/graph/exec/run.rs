//! One launch of an executable: its steps run one after the other, in topological order, except
//! that kernels behind programmatic edges begin early.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cuda_sys::CUresult;

use crate::device::loss::{self, Loss};
use crate::graph::exec::driver_bugs;
use crate::graph::exec::early_level::EarlyLevel;
use crate::graph::exec::early_order::Action;
use crate::graph::exec::memory_plan::MemoryPlan;
use crate::graph::model::payload::ConditionalKind;
use crate::graph::model::program::{Level, Program, Work};
use crate::graph::model::task::{KernelSpec, Task};
use crate::launch::{ConditionSetter, KernelRun};
use crate::stream::callback;
use crate::stream::marker::Marker;
use crate::stream::mem_op;
use crate::stream::poll::poll;

/// The action of an event node in this launch.
#[derive(Debug)]
pub(crate) enum EventAction {
    Record(Arc<Marker>),
    Wait(Arc<Marker>),
}

/// A running level.
struct RunningLevel<'a> {
    steps: RunningSteps<'a>,
    /// For the body of a loop: the level, and the condition that decides whether it runs again.
    again: Option<(&'a Level, u64)>,
}

enum RunningSteps<'a> {
    /// The steps, and the position of the next one.
    InOrder(&'a [usize], usize),
    Early(Box<EarlyLevel<'a>>),
}

impl<'a> RunningSteps<'a> {
    fn of(level: &'a Level, program: &'a Program) -> Self {
        if level.is_early {
            Self::Early(Box::new(EarlyLevel::new(level, program)))
        } else {
            Self::InOrder(&level.order, 0)
        }
    }

    fn next(&mut self) -> Option<Action> {
        match self {
            Self::InOrder(order, next) => {
                let index = *order.get(*next)?;
                *next += 1;
                Some(Action::Run(index))
            }
            Self::Early(level) => level.next(),
        }
    }
}

/// A running level with steps that may wait.
struct WaitingLevel {
    /// The remaining steps with their progress, in the order of the level.
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
    /// Copies of pageable sources from the launch call, by step.
    pub(crate) staged: HashMap<usize, Vec<u8>>,
    pub(crate) events: HashMap<usize, EventAction>,
    pub(crate) memory: MemoryPlan,
    /// The context of the stream.
    pub(crate) context: u64,
    pub(crate) device: i32,
}

impl Drop for Run {
    /// Ends the waits for events of a launch that was cut short.
    fn drop(&mut self) {
        for event in self.events.values() {
            if let EventAction::Record(marker) = event {
                marker.reach();
            }
        }
    }
}

/// Adds the node to the loss of a task. A kernel's device is lost, which need not be the stream's.
fn in_node(loss: Loss, node: u64, task: &Task) -> Loss {
    let loss = Loss::new(loss.code, format!("{}; in the graph node {node:#x}", loss.sentence));
    if let Task::Kernel(spec) = task {
        loss::set(spec.function.module.context.device, loss.clone());
    }
    loss
}

impl Run {
    /// Runs all steps.
    pub(crate) fn run(&self) -> Result<(), Loss> {
        for (handle, default) in &self.program.conditions {
            if let Some(default) = default {
                self.program.values.set(*handle, *default);
            }
        }
        self.memory.start();
        let top = &self.program.top;
        if top.waits { self.waiting_level(top) } else { self.steps(RunningSteps::of(top, &self.program)) }
    }

    /// Runs steps that never wait. It uses an explicit stack, since graphs may be nested deeper
    /// than the thread's stack allows.
    fn steps<'a>(&'a self, steps: RunningSteps<'a>) -> Result<(), Loss> {
        let mut open = vec![RunningLevel { steps, again: None }];
        while let Some(level) = open.last_mut() {
            let Some(action) = level.steps.next() else {
                match level.again.filter(|(_, handle)| self.goes_on(*handle)) {
                    Some((body, _)) => level.steps = RunningSteps::of(body, &self.program),
                    None => drop(open.pop()),
                }
                continue;
            };
            let Some(step) = self.program.steps.get(action.step()) else { continue };
            if let RunningSteps::Early(early) = &mut level.steps {
                if let Work::Task(task @ Task::Kernel(spec)) = &step.work
                    && step.enabled
                {
                    let run = early.run_kernel(action, step.node, self.kernel_run(spec));
                    run.map_err(|loss| in_node(loss, step.node, task))?;
                    continue;
                }
                early.pass(action.step());
            }
            let Some(step) = Some(step).filter(|step| step.enabled) else { continue };
            match &step.work {
                Work::Task(task) => {
                    let done = self.task(action.step(), step.node, task);
                    done.map_err(|loss| in_node(loss, step.node, task))?;
                }
                Work::Child(level) => {
                    open.push(RunningLevel { steps: RunningSteps::of(level, &self.program), again: None });
                }
                Work::Conditional { handle, condition, bodies } => {
                    driver_bugs::check(&self.program, step.node, *condition, bodies)?;
                    open.extend(self.chosen(*handle, *condition, bodies));
                }
            }
        }
        Ok(())
    }

    /// Runs a level with steps that wait. Other branches go on meanwhile, since they may end the
    /// wait. No kernel begins early. It uses an explicit stack, too.
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

    /// Runs the remaining steps that can run. A child that may wait is left until nothing else can
    /// run: then it is returned, to be run to its end, and counts as done.
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
                    self.steps(RunningSteps::InOrder(&[index], 0))?;
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

    fn kernel_run<'a>(&'a self, spec: &'a KernelSpec) -> KernelRun<'a> {
        let values: &dyn ConditionSetter = &*self.program.values;
        KernelRun {
            function: &spec.function,
            sizes: &spec.sizes,
            params: &spec.arguments.bytes,
            // Without conditions, a kernel that sets one fails as outside of a graph.
            conditions: (!self.program.conditions.is_empty()).then_some(values),
            declared: spec.declared.as_deref(),
            watch: None,
        }
    }

    fn task(&self, index: usize, node: u64, task: &Task) -> Result<(), Loss> {
        match task {
            Task::Kernel(spec) => self.kernel_run(spec).run(),
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

    /// The body that the value of the condition selects.
    fn chosen<'a>(
        &'a self,
        handle: u64,
        condition: ConditionalKind,
        bodies: &'a [Level],
    ) -> Option<RunningLevel<'a>> {
        let value = self.program.values.get(handle);
        let (number, is_loop) = match condition {
            ConditionalKind::If => (usize::from(value == 0), false),
            ConditionalKind::Switch => (value as usize, false),
            ConditionalKind::While if value != 0 => (0, true),
            ConditionalKind::While => return None,
        };
        let body = bodies.get(number)?;
        let steps = RunningSteps::of(body, &self.program);
        Some(RunningLevel { steps, again: is_loop.then_some((body, handle)) })
    }

    /// Whether a loop runs again.
    fn goes_on(&self, handle: u64) -> bool {
        self.program.values.get(handle) != 0 && !loss::is_lost(self.device)
    }
}
