//! The changes of a task that an update allows.

use cuda_sys::{CUgraphExecUpdateResult as Outcome, CUmemorytype};

use crate::graph::model::program::Work;
use crate::graph::model::task::{BatchNode, CopyNode, Task};
use crate::memory::fill::Fill;
use crate::memory::peer_access;
use crate::stream::attribute::is_cooperative;
use crate::stream::event;

const TYPE: Outcome = Outcome::CU_GRAPH_EXEC_UPDATE_ERROR_NODE_TYPE_CHANGED;
const PARAMETERS: Outcome = Outcome::CU_GRAPH_EXEC_UPDATE_ERROR_PARAMETERS_CHANGED;
const FUNCTION: Outcome = Outcome::CU_GRAPH_EXEC_UPDATE_ERROR_UNSUPPORTED_FUNCTION_CHANGE;
const ATTRIBUTES: Outcome = Outcome::CU_GRAPH_EXEC_UPDATE_ERROR_ATTRIBUTES_CHANGED;

/// Checks that a whole update may replace the work of a step.
pub(crate) fn may_become(old: &Work, new: &Work) -> Result<(), Outcome> {
    if old.kind() != new.kind() {
        return Err(TYPE);
    }
    let (Work::Task(old), Work::Task(new)) = (old, new) else { return Ok(()) };
    let allowed = match old {
        Task::Kernel(old) => {
            let Task::Kernel(new) = new else { return Err(TYPE) };
            if old.function.module.context.handle != new.function.module.context.handle {
                return Err(FUNCTION);
            }
            let same = is_cooperative(&old.attributes) == is_cooperative(&new.attributes);
            return if same { Ok(()) } else { Err(ATTRIBUTES) };
        }
        Task::Copy(old) => matches!(new, Task::Copy(new) if copy_may_become(old, new)),
        Task::Fill(old) => matches!(new, Task::Fill(new) if fill_may_become(&old.fill, &new.fill)),
        Task::Batch(old) => matches!(new, Task::Batch(new) if batch_may_become(old, new)),
        Task::Signal(old) => matches!(new, Task::Signal(new) if old.params.len() == new.params.len()),
        Task::Wait(old) => matches!(new, Task::Wait(new) if old.params.len() == new.params.len()),
        Task::EventRecord(old) => matches!(new, Task::EventRecord(new) if event_may_become(*old, *new)),
        Task::EventWait(old) => matches!(new, Task::EventWait(new) if event_may_become(*old, *new)),
        Task::Host(_) | Task::Empty | Task::Alloc(_) | Task::Free(_) => true,
    };
    if allowed { Ok(()) } else { Err(PARAMETERS) }
}

/// Whether memory operations may be replaced: only by as many of the same kinds.
pub(crate) fn batch_may_become(old: &BatchNode, new: &BatchNode) -> bool {
    old.ops.iter().map(|op| op.kind()).eq(new.ops.iter().map(|op| op.kind()))
}

/// Whether a call for one node may replace a copy. In addition, each side stays unified or not, and
/// of a copy without a context everything stays.
pub(crate) fn copy_may_be_set(old: &CopyNode, new: &CopyNode) -> bool {
    if old.has_no_context && old.copy != new.copy {
        return false;
    }
    let unified = |node: &CopyNode| {
        [node.raw.srcMemoryType, node.raw.dstMemoryType]
            .map(|kind| kind == CUmemorytype::CU_MEMORYTYPE_UNIFIED)
    };
    copy_may_become(old, new) && unified(old) == unified(new)
}

/// Whether a copy may be replaced. Each side keeps its kind of memory.
pub(crate) fn copy_may_become(old: &CopyNode, new: &CopyNode) -> bool {
    let (was, is) = (&old.copy, &new.copy);
    let shape = if was.is_linear() && is.is_linear() {
        true
    } else {
        was.extent == is.extent && was.src.pitch == is.src.pitch && was.dst.pitch == is.dst.pitch
    };
    let stays = |was: u64, is: u64| stays_on_device(was, is);
    shape
        && was.src.may_become(&is.src)
        && was.dst.may_become(&is.dst)
        && stays(was.src.address, is.src.address)
        && stays(was.dst.address, is.dst.address)
}

/// Whether new memory of a node is not on another device than the old. Memory that is gone says
/// nothing.
fn stays_on_device(old: u64, new: u64) -> bool {
    match (peer_access::device_of(old), peer_access::device_of(new)) {
        (Some(old), Some(new)) => old == new,
        (None, _) | (_, None) => true,
    }
}

/// Whether an event may take the place of another one.
pub(crate) fn event_may_become(old: u64, new: u64) -> bool {
    let device = |event: u64| event::get(event).map(|event| event.context.device).ok();
    match (device(old), device(new)) {
        (Some(old), Some(new)) => old == new,
        (None, _) | (_, None) => true,
    }
}

/// Whether a fill may be replaced. With several rows only the value may change.
pub(crate) fn fill_may_become(old: &Fill, new: &Fill) -> bool {
    if !stays_on_device(old.address, new.address) {
        return false;
    }
    if old.height == 1 && new.height == 1 {
        return true;
    }
    Fill { value: new.value, ..*old } == *new
}
