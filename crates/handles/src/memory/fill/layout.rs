//! Fills in bytes: checked, and in the driver's form.

use cuda_sys::CUdeviceptr;

use super::bits::Bits;
use super::size::assert_value;
use crate::error::Result;
use crate::memory::copy::Shape;
use crate::memory::{Element, MemorySpace, Slice};

/// A fill: one row of elements, or a rectangle of rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct FillLayout {
    /// The address of the first element.
    pub address: CUdeviceptr,
    /// The space of the memory.
    pub space: MemorySpace,
    /// Bytes of an element: 1, 2 or 4.
    pub element: u8,
    /// The bits of the value, in the lowest bytes.
    pub value: u32,
    /// Bytes from one row to the next.
    pub pitch: usize,
    /// Elements of a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
}

impl FillLayout {
    /// The fill of all of `memory`, checked as [`Stream::fill`](crate::Stream::fill) does; `None`
    /// if there is nothing to fill.
    ///
    /// # Errors
    /// The memory is not aligned to the size of the value ([`Unaligned`](crate::Error::Unaligned)).
    /// A value of another size than 1, 2 or 4 bytes does not compile.
    pub fn linear<T: Element>(memory: Slice<'_, T>, value: T) -> Result<Option<Self>> {
        const { assert_value::<T>() };
        Self::rectangle(memory, memory.len(), [memory.len(), 1], value)
    }

    /// The fill of `height` rows of `width` elements, one `pitch` elements behind the other,
    /// checked as [`Stream::fill_2d`](crate::Stream::fill_2d) does; `None` if there is nothing to
    /// fill.
    ///
    /// # Errors
    /// As [`linear`](Self::linear); a pitch below the width ([`Pitch`](crate::Error::Pitch)), or a
    /// rectangle that leaves the slice.
    pub fn rectangle<T: Element>(
        memory: Slice<'_, T>,
        pitch: usize,
        [width, height]: [usize; 2],
        value: T,
    ) -> Result<Option<Self>> {
        const { assert_value::<T>() };
        let bits = Bits::of(&value).at(memory.address())?;
        let shape = Shape { pitch, rows: height, extent: [width, height, 1] };
        shape.check_in("the slice of a fill", memory.len())?;
        if shape.is_empty() {
            return Ok(None);
        }
        let (element, value) = match bits {
            Bits::One(bits) => (1, u32::from(bits)),
            Bits::Two(bits) => (2, u32::from(bits)),
            Bits::Four(bits) => (4, bits),
        };
        let (address, space) = (memory.address(), memory.allocation().space());
        let pitch = shape.plain().pitch * usize::from(element);
        Ok(Some(Self { address, space, element, value, pitch, width, height }))
    }

    /// All bytes filled.
    #[must_use]
    pub fn bytes(&self) -> usize {
        usize::from(self.element).saturating_mul(self.width).saturating_mul(self.height)
    }
}
