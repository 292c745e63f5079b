//! Graph parameters, and the values that they can have.

use core::any::TypeId;
use core::fmt;

use cuda_handles::{
    Buffer, Context, Element, Event, NodeMemory, Placeholder, SharedHostBuffer, Slice, WrongContext,
};
use cuda_launch::internal::StoredMemory;
use cuda_launch::{LaunchConfig, Scalar};

use crate::error::wrong_context::ensure_memory;
use crate::error::{ParamError, Result};
use crate::graph::Graph;
use crate::state::bindings::{ParamValue, ValueBytes};

// What a node does with a value follows from the parameter's type, so all values are made here.
mod sealed {
    pub trait Sealed {}
    pub trait Value<T: ?Sized> {}
}

/// A parameter of a graph: one value in any number of its nodes, which each executable can change
/// from launch to launch.
///
/// The type says what the value is:
///
/// | `GraphParam<…>` | value | made of |
/// | --- | --- | --- |
/// | `[T]` | memory with elements of type `T` | `&Buffer<T>`, `Slice<T>`, `&SharedHostBuffer<T>` |
/// | a number, an array of numbers | itself | itself |
/// | [`ByValue<T>`] | a struct | `ByValue(value)` |
/// | [`Event`] | an event | `&Event` |
/// | [`LaunchConfig`] | grid, block and shared memory | a configuration |
/// | `bool` | whether nodes are enabled | `true` or `false` |
///
/// It belongs to the graph, and to all graphs in its nodes. A clone, a graph that is embedded as a
/// copy, and a graph that is [moved](crate::Frontier::child_moved) into a node keep the values of
/// that time in their nodes, and have no parameters.
///
/// The parameter and its graph keep the first value as long as they live, since new executables
/// begin with it. An executable keeps it until a whole update. If each launch sets other memory,
/// the first may be small.
///
/// It is given where nodes take the value itself: as an argument of
/// [`Frontier::launch`](crate::Frontier::launch), as memory or value of a fill or copy, and in the
/// same places of calls that are captured ([`GraphBuilder::param`](crate::GraphBuilder::param)).
/// The length of memory is a parameter, too ([`len`](Self::len)): as an argument, and for the grid
/// by [`per`](cuda_launch::per).
///
/// ```no_run
/// # use cuda_launch::per;
/// # cuda_launch::kernel! {
/// #     unsafe in cuda_handles::Image::Ptx("");
/// #     fn saxpy(n: u32, a: f32, x: In<f32>, y: InOut<f32>)
/// #     where x.len() >= n, y.len() >= n, grid.x * block.x >= n;
/// # }
/// # use cuda_graph::{Graph, Result};
/// # use cuda_handles::{Buffer, Stream};
/// # fn main() {}
/// # fn example(
/// #     graph: &Graph, stream: &Stream, saxpy: &saxpy, x: &Buffer<f32>, y: &Buffer<f32>,
/// #     other: &Buffer<f32>
/// # ) -> Result<()> {
/// let input = graph.param(x)?;
/// graph.root().launch(saxpy, per(input.len(), 256), (input.len(), 2.0, &input, y))?;
/// let mut exec = graph.instantiate()?;
/// exec.launch(stream)?;
/// exec.set(&input, other)?;
/// exec.launch(stream)?;
/// # Ok(())
/// # }
/// ```
/// Another type of value does not compile:
///
/// ```compile_fail,E0277
/// # fn example(
/// #     exec: &mut cuda_graph::GraphExec, factor: &cuda_graph::GraphParam<f32>
/// # ) -> cuda_graph::Result<()> {
/// exec.set(factor, 2_u32)
/// # }
/// ```
/// ```compile_fail,E0277
/// # fn example(
/// #     exec: &mut cuda_graph::GraphExec, input: &cuda_graph::GraphParam<[f32]>,
/// #     stream: &cuda_handles::Stream, words: &cuda_handles::Buffer<u32>
/// # ) -> cuda_graph::Result<()> {
/// exec.launch_with(stream, ((input, words),))
/// # }
/// ```
///
/// Neither does a parameter in the place of an argument of another type, or in a launch on a
/// stream:
///
/// ```compile_fail,E0277
/// # use cuda_launch::per;
/// # cuda_launch::kernel! {
/// #     unsafe in cuda_handles::Image::Ptx("");
/// #     fn scale(by: f32, x: InOut<f32>) where x.len() >= 1;
/// # }
/// # fn main() {}
/// # fn example(
/// #     graph: &cuda_graph::Graph, scale: &scale, by: &cuda_graph::GraphParam<u32>,
/// #     x: &cuda_graph::GraphParam<[f32]>
/// # ) {
/// graph.root().launch(scale, per(1, 1), (by, x)).unwrap();
/// # }
/// ```
/// ```compile_fail,E0277
/// # use cuda_launch::per;
/// # cuda_launch::kernel! {
/// #     unsafe in cuda_handles::Image::Ptx("");
/// #     fn scale(by: f32, x: InOut<f32>) where x.len() >= 1;
/// # }
/// # fn main() {}
/// # fn example(
/// #     scale: &scale, stream: &cuda_handles::Stream, by: &cuda_graph::GraphParam<f32>,
/// #     x: &cuda_graph::GraphParam<[f32]>
/// # ) {
/// scale.launch(stream, per(1, 1), (by, x)).unwrap();
/// # }
/// ```
///
/// Nor does one among arguments that are prepared, or as memory whose address is in a struct: both
/// keep the value of now.
///
/// ```compile_fail,E0277
/// # use cuda_launch::{TypedKernel, per};
/// # cuda_launch::kernel! {
/// #     unsafe in cuda_handles::Image::Ptx("");
/// #     fn scale(by: f32, x: InOut<f32>) where x.len() >= 1;
/// # }
/// # fn main() {}
/// # fn example(scale: &scale, by: f32, x: &cuda_graph::GraphParam<[f32]>) {
/// scale.prepare(&per(1, 1), (by, x)).unwrap();
/// # }
/// ```
/// ```compile_fail,E0277
/// # use cuda_launch::ParamBytes;
/// # fn example(pointers: &[u64; 1], x: &cuda_graph::GraphParam<[f32]>) {
/// let bytes = unsafe { ParamBytes::of(pointers) }.using(x);
/// # }
/// ```
#[doc(alias = "cudaGraphExecUpdate")]
#[doc(alias = "graph parameter")]
pub struct GraphParam<T: ParamType + ?Sized> {
    pub(crate) placeholder: Placeholder,
    /// The value that it was made with.
    pub(crate) initial: T::Initial,
}

/// The type of a parameter; see [`GraphParam`].
pub trait ParamType: sealed::Sealed + 'static {
    /// The value that a parameter is made with.
    type Initial: Clone + Send + Sync;

    /// The type of the values: `[T]` stands for memory with elements of type `T`.
    #[doc(hidden)]
    fn value_type() -> TypeId {
        TypeId::of::<Self>()
    }

    /// The size of an element in bytes, for memory.
    #[doc(hidden)]
    const ELEMENT: usize = 0;

    /// The value in the form that graphs and executables keep.
    #[doc(hidden)]
    fn stored(initial: Self::Initial) -> Stored;
}

/// A value for a [`GraphParam`] of the type `T`.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no value for a parameter of the type `{T}`",
    label = "not a value of `{T}`",
    note = "`[T]` takes `&Buffer<T>`, `Slice<T>` and `&SharedHostBuffer<T>`; a number takes the same type; `ByValue<T>` takes a struct"
)]
///
/// Only this crate implements it:
///
/// ```compile_fail,E0277
/// struct Mine;
///
/// impl cuda_graph::ParamArg<u32> for Mine {
///     fn into_initial(self) -> u32 {
///         1
///     }
/// }
/// ```
pub trait ParamArg<T: ParamType + ?Sized>: sealed::Value<T> {
    /// The value as the parameter has it.
    #[doc(hidden)]
    fn into_initial(self) -> T::Initial;
}

/// A value that makes a parameter, whose type follows from it.
///
/// A number has a width that kernels take, so `usize` is converted:
///
/// ```compile_fail,E0277
/// # use cuda_graph::Graph;
/// fn example(graph: &Graph, n: usize) {
///     graph.param(n).unwrap();
/// }
/// ```
#[diagnostic::on_unimplemented(
    message = "`{Self}` makes no graph parameter",
    label = "not a value of a parameter",
    note = "kernels take exact widths: write `n as u32` or `n as u64`",
    note = "memory is given as `&Buffer<T>`, `Slice<T>` or `&SharedHostBuffer<T>`, a struct as `ByValue(value)`"
)]
pub trait IntoParam: ParamArg<Self::Param> {
    /// The type of the parameter.
    type Param: ParamType + ?Sized;
}

/// A struct as a value of a parameter, for kernels that declare `Struct<T>` or `Fields<T>`.
#[derive(Clone, Copy, Debug)]
pub struct ByValue<T>(pub T);

/// A value in the form that graphs and executables keep.
#[doc(hidden)]
#[derive(Debug)]
pub struct Stored(pub(crate) ParamValue);

impl Graph {
    /// A parameter of this graph and of all graphs in its nodes, with the value that new
    /// executables have at first. Makes no driver call.
    ///
    /// # Errors
    /// - The memory is of another context
    ///   ([`WrongContext`](cuda_handles::Error::WrongContext)), or of an allocation node, or an
    ///   output of this graph ([`ParamError::GraphMemory`], [`ParamError::OwnOutput`]).
    /// - The graph was removed or moved.
    pub fn param<V: IntoParam>(&self, value: V) -> Result<GraphParam<V::Param>> {
        GraphParam::make(self.context(), value, |value| self.add_param(value))
    }

    /// Adds a parameter with a value; returns the numbers of its hierarchy and of the parameter.
    pub(crate) fn add_param(&self, value: ParamValue) -> Result<(u64, u32)> {
        let mut guard = self.enter_unread()?;
        ensure_no_output(guard.memory_number(), &value)?;
        Ok((guard.number(), guard.bindings.add(value)))
    }
}

impl<T: ParamType + ?Sized> GraphParam<T> {
    /// A parameter with the numbers of hierarchy and parameter that `add` returns for its value.
    pub(crate) fn make<V: IntoParam<Param = T>>(
        context: &Context,
        value: V,
        add: impl FnOnce(ParamValue) -> Result<(u64, u32)>,
    ) -> Result<Self> {
        let initial = value.into_initial();
        let Stored(value) = T::stored(initial.clone());
        ensure_of(context, &value)?;
        let (graph, number) = add(value)?;
        // SAFETY: only values of this type are set (`ParamArg`).
        let placeholder = unsafe { Placeholder::new(graph, number, T::value_type(), T::ELEMENT) };
        Ok(Self { placeholder, initial })
    }
}

/// Refuses a value of another context, and memory that only nodes between its allocation and its
/// free can use.
pub(crate) fn ensure_of(context: &Context, value: &ParamValue) -> Result<()> {
    match value {
        ParamValue::Memory(memory) => {
            let of = memory.allocation.context();
            if memory.allocation.graph().is_some() {
                return Err(ParamError::GraphMemory { address: memory.start }.into());
            }
            ensure_memory(context, of, "the memory of a graph parameter", WrongContext::MEMORY)
        }
        ParamValue::Event(_) | ParamValue::Bytes(_) | ParamValue::Config(_) | ParamValue::Enabled(_) => {
            Ok(())
        }
    }
}

/// Refuses memory that a launch of the graph itself has left: the graph could not be launched as
/// long as a parameter keeps it.
pub(crate) fn ensure_no_output(of: u64, value: &ParamValue) -> Result<()> {
    match value {
        ParamValue::Memory(memory) if memory.allocation.output_of() == Some(of) => {
            Err(ParamError::OwnOutput { address: memory.start }.into())
        }
        _ => Ok(()),
    }
}

impl<T: Element> GraphParam<[T]> {
    /// The number of elements, which follows the memory: an argument for integer parameters of
    /// kernels, and a length for [`per`](cuda_launch::per).
    pub fn len(&self) -> ParamLen {
        ParamLen { placeholder: self.placeholder, len: len_of::<T>(&self.initial) }
    }

    /// The memory that it was made with.
    pub(crate) fn memory(&self) -> Slice<'_, T> {
        let StoredMemory { allocation, start, .. } = &self.initial;
        // SAFETY: the memory was a slice of such elements.
        unsafe { Slice::within(allocation, *start, len_of::<T>(&self.initial)) }
    }
}

/// Memory as parameters keep it.
pub(crate) fn stored<T>(slice: Slice<'_, T>) -> StoredMemory {
    let (start, bytes) = (slice.address(), slice.size_bytes() as u64);
    StoredMemory { allocation: slice.allocation().into(), start, bytes }
}

/// The number of elements in memory.
fn len_of<T>(memory: &StoredMemory) -> usize {
    memory.bytes as usize / size_of::<T>().max(1)
}

/// The number of elements of a parameter's memory; see [`GraphParam::len`].
#[derive(Clone, Copy, Debug)]
#[must_use]
pub struct ParamLen {
    pub(crate) placeholder: Placeholder,
    /// The length that the parameter was made with.
    pub(crate) len: usize,
}

impl<T: Element> sealed::Sealed for [T] {}

impl<T: Element> ParamType for [T] {
    type Initial = StoredMemory;

    const ELEMENT: usize = size_of::<T>();

    fn stored(initial: StoredMemory) -> Stored {
        Stored(ParamValue::Memory(initial))
    }
}

macro_rules! memory_values {
    ($($memory:ty),*) => { $(
        impl<'a, T: Element> sealed::Value<[T]> for $memory {}

        impl<'a, T: Element> ParamArg<[T]> for $memory {
            fn into_initial(self) -> StoredMemory {
                stored(Slice::<T>::from(self))
            }
        }

        impl<'a, T: Element> IntoParam for $memory {
            type Param = [T];
        }
    )* };
}

memory_values!(&'a Buffer<T>, Slice<'a, T>, &'a SharedHostBuffer<T>);

/// Values that are their own type: the parameter keeps them as they are.
macro_rules! values {
    ($([$($generic:tt)*] $value:ty, $of:ty: $self:ident => $stored:expr;)*) => { $(
        impl<$($generic)*> sealed::Sealed for $value {}

        impl<$($generic)*> ParamType for $value {
            type Initial = Self;

            fn value_type() -> TypeId {
                TypeId::of::<$of>()
            }

            fn stored($self: Self) -> Stored {
                Stored($stored)
            }
        }

        impl<$($generic)*> sealed::Value<Self> for $value {}

        impl<$($generic)*> ParamArg<Self> for $value {
            fn into_initial(self) -> Self {
                self
            }
        }

        impl<$($generic)*> IntoParam for $value {
            type Param = Self;
        }
    )* };
}

macro_rules! numbers {
    ($($number:ty)*) => { values! { $([] $number, $number: number => ParamValue::Bytes(ValueBytes::of(&number, true));)* } };
}

numbers! { u8 u16 u32 u64 i8 i16 i32 i64 f32 f64 }

values! {
    [T: Scalar + Send + Sync + 'static, const N: usize] [T; N], [T; N]: array => ParamValue::Bytes(ValueBytes::of(&array, true));
    [T: Copy + Send + Sync + 'static] ByValue<T>, T: value => ParamValue::Bytes(ValueBytes::of(&value.0, false));
    [] LaunchConfig, LaunchConfig: config => ParamValue::Config(config);
    [] bool, bool: enabled => ParamValue::Enabled(enabled);
}

impl sealed::Sealed for Event {}

impl ParamType for Event {
    type Initial = Self;

    fn stored(event: Self) -> Stored {
        Stored(ParamValue::Event(event))
    }
}

impl sealed::Value<Event> for &Event {}

impl ParamArg<Event> for &Event {
    fn into_initial(self) -> Event {
        self.clone()
    }
}

impl IntoParam for &Event {
    type Param = Event;
}

impl<'a, T: Element> NodeMemory<'a, T> for &'a GraphParam<[T]> {
    fn operand(self) -> Slice<'a, T> {
        self.memory()
    }

    fn placeholder(&self) -> Option<Placeholder> {
        Some(self.placeholder)
    }
}

impl<T: ParamType + ?Sized> Clone for GraphParam<T> {
    fn clone(&self) -> Self {
        Self { placeholder: self.placeholder, initial: self.initial.clone() }
    }
}

impl<T: ParamType + ?Sized> fmt::Debug for GraphParam<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("GraphParam")
            .field("number", &self.placeholder.number())
            .field("type", &core::any::type_name::<T>())
            .finish()
    }
}
