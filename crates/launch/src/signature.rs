//! Signatures of typed kernels: what each parameter is, what may be given for it, and what the driver gets.

use core::ffi::c_void;
use core::fmt;
use core::marker::PhantomData;
use std::sync::Arc;

use cuda_handles::{
    Allocation, Buffer, Element, GraphBuffer, GraphSlice, NodeMemory, SharedHostBuffer, Slice,
};
use cuda_sys::CUtensorMap;

use crate::arg::Scalar;
use crate::condition::{Int, Length, Scope};
use crate::handle::ConditionalHandle;
use crate::place::Place;
use crate::tensor_map::{TensorElement, TensorMap};

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// Declares memory that the kernel only reads. Given as `&Buffer<T>` or `Slice<T>`, to nodes also as memory of their graph: `&GraphBuffer<T>`.
#[derive(Debug)]
pub struct In<T>(PhantomData<fn() -> T>);

/// Declares memory that the kernel only writes. Given as `&Buffer<T>` or `Slice<T>`; must not overlap other arguments.
#[derive(Debug)]
pub struct Out<T>(PhantomData<fn() -> T>);

/// Declares memory that the kernel reads and writes. Given as `&Buffer<T>` or `Slice<T>`; must not overlap other arguments.
#[derive(Debug)]
pub struct InOut<T>(PhantomData<fn() -> T>);

/// Declares a struct that the kernel takes by value, padding and all. Given as a `T`, which has the fields of the kernel's struct at the
/// same offsets (`#[repr(C)]` helps).
#[derive(Debug)]
pub struct Struct<T>(PhantomData<fn() -> T>);

/// Memory that an argument leads to.
#[derive(Clone, Copy, Debug)]
pub struct Memory<'a> {
    /// What keeps it.
    pub allocation: &'a Arc<Allocation>,
    /// The address of its first byte.
    pub start: u64,
    /// Its size in bytes.
    pub bytes: u64,
    /// Whether the kernel may write it.
    pub written: bool,
}

/// A type that [`kernel!`](crate::kernel!) takes for a parameter: a number of exact width, an array of them, [`Struct`], memory as
/// [`In`], [`Out`] or [`InOut`], and the [`ConditionalHandle`] of a graph's condition.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the type of a kernel's parameter",
    label = "not a parameter type",
    note = "there are `u8` to `u64`, `i8` to `i64`, `f32`, `f64`, arrays of them, `Struct<T>`, `In<T>`, `Out<T>`, `InOut<T>` and `ConditionalHandle`"
)]
pub trait Parameter: sealed::Sealed + 'static {
    /// What is given for it.
    type Value<'a>: Copy;
    /// What the driver gets.
    type Packed: Copy;
    /// What conditions see.
    type Known<'s>;

    /// Whether what is given is the handle of a condition.
    const IS_HANDLE: bool = false;

    /// What the driver gets for a value.
    fn packed(value: &Self::Value<'_>) -> Self::Packed;
    /// What conditions see of a value.
    fn known<'s>(value: &Self::Value<'_>, scope: &'s Scope) -> Self::Known<'s>;
    /// The memory that a value leads to.
    fn memory<'a>(value: &Self::Value<'a>) -> Option<Memory<'a>>;
    /// The handle of a condition that a value is.
    #[inline]
    fn handle(_value: &Self::Value<'_>) -> Option<ConditionalHandle> {
        None
    }
    /// Tells a value in an error.
    ///
    /// # Errors
    /// Those of the formatter.
    fn show(name: &str, value: &Self::Value<'_>, text: &mut dyn fmt::Write) -> fmt::Result;
}

/// A value that can be given for a parameter declared as `P`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be given for a parameter declared as `{P}`",
    label = "not an argument for `{P}`",
    note = "a number needs the declared type; `In<T>`, `Out<T>` and `InOut<T>` take `&Buffer<T>` and `Slice<T>` of the same `T`"
)]
pub trait Argument<'a, P: Parameter> {
    /// The value.
    fn value(self) -> P::Value<'a>;
}

/// An [`Argument`] of a launch on a stream: any but the memory of a graph, which is there for the graph's nodes alone.
///
/// ```compile_fail,E0277
/// # use cuda_handles::{GraphBuffer, Image, Stream};
/// cuda_launch::kernel! {
///     unsafe in Image::Ptx("");
///     fn double(numbers: InOut<f32>) where numbers.len() >= 1;
/// }
/// fn go(kernel: &double, stream: &Stream, memory: &GraphBuffer<f32>) {
///     kernel.launch(stream, cuda_launch::per(1, 1), (memory,)).unwrap();
/// }
/// # fn main() {}
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be given for a parameter declared as `{P}` in a launch on a stream",
    label = "not an argument for `{P}` on a stream",
    note = "a number needs the declared type; `In<T>`, `Out<T>` and `InOut<T>` take `&Buffer<T>` and `Slice<T>` of the same `T`",
    note = "memory of a graph (`&GraphBuffer<T>`, `GraphSlice<T>`) is an argument of the graph's nodes alone"
)]
pub trait PlainArgument<'a, P: Parameter>: Argument<'a, P> {}

macro_rules! scalars {
    ($known:ty, $number:expr => $($type:ty),*) => {$(
        impl sealed::Sealed for $type {}
        impl PlainParameter for $type {}

        impl Parameter for $type {
            type Value<'a> = Self;
            type Packed = Self;
            type Known<'s> = $known;

            #[inline]
            fn packed(value: &Self) -> Self {
                *value
            }

            #[inline]
            fn known<'s>(value: &Self, scope: &'s Scope) -> $known {
                let number: fn(Self, &'s Scope) -> $known = $number;
                number(*value, scope)
            }

            #[inline]
            fn memory<'a>(_: &Self) -> Option<Memory<'a>> {
                None
            }

            fn show(name: &str, value: &Self, text: &mut dyn fmt::Write) -> fmt::Result {
                write!(text, "{name} = {value}")
            }
        }

        impl PlainArgument<'_, $type> for $type {}

        impl Argument<'_, $type> for $type {
            #[inline]
            fn value(self) -> Self {
                self
            }
        }
    )*};
}

scalars!(Int<'s>, |value, scope| scope.int(value) => u8, u16, u32, u64, i8, i16, i32, i64);
scalars!(f64, |value, _| f64::from(value) => f32);
scalars!(f64, |value, _| value => f64);
#[cfg(feature = "half")]
scalars!(f64, |value, _| f64::from(value) => half::f16, half::bf16);

impl<T: Scalar, const N: usize> sealed::Sealed for [T; N] {}
impl<T: Scalar + fmt::Debug + 'static, const N: usize> PlainParameter for [T; N] {}

impl<T: Scalar + fmt::Debug + 'static, const N: usize> Parameter for [T; N] {
    type Value<'a> = Self;
    type Packed = Self;
    type Known<'s> = Self;

    #[inline]
    fn packed(value: &Self) -> Self {
        *value
    }

    #[inline]
    fn known(value: &Self, _: &Scope) -> Self {
        *value
    }

    #[inline]
    fn memory<'a>(_: &Self) -> Option<Memory<'a>> {
        None
    }

    fn show(name: &str, value: &Self, text: &mut dyn fmt::Write) -> fmt::Result {
        write!(text, "{name} = {value:?}")
    }
}

impl<T: Scalar + fmt::Debug + 'static, const N: usize> PlainArgument<'_, [T; N]> for [T; N] {}

impl<T: Scalar + fmt::Debug + 'static, const N: usize> Argument<'_, [T; N]> for [T; N] {
    #[inline]
    fn value(self) -> Self {
        self
    }
}

impl<T> sealed::Sealed for Struct<T> {}
impl<T: Copy + Send + Sync + 'static> PlainParameter for Struct<T> {}

impl<T: Copy + Send + Sync + 'static> Parameter for Struct<T> {
    type Value<'a> = T;
    type Packed = T;
    type Known<'s> = T;

    #[inline]
    fn packed(value: &T) -> T {
        *value
    }

    #[inline]
    fn known(value: &T, _: &Scope) -> T {
        *value
    }

    #[inline]
    fn memory<'a>(_: &T) -> Option<Memory<'a>> {
        None
    }

    fn show(name: &str, _: &T, text: &mut dyn fmt::Write) -> fmt::Result {
        write!(text, "{name} of type {}", core::any::type_name::<T>())
    }
}

impl<T: Copy + Send + Sync + 'static> PlainArgument<'_, Struct<T>> for T {}

impl<T: Copy + Send + Sync + 'static> Argument<'_, Struct<T>> for T {
    #[inline]
    fn value(self) -> T {
        self
    }
}

/// A slice that kernels may only read: it can be given for [`In`], not for [`Out`] or [`InOut`].
#[derive(Debug)]
pub struct ReadOnly<'a, T>(Slice<'a, T>);

impl<T> Clone for ReadOnly<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ReadOnly<'_, T> {}

/// Memory that kernels may only read, to hand out where it must stay as it is.
#[must_use]
pub fn read_only<'a, T>(slice: impl Into<Slice<'a, T>>) -> ReadOnly<'a, T> {
    ReadOnly(slice.into())
}

impl<'a, T: Element> PlainArgument<'a, In<T>> for ReadOnly<'a, T> {}

impl<'a, T: Element> Argument<'a, In<T>> for ReadOnly<'a, T> {
    #[inline]
    fn value(self) -> Slice<'a, T> {
        self.0
    }
}

macro_rules! memory {
    ($($access:ident $written:literal),*) => {$(
        impl<T> sealed::Sealed for $access<T> {}
        impl<T: Element> PlainParameter for $access<T> {}

        impl<T: Element> Parameter for $access<T> {
            type Value<'a> = Slice<'a, T>;
            type Packed = u64;
            type Known<'s> = Length<'s>;

            #[inline]
            fn packed(value: &Slice<'_, T>) -> u64 {
                value.address()
            }

            #[inline]
            fn known<'s>(value: &Slice<'_, T>, scope: &'s Scope) -> Length<'s> {
                Length(scope.int(value.len() as u64))
            }

            #[inline]
            fn memory<'a>(value: &Self::Value<'a>) -> Option<Memory<'a>> {
                let (start, bytes) = (value.address(), value.size_bytes() as u64);
                Some(Memory { allocation: value.allocation(), start, bytes, written: $written })
            }

            fn show(name: &str, value: &Slice<'_, T>, text: &mut dyn fmt::Write) -> fmt::Result {
                write!(text, "{name}.len() = {}", value.len())
            }
        }

        impl<'a, T: Element> PlainArgument<'a, $access<T>> for &'a Buffer<T> {}

        impl<'a, T: Element> Argument<'a, $access<T>> for &'a Buffer<T> {
            #[inline]
            fn value(self) -> Slice<'a, T> {
                self.as_slice()
            }
        }

        impl<'a, T: Element> PlainArgument<'a, $access<T>> for &'a SharedHostBuffer<T> {}

        impl<'a, T: Element> Argument<'a, $access<T>> for &'a SharedHostBuffer<T> {
            #[inline]
            fn value(self) -> Slice<'a, T> {
                self.as_slice()
            }
        }

        impl<'a, T: Element> PlainArgument<'a, $access<T>> for Slice<'a, T> {}

        impl<'a, T: Element> Argument<'a, $access<T>> for Slice<'a, T> {
            #[inline]
            fn value(self) -> Slice<'a, T> {
                self
            }
        }

        impl<'a, T: Element> PlainArgument<'a, $access<T>> for &Slice<'a, T> {}

        impl<'a, T: Element> Argument<'a, $access<T>> for &Slice<'a, T> {
            #[inline]
            fn value(self) -> Slice<'a, T> {
                *self
            }
        }

        impl<'a, T: Element> Argument<'a, $access<T>> for &'a GraphBuffer<T> {
            #[inline]
            fn value(self) -> Slice<'a, T> {
                self.operand()
            }
        }

        impl<'a, T: Element> Argument<'a, $access<T>> for GraphSlice<'a, T> {
            #[inline]
            fn value(self) -> Slice<'a, T> {
                self.operand()
            }
        }
    )*};
}

memory!(In false, Out true, InOut true);

/// Declares a tensor map of elements of type `T`, as in `In<Tensor<f32>>`. Given as a `&TensorMap<T>`.
#[derive(Debug)]
pub struct Tensor<T>(PhantomData<fn() -> T>);

macro_rules! tensors {
    ($($access:ident $written:literal),*) => {$(
        impl<T: TensorElement> PlainParameter for $access<Tensor<T>> {}

        impl<T: TensorElement> Parameter for $access<Tensor<T>> {
            type Value<'a> = &'a TensorMap<T>;
            type Packed = CUtensorMap;
            type Known<'s> = Length<'s>;

            #[inline]
            fn packed(value: &&TensorMap<T>) -> CUtensorMap {
                *value.as_raw()
            }

            #[inline]
            fn known<'s>(value: &&TensorMap<T>, scope: &'s Scope) -> Length<'s> {
                Length(scope.int(value.len()))
            }

            #[inline]
            fn memory<'a>(value: &Self::Value<'a>) -> Option<Memory<'a>> {
                let (start, bytes) = (value.address(), value.size_bytes());
                Some(Memory { allocation: value.allocation(), start, bytes, written: $written })
            }

            fn show(name: &str, value: &&TensorMap<T>, text: &mut dyn fmt::Write) -> fmt::Result {
                write!(text, "{name}.len() = {}", value.len())
            }
        }

        impl<'a, T: TensorElement> PlainArgument<'a, $access<Tensor<T>>> for &'a TensorMap<T> {}

        impl<'a, T: TensorElement> Argument<'a, $access<Tensor<T>>> for &'a TensorMap<T> {
            #[inline]
            fn value(self) -> &'a TensorMap<T> {
                self
            }
        }
    )*};
}

tensors!(In false, Out true, InOut true);

/// Two arguments that share memory which the kernel writes, by their positions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overlap {
    /// The position of the first argument.
    pub first: usize,
    /// The position of the second argument.
    pub second: usize,
    /// The bytes that both have.
    pub bytes: u64,
}

/// The parameters of a kernel: a tuple of up to 32 [`Parameter`]s.
pub trait Signature: sealed::Sealed + 'static {
    /// What is given: a tuple of as many values.
    type Values<'a>: Copy;

    /// Where the values would lie in a struct, and their sizes.
    const PLACES: &'static [Place];

    /// Whether there is a [`ConditionalHandle`] among them: such a kernel can only be a node of a graph.
    const HAS_HANDLES: bool;

    /// Calls `call` with an array of pointers to what the driver gets, valid during that call.
    fn with_pointers<R>(values: &Self::Values<'_>, call: impl FnOnce(*mut *mut c_void) -> R) -> R;

    /// Hands the memory that the values lead to, in their order, to `each`, until that fails.
    ///
    /// # Errors
    /// That of `each`.
    fn each_memory<'a, E>(
        values: &Self::Values<'a>,
        each: impl FnMut(Memory<'a>) -> Result<(), E>,
    ) -> Result<(), E>;

    /// Hands the handles of conditions among the values, in their order, to `each`.
    fn each_handle(values: &Self::Values<'_>, each: impl FnMut(ConditionalHandle));

    /// Two values that share memory of which one is written.
    fn overlap(values: &Self::Values<'_>) -> Option<Overlap>;

    /// Tells all values in an error.
    ///
    /// # Errors
    /// Those of the formatter.
    fn show(names: &[&str], values: &Self::Values<'_>, text: &mut dyn fmt::Write) -> fmt::Result;
}

/// Arguments for a kernel with the signature `S`: a tuple with an [`Argument`] for each parameter.
#[diagnostic::on_unimplemented(
    message = "the arguments do not fit the kernel's signature",
    label = "arguments of type `{Self}`",
    note = "the kernel takes {S}, in a tuple; one argument alone is written `(x,)`"
)]
pub trait ArgumentsOf<'a, S: Signature> {
    /// The values.
    fn values(self) -> S::Values<'a>;
}

/// A parameter of kernels that may be launched on a stream: any but a [`ConditionalHandle`].
#[diagnostic::on_unimplemented(
    message = "a kernel that takes the handle of a condition can only be a node of the condition's graph",
    label = "this kernel cannot be launched on a stream",
    note = "set outside of a launch of its graph, the handle costs the device its context; add the kernel to the graph"
)]
pub trait PlainParameter: Parameter {}

/// A signature all of whose parameters are [`PlainParameter`]s.
pub trait PlainSignature: Signature {}

/// Arguments for a launch on a stream: a tuple with a [`PlainArgument`] for each parameter of a [`PlainSignature`].
#[diagnostic::on_unimplemented(
    message = "the arguments do not fit the kernel's signature in a launch on a stream",
    label = "arguments of type `{Self}`",
    note = "the kernel takes {S}, in a tuple; one argument alone is written `(x,)`"
)]
pub trait PlainArgumentsOf<'a, S: Signature>: ArgumentsOf<'a, S> {}

#[derive(Clone, Copy)]
struct Range {
    position: usize,
    start: u64,
    end: u64,
    written: bool,
}

impl Range {
    const NONE: Self = Self { position: 0, start: 0, end: 0, written: false };

    #[inline]
    fn overlap(&self, other: &Self) -> Option<Overlap> {
        let (start, end) = (self.start.max(other.start), self.end.min(other.end));
        if start >= end || !(self.written || other.written) {
            return None;
        }
        Some(Overlap { first: self.position, second: other.position, bytes: end - start })
    }
}

/// The first two ranges of which one is written and that overlap.
#[inline]
fn first_overlap(ranges: &[Range]) -> Option<Overlap> {
    for (index, second) in ranges.iter().enumerate() {
        for first in &ranges[..index] {
            if let Some(overlap) = first.overlap(second) {
                return Some(overlap);
            }
        }
    }
    None
}

/// The places of values of these sizes and alignments, one behind the other.
const fn places<const N: usize>(layouts: [(usize, usize); N]) -> [Place; N] {
    let mut places = [Place::new(0, 0); N];
    let (mut index, mut end) = (0, 0_usize);
    while index < N {
        let (size, align) = layouts[index];
        let offset = end.next_multiple_of(align);
        places[index] = Place::new(offset, size);
        end = offset + size;
        index += 1;
    }
    places
}

macro_rules! signature {
    ($count:tt: $($parameter:ident $argument:ident $index:tt),*) => {
        impl<$($parameter: Parameter),*> sealed::Sealed for ($($parameter,)*) {}
        impl<$($parameter: PlainParameter),*> PlainSignature for ($($parameter,)*) {}

        #[allow(unused_variables, unused_mut, clippy::unused_unit)] // Where there are no parameters.
        impl<$($parameter: Parameter),*> Signature for ($($parameter,)*) {
            type Values<'a> = ($($parameter::Value<'a>,)*);

            const PLACES: &'static [Place] = &const {
                places::<$count>([$((size_of::<$parameter::Packed>(), align_of::<$parameter::Packed>())),*])
            };

            const HAS_HANDLES: bool = false $(|| $parameter::IS_HANDLE)*;

            #[inline]
            fn with_pointers<R>(values: &Self::Values<'_>, call: impl FnOnce(*mut *mut c_void) -> R) -> R {
                let packed = ($($parameter::packed(&values.$index),)*);
                // The driver reads through these pointers and never writes.
                let mut pointers: [*mut c_void; $count] =
                    [$((&raw const packed.$index).cast_mut().cast::<c_void>()),*];
                call(pointers.as_mut_ptr())
            }

            #[inline]
            fn each_memory<'a, E>(
                values: &Self::Values<'a>,
                mut each: impl FnMut(Memory<'a>) -> Result<(), E>,
            ) -> Result<(), E> {
                $(if let Some(memory) = $parameter::memory(&values.$index) {
                    each(memory)?;
                })*
                Ok(())
            }

            #[inline]
            fn each_handle(values: &Self::Values<'_>, mut each: impl FnMut(ConditionalHandle)) {
                $($parameter::handle(&values.$index).into_iter().for_each(&mut each);)*
            }

            #[inline]
            fn overlap(values: &Self::Values<'_>) -> Option<Overlap> {
                let mut ranges = [Range::NONE; $count];
                let mut used = 0;
                $(if let Some(memory) = $parameter::memory(&values.$index) {
                    let end = memory.start.saturating_add(memory.bytes);
                    ranges[used] = Range { position: $index, start: memory.start, end, written: memory.written };
                    used += 1;
                })*
                first_overlap(&ranges[..used])
            }

            fn show(names: &[&str], values: &Self::Values<'_>, text: &mut dyn fmt::Write) -> fmt::Result {
                $(
                    if $index > 0 {
                        text.write_str(", ")?;
                    }
                    $parameter::show(names.get($index).copied().unwrap_or("?"), &values.$index, text)?;
                )*
                Ok(())
            }
        }

        impl<'a, $($parameter: PlainParameter, $argument: PlainArgument<'a, $parameter>),*>
            PlainArgumentsOf<'a, ($($parameter,)*)> for ($($argument,)*)
        {
        }

        impl<'a, $($parameter: Parameter, $argument: Argument<'a, $parameter>),*>
            ArgumentsOf<'a, ($($parameter,)*)> for ($($argument,)*)
        {
            #[inline]
            #[allow(clippy::unused_unit)]
            fn values(self) -> ($($parameter::Value<'a>,)*) {
                ($(self.$index.value(),)*)
            }
        }
    };
}

/// Signatures of all lengths up to the one given.
macro_rules! signatures {
    (@ $count:tt [$($done:tt)*]) => { signature!($count: $($done)*); };
    (@ $count:tt [$($done:tt)*] $next:tt $parameter:ident $argument:ident $($rest:tt)*) => {
        signature!($count: $($done)*);
        signatures!(@comma $next [$($done)*] [$parameter $argument $count] $($rest)*);
    };
    (@comma $next:tt [] [$($one:tt)*] $($rest:tt)*) => { signatures!(@ $next [$($one)*] $($rest)*); };
    (@comma $next:tt [$($done:tt)+] [$($one:tt)*] $($rest:tt)*) => {
        signatures!(@ $next [$($done)+, $($one)*] $($rest)*);
    };
}

signatures!(@ 0 [] 1 P0 A0 2 P1 A1 3 P2 A2 4 P3 A3 5 P4 A4 6 P5 A5 7 P6 A6 8 P7 A7 9 P8 A8 10 P9 A9 11 P10 A10 12 P11 A11
    13 P12 A12 14 P13 A13 15 P14 A14 16 P15 A15 17 P16 A16 18 P17 A17 19 P18 A18 20 P19 A19 21 P20 A20 22 P21 A21
    23 P22 A22 24 P23 A23 25 P24 A24 26 P25 A25 27 P26 A26 28 P27 A27 29 P28 A28 30 P29 A29 31 P30 A30 32 P31 A31);

#[cfg(test)]
mod tests {
    use super::*;

    fn layout<S: Signature>() -> Vec<(usize, usize)> {
        S::PLACES.iter().map(|place| (place.offset(), place.size())).collect()
    }

    #[test]
    fn places_are_those_of_a_struct() {
        assert_eq!(layout::<()>(), []);
        assert_eq!(
            layout::<(u8, i64, u16, f32, [u32; 3], i8, f64)>(),
            [(0, 1), (8, 8), (16, 2), (20, 4), (24, 12), (36, 1), (40, 8)]
        );
        assert_eq!(
            layout::<(u32, In<f32>, Out<[u8; 3]>, Struct<(u8, u64)>)>(),
            [(0, 4), (8, 8), (16, 8), (24, 16)]
        );
    }

    fn read<S: Signature>(values: &S::Values<'_>) -> Vec<Vec<u8>> {
        S::with_pointers(values, |pointers| {
            let value = |(index, place): (usize, &Place)| {
                // SAFETY: there is a pointer to as many bytes as the place says for each value.
                unsafe {
                    core::slice::from_raw_parts((*pointers.add(index)).cast::<u8>(), place.size()).to_vec()
                }
            };
            S::PLACES.iter().enumerate().map(value).collect()
        })
    }

    #[test]
    fn pointers_lead_to_the_values() {
        assert_eq!(read::<()>(&()), Vec::<Vec<u8>>::new());
        let values: (u8, u64, [u16; 2]) = (1, 2, [3, 4]);
        let expected = [vec![1], 2_u64.to_ne_bytes().to_vec(), [3_u16, 4].map(u16::to_ne_bytes).concat()];
        assert_eq!(read::<(u8, u64, [u16; 2])>(&values), expected);
    }

    #[test]
    fn overlap_counts_where_something_is_written() {
        let range = |position, start, end, written| Range { position, start, end, written };
        let (read, write) = (range(0, 100, 108, false), range(1, 104, 112, true));
        assert_eq!(first_overlap(&[read, write]), Some(Overlap { first: 0, second: 1, bytes: 4 }));
        assert_eq!(first_overlap(&[read, range(1, 108, 112, true)]), None);
        assert_eq!(first_overlap(&[read, range(1, 100, 108, false)]), None);
        assert_eq!(first_overlap(&[range(0, 4, 4, true), range(1, 4, 4, true)]), None);
        let last = range(2, 111, 113, false);
        assert_eq!(first_overlap(&[range(0, 0, 1, true), write, last]).map(|found| found.bytes), Some(1));
    }
}
