//! Which kernels can be at the programmatic edges that shaping makes.
//!
//! Data flow over such edges is known to hold for kernels that wait at their entry, and for memory
//! of their own device (`docs/shapes.md` has the figures). Everything else keeps full edges.

use std::sync::Arc;

use cuda_handles::{Allocation, Context, MemoryKind};

use crate::shape::planning::drawn::Overlap;
use crate::state::bindings::Place;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::kernel_config::KernelConfig;
use crate::state::params::NodeParams;

impl GraphGuard<'_> {
    /// Whether a node can be at no programmatic edge, whatever its parameters. If graph parameters
    /// may disable it, by a flag, or by a grid or memory of a copy that is empty, it may not wait.
    /// If it sets a condition, a conditional node goes by that.
    pub(super) fn overlaps_never(&self, id: NodeId) -> bool {
        let mut uses = self.bindings.get(id).into_iter().flat_map(|binding| &binding.uses);
        let may_be_disabled = uses.any(|one| match one.place {
            Place::Enabled | Place::Config | Place::Grid(..) | Place::Source | Place::Destination => true,
            // An empty fill of a row fills spare memory.
            Place::Target
            | Place::Argument(_)
            | Place::Length { .. }
            | Place::Value
            | Place::Tested
            | Place::Event => false,
        });
        may_be_disabled || self.is_deciding(id)
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
    let is_of_device = accesses.ends_alone()
        && !kernel.library().may_have_managed_variables()
        && memory.iter().all(|memory| is_on_device(context, memory));
    if is_of_device { Overlap::Both } else { Overlap::Behind }
}

/// Whether memory is the device's own, and was allocated by this library.
pub(super) fn is_on_device(context: &Context, memory: &Arc<Allocation>) -> bool {
    matches!(memory.kind(), MemoryKind::Pooled | MemoryKind::Plain) && memory.context() == context
}
