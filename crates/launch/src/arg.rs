//! What can be an argument of a kernel.

use core::mem::MaybeUninit;
use std::sync::Arc;

use cuda_handles::{Allocation, Buffer, Element, Slice};
use smallvec::SmallVec;

use crate::params::Params;

/// A value that can be given to a kernel.
///
/// - Scalars by their exact width: `u8` to `u64`, `i8` to `i64`, `f32`, `f64`, with the feature `half` also `half::f16` and `half::bf16`,
///   and arrays of them.
/// - `&Buffer<T>` and `Slice<'_, T>`: the kernel gets the device address of the first element.
/// - [`ParamBytes`] for structs.
///
/// Anything else does not compile. `usize` is as wide as the machine that compiles, so say which width the kernel has:
///
/// ```compile_fail,E0277
/// let n: usize = 4;
/// cuda_launch::params![n];
/// ```
///
/// A kernel's `bool` is one byte; pass a `u8`:
///
/// ```compile_fail,E0277
/// cuda_launch::params![true];
/// ```
///
/// Memory of the host is not an argument:
///
/// ```compile_fail,E0277
/// cuda_launch::params![String::from("text")];
/// ```
/// ```compile_fail,E0277
/// cuda_launch::params![&[1.0_f32, 2.0][..]];
/// ```
///
/// # Safety
/// [`add_to`](Self::add_to) adds exactly one argument. Memory whose address is in it can be used by kernels until `'a` ends, or its
/// allocation is borrowed by the holder.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be an argument of a kernel",
    label = "not a kernel argument",
    note = "numbers need an exact width that the kernel shares (`u8` to `u64`, `i8` to `i64`, `f32`, `f64`): write `n as u32`",
    note = "device memory is given as `&buffer` or as a slice of one; structs as `ParamBytes`"
)]
pub unsafe trait KernelArg<'a> {
    /// Packs the value as the next argument of `params`.
    fn add_to(self, params: &mut Params<'a>);
}

/// A number that a kernel takes by value: the elements that arrays of arguments may have.
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

/// A struct as an argument, byte by byte.
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
    /// - Memory whose address is in `value` can be used by the kernel for as long as the argument is in use: in a launch until it has
    ///   ended, in a graph until the graph and its executables are gone. [`using`](Self::using) sees to that for a buffer.
    pub unsafe fn of<T: Copy>(value: &'a T) -> Self {
        let start = core::ptr::from_ref(value).cast::<MaybeUninit<u8>>();
        // SAFETY: the bytes of a value, which may be uninitialised where it has padding.
        let bytes = unsafe { core::slice::from_raw_parts(start, size_of::<T>()) };
        Self { bytes, align: align_of::<T>(), allocations: SmallVec::new() }
    }

    /// Says that the address of `slice` is in the bytes, so that its memory is kept and waited for like that of a buffer argument.
    #[must_use]
    pub fn using<T: Element>(mut self, slice: impl Into<Slice<'a, T>>) -> Self {
        self.allocations.push(slice.into().allocation());
        self
    }
}

// SAFETY: one value; whoever made it vouches for the addresses in it.
unsafe impl<'a> KernelArg<'a> for ParamBytes<'a> {
    fn add_to(self, params: &mut Params<'a>) {
        params.push_bytes(self.bytes, self.align);
        self.allocations.into_iter().for_each(|allocation| params.borrow(allocation));
    }
}
