//! Parameter types of typed kernels, and the arguments that each of them takes.
//!
//! A declaration names a [`Parameter`]; a launch gives an [`Argument`] for it.

mod by_value;
mod conditional_handle;
mod memory;
mod tensor;

use core::any::TypeId;
use core::fmt;
use core::marker::PhantomData;

use cuda_handles::Placeholder;

use crate::arguments::access::{Memory, MemoryParameter};
use crate::arguments::conditional_handle::ConditionalHandle;
use crate::arguments::stored::StoredArguments;
use crate::kernel::condition::Scope;

pub use memory::{ReadOnly, read_only};
pub use tensor::Tensor;

pub(crate) mod sealed {
    pub trait Sealed {}
}

/// Declares memory that the kernel only reads. The argument is a `&Buffer<T>` or a `Slice<T>`.
/// Nodes also take memory of their graph, a `&GraphBuffer<T>`.
#[derive(Debug)]
pub struct In<T>(PhantomData<fn() -> T>);

/// Declares memory that the kernel only writes. The argument is as for [`In`], and must not overlap
/// other arguments.
#[derive(Debug)]
pub struct Out<T>(PhantomData<fn() -> T>);

/// Declares memory that the kernel reads and writes. The argument is as for [`In`], and must not
/// overlap other arguments.
#[derive(Debug)]
pub struct InOut<T>(PhantomData<fn() -> T>);

/// Declares a struct that the kernel takes by value. The argument is a `T`, which has the fields of
/// the kernel's struct at the same offsets (`#[repr(C)]` helps).
#[derive(Debug)]
pub struct Struct<T>(PhantomData<fn() -> T>);

/// Declares a struct that the kernel takes by value, as [`Struct`], with fields that conditions can
/// use: those named by [`fields!`](crate::fields!).
#[derive(Debug)]
pub struct Fields<T>(PhantomData<fn() -> T>);

/// The type of a parameter in [`kernel!`](crate::kernel!): a number of exact width, an array of
/// numbers, [`Struct`] or [`Fields`], memory as [`In`], [`Out`] or [`InOut`], and the
/// [`ConditionalHandle`] of a graph's condition.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be the type of a kernel's parameter",
    label = "not a parameter type",
    note = "there are `u8` to `u64`, `i8` to `i64`, `f32`, `f64`, arrays of them, `Struct<T>`, `Fields<T>`, `In<T>`, `Out<T>`, `InOut<T>` and `ConditionalHandle`"
)]
pub trait Parameter: sealed::Sealed + 'static {
    /// The value of an argument.
    type Value<'a>: Copy;
    /// The value in the form that the driver reads.
    type Packed: Copy;
    /// The value in the form that conditions use.
    type View<'s>;

    /// Whether a value may have padding, whose bytes are not initialised.
    const MAY_BE_PADDED: bool = false;

    /// Whether the value is the handle of a condition.
    const IS_HANDLE: bool = false;

    /// How the kernel accesses the memory of a value, if it has any.
    const MEMORY: Option<MemoryParameter> = None;

    /// Converts a value for the driver.
    fn packed(value: &Self::Value<'_>) -> Self::Packed;
    /// Converts a value for conditions.
    fn view<'s>(value: &Self::Value<'_>, scope: &'s Scope) -> Self::View<'s>;
    /// The memory of a value.
    fn memory<'a>(value: &Self::Value<'a>) -> Option<Memory<'a>>;
    /// The type of the graph parameters that can stand for a value; `None` if none can. `[T]` is
    /// memory with elements of type `T`.
    #[doc(hidden)]
    fn value_type() -> Option<TypeId> {
        None
    }
    /// The declared type, in words.
    #[doc(hidden)]
    fn type_name() -> String;
    /// The value of a stored argument; `None` if it is of another parameter, or cannot be stored.
    #[doc(hidden)]
    fn read(stored: &StoredArguments, position: usize) -> Option<Self::Value<'_>>;
    /// The value as the handle of a condition.
    #[inline]
    fn handle(_value: &Self::Value<'_>) -> Option<ConditionalHandle> {
        None
    }
    /// Writes a value for an error message.
    ///
    /// # Errors
    /// The formatter's.
    fn show(name: &str, value: &Self::Value<'_>, text: &mut dyn fmt::Write) -> fmt::Result;
}

/// An argument for a parameter declared as `P`.
///
/// A number has the declared width, so `usize` is converted:
///
/// ```compile_fail,E0277
/// # use cuda_handles::{Image, Stream};
/// cuda_launch::kernel! {
///     unsafe in Image::Ptx("");
///     fn count(n: u32);
/// }
/// fn go(kernel: &count, stream: &Stream, n: usize) {
///     kernel.launch(stream, cuda_launch::per(1, 1), (n,)).unwrap();
/// }
/// # fn main() {}
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be given for a parameter declared as `{P}`",
    label = "not an argument for `{P}`",
    note = "a number needs the declared type, and kernels take exact widths: write `n as u32` or `n as u64`",
    note = "`In<T>`, `Out<T>` and `InOut<T>` take `&Buffer<T>` and `Slice<T>` of the same `T`"
)]
pub trait Argument<'a, P: Parameter> {
    /// Converts the argument into the parameter's value.
    fn value(self) -> P::Value<'a>;

    /// The graph parameter that the argument stands for, if it does.
    #[doc(hidden)]
    #[inline]
    fn placeholder(&self) -> Option<Placeholder> {
        None
    }
}

/// An [`Argument`] with one value: any except a graph parameter of cuda-graph, whose value changes
/// from launch to launch.
#[diagnostic::on_unimplemented(
    message = "`{Self}` cannot be given for a parameter declared as `{P}` where the value is fixed",
    label = "not an argument for `{P}` with a fixed value",
    note = "graph parameters (`&GraphParam<T>`) are arguments of nodes as they are added, and of `capture.launch(&kernel, …)`"
)]
pub trait FixedArgument<'a, P: Parameter>: Argument<'a, P> {}

/// A [`FixedArgument`] for a launch on a stream: any except graph memory, which only nodes of its
/// graph can use.
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
    note = "a number needs the declared type, and kernels take exact widths: write `n as u32` or `n as u64`",
    note = "`In<T>`, `Out<T>` and `InOut<T>` take `&Buffer<T>` and `Slice<T>` of the same `T`",
    note = "memory of a graph (`&GraphBuffer<T>`, `GraphSlice<T>`) is an argument of the graph's nodes alone",
    note = "a graph parameter (`&GraphParam<T>`) is captured by `capture.launch(&kernel, …)`, not by `kernel.launch(capture.stream(), …)`"
)]
pub trait PlainArgument<'a, P: Parameter>: FixedArgument<'a, P> {}

/// A parameter of a kernel that can be launched on a stream: any except a [`ConditionalHandle`].
#[diagnostic::on_unimplemented(
    message = "a kernel that takes the handle of a condition can only be a node of the condition's graph",
    label = "this kernel cannot be launched on a stream",
    note = "set outside of a launch of its graph, the handle costs the device its context; add the kernel to the graph"
)]
pub trait PlainParameter: Parameter {}
