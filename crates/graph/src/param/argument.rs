//! Graph parameters as arguments of kernels.

use cuda_handles::{Element, NodeMemory, Placeholder, Slice};
use cuda_launch::{Argument, Fields, In, InOut, Out, Parameter, Scalar, Struct};

use crate::param::graph_param::{ByValue, GraphParam, ParamLen};

macro_rules! memory_arguments {
    ($($access:ident),*) => { $(
        impl<'a, T: Element> Argument<'a, $access<T>> for &'a GraphParam<[T]> {
            fn value(self) -> Slice<'a, T> {
                self.operand()
            }

            fn placeholder(&self) -> Option<Placeholder> {
                Some(self.placeholder)
            }
        }
    )* };
}

memory_arguments!(In, Out, InOut);

macro_rules! number_arguments {
    ($($number:ty),*) => { $(
        impl<'a> Argument<'a, $number> for &'a GraphParam<$number> {
            fn value(self) -> $number {
                self.initial
            }

            fn placeholder(&self) -> Option<Placeholder> {
                Some(self.placeholder)
            }
        }
    )* };
}

number_arguments!(u8, u16, u32, u64, i8, i16, i32, i64, f32, f64);

impl<'a, T: Scalar + Send + Sync + 'static, const N: usize> Argument<'a, [T; N]> for &'a GraphParam<[T; N]>
where
    [T; N]: for<'v> Parameter<Value<'v> = [T; N]>,
{
    fn value(self) -> [T; N] {
        self.initial
    }

    fn placeholder(&self) -> Option<Placeholder> {
        Some(self.placeholder)
    }
}

macro_rules! struct_arguments {
    ($($declared:ident),*) => { $(
        impl<'a, T: Copy + Send + Sync + 'static> Argument<'a, $declared<T>> for &'a GraphParam<ByValue<T>>
        where
            $declared<T>: for<'v> Parameter<Value<'v> = T>,
        {
            fn value(self) -> T {
                self.initial.0
            }

            fn placeholder(&self) -> Option<Placeholder> {
                Some(self.placeholder)
            }
        }
    )* };
}

struct_arguments!(Struct, Fields);

macro_rules! length_arguments {
    ($($number:ty),*) => { $(
        impl Argument<'_, $number> for ParamLen {
            // A length that does not fit is refused when the node is added, by `longest`.
            fn value(self) -> $number {
                <$number>::try_from(self.len).unwrap_or(<$number>::MAX)
            }

            fn placeholder(&self) -> Option<Placeholder> {
                Some(self.placeholder.length::<$number>())
            }
        }
    )* };
}

length_arguments!(u32, i32, u64, i64);
