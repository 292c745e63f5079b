//! Borrowed ranges of device memory.

use core::fmt;
use core::marker::PhantomData;
use core::ops::RangeBounds;
use std::sync::Arc;

use cuda_sys::CUdeviceptr;

use super::allocation::Allocation;
use super::range::resolve;
use crate::error::Result;

/// A range of elements in device memory, borrowed. Small and `Copy`.
pub struct Slice<'a, T> {
    allocation: &'a Arc<Allocation>,
    address: CUdeviceptr,
    len: usize,
    _elements: PhantomData<fn() -> T>,
}

impl<'a, T> Slice<'a, T> {
    /// `len` elements at an address inside the allocation; 0 stands for the address where there is no memory.
    pub(super) fn of(allocation: &'a Arc<Allocation>, address: CUdeviceptr, len: usize) -> Self {
        Self { allocation, address, len, _elements: PhantomData }
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
    /// The range does not lie in it.
    pub fn slice(self, range: impl RangeBounds<usize>) -> Result<Self> {
        let range = resolve(range, self.len)?;
        let address = self.address + (range.start * size_of::<T>()) as CUdeviceptr;
        Ok(Self { address, len: range.len(), ..self })
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
