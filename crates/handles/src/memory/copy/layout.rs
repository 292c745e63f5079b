//! Copies in bytes: checked, and in the driver's form.

use core::ffi::c_void;

use cuda_sys::{CUDA_MEMCPY3D, CUdeviceptr, CUmemorytype};

use crate::error::{Error, Result};
use crate::memory::same_length;
use crate::memory::{MemorySpace, Slice};
use crate::stream::Work;

/// One side of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CopySide {
    /// The address of the first byte.
    pub address: CUdeviceptr,
    /// The space of the memory.
    pub space: MemorySpace,
    /// Bytes from one row to the next.
    pub pitch: usize,
    /// Rows from one layer to the next.
    pub rows: usize,
}

/// A copy in bytes: one row, a rectangle of rows, or a box of layers of rows. Unused pitches are as
/// short as possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CopyLayout {
    /// The side that is read.
    pub source: CopySide,
    /// The side that is written.
    pub destination: CopySide,
    /// Bytes of a row.
    pub width: usize,
    /// Rows of a layer.
    pub height: usize,
    /// Layers.
    pub depth: usize,
}

impl CopySide {
    fn of<T>(slice: &Slice<'_, T>, shape: Shape) -> Self {
        let (address, space) = (slice.address(), slice.allocation().space());
        Self { address, space, pitch: shape.pitch * size_of::<T>(), rows: shape.rows }
    }

    /// Memory type, pointer of the host and address of the device, as the driver's descriptions
    /// have them; one of the two is null.
    pub(crate) fn place(&self) -> (CUmemorytype, *mut c_void, CUdeviceptr) {
        match self.space.memory_type() {
            CUmemorytype::CU_MEMORYTYPE_HOST => {
                let host = core::ptr::with_exposed_provenance_mut(usize::try_from(self.address).unwrap_or(0));
                (CUmemorytype::CU_MEMORYTYPE_HOST, host, 0)
            }
            other => (other, core::ptr::null_mut(), self.address),
        }
    }
}

impl CopyLayout {
    /// The copy of memory to memory of the same length, checked as
    /// [`Stream::copy`](crate::Stream::copy) does; `None` if there is nothing to copy.
    ///
    /// # Errors
    /// The lengths differ ([`Length`](crate::Error::Length)), or the ranges overlap
    /// ([`Overlap`](crate::Error::Overlap)).
    pub fn linear<T>(source: Slice<'_, T>, destination: Slice<'_, T>) -> Result<Option<Self>> {
        same_length("the destination of a copy", source.len(), destination.len())?;
        Self::of(source, Shape::row(source.len()), destination, Shape::row(destination.len()))
    }

    /// Two shapes of the same extent, each in its slice.
    pub(crate) fn of<T>(
        source: Slice<'_, T>,
        from: Shape,
        destination: Slice<'_, T>,
        to: Shape,
    ) -> Result<Option<Self>> {
        from.check_in("the source of a copy", source.len())?;
        to.check_in("the destination of a copy", destination.len())?;
        let (from, to, size) = (from.plain(), to.plain(), size_of::<T>());
        if from.is_empty() || size == 0 {
            return Ok(None);
        }
        let [width, height, depth] = from.extent;
        let (source, destination) = (CopySide::of(&source, from), CopySide::of(&destination, to));
        let layout = Self { source, destination, width: width * size, height, depth };
        match layout.overlap() {
            0 => Ok(Some(layout)),
            bytes => Err(Error::Overlap { bytes }),
        }
    }

    /// All bytes copied.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.width.saturating_mul(self.height).saturating_mul(self.depth)
    }

    /// The copy as the work of a captured call.
    pub(crate) fn work(&self) -> Work {
        let (source, destination) = (self.source.address, self.destination.address);
        Work::Copy { source, destination, bytes: self.bytes() as u64 }
    }

    fn shape(&self, side: &CopySide) -> Shape {
        Shape { pitch: side.pitch, rows: side.rows, extent: [self.width, self.height, self.depth] }
    }

    /// The same copy, with steps that are never taken as short as can be. Nothing is checked.
    #[must_use]
    pub fn plain(self) -> Self {
        let side = |side: CopySide| {
            let Shape { pitch, rows, .. } = self.shape(&side).plain();
            CopySide { pitch, rows, ..side }
        };
        Self { source: side(self.source), destination: side(self.destination), ..self }
    }

    /// The bytes of a side's memory from the first to behind the last; `None` for more than can be.
    ///
    /// # Errors
    /// Rows or layers lie closer together than they are long.
    pub fn reach(&self, what: &'static str, side: &CopySide) -> Result<Option<usize>> {
        let shape = self.shape(side);
        shape.check_steps(what)?;
        Ok(shape.reach())
    }

    /// About how many bytes of source and destination are the same; exact only in whether it is 0,
    /// and if their steps differ, whatever lies between the first byte and the last one of a side
    /// counts as part of it.
    #[must_use]
    pub fn overlap(&self) -> usize {
        let distance = self.source.address.abs_diff(self.destination.address);
        let shapes = (self.shape(&self.source), self.shape(&self.destination));
        usize::try_from(distance).map_or(0, |distance| overlap(distance, shapes.0, shapes.1))
    }

    /// Writes the description into the driver's structure, field by field. Other fields, and
    /// padding, keep their values.
    pub fn write_to(&self, params: &mut CUDA_MEMCPY3D) {
        let (from, to) = (self.source.place(), self.destination.place());
        params.srcMemoryType = from.0;
        params.srcHost = from.1;
        params.srcDevice = from.2;
        params.srcPitch = self.source.pitch;
        params.srcHeight = self.source.rows;
        params.dstMemoryType = to.0;
        params.dstHost = to.1;
        params.dstDevice = to.2;
        params.dstPitch = self.destination.pitch;
        params.dstHeight = self.destination.rows;
        params.WidthInBytes = self.width;
        params.Height = self.height;
        params.Depth = self.depth;
    }
}

/// How a box lies in memory, in elements and rows.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) pitch: usize,
    pub(crate) rows: usize,
    pub(crate) extent: [usize; 3],
}

impl Shape {
    fn row(width: usize) -> Self {
        Self { pitch: width, rows: 1, extent: [width, 1, 1] }
    }

    pub(crate) fn is_empty(self) -> bool {
        self.extent.contains(&0)
    }

    /// The same box with unused pitches as short as possible, so that no size in bytes exceeds the
    /// memory.
    pub(crate) fn plain(self) -> Self {
        let [width, height, depth] = self.extent;
        let rows = if depth == 1 { height } else { self.rows };
        let pitch = if height == 1 && depth == 1 { width } else { self.pitch };
        Self { pitch, rows, ..self }
    }

    /// The elements from the first to behind the last.
    fn reach(self) -> Option<usize> {
        if self.is_empty() {
            return Some(0);
        }
        let [width, height, depth] = self.extent;
        let rows = (depth - 1).checked_mul(self.rows)?.checked_add(height - 1)?;
        rows.checked_mul(self.pitch)?.checked_add(width)
    }

    fn check_steps(self, what: &'static str) -> Result<()> {
        let [width, height, _] = self.extent;
        if !self.is_empty() && (self.pitch < width || self.rows < height) {
            let (need, found) = if self.pitch < width { (width, self.pitch) } else { (height, self.rows) };
            return Err(Error::Pitch { what, need, found });
        }
        Ok(())
    }

    pub(crate) fn check_in(self, what: &'static str, len: usize) -> Result<()> {
        self.check_steps(what)?;
        match self.reach() {
            Some(reach) if reach <= len => Ok(()),
            reach => Err(Error::Bounds { start: 0, end: reach.unwrap_or(usize::MAX), len }),
        }
    }
}

/// See [`CopyLayout::overlap`]; of two boxes that start so many elements apart.
fn overlap(distance: usize, from: Shape, to: Shape) -> usize {
    let reach = |shape: Shape| shape.reach().unwrap_or(usize::MAX);
    let common = reach(from).max(reach(to)).saturating_sub(distance);
    if common == 0 || (from.pitch, from.rows) != (to.pitch, to.rows) {
        return common;
    }
    let [width, height, depth] = from.extent;
    let layer = from.pitch.saturating_mul(from.rows);
    // In one layer or the next, in one row or the next, the rows themselves overlap.
    let near = |distance: usize, step: usize, count: usize| {
        let steps = distance.checked_div(step).unwrap_or(0);
        let one = (steps < count).then(|| distance - steps * step);
        let next = (steps + 1 < count).then(|| (steps + 1).saturating_mul(step) - distance);
        [one, next].into_iter().flatten()
    };
    let layers = near(distance, layer, depth);
    let rows = layers.flat_map(|distance| near(distance, from.pitch, height));
    rows.map(|distance| width.saturating_sub(distance)).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The same by trying every element.
    fn really(distance: usize, shape: Shape) -> bool {
        let [width, height, depth] = shape.extent;
        let all = || {
            (0..depth).flat_map(move |z| {
                (0..height).flat_map(move |y| (0..width).map(move |x| (z * shape.rows + y) * shape.pitch + x))
            })
        };
        all().any(|one| all().any(|other| one == other + distance))
    }

    #[test]
    fn overlap_of_like_shapes_is_exact() {
        for [width, height, depth, more, rows] in [
            [3, 2, 1, 2, 2],
            [1, 3, 1, 0, 3],
            [4, 4, 2, 0, 5],
            [2, 2, 3, 3, 2],
            [2, 3, 2, 1, 4],
            [5, 1, 1, 0, 1],
        ] {
            let shape = Shape { pitch: width + more, rows, extent: [width, height, depth] };
            for distance in 0..80 {
                let found = overlap(distance, shape, shape) > 0;
                assert_eq!(found, really(distance, shape), "{shape:?} {distance}");
            }
        }
    }

    #[test]
    fn steps_at_the_end_of_the_address_space_are_counted() {
        let shape = Shape { pitch: 1 << 63, rows: 4, extent: [1, 4, 1] };
        assert_eq!(overlap(1 << 63, shape, shape), 1);
        assert_eq!(overlap((1 << 63) + 5, shape, shape), 0);
        assert_eq!(
            overlap(
                usize::MAX - 1,
                Shape { pitch: usize::MAX, ..shape },
                Shape { pitch: usize::MAX, ..shape }
            ),
            0
        );
    }

    #[test]
    fn a_shape_reaches_to_its_last_element() {
        let shape = Shape { pitch: 10, rows: 5, extent: [3, 2, 2] };
        assert_eq!(shape.reach(), Some(5 * 10 + 10 + 3));
        assert_eq!(shape.check_in("it", 63), Ok(()));
        assert_eq!(shape.check_in("it", 62), Err(Error::Bounds { start: 0, end: 63, len: 62 }));
        assert_eq!(Shape { extent: [0, 2, 2], ..shape }.reach(), Some(0));
        let narrow = Shape { pitch: 2, ..shape };
        assert_eq!(narrow.check_in("it", 99), Err(Error::Pitch { what: "it", need: 3, found: 2 }));
        let vast = Shape { pitch: usize::MAX / 2, rows: 5, extent: [3, 2, 2] };
        assert!(matches!(vast.check_in("it", 99), Err(Error::Bounds { .. })));
    }

    #[test]
    fn only_what_has_no_meaning_stays_in_the_structure() {
        let side = |address, space| CopySide { address, space, pitch: 32, rows: 2 };
        let layout = CopyLayout {
            source: side(0x1000, MemorySpace::Device),
            destination: side(0x9000, MemorySpace::Pinned),
            width: 16,
            height: 2,
            depth: 3,
        };
        assert_eq!(layout.bytes(), 96);
        let mut params = CUDA_MEMCPY3D::default();
        layout.write_to(&mut params);
        assert_eq!((params.srcDevice, params.srcHost.addr()), (0x1000, 0));
        assert_eq!((params.dstDevice, params.dstHost.addr()), (0, 0x9000));
        assert_eq!(
            (params.srcMemoryType, params.dstMemoryType),
            (CUmemorytype::CU_MEMORYTYPE_DEVICE, CUmemorytype::CU_MEMORYTYPE_HOST)
        );
        assert_eq!((params.WidthInBytes, params.Height, params.Depth), (16, 2, 3));
        let row = CopyLayout { height: 1, depth: 1, ..layout }.plain();
        assert_eq!((row.source.pitch, row.source.rows, row.bytes()), (16, 1, 16));
    }
}
