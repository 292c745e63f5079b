//! Values for one argument of a kernel node.

use core::any::{TypeId, type_name};

use cuda_handles::{Element, GraphBuffer, GraphSlice, NodeMemory, Slice};

use crate::param::graph_param::{IntoParam, ParamType, Stored, stored};
use crate::state::bindings::ParamValue;

mod sealed {
    pub trait Sealed {}
}

/// A value for one argument of a kernel node ([`KernelNode::set_argument`]).
///
/// | declared | given |
/// | --- | --- |
/// | `u32`, `f32`, … | a number of the same type: `3_u32` |
/// | `[f32; 4]` | an array |
/// | `Struct<T>`, `Fields<T>` | [`ByValue(value)`](crate::ByValue) |
/// | `In<T>`, `Out<T>`, `InOut<T>` | `&Buffer<T>`, `Slice<T>`, `&SharedHostBuffer<T>`, `&GraphBuffer<T>`, `GraphSlice<T>` |
///
/// A value of another type is [`NodeError::ArgumentType`](crate::NodeError::ArgumentType).
///
/// [`KernelNode::set_argument`]: crate::KernelNode::set_argument
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no value for an argument of a kernel node",
    label = "not a value of an argument",
    note = "numbers and arrays are given as they are, structs as `ByValue(value)`, memory as `&Buffer<T>` or a slice of it"
)]
pub trait NodeArgument: sealed::Sealed {
    /// The value with its type.
    #[doc(hidden)]
    fn given(self) -> Given;
}

/// A value with its type.
#[doc(hidden)]
#[derive(Debug)]
pub struct Given {
    /// The type, as [`ParamType::value_type`] has it.
    pub(crate) of: TypeId,
    pub(crate) value: ParamValue,
    /// The type in words.
    pub(crate) words: fn() -> String,
}

impl<V: IntoParam> sealed::Sealed for V {}

impl<V: IntoParam> NodeArgument for V {
    fn given(self) -> Given {
        let Stored(value) = V::Param::stored(self.into_initial());
        let words = || match V::Param::ELEMENT {
            0 => format!("a value of the type `{}`", type_name::<V::Param>()),
            _ => format!("memory of the type `{}`", type_name::<V::Param>()),
        };
        Given { of: V::Param::value_type(), value, words }
    }
}

fn of_memory<T: Element>(memory: Slice<'_, T>) -> Given {
    let value = ParamValue::Memory(stored(memory));
    Given { of: TypeId::of::<[T]>(), value, words: || format!("memory of the type `{}`", type_name::<[T]>()) }
}

impl<T: Element> sealed::Sealed for &GraphBuffer<T> {}

impl<T: Element> NodeArgument for &GraphBuffer<T> {
    fn given(self) -> Given {
        of_memory(self.operand())
    }
}

impl<T: Element> sealed::Sealed for GraphSlice<'_, T> {}

impl<T: Element> NodeArgument for GraphSlice<'_, T> {
    fn given(self) -> Given {
        of_memory(self.operand())
    }
}
