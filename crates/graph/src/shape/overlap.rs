//! Which kernels can be at the programmatic edges that shaping makes.
//!
//! Data flow over such edges is known to hold for kernels that wait at their entry, and for memory
//! of their own device (`docs/costs.md` names the forms that were tried). Everything else keeps
//! full edges.

use std::sync::Arc;

use cuda_handles::{Allocation, Context, MemoryKind};
use cuda_launch::internal::Accesses;

use crate::shape::planning::drawn::Overlap;
use crate::state::bindings::Place;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::kernel_config::KernelConfig;
use crate::state::params::NodeParams;

impl GraphGuard<'_> {
    /// Whether a node can be at no programmatic edge, whatever its parameters. If a graph parameter
    /// enables it, it may be disabled, and a disabled kernel does not wait. If it sets a condition,
    /// a conditional node goes by that.
    pub(super) fn overlaps_never(&self, id: NodeId) -> bool {
        let mut uses = self.bindings.get(id).into_iter().flat_map(|binding| &binding.uses);
        self.is_deciding(id) || uses.any(|one| one.place == Place::Enabled)
    }
}

/// The programmatic edges that a kernel of the user can be at, with these parameters and all memory
/// that its node keeps alive.
pub(super) fn overlap_of_kernel(
    context: &Context,
    params: &NodeParams,
    memory: &[&Arc<Allocation>],
) -> Overlap {
    let NodeParams::Kernel { kernel, config: KernelConfig::Plain { .. }, accesses } = params else {
        return Overlap::Never;
    };
    if !kernel.waits_at_entry() {
        return Overlap::Never;
    }
    match is_known(accesses) && memory.iter().all(|memory| is_on_device(context, memory)) {
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
