//! Changes to single nodes of an executable: parameters, enabled or not.

use std::sync::Arc;

use cuda_sys::CUgraphNodeType;

use crate::driver::result_code::{Answer, INVALID_VALUE};
use crate::graph::exec::update_rules::{
    batch_may_become, copy_may_be_set, event_may_become, fill_may_become,
};
use crate::graph::model::executable::Exec;
use crate::graph::model::program::Work;
use crate::graph::model::store::store;
use crate::graph::model::task::{CopyNode, KernelSpec, Task};

impl Exec {
    pub(crate) fn device(&self) -> i32 {
        self.context.device
    }

    pub(super) fn mark_used(&mut self) {
        self.used = true;
        self.shares.iter().for_each(|(_, shares)| shares.mark_used());
    }

    /// Replaces the work of a step; returns the old work, to be dropped without the lock.
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

/// Sets the parameters of a step of an executable.
pub(crate) fn set_params(exec: u64, node: u64, new: Task) -> Answer {
    let replaced = {
        let mut store = store();
        let step = store.step_of(exec, node)?;
        let exec = store.exec_mut(exec)?;
        let Work::Task(old) = exec.work(step)? else { return Err(INVALID_VALUE) };
        let new = may_be_set(old, new)?;
        exec.set_work(step, Work::Task(new))
    };
    drop(replaced);
    Ok(())
}

/// Checks that a set-params call may replace a task; returns the new task.
fn may_be_set(old: &Task, new: Task) -> Answer<Task> {
    let may = match old {
        Task::Kernel(old) => {
            let Task::Kernel(spec) = new else { return Err(INVALID_VALUE) };
            if old.function.module.context.handle != spec.function.module.context.handle {
                return Err(INVALID_VALUE);
            }
            // Attributes belong to the node, not to its parameters.
            let spec = KernelSpec { attributes: old.attributes.clone(), ..KernelSpec::clone(&spec) };
            crate::launch::check(&spec.function.code, &spec.sizes, &spec.attributes)?;
            return Ok(Task::Kernel(Arc::new(spec)));
        }
        Task::Copy(old) if old.has_no_context => {
            let Task::Copy(new) = &new else { return Err(INVALID_VALUE) };
            if !copy_may_be_set(old, new) {
                return Err(INVALID_VALUE);
            }
            return Ok(Task::Copy(Arc::new(CopyNode { has_no_context: true, ..**new })));
        }
        Task::Copy(old) => matches!(&new, Task::Copy(new) if copy_may_be_set(old, new)),
        Task::Fill(old) => matches!(&new, Task::Fill(new) if fill_may_become(&old.fill, &new.fill)),
        Task::Batch(old) => matches!(&new, Task::Batch(new) if batch_may_become(old, new)),
        Task::Signal(old) => matches!(&new, Task::Signal(new) if old.params.len() == new.params.len()),
        Task::Wait(old) => matches!(&new, Task::Wait(new) if old.params.len() == new.params.len()),
        Task::EventRecord(old) => matches!(&new, Task::EventRecord(new) if event_may_become(*old, *new)),
        Task::EventWait(old) => matches!(&new, Task::EventWait(new) if event_may_become(*old, *new)),
        Task::Host(_) | Task::Empty => old.kind() == new.kind(),
        Task::Alloc(_) | Task::Free(_) => false,
    };
    if may { Ok(new) } else { Err(INVALID_VALUE) }
}
