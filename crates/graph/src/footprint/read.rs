//! The footprint of a node, by its parameters and owners.
//!
//! Transparent are copies, fills, and kernels that were declared as `fn` by `kernel!` and whose
//! library [has no state](cuda_handles::Library::is_stateless), as long as all memory that they
//! touch is pooled, plain or pinned memory that this library allocated: nothing else has another
//! address of it. A kernel that sets a condition writes it. All other nodes are opaque.

use cuda_handles::{Allocation, Context, CopyLayout, CopySide, Kernel, MemoryKind};
use cuda_launch::internal::{StoredArguments, StoredMemory};
use cuda_sys::CUgraphNodeParams;

use super::{Footprint, Touch, WhyOpaque};
use crate::check::accesses::{AccessCollector, PackedLaunch};
use crate::check::collect::UsedMemory;
use crate::check::model::{AddressSpace, MemoryAccess};
use crate::check::region::Region;
use crate::error::Result;
use crate::state::bindings::BoundNode;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::params::NodeParams;
use crate::update::values::{copy_layout, fill_layout};

impl Footprint {
    /// The bytes that a node of a graph of this context will touch with parameters that it is about
    /// to get. `raw` is their form for the driver, and `used` the memory among the owners of what
    /// they use, with the ranges of arguments. The node sets these conditions.
    pub(crate) fn of_new(
        context: &Context,
        node_params: &NodeParams,
        raw: &CUgraphNodeParams,
        (used, ranges): UsedMemory<'_>,
        conditions: &[u64],
    ) -> Result<Self> {
        if let Some(why) = why_opaque(node_params) {
            return Ok(Self::Opaque(why));
        }
        let mut accesses = Vec::new();
        let collector = AccessCollector { node: 0, used, ranges, accesses: &mut accesses, found: Vec::new() };
        whole(collector, context, || Ok(PackedLaunch::of_new(node_params, raw)), node_params, conditions)
    }

    /// The bytes that a node touches whose parameters can be replaced one by one; `None` if those
    /// of a row that only a parameter enables.
    pub(crate) fn of_bound(context: &Context, node: &BoundNode) -> Result<Option<Self>> {
        Ok(Some(match node {
            BoundNode::Kernel { kernel, arguments, .. } => of_stored(context, kernel, arguments),
            BoundNode::Fill(fill) => {
                let region = fill_layout(fill)?.map(|layout| Region::of_fill(&layout));
                of_memory(context, [(&fill.memory, region, true)])
            }
            BoundNode::Copy(copy) => {
                let layout = copy_layout(copy)?;
                let region = |side: fn(&CopyLayout) -> &CopySide| {
                    layout.as_ref().map(|layout| Region::of_copy(layout, side(layout)))
                };
                let source = region(|layout| &layout.source);
                let destination = region(|layout| &layout.destination);
                of_memory(context, [(&copy.source, source, false), (&copy.destination, destination, true)])
            }
            BoundNode::Decider(_) | BoundNode::Record(_) | BoundNode::Wait(_) => {
                Self::Opaque(WhyOpaque::Node)
            }
            BoundNode::Plain => return Ok(None),
        }))
    }
}

impl GraphGuard<'_> {
    /// The bytes that a node of the graph touches.
    ///
    /// # Errors
    /// The driver does not return the parameters of a kernel.
    pub(crate) fn footprint(&self, id: NodeId) -> Result<Footprint> {
        let Some(record) = self.record(id) else { return Err(self.removed(id)) };
        if let Some(why) = why_opaque(&record.node_params) {
            return Ok(Footprint::Opaque(why));
        }
        if record.owners.decision().is_some() {
            return Ok(Footprint::Opaque(WhyOpaque::Node));
        }
        let (used, ranges) = self.used_memory(record);
        let mut accesses = Vec::new();
        let collector = AccessCollector { node: 0, used, ranges, accesses: &mut accesses, found: Vec::new() };
        let (raw, conditions) = (record.raw.0, self.conditions.of_kernel(id.index));
        whole(
            collector,
            self.context(),
            || Ok(self.kernel_params(raw)?.into()),
            &record.node_params,
            conditions,
        )
    }
}

/// Why a node with these parameters is opaque, whatever its memory is.
fn why_opaque(node_params: &NodeParams) -> Option<WhyOpaque> {
    match node_params {
        NodeParams::Kernel { kernel, accesses, .. } => why_opaque_kernel(kernel, accesses.ends_alone()),
        NodeParams::Empty | NodeParams::Memcpy(_) | NodeParams::Memset(_) => None,
        NodeParams::Host(_)
        | NodeParams::EventRecord(_)
        | NodeParams::EventWait(_)
        | NodeParams::Batch(_)
        | NodeParams::Alloc { .. }
        | NodeParams::Free { .. }
        | NodeParams::SignalSemaphores(_)
        | NodeParams::WaitSemaphores(_)
        | NodeParams::Child { .. }
        | NodeParams::Conditional(_)
        | NodeParams::Other { .. } => Some(WhyOpaque::Node),
    }
}

/// Why a kernel is opaque, given whether it was declared as `fn`.
fn why_opaque_kernel(kernel: &Kernel, ends_alone: bool) -> Option<WhyOpaque> {
    match (ends_alone, kernel.library().is_stateless()) {
        (false, _) => Some(WhyOpaque::Kernel),
        (true, false) => Some(WhyOpaque::Image),
        (true, true) => None,
    }
}

/// Whether memory has no address but its own, and only nodes of this context use it.
fn has_one_address(context: &Context, allocation: &Allocation) -> bool {
    let is_own = matches!(allocation.kind(), MemoryKind::Pooled | MemoryKind::Plain | MemoryKind::Pinned);
    is_own && context.is_same(allocation.context())
}

/// The footprint of a kernel with stored arguments.
fn of_stored(context: &Context, kernel: &Kernel, arguments: &StoredArguments) -> Footprint {
    let declaration = arguments.declaration();
    if let Some(why) = why_opaque_kernel(kernel, declaration.ends_alone) {
        return Footprint::Opaque(why);
    }
    let mut memory = Vec::new();
    for (position, parameter) in declaration.each() {
        let Some(stored) = arguments.memory(position) else { return Footprint::Opaque(WhyOpaque::Memory) };
        let region = Region::linear(stored.start, stored.bytes);
        memory.push((stored, Some(region), parameter.access.writes()));
    }
    let conditions = arguments.handles().map(|handle| Touch::of_condition(handle.number()));
    of_memory_and(conditions.collect(), context, memory)
}

/// The footprint of accesses to memory; those without a region touch nothing.
fn of_memory<'m>(
    context: &Context,
    accesses: impl IntoIterator<Item = (&'m StoredMemory, Option<Region>, bool)>,
) -> Footprint {
    of_memory_and(Vec::new(), context, accesses)
}

/// The footprint of other accesses and of those to memory.
fn of_memory_and<'m>(
    mut touches: Vec<Touch>,
    context: &Context,
    accesses: impl IntoIterator<Item = (&'m StoredMemory, Option<Region>, bool)>,
) -> Footprint {
    for (memory, region, writes) in accesses {
        let Some(region) = region.filter(|region| !region.is_empty()) else { continue };
        if !has_one_address(context, &memory.allocation) {
            return Footprint::Opaque(WhyOpaque::Memory);
        }
        touches.push(Touch { space: AddressSpace::Memory, region, writes });
    }
    Footprint::Known(touches.into())
}

/// The accesses of a node, if all of them are to memory with one address.
fn whole(
    mut collector: AccessCollector<'_, '_>,
    context: &Context,
    launch: impl FnOnce() -> Result<PackedLaunch>,
    node_params: &NodeParams,
    conditions: &[u64],
) -> Result<Footprint> {
    if collector.node(launch, node_params, conditions)?.is_some() {
        return Ok(Footprint::Opaque(WhyOpaque::Node));
    }
    let AccessCollector { accesses, found, .. } = collector;
    let is_known = |(number, access): (usize, &MemoryAccess)| {
        let mut found = found.iter().filter(|(access, _)| *access == number);
        access.is_of_condition() || found.any(|(_, allocation)| has_one_address(context, allocation))
    };
    if !accesses.iter().enumerate().all(is_known) {
        return Ok(Footprint::Opaque(WhyOpaque::Memory));
    }
    let touch = |access: &MemoryAccess| Touch {
        space: access.space,
        region: access.region,
        writes: access.kind.writes(),
    };
    Ok(Footprint::Known(accesses.iter().map(touch).collect()))
}
