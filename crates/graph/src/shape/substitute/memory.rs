//! The memory that a kernel is certain to reach.
//!
//! A copy engine reaches memory that a kernel may not: of other devices, of other code, or mapped
//! for reading alone. A kernel that touches such memory loses the context. So only memory counts
//! that this library has allocated, and that an owner of the node keeps.

use std::sync::Arc;

use cuda_handles::{Allocation, Context, MemoryKind};
use cuda_sys::CUdeviceptr;

/// Memory that kernels reach.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// On the device of the kernel.
    Device,
    /// Pinned, on the host. Kernels reach it by the same address.
    Pinned,
}

/// Where bytes lie that one of some allocations holds, if kernels of a context are certain to reach
/// them. `bytes` is `None` for more than there can be.
pub(super) fn place_of(
    context: &Context,
    memory: &[&Arc<Allocation>],
    address: CUdeviceptr,
    bytes: Option<usize>,
) -> Option<Place> {
    let end = address.checked_add(bytes? as u64)?;
    let holds = |memory: &&Arc<Allocation>| {
        memory.address() <= address && end <= memory.address().saturating_add(memory.bytes() as u64)
    };
    let memory = memory.iter().copied().find(holds)?;
    if memory.context() != context {
        return None;
    }
    match memory.kind() {
        MemoryKind::Plain | MemoryKind::Pooled => Some(Place::Device),
        MemoryKind::Pinned => Some(Place::Pinned),
        // Variables may be constants, and graph memory comes and goes.
        MemoryKind::Global
        | MemoryKind::Graph
        | MemoryKind::Registered
        | MemoryKind::Managed
        | MemoryKind::Imported
        | MemoryKind::Foreign
        | _ => None,
    }
}
