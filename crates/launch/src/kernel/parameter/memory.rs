//! Parameters that are addresses of memory: `In`, `Out` and `InOut`.

use core::any::TypeId;
use core::fmt;

use cuda_handles::{Buffer, Element, GraphBuffer, GraphSlice, NodeMemory, SharedHostBuffer, Slice};

use crate::arguments::access::{Access, Memory, MemoryParameter};
use crate::arguments::stored::StoredArguments;
use crate::kernel::condition::{Length, Scope};
use crate::kernel::parameter::{
    Argument, FixedArgument, In, InOut, Out, Parameter, PlainArgument, PlainParameter, sealed,
};

/// A slice that kernels can only read: an argument for [`In`], not for [`Out`] or [`InOut`].
#[derive(Debug)]
pub struct ReadOnly<'a, T>(Slice<'a, T>);

impl<T> Clone for ReadOnly<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for ReadOnly<'_, T> {}

/// Wraps memory so that kernels can only read it.
#[must_use]
pub fn read_only<'a, T>(slice: impl Into<Slice<'a, T>>) -> ReadOnly<'a, T> {
    ReadOnly(slice.into())
}

impl<'a, T: Element> FixedArgument<'a, In<T>> for ReadOnly<'a, T> {}
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
            type View<'s> = Length<'s>;

            const MEMORY: Option<MemoryParameter> =
                Some(MemoryParameter { access: Access::$mode, by_address: true, element: size_of::<T>() });

            #[inline]
            fn packed(value: &Slice<'_, T>) -> u64 {
                value.address()
            }

            #[inline]
            fn view<'s>(value: &Slice<'_, T>, scope: &'s Scope) -> Length<'s> {
                Length(scope.int(value.len() as u64))
            }

            #[inline]
            fn memory<'a>(value: &Self::Value<'a>) -> Option<Memory<'a>> {
                let (start, bytes) = (value.address(), value.size_bytes() as u64);
                Some(Memory { allocation: value.allocation(), start, bytes, written: $written })
            }

            fn value_type() -> Option<TypeId> {
                Some(TypeId::of::<[T]>())
            }

            fn type_name() -> String {
                format!("{}<{}>", stringify!($access), core::any::type_name::<T>())
            }

            fn read(stored: &StoredArguments, position: usize) -> Option<Slice<'_, T>> {
                let memory = stored.memory(position)?;
                let len = memory.bytes as usize / size_of::<T>().max(1);
                // SAFETY: only slices of the declared type are stored.
                Some(unsafe { Slice::within(&memory.allocation, memory.start, len) })
            }

            fn show(name: &str, value: &Slice<'_, T>, text: &mut dyn fmt::Write) -> fmt::Result {
                write!(text, "{name}.len() = {}", value.len())
            }
        }

        impl<'a, T: Element> FixedArgument<'a, $access<T>> for &'a Buffer<T> {}
        impl<'a, T: Element> PlainArgument<'a, $access<T>> for &'a Buffer<T> {}

        impl<'a, T: Element> Argument<'a, $access<T>> for &'a Buffer<T> {
            #[inline]
            fn value(self) -> Slice<'a, T> {
                self.as_slice()
            }
        }

        impl<'a, T: Element> FixedArgument<'a, $access<T>> for &'a SharedHostBuffer<T> {}
        impl<'a, T: Element> PlainArgument<'a, $access<T>> for &'a SharedHostBuffer<T> {}

        impl<'a, T: Element> Argument<'a, $access<T>> for &'a SharedHostBuffer<T> {
            #[inline]
            fn value(self) -> Slice<'a, T> {
                self.as_slice()
            }
        }

        impl<'a, T: Element> FixedArgument<'a, $access<T>> for Slice<'a, T> {}
        impl<'a, T: Element> PlainArgument<'a, $access<T>> for Slice<'a, T> {}

        impl<'a, T: Element> Argument<'a, $access<T>> for Slice<'a, T> {
            #[inline]
            fn value(self) -> Slice<'a, T> {
                self
            }
        }

        impl<'a, T: Element> FixedArgument<'a, $access<T>> for &Slice<'a, T> {}
        impl<'a, T: Element> PlainArgument<'a, $access<T>> for &Slice<'a, T> {}

        impl<'a, T: Element> Argument<'a, $access<T>> for &Slice<'a, T> {
            #[inline]
            fn value(self) -> Slice<'a, T> {
                *self
            }
        }

        impl<'a, T: Element> FixedArgument<'a, $access<T>> for &'a GraphBuffer<T> {}

        impl<'a, T: Element> Argument<'a, $access<T>> for &'a GraphBuffer<T> {
            #[inline]
            fn value(self) -> Slice<'a, T> {
                self.operand()
            }
        }

        impl<'a, T: Element> FixedArgument<'a, $access<T>> for GraphSlice<'a, T> {}

        impl<'a, T: Element> Argument<'a, $access<T>> for GraphSlice<'a, T> {
            #[inline]
            fn value(self) -> Slice<'a, T> {
                self.operand()
            }
        }
    )*};
}

memory!(In Read false, Out Write true, InOut ReadWrite true);
