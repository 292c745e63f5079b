//! Types that can be arguments of an untyped launch.

use core::mem::MaybeUninit;
use std::sync::Arc;

use cuda_handles::{
    Allocation, Buffer, Element, FixedMemory, GraphBuffer, GraphSlice, NodeMemory, SharedHostBuffer, Slice,
};
use smallvec::SmallVec;

use crate::arguments::conditional_handle::ConditionalHandle;
use crate::arguments::params::{KernelArg, Params};

/// A number that a kernel takes by value, alone or in an array.
pub trait Scalar: Copy + private::Sealed {}

mod private {
    pub trait Sealed {}
}

macro_rules! scalars {
    ($($type:ty),*) => {$(
        impl private::Sealed for $type {}
        impl Scalar for $type {}

        // SAFETY: one value without an address.
        unsafe impl<'a> KernelArg<'a> for $type {
            #[inline]
            fn add_to(self, params: &mut Params<'a>) {
                params.push_value(self);
            }
        }
    )*};
}

scalars!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

#[cfg(feature = "half")]
scalars!(half::f16, half::bf16);

// SAFETY: one value without an address.
unsafe impl<'a, T: Scalar, const N: usize> KernelArg<'a> for [T; N] {
    #[inline]
    fn add_to(self, params: &mut Params<'a>) {
        params.push_value(self);
    }
}

// SAFETY: one address, of an allocation that the holder borrows.
unsafe impl<'a, T: Element> KernelArg<'a> for &'a Buffer<T> {
    #[inline]
    fn add_to(self, params: &mut Params<'a>) {
        params.push_value(self.address());
        params.borrow(self.allocation());
    }
}

// SAFETY: one address, of an allocation that the holder borrows.
unsafe impl<'a, T: Element> KernelArg<'a> for Slice<'a, T> {
    #[inline]
    fn add_to(self, params: &mut Params<'a>) {
        params.push_value(self.address());
        params.borrow(self.allocation());
    }
}

// SAFETY: one address, of an allocation that the holder borrows.
unsafe impl<'a, T: Element> KernelArg<'a> for &'a SharedHostBuffer<T> {
    #[inline]
    fn add_to(self, params: &mut Params<'a>) {
        self.as_slice().add_to(params);
    }
}

// SAFETY: one address, of an allocation that the holder borrows.
unsafe impl<'a, T: Element> KernelArg<'a> for &'a GraphBuffer<T> {
    #[inline]
    fn add_to(self, params: &mut Params<'a>) {
        self.operand().add_to(params);
    }
}

// SAFETY: one address, of an allocation that the holder borrows.
unsafe impl<'a, T: Element> KernelArg<'a> for GraphSlice<'a, T> {
    #[inline]
    fn add_to(self, params: &mut Params<'a>) {
        self.operand().add_to(params);
    }
}

// SAFETY: one value, and no address.
unsafe impl<'a> KernelArg<'a> for ConditionalHandle {
    fn add_to(self, params: &mut Params<'a>) {
        params.push_handle(self);
    }
}

/// A struct as an argument, copied byte by byte.
///
/// ```
/// #[repr(C)]
/// #[derive(Clone, Copy)]
/// struct Settings {
///     steps: u32,
///     scale: f64,
/// }
/// let settings = Settings { steps: 4, scale: 0.5 };
/// // SAFETY: the kernel's struct has the same layout, and there are no addresses in it.
/// let params = cuda_launch::params![unsafe { cuda_launch::ParamBytes::of(&settings) }];
/// assert_eq!(params.len(), 1);
/// ```
#[derive(Clone, Debug)]
pub struct ParamBytes<'a> {
    bytes: &'a [MaybeUninit<u8>],
    align: usize,
    allocations: SmallVec<[&'a Arc<Allocation>; 4]>,
}

impl<'a> ParamBytes<'a> {
    /// The bytes of `value`, padding included, with its size and alignment.
    ///
    /// # Safety
    /// - The kernel's parameter has the same fields at the same offsets (`#[repr(C)]` helps).
    /// - Memory whose address is in `value` stays valid as long as the argument is in use: in a
    ///   launch until it has ended, in a graph until the graph and its executables are dropped.
    ///   [`using`](Self::using) ensures that for a buffer.
    pub unsafe fn of<T: Copy>(value: &'a T) -> Self {
        let start = core::ptr::from_ref(value).cast::<MaybeUninit<u8>>();
        // SAFETY: the bytes of a value, which may be uninitialised where it has padding.
        let bytes = unsafe { core::slice::from_raw_parts(start, size_of::<T>()) };
        Self { bytes, align: align_of::<T>(), allocations: SmallVec::new() }
    }

    /// Declares that the bytes contain the address of `slice`. Its memory is then kept alive and
    /// waited for, as for a buffer argument. The bytes stay as they are, so the memory is no graph
    /// parameter of cuda-graph.
    #[must_use]
    pub fn using<T: Element>(mut self, slice: impl FixedMemory<'a, T>) -> Self {
        self.allocations.push(slice.operand().allocation());
        self
    }
}

// SAFETY: one value; `ParamBytes::of` made the caller promise what its addresses need.
unsafe impl<'a> KernelArg<'a> for ParamBytes<'a> {
    fn add_to(self, params: &mut Params<'a>) {
        params.push_bytes(self.bytes, self.align);
        self.allocations.into_iter().for_each(|allocation| params.borrow(allocation));
    }
}
