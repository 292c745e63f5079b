//! One launch of an executable: its nodes one after the other, in an order that their edges allow.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use cuda_sys::CUresult;

use super::memory_node::Plan;
use super::payload::Condition;
use super::program::{Level, Program, Work};
use super::quirk;
use super::task::Task;
use crate::callback;
use crate::event::Marker;
use crate::fault::{self, Loss};
use crate::launch::{self, Conditions};
use crate::mem_op;
use crate::poll::poll;

/// What an event node does in this launch, by its step.
#[derive(Debug)]
pub(crate) enum EventWork {
    Record(Arc<Marker>),
    Wait(Arc<Marker>),
}

/// A launch.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) program: Arc<Program>,
    /// Pageable sources as they were at the launch call, by step.
    pub(crate) staged: HashMap<usize, Vec<u8>>,
    pub(crate) events: HashMap<usize, EventWork>,
    pub(crate) memory: Plan,
    /// The context of the stream.
    pub(crate) context: u64,
    pub(crate) device: i32,
}

impl Drop for Run {
    /// Nobody may wait for ever for a launch that was cut short.
    fn drop(&mut self) {
        for event in self.events.values() {
            if let EventWork::Record(marker) = event {
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
        self.level(&self.program.top)
    }

    fn level(&self, level: &Level) -> Result<(), Loss> {
        if level.waits {
            self.waiting_level(level)
        } else {
            level.order.iter().try_for_each(|index| self.step(*index))
        }
    }

    /// Runs a level in which steps wait: the other branches go on meanwhile, as what they do may end the wait.
    fn waiting_level(&self, level: &Level) -> Result<(), Loss> {
        // Each step with how far it is, in the order of the level.
        let mut open: Vec<(usize, usize)> = level.order.iter().map(|index| (*index, 0)).collect();
        let mut done = HashSet::with_capacity(open.len());
        poll(self.device, || {
            loop {
                let before = done.len();
                self.pass(&mut open, &mut done)?;
                if open.is_empty() || done.len() == before {
                    return Ok(open.is_empty());
                }
            }
        })
    }

    /// Runs what can be run of the steps that are left. A child that may wait is for when nothing else is.
    fn pass(&self, open: &mut Vec<(usize, usize)>, done: &mut HashSet<usize>) -> Result<(), Loss> {
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
                    child = child.or(Some(index));
                    false
                }
                _ => {
                    self.step(index)?;
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
            Some(index) if done.len() == before => {
                self.step(index)?;
                done.insert(index);
                open.retain(|(other, _)| *other != index);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    fn step(&self, index: usize) -> Result<(), Loss> {
        let Some(step) = self.program.steps.get(index).filter(|step| step.enabled) else { return Ok(()) };
        match &step.work {
            Work::Task(task) => self.task(index, step.node, task).map_err(|loss| in_node(loss, step.node)),
            Work::Child(level) => self.level(level),
            Work::Conditional { handle, condition, bodies } => {
                quirk::check(&self.program, step.node, *condition, bodies)?;
                self.conditional(*handle, *condition, bodies)
            }
        }
    }

    fn task(&self, index: usize, node: u64, task: &Task) -> Result<(), Loss> {
        match task {
            Task::Kernel(spec) => {
                let values: &dyn Conditions = &*self.program.values;
                launch::run(&spec.function, &spec.sizes, &spec.arguments.bytes, Some(values))
            }
            Task::Copy(node) => {
                let staged = self.staged.get(&index).map(Vec::as_slice);
                // SAFETY: pageable sources were read at the launch, pageable destinations are kept by the launch call, which waits.
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
                    Some(EventWork::Record(marker)) => marker.reach(),
                    Some(EventWork::Wait(marker)) => marker.wait(),
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

    fn conditional(&self, handle: u64, condition: Condition, bodies: &[Level]) -> Result<(), Loss> {
        let value = || self.program.values.get(handle);
        let run = |index: usize| bodies.get(index).map_or(Ok(()), |body| self.level(body));
        match condition {
            Condition::If => run(usize::from(value() == 0)),
            Condition::Switch => run(value() as usize),
            Condition::While => {
                while value() != 0 && !fault::is_lost(self.device) {
                    run(0)?;
                }
                Ok(())
            }
        }
    }
}
