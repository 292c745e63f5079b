//! Executables: made of a graph, launched, changed node by node.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use cuda_sys::{CUgraphInstantiateResult as Outcome, CUgraphNodeType};

use super::compile::Failure;
use super::run::{EventWork, Run};
use crate::device::context;
use crate::device::loss::{self, crash, hang};
use crate::driver::result_code::{Answer, INVALID_VALUE};
use crate::graph::exec::instantiable::{AUTO_FREE, Refused};
use crate::graph::exec::memory_plan::{self, Use};
use crate::graph::exec::update_rules::{batch_may_become, copy_may_be_set, fill_may_become};
use crate::graph::model::condition_values::Values;
use crate::graph::model::executable::Exec;
use crate::graph::model::payload::Payload;
use crate::graph::model::program::{Program, Work};
use crate::graph::model::store::{Graphs, graphs, new_uid};
use crate::graph::model::task::{KernelSpec, Task};
use crate::graph::model::user_object::{Holdings, Shares};
use crate::memory::copy::Place;
use crate::stream::event;
use crate::stream::mem_op;
use crate::stream::{self, Stream, Ticket};

impl Graphs {
    /// The user objects of a graph and all parts of it, once more for an executable.
    pub(crate) fn shares(&self, graph: u64, used: bool, device: i32) -> Vec<((u64, usize), Arc<Shares>)> {
        let mut shares = Vec::new();
        for part in self.tree(graph) {
            let Ok(own) = self.graph(part) else { continue };
            let holdings: Holdings = own.objects.duplicate();
            let key = if part == graph { (0, 0) } else { self.part_key(part) };
            shares.push((key, Arc::new(Shares::new(holdings, used, device))));
        }
        shares
    }

    /// How an executable knows a child or body: the uid of its node and its number in it.
    fn part_key(&self, part: u64) -> (u64, usize) {
        use crate::graph::model::store::Owner;
        let Ok(Owner::Child { node, .. } | Owner::Body { node }) = self.graph(part).map(|graph| graph.owner)
        else {
            return (0, 0);
        };
        let Ok(node) = self.node(node) else { return (0, 0) };
        let number = match &node.payload {
            Payload::Conditional(conditional) => conditional.bodies.iter().position(|body| *body == part),
            _ => None,
        };
        (node.uid, number.unwrap_or(0))
    }

    /// Makes an executable.
    pub(crate) fn instantiate(&mut self, graph: u64, flags: u64) -> Result<u64, Refused> {
        self.check_instantiable(graph, flags)?;
        let mut program = self.program(graph).map_err(|failure| match failure {
            Failure::Cycle(cycle) => {
                Refused::new(INVALID_VALUE, Outcome::CUDA_GRAPH_INSTANTIATE_INVALID_STRUCTURE, cycle.node)
            }
            Failure::Gone => INVALID_VALUE.into(),
        })?;
        let context = context::current()?;
        program.values = Values::again(program.conditions.iter().map(|(number, _)| *number));
        note_instantiated(&program);
        let keys = program.steps.iter().enumerate().map(|(index, step)| (step.uid, index)).collect();
        let shares = self.shares(graph, false, context.device);
        let own = self.graph_mut(graph)?;
        own.live_execs += 1;
        let source = (graph, own.uid);
        Ok(self.execs.insert(Exec {
            uid: new_uid(),
            program: Arc::new(program),
            keys,
            shares,
            flags,
            source,
            used: false,
            context,
            last: Arc::default(),
        }))
    }

    pub(crate) fn exec(&self, handle: u64) -> Answer<&Exec> {
        self.execs.get(handle).ok_or(INVALID_VALUE)
    }

    pub(crate) fn exec_mut(&mut self, handle: u64) -> Answer<&mut Exec> {
        self.execs.get_mut(handle).ok_or(INVALID_VALUE)
    }

    /// An executable less for its source.
    pub(crate) fn release_source(&mut self, source: (u64, u64)) {
        if let Some(graph) = self.graphs.get_mut(source.0).filter(|graph| graph.uid == source.1) {
            graph.live_execs = graph.live_execs.saturating_sub(1);
        }
    }

    /// The step of an executable for a node of its source.
    pub(crate) fn step_of(&self, exec: u64, node: u64) -> Answer<usize> {
        let exec = self.exec(exec)?;
        let node = self.node(node)?;
        exec.keys.get(&node.uid).copied().ok_or(INVALID_VALUE)
    }
}

/// `cuGraphExecDestroy`: work in flight goes on, but for an executable with conditional nodes the
/// call waits for all there is, and nobody enqueues anything meanwhile, as on a GPU.
pub(crate) fn destroy(handle: u64) -> Answer {
    let removed = {
        let mut all = graphs();
        let exec = all.execs.remove(handle).ok_or(INVALID_VALUE)?;
        all.release_source(exec.source);
        exec
    };
    if !removed.context.is_alive() && !loss::is_lost(removed.context.device) {
        hang("an executable is destroyed after its context was reset or released");
    }
    if !removed.program.conditions.is_empty() {
        stream::stalled(|| ());
    }
    // Destructors may run now, so the lock must be free.
    drop(removed);
    Ok(())
}

/// What a program does with memory, in its order. Bodies do nothing with it.
fn memory_uses(program: &Program) -> Vec<Use> {
    let mut uses = Vec::new();
    // What is to come, the next one last.
    let mut waiting: Vec<usize> = program.top.order.iter().rev().copied().collect();
    while let Some(step) = waiting.pop().and_then(|index| program.steps.get(index)) {
        match &step.work {
            Work::Task(Task::Alloc(node)) => uses.push(Use::Allocates(Arc::clone(&node.memory))),
            Work::Task(Task::Free(memory)) => uses.push(Use::Frees(Arc::clone(memory))),
            Work::Child(level) => waiting.extend(level.order.iter().rev()),
            _ => {}
        }
    }
    uses
}

/// Notes for the memory that a program allocates that an executable has it.
pub(crate) fn note_instantiated(program: &Program) {
    for step in &program.steps {
        if let Work::Task(Task::Alloc(node)) = &step.work {
            node.memory.instantiate();
        }
    }
}

/// What the event nodes do in a launch that starts now.
fn event_work(program: &Program) -> HashMap<usize, EventWork> {
    let mut events = HashMap::new();
    // What is to come, the next one last.
    let mut waiting: Vec<usize> = program.top.order.iter().rev().copied().collect();
    while let Some(index) = waiting.pop() {
        let Some(step) = program.steps.get(index) else { continue };
        match &step.work {
            Work::Task(Task::EventRecord(handle)) => {
                if let Ok(event) = event::get(*handle) {
                    events.insert(index, EventWork::Record(event.renew()));
                }
            }
            Work::Task(Task::EventWait(handle)) => match event::get(*handle) {
                Ok(event) => {
                    if let Some(marker) = event.last() {
                        events.insert(index, EventWork::Wait(marker));
                    }
                }
                Err(_) => crash("an executable waits for an event that is destroyed"),
            },
            Work::Child(level) => waiting.extend(level.order.iter().rev()),
            Work::Conditional { bodies, .. } => {
                waiting.extend(bodies.iter().rev().flat_map(|body| body.order.iter().rev()));
            }
            Work::Task(_) => {}
        }
    }
    events
}

/// `cuGraphLaunch`.
pub(crate) fn launch(handle: u64, stream: &Arc<Stream>) -> Answer {
    let (run, shares, last, waits) = {
        let mut all = graphs();
        let exec = all.exec_mut(handle)?;
        let program = Arc::clone(&exec.program);
        let mut staged = HashMap::new();
        let mut waits = false;
        for (index, step) in program.steps.iter().enumerate().filter(|(_, step)| step.enabled) {
            let Work::Task(task) = &step.work else { continue };
            match task {
                Task::Kernel(spec) if !spec.function.module.is_alive() => {
                    crash("an executable is launched whose kernel's module or library is unloaded")
                }
                Task::Signal(node) if !node.is_alive() => crash(SEMAPHORE_GONE),
                Task::Wait(node) if !node.is_alive() => crash(SEMAPHORE_GONE),
                Task::Batch(node) => mem_op::ensure_reachable(&node.ops)?,
                Task::Copy(node) => {
                    // SAFETY: the interface demands that pageable memory of a node is valid at each
                    // launch.
                    if let Some(bytes) = unsafe { node.copy.stage() } {
                        staged.insert(index, bytes);
                    }
                    waits |= node.copy.dst.place == Place::Pageable;
                }
                _ => {}
            }
        }
        let context = stream.context.handle;
        let (uses, auto_free) = (memory_uses(&program), exec.flags & AUTO_FREE != 0);
        let memory = memory_plan::begin(&uses, auto_free, context, (stream.id, exec.uid))?;
        let events = event_work(&program);
        exec.mark_used();
        let device = stream.context.device;
        let run = Run { program, staged, events, memory, context, device };
        (run, exec.shares.clone(), Arc::clone(&exec.last), waits)
    };
    let ticket = enqueue(&last, stream, move || {
        let outcome = run.run();
        drop((run, shares));
        outcome
    });
    if waits {
        ticket.wait();
    }
    Ok(())
}

/// Adds work that comes after the executable's last launch, wherever that was.
fn enqueue(
    last: &Mutex<Option<Ticket>>,
    stream: &Arc<Stream>,
    work: impl FnOnce() -> Result<(), loss::Loss> + Send + 'static,
) -> Ticket {
    let mut last = last.lock().unwrap_or_else(PoisonError::into_inner);
    let previous = last.take();
    let ticket = stream.push(move || {
        if let Some(previous) = previous {
            previous.wait();
        }
        work()
    });
    *last = Some(ticket.clone());
    ticket
}

/// `cuGraphUpload`.
pub(crate) fn upload(handle: u64, stream: &Arc<Stream>) -> Answer {
    let (last, uploading) = {
        let mut all = graphs();
        let exec = all.exec_mut(handle)?;
        let uploading = memory_plan::upload(&memory_uses(&exec.program), stream.id, exec.uid)?;
        exec.mark_used();
        (Arc::clone(&exec.last), uploading)
    };
    enqueue(&last, stream, || {
        drop(uploading);
        Ok(())
    });
    Ok(())
}

impl Exec {
    pub(crate) fn device(&self) -> i32 {
        self.context.device
    }

    fn mark_used(&mut self) {
        self.used = true;
        self.shares.iter().for_each(|(_, shares)| shares.mark_used());
    }

    /// New work for a step; the old one, to be dropped without the lock.
    #[must_use]
    pub(crate) fn set_work(&mut self, step: usize, work: Work) -> Option<Work> {
        let step = Arc::make_mut(&mut self.program).steps.get_mut(step)?;
        Some(std::mem::replace(&mut step.work, work))
    }

    pub(crate) fn work(&self, step: usize) -> Answer<&Work> {
        self.program.steps.get(step).map(|step| &step.work).ok_or(INVALID_VALUE)
    }

    /// Whether a step can be enabled and disabled.
    fn can_be_disabled(&self, step: usize) -> Answer {
        match self.work(step)?.kind() {
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL
            | CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY
            | CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET => Ok(()),
            _ => Err(INVALID_VALUE),
        }
    }

    pub(crate) fn enabled(&self, step: usize) -> Answer<bool> {
        self.can_be_disabled(step)?;
        Ok(self.program.steps.get(step).is_some_and(|step| step.enabled))
    }

    pub(crate) fn set_enabled(&mut self, step: usize, enabled: bool) -> Answer {
        self.can_be_disabled(step)?;
        if let Some(step) = Arc::make_mut(&mut self.program).steps.get_mut(step) {
            step.enabled = enabled;
        }
        Ok(())
    }
}

/// New parameters for a step of an executable, as the set-params calls have them.
pub(crate) fn set_params(exec: u64, node: u64, new: Task) -> Answer {
    let replaced = {
        let mut all = graphs();
        let step = all.step_of(exec, node)?;
        let exec = all.exec_mut(exec)?;
        let Work::Task(old) = exec.work(step)? else { return Err(INVALID_VALUE) };
        let new = may_be_set(old, new)?;
        exec.set_work(step, Work::Task(new))
    };
    drop(replaced);
    Ok(())
}

/// Whether an executable's task may become another one by a set-params call: what it becomes.
fn may_be_set(old: &Task, new: Task) -> Answer<Task> {
    let may = match (old, &new) {
        (Task::Kernel(old), Task::Kernel(spec)) => {
            if old.function.module.context.handle != spec.function.module.context.handle {
                return Err(INVALID_VALUE);
            }
            // The attributes are the node's, not the parameters'.
            let spec = KernelSpec { attributes: old.attributes.clone(), ..KernelSpec::clone(spec) };
            crate::launch::check(&spec.function.code, &spec.sizes, &spec.attributes)?;
            return Ok(Task::Kernel(Arc::new(spec)));
        }
        (Task::Copy(old), Task::Copy(new)) => copy_may_be_set(&old.copy, &new.copy),
        (Task::Fill(old), Task::Fill(new)) => fill_may_become(&old.fill, &new.fill),
        (Task::Batch(old), Task::Batch(new)) => batch_may_become(old, new),
        (Task::Signal(old), Task::Signal(new)) => old.params.len() == new.params.len(),
        (Task::Wait(old), Task::Wait(new)) => old.params.len() == new.params.len(),
        (Task::Host(_), Task::Host(_))
        | (Task::Empty, Task::Empty)
        | (Task::EventRecord(_), Task::EventRecord(_))
        | (Task::EventWait(_), Task::EventWait(_)) => true,
        _ => false,
    };
    if may { Ok(new) } else { Err(INVALID_VALUE) }
}

const SEMAPHORE_GONE: &str = "an executable is launched whose semaphore is destroyed";
