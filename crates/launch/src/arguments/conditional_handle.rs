//! The handle of a condition, which a kernel sets to direct its graph.

use core::fmt;

/// The handle of a condition of a graph. A kernel sets it to decide whether a branch is taken or a
/// loop continues.
///
/// In a kernel's declaration it is the type of the parameter (`cudaGraphConditionalHandle` in CUDA
/// C++). The argument is a condition made by cuda-graph. Such a kernel can only be a node of the
/// condition's graph or of a graph embedded in it: set outside of that graph's launch, the handle
/// costs the device its context. A launch on a stream does not compile:
///
/// ```compile_fail,E0277
/// # use cuda_handles::{Image, Stream};
/// cuda_launch::kernel! {
///     unsafe in Image::Ptx("");
///     fn decide(flag: In<u32>, handle: ConditionalHandle) where flag.len() >= 1;
/// }
/// # use cuda_handles::Buffer;
/// # use cuda_launch::ConditionalHandle as Handle;
/// fn go(kernel: &decide, stream: &Stream, flag: &Buffer<u32>, handle: Handle) {
///     kernel.launch(stream, cuda_launch::per(1, 1), (flag, handle)).unwrap();
/// }
/// # fn main() {}
/// ```
///
/// An untyped launch is the error [`Error::OutsideGraph`](crate::Error::OutsideGraph).
#[doc(alias = "cudaGraphConditionalHandle")]
#[doc(alias = "cudaGraphSetConditional")]
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConditionalHandle {
    raw: u64,
    graph: u64,
    number: u64,
}

impl ConditionalHandle {
    /// A handle of the driver, with the number of its hierarchy of graphs and its own number in
    /// that hierarchy.
    ///
    /// # Safety
    /// `raw` is a handle of a live graph in the hierarchy `graph`. No other handle has the same two
    /// numbers, and code that adds a kernel with this handle to a graph compares them.
    #[doc(hidden)]
    #[must_use]
    pub unsafe fn new(raw: u64, graph: u64, number: u64) -> Self {
        Self { raw, graph, number }
    }

    /// The driver's handle.
    #[must_use]
    pub fn as_raw(self) -> u64 {
        self.raw
    }

    /// The number of its hierarchy of graphs.
    #[doc(hidden)]
    #[must_use]
    pub fn graph(self) -> u64 {
        self.graph
    }

    /// Its number in the hierarchy, never used again for another condition.
    #[doc(hidden)]
    #[must_use]
    pub fn number(self) -> u64 {
        self.number
    }
}

impl fmt::Debug for ConditionalHandle {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "ConditionalHandle({})", self.number)
    }
}
