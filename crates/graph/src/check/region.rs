//! The exact bytes of an access: one range, or the rows of a rectangle or box.

use cuda_handles::{CopyLayout, CopySide, FillLayout};

/// A set of bytes, by their addresses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Region {
    start: u64,
    /// Behind the last byte.
    end: u64,
    rows: Option<Rows>,
}

/// The rows between the first byte and the last. Each row begins behind the end of the one before,
/// and so does each layer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Rows {
    width: u64,
    pitch: u64,
    height: u64,
    /// From one layer to the next.
    step: u64,
    depth: u64,
}

/// A range of bytes: the first, and the one behind the last.
pub(crate) type ByteRange = (u64, u64);

/// If both regions have more rows than this and different pitches, or layers, each counts as
/// everything between its first and last byte.
const MOST_ROWS: u64 = 1 << 16;

impl Region {
    /// One range. It ends at the last address at most.
    pub(crate) fn linear(start: u64, bytes: u64) -> Self {
        Self { start, end: start.saturating_add(bytes), rows: None }
    }

    /// A box of rows, in bytes.
    fn boxed(start: u64, [width, height, depth]: [usize; 3], pitch: usize, rows: usize) -> Self {
        let [width, height, depth, pitch, rows] =
            [width, height, depth, pitch, rows].map(|number| number as u64);
        if width == 0 || height == 0 || depth == 0 {
            return Self::linear(start, 0);
        }
        let step = pitch.saturating_mul(rows);
        let is_dense =
            (height == 1 || pitch == width) && (depth == 1 || step == pitch.saturating_mul(height));
        let reach = (depth - 1)
            .saturating_mul(step)
            .saturating_add((height - 1).saturating_mul(pitch))
            .saturating_add(width);
        let rows = (!is_dense).then_some(Rows { width, pitch, height, step, depth });
        Self { rows, ..Self::linear(start, reach) }
    }

    /// The bytes that a copy reads or writes on one side.
    pub(crate) fn of_copy(layout: &CopyLayout, side: &CopySide) -> Self {
        let extent = [layout.width, layout.height, layout.depth];
        Self::boxed(side.address, extent, side.pitch, side.rows)
    }

    /// The bytes that a fill writes.
    pub(crate) fn of_fill(layout: &FillLayout) -> Self {
        let width = layout.width.saturating_mul(usize::from(layout.element));
        Self::boxed(layout.address, [width, layout.height, 1], layout.pitch, layout.height)
    }

    /// The range from the first byte to the last.
    pub(crate) fn bounds(&self) -> ByteRange {
        (self.start, self.end)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.start == self.end
    }

    /// Whether all bytes between the first and the last belong to it.
    pub(crate) fn is_linear(&self) -> bool {
        self.rows.is_none()
    }

    /// The first bytes that both have, as far as they are contiguous.
    pub(crate) fn overlap(&self, other: &Self) -> Option<ByteRange> {
        let bounds = common(self.bounds(), other.bounds())?;
        match (self.rows, other.rows) {
            (None, None) => Some(bounds),
            (Some(_), None) => self.first_in(bounds),
            (None, Some(_)) => other.first_in(bounds),
            (Some(one), Some(two)) if one.are_in_step_with(&two) => {
                // If the first row of the region that begins later does not meet the other region,
                // no row does.
                let (first, later, width) = match self.start <= other.start {
                    true => (self, other, two.width),
                    false => (other, self, one.width),
                };
                first.first_in(common((later.start, later.start.saturating_add(width)), bounds)?)
            }
            (Some(one), Some(two)) => {
                let (few, many) = if one.count() <= two.count() { (self, other) } else { (other, self) };
                if few.rows.is_some_and(|rows| rows.count() > MOST_ROWS) {
                    return if self == other { self.first_in(bounds) } else { Some(bounds) };
                }
                few.ranges().find_map(|range| many.first_in(common(range, bounds)?))
            }
        }
    }

    /// How many steps it takes to find the overlap with another region.
    pub(crate) fn effort(&self, other: &Self) -> u64 {
        if let (Some(one), Some(two)) = (self.rows, other.rows)
            && one.are_in_step_with(&two)
        {
            return 1;
        }
        let rows = |region: &Self| region.rows.map_or(1, |rows| rows.count());
        match rows(self).min(rows(other)) {
            rows if rows > MOST_ROWS => 1,
            rows => rows,
        }
    }

    /// The first bytes within a range, which lies within the bounds.
    fn first_in(&self, within: ByteRange) -> Option<ByteRange> {
        let Some(rows) = self.rows else { return common(self.bounds(), within) };
        let layer_bytes = (rows.height - 1).saturating_mul(rows.pitch).saturating_add(rows.width);
        // Only the first layer that ends in the range or behind it, and the one after, can meet it.
        let skipped = steps_before(within.0 - self.start, layer_bytes, rows.step);
        let layers = (skipped..rows.depth.min(skipped.saturating_add(2))).filter_map(|layer| {
            let start = self.start.saturating_add(layer.saturating_mul(rows.step));
            let part = common((start, start.saturating_add(layer_bytes)), within)?;
            let row = steps_before(part.0 - start, rows.width, rows.pitch);
            (row..rows.height.min(row.saturating_add(2))).find_map(|row| {
                let start = start.saturating_add(row.saturating_mul(rows.pitch));
                common((start, start.saturating_add(rows.width)), part)
            })
        });
        layers.min()
    }

    /// All ranges, one by one.
    fn ranges(&self) -> impl Iterator<Item = ByteRange> {
        let whole = Rows { width: self.end - self.start, pitch: 0, height: 1, step: 0, depth: 1 };
        let (start, rows) = (self.start, self.rows.unwrap_or(whole));
        (0..rows.depth).flat_map(move |layer| {
            (0..rows.height).map(move |row| {
                let start = start + layer * rows.step + row * rows.pitch;
                (start, start + rows.width)
            })
        })
    }
}

impl Rows {
    /// Whether both are rectangles with the same pitch.
    fn are_in_step_with(&self, other: &Self) -> bool {
        self.depth == 1 && other.depth == 1 && self.pitch == other.pitch
    }

    fn count(&self) -> u64 {
        self.height.saturating_mul(self.depth)
    }
}

/// How many pieces of some length, each a step behind the one before, end at or before a distance
/// from the start of the first.
fn steps_before(distance: u64, length: u64, step: u64) -> u64 {
    match distance.checked_sub(length) {
        None => 0,
        Some(_) if step == 0 => 1,
        Some(behind) => behind / step + 1,
    }
}

/// The overlap of two ranges, if there is one.
fn common(one: ByteRange, other: ByteRange) -> Option<ByteRange> {
    let (start, end) = (one.0.max(other.0), one.1.min(other.1));
    (start < end).then_some((start, end))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn any_region() -> impl Strategy<Value = Region> {
        let extent = [0..5_usize, 0..4, 0..3];
        (0..30_u64, extent, 0..4_usize, 0..3_usize).prop_map(|(start, extent, gap, more)| {
            Region::boxed(start, extent, extent[0] + gap, extent[1] + more)
        })
    }

    fn bytes(region: &Region) -> Vec<u64> {
        if region.is_empty() {
            Vec::new()
        } else {
            region.ranges().flat_map(|(start, end)| start..end).collect()
        }
    }

    proptest! {
        #[test]
        fn overlap_is_exact(one in any_region(), other in any_region()) {
            let (left, right) = (bytes(&one), bytes(&other));
            let shared: Vec<u64> = left.iter().copied().filter(|byte| right.contains(byte)).collect();
            let found = one.overlap(&other);
            prop_assert_eq!(found.is_some(), !shared.is_empty());
            prop_assert_eq!(found.map(|(start, _)| start), other.overlap(&one).map(|(start, _)| start));
            if let Some((start, end)) = found {
                prop_assert_eq!(Some(&start), shared.iter().min());
                prop_assert!((start..end).all(|byte| shared.contains(&byte)));
            }
        }
    }

    #[test]
    fn dense_boxes_are_one_range() {
        assert!(Region::boxed(0, [4, 3, 2], 4, 3).is_linear());
        assert!(!Region::boxed(0, [4, 3, 2], 5, 3).is_linear());
        assert!(!Region::boxed(0, [4, 3, 2], 4, 4).is_linear());
        assert!(Region::boxed(0, [4, 1, 1], 9, 9).is_linear());
        assert_eq!(Region::boxed(8, [4, 3, 2], 4, 3).bounds(), (8, 32));
    }

    #[test]
    fn columns_of_a_large_matrix_do_not_overlap() {
        let column = |at: u64| Region::boxed(at, [4, 1 << 20, 1], 4096, 1 << 20);
        assert_eq!(column(0).overlap(&Region::linear(4, 4092)), None);
        assert_eq!(column(0).overlap(&Region::linear(4, 4093)), Some((4096, 4097)));
        assert_eq!(column(0).overlap(&column(0)), Some((0, 4)));
        assert_eq!((column(0).overlap(&column(4)), column(8).overlap(&column(4))), (None, None));
        let broad = Region::boxed(4094, [4, 1 << 20, 1], 4096, 1 << 20);
        assert_eq!((column(0).overlap(&broad), broad.overlap(&column(2))), (Some((4096, 4098)), None));
        // Too many rows with different steps to look at each: they are taken for all between.
        let other = Region::boxed(4, [4, 1 << 20, 1], 8192, 1 << 20);
        assert_eq!(column(0).overlap(&other), Some((4, (1 << 32) - 4092)));
    }
}
