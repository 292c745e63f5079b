//! Borrowed ranges of device memory.

use core::fmt;
use core::marker::PhantomData;
use core::ops::RangeBounds;
use std::sync::Arc;

use cuda_sys::CUdeviceptr;

use super::allocation::Allocation;
use super::element::Element;
use super::range::resolve;
use crate::error::{Error, Result};

/// A range of elements in device memory, borrowed. Small and `Copy`.
pub struct Slice<'a, T> {
    allocation: &'a Arc<Allocation>,
    address: CUdeviceptr,
    len: usize,
    _elements: PhantomData<fn() -> T>,
}

impl<'a, T> Slice<'a, T> {
    /// `len` elements at an address inside the allocation; the address is 0 if there is no memory.
    pub(super) fn of(allocation: &'a Arc<Allocation>, address: CUdeviceptr, len: usize) -> Self {
        Self { allocation, address, len, _elements: PhantomData }
    }

    /// A range of elements that was a slice before.
    ///
    /// # Safety
    /// There are `len` elements of this type at the address, within the allocation.
    #[doc(hidden)]
    #[must_use]
    pub unsafe fn within(allocation: &'a Arc<Allocation>, address: CUdeviceptr, len: usize) -> Self {
        Self::of(allocation, address, len)
    }

    /// The number of elements.
    #[must_use]
    #[inline]
    pub fn len(self) -> usize {
        self.len
    }

    /// Whether it has no elements.
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.len == 0
    }

    /// Its size in bytes.
    #[must_use]
    #[inline]
    pub fn size_bytes(self) -> usize {
        self.len * size_of::<T>()
    }

    /// The address of the first element.
    #[must_use]
    #[inline]
    pub fn address(self) -> CUdeviceptr {
        self.address
    }

    /// The memory it is part of.
    #[must_use]
    #[inline]
    pub fn allocation(self) -> &'a Arc<Allocation> {
        self.allocation
    }

    /// A part of it, by elements.
    ///
    /// # Errors
    /// The range does not lie in it ([`Bounds`](crate::Error::Bounds)).
    pub fn slice(self, range: impl RangeBounds<usize>) -> Result<Self> {
        let range = resolve(range, self.len)?;
        let address = self.address + (range.start * size_of::<T>()) as CUdeviceptr;
        Ok(Self { address, len: range.len(), ..self })
    }
}

impl<'a, T> Slice<'a, T> {
    /// The same memory as elements of another type.
    ///
    /// # Errors
    /// Its size is no multiple of the other type's, or its address is not aligned for it.
    pub fn cast<U: Element>(self) -> Result<Slice<'a, U>> {
        let (bytes, size, align) = (self.size_bytes(), size_of::<U>(), align_of::<U>());
        let fits = self.address.is_multiple_of(align as u64) && bytes.is_multiple_of(size.max(1));
        if !fits || size == 0 && bytes != 0 {
            return Err(Error::Cast { bytes, address: self.address, size, align });
        }
        Ok(Slice::of(self.allocation, self.address, bytes.checked_div(size).unwrap_or(0)))
    }
}

impl<T> Clone for Slice<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Slice<'_, T> {}

impl<T> PartialEq for Slice<'_, T> {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(self.allocation, other.allocation)
            && self.address == other.address
            && self.len == other.len
    }
}

impl<T> Eq for Slice<'_, T> {}

impl<T> core::hash::Hash for Slice<'_, T> {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        (Arc::as_ptr(self.allocation), self.address, self.len).hash(state);
    }
}

impl<T> fmt::Debug for Slice<'_, T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Slice<{}>({:#x}, {})", core::any::type_name::<T>(), self.address, self.len)
    }
}
