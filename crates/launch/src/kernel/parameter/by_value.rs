//! Parameters passed by value: numbers, arrays and structs.

use core::any::TypeId;
use core::fmt;

use crate::arguments::access::Memory;
use crate::arguments::kernel_arg::Scalar;
use crate::arguments::stored::StoredArguments;
use crate::kernel::condition::Scope;
use crate::kernel::fields::ConditionValue;
use crate::kernel::parameter::{
    Argument, Fields, FixedArgument, Parameter, PlainArgument, PlainParameter, Struct, sealed,
};

macro_rules! scalars {
    ($($type:ty),*) => {$(
        impl sealed::Sealed for $type {}
        impl PlainParameter for $type {}

        impl Parameter for $type {
            type Value<'a> = Self;
            type Packed = Self;
            type View<'s> = <Self as ConditionValue>::View<'s>;

            #[inline]
            fn packed(value: &Self) -> Self {
                *value
            }

            #[inline]
            fn view<'s>(value: &Self, scope: &'s Scope) -> Self::View<'s> {
                value.view(scope)
            }

            #[inline]
            fn memory<'a>(_: &Self) -> Option<Memory<'a>> {
                None
            }

            fn value_type() -> Option<TypeId> {
                Some(TypeId::of::<Self>())
            }

            fn type_name() -> String {
                core::any::type_name::<Self>().to_owned()
            }

            fn read(stored: &StoredArguments, position: usize) -> Option<Self> {
                stored.packed(position)
            }

            fn show(name: &str, value: &Self, text: &mut dyn fmt::Write) -> fmt::Result {
                ConditionValue::show(value, name, text)
            }
        }

        impl FixedArgument<'_, $type> for $type {}
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
impl<T: Scalar + ConditionValue + 'static, const N: usize> PlainParameter for [T; N] {}

impl<T: Scalar + ConditionValue + 'static, const N: usize> Parameter for [T; N] {
    type Value<'a> = Self;
    type Packed = Self;
    type View<'s> = <Self as ConditionValue>::View<'s>;

    #[inline]
    fn packed(value: &Self) -> Self {
        *value
    }

    #[inline]
    fn view<'s>(value: &Self, scope: &'s Scope) -> Self::View<'s> {
        value.view(scope)
    }

    #[inline]
    fn memory<'a>(_: &Self) -> Option<Memory<'a>> {
        None
    }

    fn value_type() -> Option<TypeId> {
        Some(TypeId::of::<Self>())
    }

    fn type_name() -> String {
        core::any::type_name::<Self>().to_owned()
    }

    fn read(stored: &StoredArguments, position: usize) -> Option<Self> {
        stored.packed(position)
    }

    fn show(name: &str, value: &Self, text: &mut dyn fmt::Write) -> fmt::Result {
        ConditionValue::show(value, name, text)
    }
}

impl<T: Scalar + ConditionValue + 'static, const N: usize> FixedArgument<'_, [T; N]> for [T; N] {}
impl<T: Scalar + ConditionValue + 'static, const N: usize> PlainArgument<'_, [T; N]> for [T; N] {}

impl<T: Scalar + ConditionValue + 'static, const N: usize> Argument<'_, [T; N]> for [T; N] {
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
    type View<'s> = T;

    const MAY_BE_PADDED: bool = true;

    #[inline]
    fn packed(value: &T) -> T {
        *value
    }

    #[inline]
    fn view(value: &T, _: &Scope) -> T {
        *value
    }

    #[inline]
    fn memory<'a>(_: &T) -> Option<Memory<'a>> {
        None
    }

    fn value_type() -> Option<TypeId> {
        Some(TypeId::of::<T>())
    }

    fn type_name() -> String {
        format!("Struct<{}>", core::any::type_name::<T>())
    }

    fn read(stored: &StoredArguments, position: usize) -> Option<T> {
        stored.packed(position)
    }

    fn show(name: &str, _: &T, text: &mut dyn fmt::Write) -> fmt::Result {
        write!(text, "{name} of type {}", core::any::type_name::<T>())
    }
}

impl<T: Copy + Send + Sync + 'static> FixedArgument<'_, Struct<T>> for T {}
impl<T: Copy + Send + Sync + 'static> PlainArgument<'_, Struct<T>> for T {}

impl<T: Copy + Send + Sync + 'static> Argument<'_, Struct<T>> for T {
    #[inline]
    fn value(self) -> T {
        self
    }
}

impl<T> sealed::Sealed for Fields<T> {}
impl<T: ConditionValue + Copy + Send + Sync + 'static> PlainParameter for Fields<T> {}

impl<T: ConditionValue + Copy + Send + Sync + 'static> Parameter for Fields<T> {
    type Value<'a> = T;
    type Packed = T;
    type View<'s> = T::View<'s>;

    const MAY_BE_PADDED: bool = true;

    #[inline]
    fn packed(value: &T) -> T {
        *value
    }

    #[inline]
    fn view<'s>(value: &T, scope: &'s Scope) -> T::View<'s> {
        value.view(scope)
    }

    #[inline]
    fn memory<'a>(_: &T) -> Option<Memory<'a>> {
        None
    }

    fn value_type() -> Option<TypeId> {
        Some(TypeId::of::<T>())
    }

    fn type_name() -> String {
        format!("Fields<{}>", core::any::type_name::<T>())
    }

    fn read(stored: &StoredArguments, position: usize) -> Option<T> {
        stored.packed(position)
    }

    fn show(name: &str, value: &T, text: &mut dyn fmt::Write) -> fmt::Result {
        value.show(name, text)
    }
}

impl<T: ConditionValue + Copy + Send + Sync + 'static> FixedArgument<'_, Fields<T>> for T {}
impl<T: ConditionValue + Copy + Send + Sync + 'static> PlainArgument<'_, Fields<T>> for T {}

impl<T: ConditionValue + Copy + Send + Sync + 'static> Argument<'_, Fields<T>> for T {
    #[inline]
    fn value(self) -> T {
        self
    }
}
