//! The contexts that fills and copies run in, in graphs that span several.

use core::cell::Cell;

use cuda_handles::{Allocation, Context, CopyLayout, Device, FillLayout, MemoryKind, Owner};
use cuda_sys::CUdeviceptr;

use crate::error::wrong_context::Spans;
use crate::state::guard::GraphGuard;
use crate::state::ids::NodeId;
use crate::state::owners::has;
use crate::state::params::NodeParams;

/// The context for a fill: its memory's, as the driver refuses pools of other devices.
pub(crate) fn fill_context<'c>(
    graph: &'c impl Spans,
    owners: impl IntoIterator<Item = &'c Owner>,
    layout: &FillLayout,
) -> &'c Context {
    if !graph.is_wide() {
        return graph.home();
    }
    let memory = memory_at(owners, [layout.address; 2])[0];
    memory.map_or(graph.home(), Allocation::context)
}

/// The context for a copy: of those that the graph spans, as all that looks after its runs knows no
/// others. The driver refuses pools of other devices than its own, unless they grant access, and
/// takes plain memory wherever it lies.
pub(crate) fn copy_context<'c>(
    graph: &'c impl Spans,
    owners: impl IntoIterator<Item = &'c Owner>,
    layout: &CopyLayout,
) -> &'c Context {
    if !graph.is_wide() {
        return graph.home();
    }
    let sides = memory_at(owners, [layout.source.address, layout.destination.address]);
    let is_bound = |memory: &&Allocation| !matches!(memory.kind(), MemoryKind::Plain);
    let may_place = |memory: &&Allocation| is_of_device(memory) && graph.covers(memory.context());
    let sides = sides.map(|side| side.filter(may_place));
    match (sides.map(|side| side.filter(is_bound)), sides) {
        ([Some(source), Some(destination)], _) => {
            let reaches = destination.is_reachable_from(source.context());
            if reaches == Ok(true) { source.context() } else { destination.context() }
        }
        ([Some(memory), None] | [None, Some(memory)], _) => memory.context(),
        (_, [Some(memory), _] | [None, Some(memory)]) => memory.context(),
        _ => graph.home(),
    }
}

/// The device of the pool that a copy in a context cannot reach, perhaps.
pub(crate) fn far_pool<'o>(
    context: &Context,
    owners: impl IntoIterator<Item = &'o Owner>,
    layout: &CopyLayout,
) -> Option<Device> {
    let sides = memory_at(owners, [layout.source.address, layout.destination.address]);
    let is_far = |memory: &&Allocation| {
        memory.context().device() != context.device() && memory.kind() == MemoryKind::Pooled
    };
    sides.into_iter().flatten().find(is_far).map(|memory| memory.context().device())
}

/// Whether memory lies on the device of its context for good.
fn is_of_device(memory: &Allocation) -> bool {
    !matches!(memory.kind(), MemoryKind::Pinned | MemoryKind::Registered | MemoryKind::Managed)
}

/// The memory of addresses, among these owners.
fn memory_at<'o>(
    owners: impl IntoIterator<Item = &'o Owner>,
    addresses: [CUdeviceptr; 2],
) -> [Option<&'o Allocation>; 2] {
    let mut found = [None; 2];
    for memory in owners.into_iter().filter_map(Owner::memory) {
        for (address, found) in addresses.into_iter().zip(&mut found) {
            if found.is_none() && has(memory, address) {
                *found = Some(&**memory);
            }
        }
    }
    found
}

impl GraphGuard<'_> {
    /// The context that a fill or copy runs in.
    pub(crate) fn context_of(&self, id: NodeId) -> &Context {
        let Some(record) = self.record(id).filter(|_| self.is_wide()) else { return self.home() };
        match &record.node_params {
            NodeParams::Memset(layout) => fill_context(self, self.used_by(record), layout),
            NodeParams::Memcpy(layout) => copy_context(self, self.used_by(record), layout),
            NodeParams::Kernel { kernel, .. } => kernel.context(),
            NodeParams::EventRecord(event) => event.context(),
            _ => self.home(),
        }
    }
}

/// The context of a node whose parameters are changing. It is known once its new owners are, and
/// needed where these are out of reach.
#[derive(Default)]
pub(crate) struct Place(Cell<Option<Context>>);

impl Place {
    /// Notes the context, unless it is the graph's home.
    pub(crate) fn note(&self, graph: &impl Spans, context: &Context) {
        if graph.is_wide() {
            self.0.set(Some(context.clone()));
        }
    }

    pub(crate) fn get(&self, graph: &impl Spans) -> Context {
        self.0.take().unwrap_or_else(|| graph.home().clone())
    }
}
