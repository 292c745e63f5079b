//! Parameters that are tensor maps: `In<Tensor<T>>`, `Out<Tensor<T>>` and `InOut<Tensor<T>>`.

use core::fmt;
use core::marker::PhantomData;

use cuda_sys::CUtensorMap;

use crate::arguments::access::{Access, Memory, MemoryParameter};
use crate::arguments::stored::StoredArguments;
use crate::kernel::condition::{Length, Scope};
use crate::kernel::parameter::{
    Argument, FixedArgument, In, InOut, Out, Parameter, PlainArgument, PlainParameter,
};
use crate::tensor_map::{TensorElement, TensorMap};

/// Declares a tensor map of elements of type `T`, as in `In<Tensor<f32>>`. The argument is a
/// `&TensorMap<T>`.
#[derive(Debug)]
pub struct Tensor<T>(PhantomData<fn() -> T>);

macro_rules! tensors {
    ($($access:ident $mode:ident $written:literal),*) => {$(
        impl<T: TensorElement> PlainParameter for $access<Tensor<T>> {}

        impl<T: TensorElement> Parameter for $access<Tensor<T>> {
            type Value<'a> = &'a TensorMap<T>;
            type Packed = CUtensorMap;
            type View<'s> = Length<'s>;

            const MEMORY: Option<MemoryParameter> =
                Some(MemoryParameter { access: Access::$mode, by_address: false, element: size_of::<T>() });

            #[inline]
            fn packed(value: &&TensorMap<T>) -> CUtensorMap {
                *value.as_raw()
            }

            #[inline]
            fn view<'s>(value: &&TensorMap<T>, scope: &'s Scope) -> Length<'s> {
                Length(scope.int(value.len()))
            }

            #[inline]
            fn memory<'a>(value: &Self::Value<'a>) -> Option<Memory<'a>> {
                let (start, bytes) = (value.address(), value.size_bytes());
                Some(Memory { allocation: value.allocation(), start, bytes, written: $written })
            }

            fn type_name() -> String {
                format!("{}<Tensor<{}>>", stringify!($access), core::any::type_name::<T>())
            }

            fn read(_: &StoredArguments, _: usize) -> Option<&TensorMap<T>> {
                None
            }

            fn show(name: &str, value: &&TensorMap<T>, text: &mut dyn fmt::Write) -> fmt::Result {
                write!(text, "{name}.len() = {}", value.len())
            }
        }

        impl<'a, T: TensorElement> FixedArgument<'a, $access<Tensor<T>>> for &'a TensorMap<T> {}
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
