//! The driver's rules: which parameters a node of an executable can get in place of others.

use cuda_handles::{BatchOperation, CopyLayout, CopySide, FillLayout, MemorySpace};
use cuda_sys::CUmemorytype;

/// A difference between the shapes of two copies, or of two fills, that no update makes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum ShapeChange {
    /// From rows to one row.
    ToRow,
    /// From one row to rows.
    FromRow,
    /// From rows to other rows.
    OtherRows,
}

impl ShapeChange {
    /// A row may become any other row. Rows stay as they are.
    fn between(was_row: bool, is_row: bool, are_same_rows: impl FnOnce() -> bool) -> Option<Self> {
        match (was_row, is_row) {
            (true, true) => None,
            (false, true) => Some(Self::ToRow),
            (true, false) => Some(Self::FromRow),
            (false, false) => (!are_same_rows()).then_some(Self::OtherRows),
        }
    }

    /// Addresses of copies may change whatever their shape, in an update of the whole executable.
    pub(super) fn of_copies(old: &CopyLayout, new: &CopyLayout) -> Option<Self> {
        let extent = |copy: &CopyLayout| (copy.width, copy.height, copy.depth);
        let pitches = |copy: &CopyLayout| (copy.source.pitch, copy.destination.pitch);
        Self::between(is_row(old), is_row(new), || extent(old) == extent(new) && pitches(old) == pitches(new))
    }

    /// The value of a fill may change whatever its shape.
    pub(super) fn of_fills(old: &FillLayout, new: &FillLayout) -> Option<Self> {
        let with_value = FillLayout { value: new.value, ..*old };
        Self::between(old.height == 1, new.height == 1, || with_value == *new)
    }
}

/// A change of a copy from memory of pools to other memory, or the reverse, that no update makes.
/// The driver keeps the context of the memory on each side, and memory of pools has none.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct PoolChange {
    /// The side, for sentences.
    pub(super) side: &'static str,
    /// Whether the new memory is of a pool.
    pub(super) is_pooled: bool,
}

impl PoolChange {
    /// The first of the two sides that changes, by whether source and destination
    /// [have a context](cuda_handles::Allocation::has_context).
    pub(super) fn between(old: [Option<bool>; 2], new: [Option<bool>; 2]) -> Option<Self> {
        let sides = ["source", "destination"].into_iter().zip(old.into_iter().zip(new));
        sides.into_iter().find_map(|(side, contexts)| match contexts {
            (Some(old), Some(new)) if old != new => Some(Self { side, is_pooled: !new }),
            _ => None,
        })
    }
}

/// Whether the driver's description of a side tells the address alone, and not that it is the
/// device's.
pub(super) fn is_unified(side: &CopySide) -> bool {
    side.space.memory_type() == CUmemorytype::CU_MEMORYTYPE_UNIFIED
}

/// Describes memory that the device reaches as the driver's node does: an update keeps whether the
/// sides are [unified](is_unified). Memory of the host stays as it is.
pub(super) fn keep_types(copy: &mut CopyLayout, unified: [bool; 2]) {
    for (side, unified) in [&mut copy.source, &mut copy.destination].into_iter().zip(unified) {
        match (unified, side.space.memory_type()) {
            (true, CUmemorytype::CU_MEMORYTYPE_DEVICE | CUmemorytype::CU_MEMORYTYPE_HOST) => {
                side.space = MemorySpace::Found;
            }
            (false, CUmemorytype::CU_MEMORYTYPE_UNIFIED) => side.space = MemorySpace::Device,
            _ => {}
        }
    }
}

/// Whether a copy has one dimension. The driver sets single nodes to such copies alone.
pub(super) fn is_row(copy: &CopyLayout) -> bool {
    copy.height == 1 && copy.depth == 1
}

/// Whether two batches have the same number of operations, of the same kinds.
pub(super) fn are_alike(old: &[BatchOperation], new: &[BatchOperation]) -> bool {
    old.iter().map(core::mem::discriminant).eq(new.iter().map(core::mem::discriminant))
}
