//! Making, filling and copying device memory.

use core::ffi::c_void;

use cuda_sys::{CUdeviceptr, Call};

use super::allocation::Allocation;
use super::buffer::Buffer;
use super::element::Element;
use super::range::bytes_of;
use super::slice::Slice;
use crate::error::{Error, Result};
use crate::stream::Stream;

impl Stream {
    /// A buffer of `len` elements, all bytes zero. This stream is its home. Waits for nothing.
    ///
    /// Stands on `cuMemAllocAsync`, CUDA 11.2, and `cuMemsetD8Async`, CUDA 3.2.
    ///
    /// # Errors
    /// The device has not enough memory, the stream is capturing, or what the driver answers.
    #[doc(alias = "cuMemAllocAsync")]
    pub fn zeros<T: Element>(&self, len: usize) -> Result<Buffer<T>> {
        let mut allocation = Allocation::new(self, bytes_of::<T>(len)?)?;
        if allocation.bytes() > 0 {
            // SAFETY: the memory was allocated on this stream and has that size.
            let code = unsafe {
                let driver = self.context().driver();
                driver.cuMemsetD8Async(allocation.address(), 0, allocation.bytes(), self.as_raw())
            };
            self.context().check(Call::cuMemsetD8Async, code)?;
            allocation.stamp();
        }
        Ok(Buffer::whole(allocation, len))
    }

    /// A buffer with a copy of `elements`. This stream is its home. **Waits** for the stream until the elements have been read.
    ///
    /// Stands on `cuMemAllocAsync`, CUDA 11.2, `cuMemcpyHtoDAsync`, CUDA 3.2, and `cuStreamSynchronize`.
    ///
    /// # Errors
    /// The device has not enough memory, the stream is capturing, or what the driver answers.
    #[doc(alias = "cuMemcpyHtoDAsync")]
    pub fn upload<T: Element>(&self, elements: &[T]) -> Result<Buffer<T>> {
        let allocation = Allocation::new(self, size_of_val(elements))?;
        let buffer = Buffer::whole(allocation, elements.len());
        buffer.write_blocking(self, elements)?;
        Ok(buffer)
    }

    /// Fills memory with one value of 1, 2 or 4 bytes. Waits for nothing.
    ///
    /// Stands on `cuMemsetD8Async`, `cuMemsetD16Async` and `cuMemsetD32Async`, CUDA 3.2.
    ///
    /// # Errors
    /// The value has another size, the memory is of another context, or what the driver answers.
    #[doc(alias = "cuMemsetD8Async")]
    #[doc(alias = "cuMemsetD16Async")]
    #[doc(alias = "cuMemsetD32Async")]
    pub fn fill<'a, T: Element>(&self, memory: impl Into<Slice<'a, T>>, value: T) -> Result<()> {
        let memory = memory.into();
        let bits = Bits::of(&value)?;
        if memory.is_empty() {
            return Ok(());
        }
        self.context().ensure_usable()?;
        memory.allocation().ready_on(self)?;
        let (driver, stream) = (self.context().driver(), self.as_raw());
        let (address, len) = (memory.address(), memory.len());
        // SAFETY: the range lies in memory that lives until after this point of the stream, and is aligned to its elements.
        let (call, code) = unsafe {
            match bits {
                Bits::One(bits) => {
                    (Call::cuMemsetD8Async, driver.cuMemsetD8Async(address, bits, len, stream))
                }
                Bits::Two(bits) => {
                    (Call::cuMemsetD16Async, driver.cuMemsetD16Async(address, bits, len, stream))
                }
                Bits::Four(bits) => {
                    (Call::cuMemsetD32Async, driver.cuMemsetD32Async(address, bits, len, stream))
                }
            }
        };
        self.context().check(call, code)
    }

    /// Copies device memory to device memory of the same length. Waits for nothing.
    ///
    /// Stands on `cuMemcpyDtoDAsync`, CUDA 3.2.
    ///
    /// # Errors
    /// The lengths differ, the ranges overlap, one is of another context, or what the driver answers.
    #[doc(alias = "cuMemcpyDtoDAsync")]
    pub fn copy<'a, 'b, T: Element>(
        &self,
        source: impl Into<Slice<'a, T>>,
        destination: impl Into<Slice<'b, T>>,
    ) -> Result<()> {
        let (source, destination) = (source.into(), destination.into());
        same_length("the destination of a copy", source.len(), destination.len())?;
        apart(source.address(), destination.address(), source.size_bytes())?;
        if source.size_bytes() == 0 {
            return Ok(());
        }
        self.context().ensure_usable()?;
        source.allocation().ready_on(self)?;
        destination.allocation().ready_on(self)?;
        // SAFETY: both ranges lie in memory that lives until after this point of the stream.
        let code = unsafe {
            self.context().driver().cuMemcpyDtoDAsync(
                destination.address(),
                source.address(),
                source.size_bytes(),
                self.as_raw(),
            )
        };
        self.context().check(Call::cuMemcpyDtoDAsync, code)
    }
}

impl<T: Element> Slice<'_, T> {
    /// The elements, read in the order of `stream`. **Waits** for the stream.
    ///
    /// Stands on `cuMemcpyDtoHAsync`, CUDA 3.2, and `cuStreamSynchronize`.
    ///
    /// # Errors
    /// The stream is of another context or capturing, or what the driver answers.
    #[doc(alias = "cuMemcpyDtoHAsync")]
    pub fn read_blocking(self, stream: &Stream) -> Result<Vec<T>> {
        let mut elements = Vec::with_capacity(self.len());
        // SAFETY: the vector has room for as many elements.
        unsafe { self.read_to(stream, elements.as_mut_ptr()) }?;
        // SAFETY: the read has written them all, and every bit pattern is a value.
        unsafe { elements.set_len(self.len()) };
        Ok(elements)
    }

    /// The elements, read into `elements` in the order of `stream`. **Waits** for the stream.
    ///
    /// # Errors
    /// The lengths differ, the stream is of another context or capturing, or what the driver answers.
    pub fn read_into_blocking(self, stream: &Stream, elements: &mut [T]) -> Result<()> {
        same_length("the slice to read into", self.len(), elements.len())?;
        // SAFETY: the slice has that length and is borrowed until the copy is over.
        unsafe { self.read_to(stream, elements.as_mut_ptr()) }
    }

    /// Overwrites the elements in the order of `stream`. **Waits** for the stream until `elements` have been read.
    ///
    /// Stands on `cuMemcpyHtoDAsync`, CUDA 3.2, and `cuStreamSynchronize`.
    ///
    /// # Errors
    /// The lengths differ, the stream is of another context or capturing, or what the driver answers.
    #[doc(alias = "cuMemcpyHtoDAsync")]
    pub fn write_blocking(self, stream: &Stream, elements: &[T]) -> Result<()> {
        same_length("the slice to write", self.len(), elements.len())?;
        if self.size_bytes() == 0 {
            return Ok(());
        }
        stream.context().ensure_usable()?;
        stream.refuse_capture("writing from host memory")?;
        self.allocation().ready_on(stream)?;
        // SAFETY: both ranges have that size; the host's is borrowed until the wait below is over.
        let code = unsafe {
            let source = elements.as_ptr().cast::<c_void>();
            let driver = stream.context().driver();
            driver.cuMemcpyHtoDAsync(self.address(), source, self.size_bytes(), stream.as_raw())
        };
        stream.context().check(Call::cuMemcpyHtoDAsync, code)?;
        stream.wait_until_done()
    }

    /// # Safety
    /// `elements` points to room for `len` elements.
    unsafe fn read_to(self, stream: &Stream, elements: *mut T) -> Result<()> {
        if self.size_bytes() == 0 {
            return Ok(());
        }
        stream.context().ensure_usable()?;
        stream.refuse_capture("reading into host memory")?;
        self.allocation().ready_on(stream)?;
        // SAFETY: the range lies in memory that lives until the wait below is over; the host's room is the caller's promise.
        let code = unsafe {
            let driver = stream.context().driver();
            driver.cuMemcpyDtoHAsync(elements.cast(), self.address(), self.size_bytes(), stream.as_raw())
        };
        stream.context().check(Call::cuMemcpyDtoHAsync, code)?;
        stream.wait_until_done()
    }
}

impl<T: Element> Buffer<T> {
    /// The elements; see [`Slice::read_blocking`]. **Waits** for the stream.
    ///
    /// # Errors
    /// As [`Slice::read_blocking`].
    pub fn read_blocking(&self, stream: &Stream) -> Result<Vec<T>> {
        self.as_slice().read_blocking(stream)
    }

    /// The elements, read into `elements`; see [`Slice::read_into_blocking`]. **Waits** for the stream.
    ///
    /// # Errors
    /// As [`Slice::read_into_blocking`].
    pub fn read_into_blocking(&self, stream: &Stream, elements: &mut [T]) -> Result<()> {
        self.as_slice().read_into_blocking(stream, elements)
    }

    /// Overwrites the elements; see [`Slice::write_blocking`]. **Waits** for the stream.
    ///
    /// # Errors
    /// As [`Slice::write_blocking`].
    pub fn write_blocking(&self, stream: &Stream, elements: &[T]) -> Result<()> {
        self.as_slice().write_blocking(stream, elements)
    }
}

/// A value that the device can repeat.
#[derive(Debug, PartialEq)]
enum Bits {
    One(u8),
    Two(u16),
    Four(u32),
}

impl Bits {
    fn of<T: Element>(value: &T) -> Result<Self> {
        match *bytemuck::bytes_of(value) {
            [a] => Ok(Self::One(a)),
            [a, b] => Ok(Self::Two(u16::from_ne_bytes([a, b]))),
            [a, b, c, d] => Ok(Self::Four(u32::from_ne_bytes([a, b, c, d]))),
            ref bytes => Err(Error::FillSize { bytes: bytes.len() }),
        }
    }
}

fn same_length(what: &'static str, expected: usize, found: usize) -> Result<()> {
    if expected == found { Ok(()) } else { Err(Error::Length { what, expected, found }) }
}

/// An error if two ranges of `bytes` overlap.
fn apart(one: CUdeviceptr, other: CUdeviceptr, bytes: usize) -> Result<()> {
    let bytes = bytes as CUdeviceptr;
    match bytes.saturating_sub(one.abs_diff(other)) {
        0 => Ok(()),
        overlap => Err(Error::Overlap { bytes: usize::try_from(overlap).unwrap_or(usize::MAX) }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fill_values_by_size() {
        assert_eq!(Bits::of(&7_u8), Ok(Bits::One(7)));
        assert_eq!(Bits::of(&-1_i16), Ok(Bits::Two(0xffff)));
        assert_eq!(Bits::of(&1.0_f32), Ok(Bits::Four(0x3f80_0000)));
        assert_eq!(Bits::of(&1.0_f64), Err(Error::FillSize { bytes: 8 }));
    }

    #[test]
    fn overlap_is_measured() {
        assert_eq!(apart(0, 8, 8), Ok(()));
        assert_eq!(apart(8, 0, 8), Ok(()));
        assert_eq!(apart(0, 4, 8), Err(Error::Overlap { bytes: 4 }));
        assert_eq!(apart(4, 0, 8), Err(Error::Overlap { bytes: 4 }));
        assert_eq!(apart(0, 0, 0), Ok(()));
    }
}
