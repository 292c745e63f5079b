//! Buffers: owned ranges of device memory.

use core::fmt;
use core::hash::{Hash, Hasher};
use core::marker::PhantomData;
use core::ops::RangeBounds;
use std::sync::Arc;

use cuda_sys::CUdeviceptr;

use super::allocation::Allocation;
use super::element::Element;
use super::slice::Slice;
use crate::error::Result;
use crate::stream::Stream;

/// Device memory for `len` elements, or a part of such memory. Clones and sub-buffers share it; it
/// is freed when the last of them and every graph that uses it are gone.
///
/// Made by [`Stream::zeros`], [`Stream::zeros_from`], [`Stream::upload`] (pooled, the usual kind)
/// and [`Context::alloc_blocking`](crate::Context::alloc_blocking) (plain); freed by
/// `cuMemFreeAsync`. [`Allocation`] explains the home stream, [`MemoryKind`](crate::MemoryKind) the
/// other kinds.
#[doc(alias = "cuMemFreeAsync")]
#[doc(alias = "cudaFree")]
#[doc(alias = "cudaFreeAsync")]
#[doc(alias = "cuMemFree")]
pub struct Buffer<T> {
    allocation: Arc<Allocation>,
    address: CUdeviceptr,
    len: usize,
    _elements: PhantomData<fn() -> T>,
}

impl<T> Buffer<T> {
    /// The whole allocation, which has the size of `len` elements.
    pub(super) fn whole(allocation: Allocation, len: usize) -> Self {
        let address = allocation.address();
        Self { allocation: Arc::new(allocation), address, len, _elements: PhantomData }
    }

    /// `len` elements at an address inside the allocation.
    pub(crate) fn part(allocation: &Arc<Allocation>, address: CUdeviceptr, len: usize) -> Self {
        Self { allocation: Arc::clone(allocation), address, len, _elements: PhantomData }
    }

    /// The whole allocation as bytes.
    pub(crate) fn of(allocation: Arc<Allocation>) -> Buffer<u8> {
        let (address, len) = (allocation.address(), allocation.bytes());
        Buffer { allocation, address, len, _elements: PhantomData }
    }

    /// Whether this is the only reference to the allocation.
    pub(super) fn is_sole(&self) -> bool {
        Arc::strong_count(&self.allocation) == 1
    }

    /// The allocation, if this is the only reference to it.
    pub(super) fn sole_allocation(&mut self) -> Option<&mut Allocation> {
        Arc::get_mut(&mut self.allocation)
    }

    /// The number of elements.
    #[must_use]
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether it has no elements. An empty buffer is an ordinary value; nothing done with it
    /// reaches the driver.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Its size in bytes.
    #[must_use]
    #[inline]
    pub fn size_bytes(&self) -> usize {
        self.len * size_of::<T>()
    }

    /// The address of the first element; 0 if the allocation has no bytes.
    #[must_use]
    #[inline]
    pub fn address(&self) -> CUdeviceptr {
        self.address
    }

    /// The memory it is, or is part of.
    #[must_use]
    #[inline]
    pub fn allocation(&self) -> &Arc<Allocation> {
        &self.allocation
    }

    /// The stream in whose order the memory was allocated and will be freed; pooled memory has one.
    #[must_use]
    pub fn home(&self) -> Option<&Stream> {
        self.allocation.home()
    }

    /// All of it, borrowed.
    #[must_use]
    #[inline]
    pub fn as_slice(&self) -> Slice<'_, T> {
        Slice::of(&self.allocation, self.address, self.len)
    }

    /// A part of it, borrowed, by elements.
    ///
    /// # Errors
    /// The range does not lie in the buffer ([`Bounds`](crate::Error::Bounds)).
    pub fn slice(&self, range: impl RangeBounds<usize>) -> Result<Slice<'_, T>> {
        self.as_slice().slice(range)
    }

    /// A part of it that keeps the whole memory, by elements.
    ///
    /// # Errors
    /// The range does not lie in the buffer ([`Bounds`](crate::Error::Bounds)).
    pub fn sub_buffer(&self, range: impl RangeBounds<usize>) -> Result<Self> {
        let part = self.slice(range)?;
        Ok(Self { address: part.address(), len: part.len(), ..self.clone() })
    }

    /// The same memory as bytes. With [`cast`](Self::cast) on the way back, this is untyped memory.
    #[must_use]
    pub fn bytes(&self) -> Buffer<u8> {
        Buffer {
            allocation: Arc::clone(&self.allocation),
            address: self.address,
            len: self.size_bytes(),
            _elements: PhantomData,
        }
    }

    /// The same memory as elements of another type.
    ///
    /// # Errors
    /// Its size is no multiple of the other type's, or its address is not aligned for it.
    pub fn cast<U: Element>(&self) -> Result<Buffer<U>> {
        let cast = self.as_slice().cast::<U>()?;
        Ok(Buffer {
            allocation: Arc::clone(&self.allocation),
            address: cast.address(),
            len: cast.len(),
            _elements: PhantomData,
        })
    }
}

impl<T> Slice<'_, T> {
    /// The same memory as a buffer, which keeps the whole of it alive.
    #[must_use]
    pub fn to_buffer(self) -> Buffer<T> {
        Buffer::part(self.allocation(), self.address(), self.len())
    }
}

impl<T> Clone for Buffer<T> {
    fn clone(&self) -> Self {
        Self {
            allocation: Arc::clone(&self.allocation),
            address: self.address,
            len: self.len,
            _elements: PhantomData,
        }
    }
}

impl<'a, T> From<&'a Buffer<T>> for Slice<'a, T> {
    #[inline]
    fn from(buffer: &'a Buffer<T>) -> Self {
        buffer.as_slice()
    }
}

impl<'a, T> From<&Slice<'a, T>> for Slice<'a, T> {
    #[inline]
    fn from(slice: &Slice<'a, T>) -> Self {
        *slice
    }
}

impl<T> PartialEq for Buffer<T> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl<T> Eq for Buffer<T> {}

impl<T> Hash for Buffer<T> {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.as_slice().hash(state);
    }
}

impl<T> fmt::Debug for Buffer<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Buffer<{}>({:#x}, {})", core::any::type_name::<T>(), self.address, self.len)
    }
}
