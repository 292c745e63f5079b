//! What a parameter of a typed kernel can be, what may be given for it, and what the driver gets.

use core::fmt;
use core::marker::PhantomData;

use cuda_handles::{Buffer, Element, GraphBuffer, GraphSlice, NodeMemory, SharedHostBuffer, Slice};
use cuda_sys::CUtensorMap;

use crate::access::{Access, Memory, MemoryParameter};
use crate::arg::Scalar;
use crate::condition::{Length, Scope};
use crate::handle::ConditionalHandle;
use crate::seen::Seen;
use crate::tensor_map::{TensorElement, TensorMap};

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// Declares memory that the kernel only reads. Given as `&Buffer<T>` or `Slice<T>`, to nodes also
/// as memory of their graph: `&GraphBuffer<T>`.
#[derive(Debug)]
pub struct In<T>(PhantomData<fn() -> T>);

/// Declares memory that the kernel only writes. Given as `&Buffer<T>` or `Slice<T>`; must not
/// overlap other arguments.
#[derive(Debug)]
pub struct Out<T>(PhantomData<fn() -> T>);

/// Declares memory that the kernel reads and writes. Given as `&Buffer<T>` or `Slice<T>`; must not
/// overlap other arguments.
#[derive(Debug)]
pub struct InOut<T>(PhantomData<fn() -> T>);

/// Declares a struct that the kernel takes by value, padding and all. Given as a `T`, which has the
/// fields of the kernel's struct at the same offsets (`#[repr(C)]` helps).
#[derive(Debug)]
pub struct Struct<T>(PhantomData<fn() -> T>);

/// Declares a struct that the kernel takes by value, as [`Struct`] does, and whose fields
/// conditions see: those named by [`fields!`](crate::fields!).
#[derive(Debug)]
pub struct Fields<T>(PhantomData<fn() -> T>);

/// A type that [`kernel!`](crate::kernel!) takes for a parameter: a number of exact width, an array
/// of them, [`Struct`] or [`Fields`], memory as [`In`], [`Out`] or [`InOut`], and the
/// [`ConditionalHandle`] of a graph's condition.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the type of a kernel's parameter",
    label = "not a parameter type",
    note = "there are `u8` to `u64`, `i8` to `i64`, `f32`, `f64`, arrays of them, `Struct<T>`, `Fields<T>`, `In<T>`, `Out<T>`, `InOut<T>` and `ConditionalHandle`"
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

    /// What the kernel does with the memory that a value leads to.
    const MEMORY: Option<MemoryParameter> = None;

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

/// An [`Argument`] of a launch on a stream: any but the memory of a graph, which is there for the
/// graph's nodes alone.
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
    ($($type:ty),*) => {$(
        impl sealed::Sealed for $type {}
        impl PlainParameter for $type {}

        impl Parameter for $type {
            type Value<'a> = Self;
            type Packed = Self;
            type Known<'s> = <Self as Seen>::Seen<'s>;

            #[inline]
            fn packed(value: &Self) -> Self {
                *value
            }

            #[inline]
            fn known<'s>(value: &Self, scope: &'s Scope) -> Self::Known<'s> {
                value.seen(scope)
            }

            #[inline]
            fn memory<'a>(_: &Self) -> Option<Memory<'a>> {
                None
            }

            fn show(name: &str, value: &Self, text: &mut dyn fmt::Write) -> fmt::Result {
                Seen::show(value, name, text)
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

scalars!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);
#[cfg(feature = "half")]
scalars!(half::f16, half::bf16);

impl<T: Scalar, const N: usize> sealed::Sealed for [T; N] {}
impl<T: Scalar + Seen + 'static, const N: usize> PlainParameter for [T; N] {}

impl<T: Scalar + Seen + 'static, const N: usize> Parameter for [T; N] {
    type Value<'a> = Self;
    type Packed = Self;
    type Known<'s> = <Self as Seen>::Seen<'s>;

    #[inline]
    fn packed(value: &Self) -> Self {
        *value
    }

    #[inline]
    fn known<'s>(value: &Self, scope: &'s Scope) -> Self::Known<'s> {
        value.seen(scope)
    }

    #[inline]
    fn memory<'a>(_: &Self) -> Option<Memory<'a>> {
        None
    }

    fn show(name: &str, value: &Self, text: &mut dyn fmt::Write) -> fmt::Result {
        Seen::show(value, name, text)
    }
}

impl<T: Scalar + Seen + 'static, const N: usize> PlainArgument<'_, [T; N]> for [T; N] {}

impl<T: Scalar + Seen + 'static, const N: usize> Argument<'_, [T; N]> for [T; N] {
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

impl<T> sealed::Sealed for Fields<T> {}
impl<T: Seen + Copy + Send + Sync + 'static> PlainParameter for Fields<T> {}

impl<T: Seen + Copy + Send + Sync + 'static> Parameter for Fields<T> {
    type Value<'a> = T;
    type Packed = T;
    type Known<'s> = T::Seen<'s>;

    #[inline]
    fn packed(value: &T) -> T {
        *value
    }

    #[inline]
    fn known<'s>(value: &T, scope: &'s Scope) -> T::Seen<'s> {
        value.seen(scope)
    }

    #[inline]
    fn memory<'a>(_: &T) -> Option<Memory<'a>> {
        None
    }

    fn show(name: &str, value: &T, text: &mut dyn fmt::Write) -> fmt::Result {
        value.show(name, text)
    }
}

impl<T: Seen + Copy + Send + Sync + 'static> PlainArgument<'_, Fields<T>> for T {}

impl<T: Seen + Copy + Send + Sync + 'static> Argument<'_, Fields<T>> for T {
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
    ($($access:ident $mode:ident $written:literal),*) => {$(
        impl<T> sealed::Sealed for $access<T> {}
        impl<T: Element> PlainParameter for $access<T> {}

        impl<T: Element> Parameter for $access<T> {
            type Value<'a> = Slice<'a, T>;
            type Packed = u64;
            type Known<'s> = Length<'s>;

            const MEMORY: Option<MemoryParameter> =
                Some(MemoryParameter { access: Access::$mode, by_address: true, element: size_of::<T>() });

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

memory!(In Read false, Out Write true, InOut ReadWrite true);

/// Declares a tensor map of elements of type `T`, as in `In<Tensor<f32>>`. Given as a
/// `&TensorMap<T>`.
#[derive(Debug)]
pub struct Tensor<T>(PhantomData<fn() -> T>);

macro_rules! tensors {
    ($($access:ident $mode:ident $written:literal),*) => {$(
        impl<T: TensorElement> PlainParameter for $access<Tensor<T>> {}

        impl<T: TensorElement> Parameter for $access<Tensor<T>> {
            type Value<'a> = &'a TensorMap<T>;
            type Packed = CUtensorMap;
            type Known<'s> = Length<'s>;

            const MEMORY: Option<MemoryParameter> =
                Some(MemoryParameter { access: Access::$mode, by_address: false, element: size_of::<T>() });

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

tensors!(In Read false, Out Write true, InOut ReadWrite true);

/// A parameter of kernels that may be launched on a stream: any but a [`ConditionalHandle`].
#[diagnostic::on_unimplemented(
    message = "a kernel that takes the handle of a condition can only be a node of the condition's graph",
    label = "this kernel cannot be launched on a stream",
    note = "set outside of a launch of its graph, the handle costs the device its context; add the kernel to the graph"
)]
pub trait PlainParameter: Parameter {}
