//! Values of fills: numbers, and graph parameters.

use cuda_handles::{Element, Placeholder};

use crate::param::graph_param::GraphParam;

/// A value for a fill of memory with elements of type `T`: the value itself, or a parameter.
pub trait FillValue<T> {
    /// The value, or the one that the parameter was made with.
    #[doc(hidden)]
    fn value(&self) -> T;

    /// The parameter.
    #[doc(hidden)]
    #[inline]
    fn placeholder(&self) -> Option<Placeholder> {
        None
    }
}

impl<T: Element> FillValue<T> for T {
    #[inline]
    fn value(&self) -> T {
        *self
    }
}

macro_rules! fill_params {
    ($($number:ty)*) => { $(
        impl FillValue<$number> for &GraphParam<$number> {
            fn value(&self) -> $number {
                self.initial
            }

            fn placeholder(&self) -> Option<Placeholder> {
                Some(self.placeholder)
            }
        }
    )* };
}

fill_params! { u8 u16 u32 i8 i16 i32 f32 }
