//! The driver's rules: which parameters a node of an executable can get in place of others.

use cuda_handles::{BatchOperation, CopyLayout, FillLayout};

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

/// Whether a copy has one dimension. The driver sets single nodes to such copies alone.
pub(super) fn is_row(copy: &CopyLayout) -> bool {
    copy.height == 1 && copy.depth == 1
}

/// Whether two batches have the same number of operations, of the same kinds.
pub(super) fn are_alike(old: &[BatchOperation], new: &[BatchOperation]) -> bool {
    old.iter().map(core::mem::discriminant).eq(new.iter().map(core::mem::discriminant))
}
