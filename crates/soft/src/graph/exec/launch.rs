//! Launches and uploads of executables.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use crate::device::loss;
use crate::driver::abort::crash;
use crate::driver::result_code::Answer;
use crate::graph::exec::instantiable::AUTO_FREE;
use crate::graph::exec::memory_plan::{self, MemoryUse};
use crate::graph::exec::run::{EventAction, Run};
use crate::graph::model::program::{Program, Work};
use crate::graph::model::store::store;
use crate::graph::model::task::Task;
use crate::memory::memory_kind::MemoryKind;
use crate::stream::{Stream, Ticket, event, mem_op};
use crate::sync::lock;

/// The allocations and frees of a program in order. Bodies have none.
fn memory_uses(program: &Program) -> Vec<MemoryUse> {
    let mut uses = Vec::new();
    // A stack: the next step last.
    let mut waiting: Vec<usize> = program.top.order.iter().rev().copied().collect();
    while let Some(step) = waiting.pop().and_then(|index| program.steps.get(index)) {
        match &step.work {
            Work::Task(Task::Alloc(node)) => uses.push(MemoryUse::Allocates(Arc::clone(&node.memory))),
            Work::Task(Task::Free(memory)) => uses.push(MemoryUse::Frees(Arc::clone(memory))),
            Work::Child(level) => waiting.extend(level.order.iter().rev()),
            Work::Task(_) | Work::Conditional { .. } => {}
        }
    }
    uses
}

/// The actions of the event nodes in a launch that starts now.
fn event_work(program: &Program) -> HashMap<usize, EventAction> {
    let mut events = HashMap::new();
    // A stack: the next step last.
    let mut waiting: Vec<usize> = program.top.order.iter().rev().copied().collect();
    while let Some(index) = waiting.pop() {
        let Some(step) = program.steps.get(index) else { continue };
        match &step.work {
            Work::Task(Task::EventRecord(handle)) => {
                if let Ok(event) = event::get(*handle) {
                    events.insert(index, EventAction::Record(event.renew()));
                }
            }
            Work::Task(Task::EventWait(handle)) => match event::get(*handle) {
                Ok(event) => {
                    if let Some(marker) = event.last() {
                        events.insert(index, EventAction::Wait(marker));
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
        let mut store = store();
        let exec = store.exec_mut(handle)?;
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
                    if let Some(bytes) = unsafe { node.copy.stage()? } {
                        staged.insert(index, bytes);
                    }
                    waits |= node.copy.dst.place == MemoryKind::Pageable;
                }
                Task::Kernel(_)
                | Task::Fill(_)
                | Task::Host(_)
                | Task::Empty
                | Task::EventWait(_)
                | Task::EventRecord(_)
                | Task::Alloc(_)
                | Task::Free(_)
                | Task::Signal(_)
                | Task::Wait(_) => {}
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

/// Enqueues work after the last launch of the executable, on whichever stream that was.
fn enqueue(
    last: &Mutex<Option<Ticket>>,
    stream: &Arc<Stream>,
    work: impl FnOnce() -> Result<(), loss::Loss> + Send + 'static,
) -> Ticket {
    let mut last = lock(last);
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
        let mut store = store();
        let exec = store.exec_mut(handle)?;
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

const SEMAPHORE_GONE: &str = "an executable is launched whose semaphore is destroyed";
