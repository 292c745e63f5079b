//! The changes of a task that an update allows.

use cuda_sys::CUgraphExecUpdateResult as Outcome;

use crate::graph::model::program::Work;
use crate::graph::model::task::{BatchNode, Task};
use crate::memory::copy::{Copy3, Side};
use crate::memory::fill::Fill;
use crate::memory::memory_kind::MemoryKind;
use crate::memory::{self, Origin};
use crate::stream::attribute::is_cooperative;

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
        Task::Copy(old) => matches!(new, Task::Copy(new) if copy_may_become(&old.copy, &new.copy)),
        Task::Fill(old) => matches!(new, Task::Fill(new) if fill_may_become(&old.fill, &new.fill)),
        Task::Batch(old) => matches!(new, Task::Batch(new) if batch_may_become(old, new)),
        Task::Signal(old) => matches!(new, Task::Signal(new) if old.params.len() == new.params.len()),
        Task::Wait(old) => matches!(new, Task::Wait(new) if old.params.len() == new.params.len()),
        Task::Host(_)
        | Task::Empty
        | Task::EventWait(_)
        | Task::EventRecord(_)
        | Task::Alloc(_)
        | Task::Free(_) => true,
    };
    if allowed { Ok(()) } else { Err(PARAMETERS) }
}

/// Whether memory operations may be replaced: only by as many of the same kinds.
pub(crate) fn batch_may_become(old: &BatchNode, new: &BatchNode) -> bool {
    old.ops.iter().map(|op| op.kind()).eq(new.ops.iter().map(|op| op.kind()))
}

/// The classes of memory that an update of a copy cannot exchange.
fn class(address: u64, place: MemoryKind) -> u8 {
    if place.is_host() {
        return 0;
    }
    match memory::find(address).map(|found| found.origin) {
        Some(Origin::Pool) => 2,
        Some(
            Origin::Plain
            | Origin::GraphNode
            | Origin::Pinned
            | Origin::Registered
            | Origin::Managed
            | Origin::Variable
            | Origin::Imported,
        )
        | None => 1,
    }
}

/// Whether a whole update may replace a copy.
pub(crate) fn copy_may_become(old: &Copy3, new: &Copy3) -> bool {
    let same = |old: &Side, new: &Side| old.place.is_host() == new.place.is_host();
    let shape = if old.is_linear() && new.is_linear() {
        true
    } else {
        old.extent == new.extent && old.src.pitch == new.src.pitch && old.dst.pitch == new.dst.pitch
    };
    shape && same(&old.src, &new.src) && same(&old.dst, &new.dst)
}

/// Whether a set-params call may replace a copy. In addition, it does not exchange pool memory and
/// other memory.
pub(crate) fn copy_may_be_set(old: &Copy3, new: &Copy3) -> bool {
    let kept = |old: &Side, new: &Side| {
        let (was, is) = (class(old.address, old.place), class(new.address, new.place));
        was == is
    };
    copy_may_become(old, new) && kept(&old.src, &new.src) && kept(&old.dst, &new.dst)
}

/// Whether a fill may be replaced. With several rows only the value may change.
pub(crate) fn fill_may_become(old: &Fill, new: &Fill) -> bool {
    if old.height == 1 && new.height == 1 {
        return true;
    }
    Fill { value: new.value, ..*old } == *new
}
