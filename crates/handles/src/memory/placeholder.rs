//! Graph parameters as they appear among arguments.

use core::any::TypeId;

/// A parameter of a graph that stands in the place of an argument. cuda-graph makes these; here
/// they only pass through.
#[doc(hidden)]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Placeholder {
    graph: u64,
    number: u32,
    of: TypeId,
    element: usize,
    longest: Option<u64>,
}

/// An integer that can be the length of a parameter's memory. Its size follows from the longest
/// length that it can express, so no other type is one.
#[doc(hidden)]
pub trait LengthNumber: sealed::Sealed + 'static {
    /// The longest length.
    const LONGEST: u64;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! length_numbers {
    ($($number:ty)*) => { $(
        impl sealed::Sealed for $number {}

        impl LengthNumber for $number {
            const LONGEST: u64 = <$number>::MAX as u64;
        }
    )* };
}

length_numbers! { u32 i32 u64 i64 }

impl Placeholder {
    /// A parameter of a hierarchy of graphs, by their numbers, whose values are of a type.
    /// `element` is the size of an element of its memory, or 0.
    ///
    /// # Safety
    /// The values are of the type: `[T]` stands for memory with elements of type `T`.
    #[must_use]
    pub unsafe fn new(graph: u64, number: u32, of: TypeId, element: usize) -> Self {
        Self { graph, number, of, element, longest: None }
    }

    /// The length of the parameter's memory, as an argument of an integer type.
    #[must_use]
    pub fn length<N: LengthNumber>(self) -> Self {
        Self { of: TypeId::of::<N>(), longest: Some(N::LONGEST), ..self }
    }

    /// The number of the graph's hierarchy.
    #[must_use]
    pub fn graph(self) -> u64 {
        self.graph
    }

    /// The number of the parameter in the hierarchy.
    #[must_use]
    pub fn number(self) -> u32 {
        self.number
    }

    /// The type of the values that take its place.
    #[must_use]
    pub fn of(self) -> TypeId {
        self.of
    }

    /// The size of an element of the parameter's memory in bytes; 0 if it is no memory.
    #[must_use]
    pub fn element(self) -> usize {
        self.element
    }

    /// If the length of the memory is meant, the longest that the argument can express.
    #[must_use]
    pub fn longest(self) -> Option<u64> {
        self.longest
    }
}
