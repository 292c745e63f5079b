//! The work of a captured call, by which its node is recognised.

/// The work that a captured call asks for, as far as the parameters of its node tell it, too. Equal
/// calls have equal work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Work {
    /// A launch of a kernel.
    Kernel {
        /// The kernel: its raw handle, a `CUkernel`, as an address.
        kernel: usize,
        /// Blocks in each dimension.
        grid: [u32; 3],
        /// Threads of a block in each dimension.
        block: [u32; 3],
        /// Bytes of dynamic shared memory.
        shared: u32,
    },
    /// A copy.
    Copy {
        /// The address of the first byte that is read.
        source: u64,
        /// The address of the first byte that is written.
        destination: u64,
        /// All bytes copied: width times height times depth.
        bytes: u64,
    },
    /// A fill.
    Fill {
        /// The address of the first byte that is written.
        destination: u64,
        /// All bytes filled.
        bytes: u64,
    },
    /// A host function.
    Host {
        /// The function, as an address.
        function: usize,
        /// Its argument, as an address.
        data: usize,
    },
    /// A batch of memory operations.
    Batch {
        /// The address that the first operation reads or writes; 0 for a barrier or a flush.
        first: u64,
        /// The number of operations.
        count: u32,
    },
}
