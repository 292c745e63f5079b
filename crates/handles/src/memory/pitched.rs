//! Copies and fills of rectangles and boxes in memory of rows.

use core::ffi::c_void;

use cuda_sys::{CUDA_MEMCPY2D, CUDA_MEMCPY3D, CUdeviceptr, CUmemorytype, Call};

use super::bits::Bits;
use super::element::Element;
use super::kind::MemoryKind;
use super::slice::Slice;
use crate::error::{Error, Result};
use crate::stream::Stream;

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

impl Stream {
    /// Copies a rectangle. Waits for nothing.
    ///
    /// Stands on `cuMemcpy2DAsync`, CUDA 3.2.
    ///
    /// # Errors
    /// A pitch below the width; the rectangle leaves a slice, or overlaps itself; memory of another context; or what the driver answers, which
    /// has a limit for pitches (`CU_DEVICE_ATTRIBUTE_MAX_PITCH`).
    #[doc(alias = "cuMemcpy2DAsync")]
    pub fn copy_2d<T: Element>(&self, copy: Copy2d<'_, T>) -> Result<()> {
        let Copy2d { source, destination, width, height, .. } = copy;
        let extent = [width, height, 1];
        let from = Shape { pitch: copy.source_pitch, rows: height, extent };
        let to = Shape { pitch: copy.destination_pitch, rows: height, extent };
        let Some((from_shape, to_shape)) = check(&source, from, &destination, to)? else { return Ok(()) };
        let (from, to) = (Side::of(&source), Side::of(&destination));
        let size = size_of::<T>();
        let params = CUDA_MEMCPY2D {
            srcMemoryType: from.kind,
            srcHost: from.host,
            srcDevice: from.device,
            srcPitch: from_shape.pitch * size,
            dstMemoryType: to.kind,
            dstHost: to.host,
            dstDevice: to.device,
            dstPitch: to_shape.pitch * size,
            WidthInBytes: width * size,
            Height: height,
            ..Default::default()
        };
        source.allocation().ready_on(self)?;
        destination.allocation().ready_on(self)?;
        let turn = self.enqueue()?;
        if turn.is_captured()? {
            turn.keep(source.allocation())?;
            turn.keep(destination.allocation())?;
        }
        // SAFETY: the description is complete, and the rectangles lie in memory that lives until after this point of the stream, or as long as
        // the graph it is captured into.
        let code = unsafe { self.context().driver().cuMemcpy2DAsync(&raw const params, self.as_raw()) };
        self.context().check(Call::cuMemcpy2DAsync, code)
    }

    /// Copies a box. Waits for nothing.
    ///
    /// Stands on `cuMemcpy3DAsync`, CUDA 3.2.
    ///
    /// # Errors
    /// A pitch below the width, or fewer rows than the height; the box leaves a slice, or overlaps itself; memory of another context; or what
    /// the driver answers, which has a limit for pitches (`CU_DEVICE_ATTRIBUTE_MAX_PITCH`).
    #[doc(alias = "cuMemcpy3DAsync")]
    pub fn copy_3d<T: Element>(&self, copy: Copy3d<'_, T>) -> Result<()> {
        let Copy3d { source, destination, width, height, depth, .. } = copy;
        let extent = [width, height, depth];
        let from = Shape { pitch: copy.source_pitch, rows: copy.source_rows, extent };
        let to = Shape { pitch: copy.destination_pitch, rows: copy.destination_rows, extent };
        let Some((from_shape, to_shape)) = check(&source, from, &destination, to)? else { return Ok(()) };
        let (from, to) = (Side::of(&source), Side::of(&destination));
        let size = size_of::<T>();
        let params = CUDA_MEMCPY3D {
            srcMemoryType: from.kind,
            srcHost: from.host,
            srcDevice: from.device,
            srcPitch: from_shape.pitch * size,
            srcHeight: from_shape.rows,
            dstMemoryType: to.kind,
            dstHost: to.host,
            dstDevice: to.device,
            dstPitch: to_shape.pitch * size,
            dstHeight: to_shape.rows,
            WidthInBytes: width * size,
            Height: height,
            Depth: depth,
            ..Default::default()
        };
        source.allocation().ready_on(self)?;
        destination.allocation().ready_on(self)?;
        let turn = self.enqueue()?;
        if turn.is_captured()? {
            turn.keep(source.allocation())?;
            turn.keep(destination.allocation())?;
        }
        // SAFETY: the description is complete, and the boxes lie in memory that lives until after this point of the stream, or as long as the
        // graph it is captured into.
        let code = unsafe { self.context().driver().cuMemcpy3DAsync(&raw const params, self.as_raw()) };
        self.context().check(Call::cuMemcpy3DAsync, code)
    }

    /// Fills a rectangle with one value of 1, 2 or 4 bytes: `height` rows of `width` elements, one `pitch` elements behind the other, from the
    /// start of `memory` on. Waits for nothing.
    ///
    /// Stands on `cuMemsetD2D8Async`, `cuMemsetD2D16Async` and `cuMemsetD2D32Async`, CUDA 3.2.
    ///
    /// # Errors
    /// A value of another size, memory that is not aligned to that size, a pitch below the width, a rectangle that leaves the slice, memory of another context, or what the driver
    /// answers.
    #[doc(alias = "cuMemsetD2D8Async")]
    #[doc(alias = "cuMemsetD2D16Async")]
    #[doc(alias = "cuMemsetD2D32Async")]
    pub fn fill_2d<'a, T: Element>(
        &self,
        memory: impl Into<Slice<'a, T>>,
        pitch: usize,
        [width, height]: [usize; 2],
        value: T,
    ) -> Result<()> {
        let memory = memory.into();
        let bits = Bits::of(&value)?.at(memory.address())?;
        let shape = Shape { pitch, rows: height, extent: [width, height, 1] };
        shape.check_in("the slice of a fill", memory.len())?;
        if shape.is_empty() {
            return Ok(());
        }
        memory.allocation().ready_on(self)?;
        let turn = self.enqueue()?;
        if turn.is_captured()? {
            turn.keep(memory.allocation())?;
        }
        let (driver, stream, address) = (self.context().driver(), self.as_raw(), memory.address());
        let pitch = shape.plain().pitch * size_of::<T>();
        // SAFETY: the rectangle lies in memory that lives until after this point of the stream, or as long as the graph it is captured into,
        // and is aligned to its elements.
        let (call, code) = unsafe {
            match bits {
                Bits::One(bits) => (
                    Call::cuMemsetD2D8Async,
                    driver.cuMemsetD2D8Async(address, pitch, bits, width, height, stream),
                ),
                Bits::Two(bits) => (
                    Call::cuMemsetD2D16Async,
                    driver.cuMemsetD2D16Async(address, pitch, bits, width, height, stream),
                ),
                Bits::Four(bits) => (
                    Call::cuMemsetD2D32Async,
                    driver.cuMemsetD2D32Async(address, pitch, bits, width, height, stream),
                ),
            }
        };
        self.context().check(call, code)
    }
}

/// One side of a copy as the driver wants it.
struct Side {
    kind: CUmemorytype,
    host: *mut c_void,
    device: CUdeviceptr,
}

impl Side {
    fn of<T>(slice: &Slice<'_, T>) -> Self {
        let (device, kind) = (slice.address(), slice.allocation().kind());
        let host = core::ptr::null_mut();
        match kind {
            MemoryKind::Pinned => Self {
                kind: CUmemorytype::CU_MEMORYTYPE_HOST,
                host: core::ptr::with_exposed_provenance_mut(usize::try_from(device).unwrap_or(0)),
                device: 0,
            },
            kind if kind.is_of_device() => Self { kind: CUmemorytype::CU_MEMORYTYPE_DEVICE, host, device },
            _ => Self { kind: CUmemorytype::CU_MEMORYTYPE_UNIFIED, host, device },
        }
    }
}

/// How a box lies in memory, in elements and rows.
#[derive(Clone, Copy, Debug)]
struct Shape {
    pitch: usize,
    rows: usize,
    extent: [usize; 3],
}

impl Shape {
    fn is_empty(self) -> bool {
        self.extent.contains(&0)
    }

    /// The same box, with steps that are never taken as short as can be; then no size in bytes is beyond that of its memory.
    fn plain(self) -> Self {
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

    fn check_in(self, what: &'static str, len: usize) -> Result<()> {
        let [width, height, _] = self.extent;
        if !self.is_empty() && (self.pitch < width || self.rows < height) {
            let (need, found) = if self.pitch < width { (width, self.pitch) } else { (height, self.rows) };
            return Err(Error::Pitch { what, need, found });
        }
        match self.reach() {
            Some(reach) if reach <= len => Ok(()),
            reach => Err(Error::Bounds { start: 0, end: reach.unwrap_or(usize::MAX), len }),
        }
    }
}

/// The shapes of a copy, which have the same extent, if there is something to copy.
fn check<T>(
    source: &Slice<'_, T>,
    from: Shape,
    destination: &Slice<'_, T>,
    to: Shape,
) -> Result<Option<(Shape, Shape)>> {
    from.check_in("the source of a copy", source.len())?;
    to.check_in("the destination of a copy", destination.len())?;
    let (from, to, size) = (from.plain(), to.plain(), size_of::<T>());
    if from.is_empty() || size == 0 {
        return Ok(None);
    }
    let distance = source.address().abs_diff(destination.address());
    match usize::try_from(distance).map_or(0, |distance| overlap(distance, from, to, size)) {
        0 => Ok(Some((from, to))),
        bytes => Err(Error::Overlap { bytes }),
    }
}

/// About how many bytes of two boxes overlap that start so many bytes apart; exact only in whether it is 0, and if the shapes differ, whatever
/// lies between a box's first and last byte counts as part of it.
fn overlap(distance: usize, from: Shape, to: Shape, size: usize) -> usize {
    let reach = |shape: Shape| shape.reach().unwrap_or(usize::MAX).saturating_mul(size);
    let common = reach(from).max(reach(to)).saturating_sub(distance);
    if common == 0 || (from.pitch, from.rows) != (to.pitch, to.rows) {
        return common;
    }
    let [width, height, depth] = from.extent;
    let (row, layer) = (from.pitch * size, from.pitch * from.rows * size);
    // In one layer or the next, in one row or the next, the rows themselves overlap.
    let near = |distance: usize, step: usize, count: usize| {
        let steps = distance.checked_div(step).unwrap_or(0);
        let one = (steps < count).then(|| distance - steps * step);
        let next = (steps + 1 < count).then(|| (steps + 1) * step - distance);
        [one, next].into_iter().flatten()
    };
    let layers = near(distance, layer, depth);
    let rows = layers.flat_map(|distance| near(distance, row, height));
    rows.map(|distance| (width * size).saturating_sub(distance)).max().unwrap_or(0)
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
                let found = overlap(distance * 4, shape, shape, 4) > 0;
                assert_eq!(found, really(distance, shape), "{shape:?} {distance}");
            }
        }
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
}
