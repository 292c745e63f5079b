//! The handle of a condition, as kernels get it that decide how a graph goes on.

use core::fmt;

/// The handle of a condition of a graph: a kernel that has it says whether a branch is taken or a
/// loop goes on.
///
/// In the declaration of a kernel it is the type of the parameter (`unsigned long long`, in the
/// terms of CUDA C++ a `cudaGraphConditionalHandle`); given for it is a condition of a graph, which
/// the graph crate makes. Such a kernel can be a node of that graph, or of a graph embedded in it,
/// and nothing else: set outside of its graph's launch, the handle costs the device its context. So
/// a plain launch does not compile:
///
/// ```compile_fail,E0277
/// # use cuda_handles::{Image, Stream};
/// cuda_launch::kernel! {
///     unsafe in Image::Ptx("");
///     fn decide(flag: In<u32>, handle: ConditionalHandle) where flag.len() >= 1;
/// }
/// fn go(kernel: &decide, stream: &Stream, flag: &cuda_handles::Buffer<u32>, handle: cuda_launch::ConditionalHandle) {
///     kernel.launch(stream, cuda_launch::per(1, 1), (flag, handle)).unwrap();
/// }
/// # fn main() {}
/// ```
///
/// and one whose arguments are checked when it runs is the error
/// [`Error::OutsideGraph`](crate::Error::OutsideGraph).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ConditionalHandle {
    raw: u64,
    graph: u64,
    number: u64,
}

impl ConditionalHandle {
    /// A handle of the driver's, with two numbers by which its graph knows it again: that of the
    /// hierarchy of graphs, and its own there.
    ///
    /// # Safety
    /// `raw` is a handle of a live graph with the number `graph`, no other handle has the same
    /// numbers, and whoever adds a kernel with it to a graph compares them.
    #[must_use]
    pub unsafe fn new(raw: u64, graph: u64, number: u64) -> Self {
        Self { raw, graph, number }
    }

    /// The driver's own value.
    #[must_use]
    pub fn as_raw(self) -> u64 {
        self.raw
    }

    /// The number of the hierarchy of graphs that it belongs to.
    #[must_use]
    pub fn graph(self) -> u64 {
        self.graph
    }

    /// Its number there, which no other condition has had or gets.
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
