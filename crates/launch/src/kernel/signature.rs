//! Signatures of typed kernels, and tuples of arguments for them.

use core::any::TypeId;
use core::ffi::c_void;
use core::fmt;

use cuda_handles::Placeholder;
use smallvec::SmallVec;

use crate::arguments::access::{AccessRanges, Accesses, Declaration, Memory, MemoryParameter};
use crate::arguments::conditional_handle::ConditionalHandle;
use crate::arguments::slot::ParameterSlot;
use crate::arguments::stored::StoredArguments;
use crate::kernel::parameter::{Argument, FixedArgument, Parameter, PlainArgument, PlainParameter, sealed};

/// Graph parameters among arguments, with their positions.
pub type Placeholders = SmallVec<[(usize, Placeholder); 4]>;

/// Two arguments that share memory, at least one of which the kernel writes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Overlap {
    /// The position of the first argument.
    pub first: usize,
    /// The position of the second argument.
    pub second: usize,
    /// The number of bytes they share.
    pub bytes: u64,
}

/// The parameters of a kernel: a tuple of up to 32 [`Parameter`]s.
pub trait Signature: sealed::Sealed + 'static {
    /// The values of the arguments, as a tuple of the same length.
    type Values<'a>: Copy;

    /// Offset and size of each value, laid out as in a struct.
    const SLOTS: &'static [ParameterSlot];

    /// For each parameter, whether its value may have padding.
    const PADDED: &'static [bool];

    /// Whether a parameter is a [`ConditionalHandle`]. Such a kernel can only be a node of a graph.
    const HAS_HANDLES: bool;

    /// For each parameter, whether it is a [`ConditionalHandle`].
    #[doc(hidden)]
    const HANDLES: &'static [bool];

    /// For each parameter, how the kernel accesses its memory; `None` for one passed by value.
    const MEMORY: &'static [Option<MemoryParameter>];

    /// Calls `call` with an array of pointers to the packed values, valid until it returns.
    fn with_pointers<R>(values: &Self::Values<'_>, call: impl FnOnce(*mut *mut c_void) -> R) -> R;

    /// Passes the memory of the values to `each`, in their order, until that fails.
    ///
    /// # Errors
    /// The first error of `each`.
    fn each_memory<'a, E>(
        values: &Self::Values<'a>,
        each: impl FnMut(Memory<'a>) -> Result<(), E>,
    ) -> Result<(), E>;

    /// The memory accesses of a launch with these values.
    fn accesses(values: &Self::Values<'_>, declaration: &'static Declaration) -> Accesses;

    /// The accesses as a list of ranges.
    fn ranges(values: &Self::Values<'_>) -> AccessRanges;

    /// Passes the handles of conditions among the values to `each`, with their positions.
    fn each_handle(values: &Self::Values<'_>, each: impl FnMut(usize, ConditionalHandle));

    /// The first two values that share memory, at least one of which the kernel writes.
    fn overlap(values: &Self::Values<'_>) -> Option<Overlap>;

    /// The type of the graph parameters that can stand for the argument at a position; `None` if
    /// none can.
    #[doc(hidden)]
    fn value_type(position: usize) -> Option<TypeId>;

    /// The declared type of the parameter at a position, in words; `None` past the last one.
    #[doc(hidden)]
    fn type_name(position: usize) -> Option<String>;

    /// The values of stored arguments; `None` if one cannot be stored.
    #[doc(hidden)]
    fn read(stored: &StoredArguments) -> Option<Self::Values<'_>>;

    /// Writes all values for an error message.
    ///
    /// # Errors
    /// The formatter's.
    fn show(names: &[&str], values: &Self::Values<'_>, text: &mut dyn fmt::Write) -> fmt::Result;
}

/// Arguments for a kernel with the signature `S`: a tuple with an [`Argument`] for each parameter.
#[diagnostic::on_unimplemented(
    message = "the arguments do not fit the kernel's signature",
    label = "arguments of type `{Self}`",
    note = "the kernel takes {S}, in a tuple; one argument alone is written `(x,)`"
)]
pub trait ArgumentsOf<'a, S: Signature> {
    /// Converts the arguments into values.
    fn values(self) -> S::Values<'a>;

    /// The graph parameters among the arguments, with their positions.
    #[doc(hidden)]
    #[inline]
    fn placeholders(&self) -> Placeholders {
        Placeholders::new()
    }
}

/// Arguments with one value each: a tuple with a [`FixedArgument`] for each parameter.
#[diagnostic::on_unimplemented(
    message = "the arguments do not fit the kernel's signature where their values are fixed",
    label = "arguments of type `{Self}`",
    note = "the kernel takes {S}, in a tuple; one argument alone is written `(x,)`",
    note = "graph parameters are arguments of nodes as they are added, and of `capture.launch(&kernel, …)`"
)]
pub trait FixedArgumentsOf<'a, S: Signature>: ArgumentsOf<'a, S> {}

/// A signature of [`PlainParameter`]s only.
pub trait PlainSignature: Signature {}

/// Arguments for a launch on a stream: a tuple with a [`PlainArgument`] for each parameter of a
/// [`PlainSignature`].
#[diagnostic::on_unimplemented(
    message = "the arguments do not fit the kernel's signature in a launch on a stream",
    label = "arguments of type `{Self}`",
    note = "the kernel takes {S}, in a tuple; one argument alone is written `(x,)`",
    note = "graph parameters are arguments of nodes, and of launches by a capture's builder: `capture.launch(&kernel, …)`"
)]
pub trait PlainArgumentsOf<'a, S: Signature>: FixedArgumentsOf<'a, S> {}

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

/// The first two ranges that overlap, at least one of which is written.
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

/// The slots of values of these sizes and alignments, in order.
const fn slots<const N: usize>(layouts: [(usize, usize); N]) -> [ParameterSlot; N] {
    let mut slots = [ParameterSlot::new(0, 0); N];
    let (mut index, mut end) = (0, 0_usize);
    while index < N {
        let (size, align) = layouts[index];
        let offset = end.next_multiple_of(align);
        slots[index] = ParameterSlot::new(offset, size);
        end = offset + size;
        index += 1;
    }
    slots
}

macro_rules! signature {
    ($count:tt: $($parameter:ident $argument:ident $index:tt),*) => {
        impl<$($parameter: Parameter),*> sealed::Sealed for ($($parameter,)*) {}
        impl<$($parameter: PlainParameter),*> PlainSignature for ($($parameter,)*) {}

        #[allow(unused_variables, unused_mut, clippy::unused_unit)] // Where there are no parameters.
        impl<$($parameter: Parameter),*> Signature for ($($parameter,)*) {
            type Values<'a> = ($($parameter::Value<'a>,)*);

            const SLOTS: &'static [ParameterSlot] = &const {
                slots::<$count>([$((size_of::<$parameter::Packed>(), align_of::<$parameter::Packed>())),*])
            };

            const PADDED: &'static [bool] = &const { [$($parameter::MAY_BE_PADDED),*] };

            const HAS_HANDLES: bool = false $(|| $parameter::IS_HANDLE)*;

            const HANDLES: &'static [bool] = &const { [$($parameter::IS_HANDLE),*] };

            const MEMORY: &'static [Option<MemoryParameter>] = &const { [$($parameter::MEMORY),*] };

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
            fn accesses(values: &Self::Values<'_>, declaration: &'static Declaration) -> Accesses {
                let mut accesses = Accesses::new(declaration);
                $(if let (Some(declared), Some(memory)) = ($parameter::MEMORY, $parameter::memory(&values.$index)) {
                    accesses.note($index, &memory, declared);
                })*
                accesses
            }

            fn ranges(values: &Self::Values<'_>) -> AccessRanges {
                let mut ranges = AccessRanges::default();
                $(if let Some(memory) = $parameter::memory(&values.$index) {
                    ranges.note($index, &memory);
                })*
                ranges
            }

            #[inline]
            fn each_handle(values: &Self::Values<'_>, mut each: impl FnMut(usize, ConditionalHandle)) {
                $($parameter::handle(&values.$index).into_iter().for_each(|handle| each($index, handle));)*
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

            fn value_type(position: usize) -> Option<TypeId> {
                match position {
                    $($index => $parameter::value_type(),)*
                    _ => None,
                }
            }

            fn type_name(position: usize) -> Option<String> {
                match position {
                    $($index => Some($parameter::type_name()),)*
                    _ => None,
                }
            }

            fn read(stored: &StoredArguments) -> Option<Self::Values<'_>> {
                Some(($($parameter::read(stored, $index)?,)*))
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

        impl<'a, $($parameter: Parameter, $argument: FixedArgument<'a, $parameter>),*>
            FixedArgumentsOf<'a, ($($parameter,)*)> for ($($argument,)*)
        {
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

            #[inline]
            fn placeholders(&self) -> Placeholders {
                #[allow(unused_mut)] // Where there are no arguments.
                let mut found = Placeholders::new();
                $(if let Some(placeholder) = self.$index.placeholder() {
                    found.push(($index, placeholder));
                })*
                found
            }
        }
    };
}

/// Implements the traits for tuples of all lengths up to the last one.
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
    use crate::kernel::parameter::{In, Out, Struct};

    fn layout<S: Signature>() -> Vec<(usize, usize)> {
        S::SLOTS.iter().map(|slot| (slot.offset(), slot.size())).collect()
    }

    #[test]
    fn slots_are_the_fields_of_a_struct() {
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
            let value = |(index, slot): (usize, &ParameterSlot)| {
                // SAFETY: each value has a pointer to as many bytes as its slot says.
                unsafe {
                    core::slice::from_raw_parts((*pointers.add(index)).cast::<u8>(), slot.size()).to_vec()
                }
            };
            S::SLOTS.iter().enumerate().map(value).collect()
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
