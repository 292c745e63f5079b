//! Tests of numbers in memory, which decide about loops and branches.

use core::any::TypeId;

use cuda_handles::{Buffer, Context, Element, NodeMemory, Placeholder, Slice, Stream, WrongContext};
use cuda_launch::Params;
use cuda_launch::internal::{Memory, StoredMemory};

use crate::error::wrong_context::ensure_memory;
use crate::error::{Error, LoopError, Result};
use crate::state::loop_control::HostPredicate;

mod sealed {
    use cuda_handles::Slice;

    pub trait Sealed: Sized {
        const ZERO: Self;

        fn operands(found: Slice<'_, Self>, value: Self) -> super::Operands<'_>;
    }
}

/// Numbers that a [`Test`] can compare: `u32`, `i32`, `u64`, `i64`, `f32` and `f64`.
pub trait Testable: Element + sealed::Sealed {}

macro_rules! testable {
    ($($variant:ident $number:ident $kernel:literal),*) => {
        /// The memory whose first element is compared, and the value to compare it with.
        #[doc(hidden)]
        #[derive(Clone, Copy, Debug)]
        pub enum Operands<'m> {
            $($variant(Slice<'m, $number>, $number)),*
        }

        /// The same, with the memory kept alive.
        #[derive(Debug)]
        enum OwnedOperands {
            $($variant(Buffer<$number>, $number)),*
        }

        impl OwnedOperands {
            fn memory(&self) -> Memory<'_> {
                match self { $(Self::$variant(memory, _) => Memory {
                    allocation: memory.allocation(),
                    start: memory.address(),
                    bytes: memory.size_bytes() as u64,
                    written: false,
                }),* }
            }

            /// Whether the comparison holds for the memory, or for other memory of the type, in the
            /// order of a stream. Waits for the stream.
            fn compare_blocking(
                &self,
                comparison: Comparison,
                stream: &Stream,
                other: Option<&StoredMemory>,
            ) -> Result<bool> {
                Ok(match self { $(
                    Self::$variant(memory, value) => {
                        let mut found = [<$number as sealed::Sealed>::ZERO];
                        let memory = match other {
                            None => memory.as_slice(),
                            // SAFETY: the memory holds numbers of this type, one at least: that is
                            // checked where it is given to the parameter, and before the run.
                            Some(other) => unsafe { Slice::within(&other.allocation, other.start, 1) },
                        };
                        memory.read_into_blocking(stream, &mut found)?;
                        comparison.holds(&found[0], value)
                    }
                )* })
            }
        }

        $(
            impl sealed::Sealed for $number {
                const ZERO: Self = 0 as $number;

                fn operands(found: Slice<'_, Self>, value: Self) -> Operands<'_> {
                    Operands::$variant(found, value)
                }
            }

            impl Testable for $number {}
        )*

        impl<'m> Operands<'m> {
            /// The name of the kernel that compares such numbers.
            fn kernel(&self) -> &'static str {
                match self { $(Self::$variant(..) => $kernel),* }
            }

            /// The type of the parameters that can stand for the memory.
            fn of(&self) -> TypeId {
                match self { $(Self::$variant(..) => TypeId::of::<[$number]>()),* }
            }

            fn is_empty(&self) -> bool {
                match self { $(Self::$variant(found, _) => found.is_empty()),* }
            }

            fn context(&self) -> &'m Context {
                match self { $(Self::$variant(found, _) => found.allocation().context()),* }
            }

            fn keep(&self) -> Result<OwnedOperands> {
                Ok(match *self {
                    $(Self::$variant(found, value) => OwnedOperands::$variant(found.slice(..1)?.to_buffer(), value)),*
                })
            }

            /// The element that is compared.
            fn memory(&self) -> Memory<'m> {
                match self { $(Self::$variant(found, _) => Memory {
                    allocation: found.allocation(),
                    start: found.address(),
                    bytes: size_of::<$number>() as u64,
                    written: false,
                }),* }
            }

            fn push_memory(&self, params: &mut Params<'m>) {
                match *self { $(Self::$variant(found, _) => params.push(found)),* }
            }

            fn push_value(&self, params: &mut Params<'m>) {
                match *self { $(Self::$variant(_, value) => params.push(value)),* }
            }
        }
    };
}

testable!(
    U32 u32 "decide_u32",
    I32 i32 "decide_i32",
    U64 u64 "decide_u64",
    I64 i64 "decide_i64",
    F32 f32 "decide_f32",
    F64 f64 "decide_f64"
);

/// The comparison; `kernels/conditions.cu` has the same numbers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    AtMost,
    Greater,
    AtLeast,
}

impl Comparison {
    fn holds<T: PartialOrd>(self, found: &T, value: &T) -> bool {
        match self {
            Self::Equal => found == value,
            Self::NotEqual => found != value,
            Self::Less => found < value,
            Self::AtMost => found <= value,
            Self::Greater => found > value,
            Self::AtLeast => found >= value,
        }
    }
}

/// A test that keeps its memory alive, for the host to evaluate.
#[derive(Debug)]
pub(super) struct OwnedTest {
    memory: OwnedOperands,
    comparison: Comparison,
}

impl HostPredicate for OwnedTest {
    fn ask_blocking(&self, stream: &Stream, other: Option<&StoredMemory>) -> Result<bool> {
        self.memory.compare_blocking(self.comparison, stream, other)
    }

    fn memory(&self) -> Memory<'_> {
        self.memory.memory()
    }
}

/// A comparison of one number in device memory with a value, which decides about a loop or branch.
///
/// The number is the first element of a [`Buffer`], a [`Slice`] of one, [shared pinned
/// memory](cuda_handles::SharedHostBuffer), memory [of the graph
/// itself](cuda_handles::GraphBuffer), or a [parameter](crate::GraphParam) of the graph: then each
/// executable can test memory of its own. A kernel of the library reads it on the device each time
/// the graph gets to the loop or branch; its node keeps the memory alive. Floating point numbers
/// compare as in Rust: a NaN is not less than, greater than or equal to anything, but not equal to
/// everything, and so not zero.
///
/// ```
/// # use cuda_graph::Test;
/// # fn example(residual: &cuda_handles::Buffer<f32>, left: cuda_handles::Slice<'_, u64>) {
/// let not_converged = Test::greater(residual, 1e-6);
/// let something_left = Test::nonzero(left);
/// let something_left_but_hurry = Test::nonzero(left).limit(1000);
/// # }
/// ```
#[derive(Clone, Copy, Debug)]
#[must_use = "a test does nothing by itself; give it to a loop or a branch"]
pub struct Test<'m> {
    operands: Operands<'m>,
    comparison: Comparison,
    /// The graph parameter that stands for the memory.
    param: Option<Placeholder>,
}

impl<'m> Test<'m> {
    fn new<T: Testable>(found: impl NodeMemory<'m, T>, comparison: Comparison, value: T) -> Self {
        let param = found.placeholder();
        Self { operands: T::operands(found.operand(), value), comparison, param }
    }

    /// Whether the number is not 0.
    pub fn nonzero<T: Testable>(found: impl NodeMemory<'m, T>) -> Self {
        Self::not_equal(found, T::ZERO)
    }

    /// Whether the number is 0.
    pub fn zero<T: Testable>(found: impl NodeMemory<'m, T>) -> Self {
        Self::equal(found, T::ZERO)
    }

    /// Whether the number equals `value`.
    pub fn equal<T: Testable>(found: impl NodeMemory<'m, T>, value: T) -> Self {
        Self::new(found, Comparison::Equal, value)
    }

    /// Whether the number differs from `value`.
    pub fn not_equal<T: Testable>(found: impl NodeMemory<'m, T>, value: T) -> Self {
        Self::new(found, Comparison::NotEqual, value)
    }

    /// Whether the number is less than `value`.
    pub fn less<T: Testable>(found: impl NodeMemory<'m, T>, value: T) -> Self {
        Self::new(found, Comparison::Less, value)
    }

    /// Whether the number is at most `value`.
    pub fn at_most<T: Testable>(found: impl NodeMemory<'m, T>, value: T) -> Self {
        Self::new(found, Comparison::AtMost, value)
    }

    /// Whether the number is greater than `value`.
    pub fn greater<T: Testable>(found: impl NodeMemory<'m, T>, value: T) -> Self {
        Self::new(found, Comparison::Greater, value)
    }

    /// Whether the number is at least `value`.
    pub fn at_least<T: Testable>(found: impl NodeMemory<'m, T>, value: T) -> Self {
        Self::new(found, Comparison::AtLeast, value)
    }

    /// Repeats a loop while the test holds, but at most `rounds` times each time it is entered.
    /// With 0 there is no round; a [`do_while_loop`](crate::Frontier::do_while_loop), which has at
    /// least one, refuses that ([`LoopError::NoRounds`]).
    pub fn limit(self, rounds: u64) -> Repeat<'m> {
        Repeat { test: self, limit: rounds }
    }

    /// The graph parameter that stands for the memory, and the type of parameters that can.
    pub(super) fn param(&self) -> Option<(Placeholder, TypeId)> {
        Some((self.param?, self.operands.of()))
    }

    /// The name of the library's kernel that evaluates it.
    pub(super) fn kernel(&self) -> &'static str {
        self.operands.kernel()
    }

    /// Refuses memory of another context, and empty memory.
    pub(super) fn check(&self, context: &Context) -> Result<()> {
        if self.operands.is_empty() {
            return Err(Error::Loop(LoopError::NothingToTest));
        }
        const WHAT: &str = "the memory that a loop or branch tests";
        ensure_memory(context, self.operands.context(), WHAT, WrongContext::MEMORY)
    }

    /// The test with its memory kept alive.
    pub(super) fn owned(&self) -> Result<OwnedTest> {
        Ok(OwnedTest { memory: self.operands.keep()?, comparison: self.comparison })
    }

    /// The memory that the kernel reads.
    pub(super) fn memory(&self) -> Memory<'m> {
        self.operands.memory()
    }

    /// Adds the arguments `flag`, `test` and `value` of the kernel.
    pub(super) fn push_to(&self, params: &mut Params<'m>) {
        self.operands.push_memory(params);
        params.push(self.comparison as u32);
        self.operands.push_value(params);
    }
}

/// The condition of a loop: a [`Test`], perhaps with a limit of rounds. Made from a test, or by
/// [`Test::limit`].
#[derive(Clone, Copy, Debug)]
#[must_use = "this does nothing by itself; give it to a loop"]
pub struct Repeat<'m> {
    pub(super) test: Test<'m>,
    pub(super) limit: u64,
}

impl<'m> From<Test<'m>> for Repeat<'m> {
    fn from(test: Test<'m>) -> Self {
        test.limit(u64::MAX)
    }
}
