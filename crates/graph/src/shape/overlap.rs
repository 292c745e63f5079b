//! Which kernels can be at the programmatic edges that shaping makes.
//!
//! Data flow over such edges is known to hold for kernels that wait at their entry, and for memory
//! of their own device (`docs/costs.md` names the forms that were tried). Everything else keeps full
//! edges.

use std::sync::Arc;

use cuda_handles::{Allocation, Context, MemoryKind, Owner};
use cuda_launch::internal::Accesses;

use crate::shape::planning::drawn::Overlap;
use crate::state::bindings::Place;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::kernel_config::KernelConfig;
use crate::state::params::NodeParams;

impl GraphGuard<'_> {
    /// The programmatic edges that a node can be at, with its parameters in the graph. A node that a
    /// graph parameter enables can be at none: a disabled kernel does not wait.
    pub(super) fn overlap_of(&self, id: NodeId) -> Overlap {
        let Some(record) = self.record(id) else { return Overlap::Never };
        let mut uses = self.bindings.get(id).into_iter().flat_map(|binding| &binding.uses);
        if uses.any(|one| one.place == Place::Enabled) {
            return Overlap::Never;
        }
        let kept = record.owners.kept().iter().chain(self.used_by(record));
        overlap(self.context(), &record.node_params, kept)
    }
}

/// The programmatic edges that a node with these parameters and owners can be at.
pub(super) fn overlap<'o>(
    context: &Context,
    params: &NodeParams,
    owners: impl IntoIterator<Item = &'o Owner>,
) -> Overlap {
    let NodeParams::Kernel { kernel, config: KernelConfig::Plain { .. }, accesses } = params else {
        return Overlap::Never;
    };
    if !kernel.waits_at_entry() {
        return Overlap::Never;
    }
    let mut memory = owners.into_iter().filter_map(Owner::memory);
    match is_known(accesses) && memory.all(|memory| is_on_device(context, memory)) {
        true => Overlap::Both,
        false => Overlap::Behind,
    }
}

/// Whether the kernel is known to use the memory of its arguments alone.
fn is_known(accesses: &Accesses) -> bool {
    accesses.ends_alone()
}

/// Whether memory is the device's own, and was allocated by this library.
pub(super) fn is_on_device(context: &Context, memory: &Arc<Allocation>) -> bool {
    matches!(memory.kind(), MemoryKind::Pooled | MemoryKind::Plain) && memory.context() == context
}
