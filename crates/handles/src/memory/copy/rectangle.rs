//! Copies of rectangles and boxes, as they are asked for.

use super::layout::{CopyLayout, Shape};
use crate::error::Result;
use crate::memory::Slice;

/// A copy of a rectangle. All is counted in elements; where it starts is where the slices start.
#[derive(Debug)]
pub struct Copy2d<'a, T> {
    /// From the rectangle's first element on.
    pub source: Slice<'a, T>,
    /// From one row of the source to the next.
    pub source_pitch: usize,
    /// From the rectangle's first element on.
    pub destination: Slice<'a, T>,
    /// From one row of the destination to the next.
    pub destination_pitch: usize,
    /// Elements of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

/// A copy of a box. All is counted in elements; where it starts is where the slices start.
#[derive(Debug)]
pub struct Copy3d<'a, T> {
    /// From the box's first element on.
    pub source: Slice<'a, T>,
    /// From one row of the source to the next.
    pub source_pitch: usize,
    /// From one layer of the source to the next, in rows.
    pub source_rows: usize,
    /// From the box's first element on.
    pub destination: Slice<'a, T>,
    /// From one row of the destination to the next.
    pub destination_pitch: usize,
    /// From one layer of the destination to the next, in rows.
    pub destination_rows: usize,
    /// Elements of a row.
    pub width: usize,
    /// Rows of a layer.
    pub height: usize,
    /// Layers.
    pub depth: usize,
}

impl<T> Clone for Copy2d<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Copy2d<'_, T> {}

impl<T> Clone for Copy3d<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Copy3d<'_, T> {}

impl<'a, T> Copy2d<'a, T> {
    /// The same as a box of one layer.
    #[must_use]
    pub fn layer(self) -> Copy3d<'a, T> {
        Copy3d {
            source: self.source,
            source_pitch: self.source_pitch,
            source_rows: self.height,
            destination: self.destination,
            destination_pitch: self.destination_pitch,
            destination_rows: self.height,
            width: self.width,
            height: self.height,
            depth: 1,
        }
    }
}

impl<T> Copy3d<'_, T> {
    /// The copy in bytes, checked; `None` if there is nothing to copy.
    ///
    /// # Errors
    /// A pitch below the width ([`Pitch`](crate::Error::Pitch)), or fewer rows than the height; the
    /// box leaves a slice, or overlaps itself ([`Overlap`](crate::Error::Overlap)).
    pub fn layout(self) -> Result<Option<CopyLayout>> {
        let extent = [self.width, self.height, self.depth];
        let from = Shape { pitch: self.source_pitch, rows: self.source_rows, extent };
        let to = Shape { pitch: self.destination_pitch, rows: self.destination_rows, extent };
        CopyLayout::of(self.source, from, self.destination, to)
    }
}
