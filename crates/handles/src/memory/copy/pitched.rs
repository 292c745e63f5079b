//! Copies and fills of rectangles and boxes in memory of rows.

use cuda_sys::{CUDA_MEMCPY2D, CUDA_MEMCPY3D, Call};

use super::rectangle::{Copy2d, Copy3d};
use crate::error::Result;
use crate::memory::Element;
use crate::stream::Stream;

impl Stream {
    /// Copies a rectangle. Waits for nothing.
    ///
    /// Calls `cuMemcpy2DAsync` (CUDA 3.2).
    ///
    /// # Errors
    /// A pitch below the width ([`Pitch`](crate::Error::Pitch)); the rectangle leaves a slice, or
    /// overlaps itself ([`Overlap`](crate::Error::Overlap)); memory of another context
    /// ([`WrongContext`](crate::Error::WrongContext)); or the driver refuses the call
    /// ([`Driver`](crate::Error::Driver)), which has a limit for pitches
    /// (`CU_DEVICE_ATTRIBUTE_MAX_PITCH`).
    #[doc(alias = "cuMemcpy2DAsync")]
    #[doc(alias = "cudaMemcpy2DAsync")]
    pub fn copy_2d<T: Element>(&self, copy: Copy2d<'_, T>) -> Result<()> {
        let Copy2d { source, destination, .. } = copy;
        let Some(layout) = copy.layer().layout()? else { return Ok(()) };
        let (from, to) = (layout.source.place(), layout.destination.place());
        let params = CUDA_MEMCPY2D {
            srcMemoryType: from.0,
            srcHost: from.1,
            srcDevice: from.2,
            srcPitch: layout.source.pitch,
            dstMemoryType: to.0,
            dstHost: to.1,
            dstDevice: to.2,
            dstPitch: layout.destination.pitch,
            WidthInBytes: layout.width,
            Height: layout.height,
            ..Default::default()
        };
        self.enqueue_copy(
            [source.allocation(), destination.allocation()],
            layout.work(),
            None,
            |driver, stream| {
                // SAFETY: the description is complete, and the rectangles lie in memory that lives
                // until after this point of the stream, or as long as the graph it is captured
                // into.
                (Call::cuMemcpy2DAsync, unsafe { driver.cuMemcpy2DAsync(&raw const params, stream) })
            },
        )
    }

    /// Copies a box. Waits for nothing.
    ///
    /// Calls `cuMemcpy3DAsync` (CUDA 3.2).
    ///
    /// # Errors
    /// A pitch below the width ([`Pitch`](crate::Error::Pitch)), or fewer rows than the height; the
    /// box leaves a slice, or overlaps itself ([`Overlap`](crate::Error::Overlap)); memory of
    /// another context ([`WrongContext`](crate::Error::WrongContext)); or the driver refuses the
    /// call ([`Driver`](crate::Error::Driver)), which has a limit for pitches
    /// (`CU_DEVICE_ATTRIBUTE_MAX_PITCH`).
    #[doc(alias = "cuMemcpy3DAsync")]
    #[doc(alias = "cudaMemcpy3DAsync")]
    pub fn copy_3d<T: Element>(&self, copy: Copy3d<'_, T>) -> Result<()> {
        let Copy3d { source, destination, .. } = copy;
        let Some(layout) = copy.layout()? else { return Ok(()) };
        let mut params = CUDA_MEMCPY3D::default();
        layout.write_to(&mut params);
        self.enqueue_copy(
            [source.allocation(), destination.allocation()],
            layout.work(),
            None,
            |driver, stream| {
                // SAFETY: the description is complete, and the boxes lie in memory that lives until
                // after this point of the stream, or as long as the graph it is captured into.
                (Call::cuMemcpy3DAsync, unsafe { driver.cuMemcpy3DAsync(&raw const params, stream) })
            },
        )
    }
}
