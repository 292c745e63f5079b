//! The kinds of nodes.

use core::fmt;

use cuda_sys::CUgraphNodeType;

/// The kind of a node.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
#[doc(alias = "CUgraphNodeType")]
#[doc(alias = "cudaGraphNodeType")]
pub enum NodeKind {
    /// Does nothing: a point that other nodes wait for.
    Empty,
    /// Launches a kernel.
    Kernel,
    /// Copies memory.
    Memcpy,
    /// Fills memory.
    Memset,
    /// Runs an embedded graph.
    ChildGraph,
    /// Runs its body if a condition holds.
    If,
    /// Runs one of two bodies.
    IfElse,
    /// Runs its body as long as a condition holds.
    While,
    /// Runs one of many bodies.
    Switch,
    /// Calls a function on the host.
    HostCallback,
    /// Records an event.
    EventRecord,
    /// Waits for an event.
    EventWait,
    /// Waits for and writes values in memory.
    Batch,
    /// Allocates memory.
    Alloc,
    /// Frees memory.
    Free,
    /// Signals external semaphores.
    SemaphoreSignal,
    /// Waits for external semaphores.
    SemaphoreWait,
    /// A node of other code that this library has no type for, or that the driver does not describe
    /// in full.
    Other(CUgraphNodeType),
}

impl NodeKind {
    /// The kind for the driver's node type.
    pub(crate) fn of(kind: CUgraphNodeType) -> Self {
        match kind {
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY => Self::Empty,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL => Self::Kernel,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY => Self::Memcpy,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET => Self::Memset,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH => Self::ChildGraph,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_HOST => Self::HostCallback,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD => Self::EventRecord,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT => Self::EventWait,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP => Self::Batch,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC => Self::Alloc,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE => Self::Free,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL => Self::SemaphoreSignal,
            CUgraphNodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT => Self::SemaphoreWait,
            other => Self::Other(other),
        }
    }

    /// Whether the driver's node is a kernel node, including kernels that it does not describe in
    /// full.
    pub(crate) fn is_kernel(self) -> bool {
        self.raw() == CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL
    }

    /// The driver's node type.
    pub(crate) fn raw(self) -> CUgraphNodeType {
        match self {
            Self::Empty => CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY,
            Self::Kernel => CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL,
            Self::Memcpy => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY,
            Self::Memset => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET,
            Self::ChildGraph => CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH,
            Self::If | Self::IfElse | Self::While | Self::Switch => {
                CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL
            }
            Self::HostCallback => CUgraphNodeType::CU_GRAPH_NODE_TYPE_HOST,
            Self::EventRecord => CUgraphNodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD,
            Self::EventWait => CUgraphNodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT,
            Self::Batch => CUgraphNodeType::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
            Self::Alloc => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC,
            Self::Free => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE,
            Self::SemaphoreSignal => CUgraphNodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL,
            Self::SemaphoreWait => CUgraphNodeType::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT,
            Self::Other(kind) => kind,
        }
    }
}

impl fmt::Display for NodeKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Empty => "empty",
            Self::Kernel => "kernel",
            Self::Memcpy => "memcpy",
            Self::Memset => "memset",
            Self::ChildGraph => "child graph",
            Self::If => "if",
            Self::IfElse => "if-else",
            Self::While => "while",
            Self::Switch => "switch",
            Self::HostCallback => "host callback",
            Self::EventRecord => "event record",
            Self::EventWait => "event wait",
            Self::Batch => "batch",
            Self::Alloc => "alloc",
            Self::Free => "free",
            Self::SemaphoreSignal => "semaphore signal",
            Self::SemaphoreWait => "semaphore wait",
            Self::Other(kind) => match Self::of(*kind) {
                Self::Other(CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL) => "foreign conditional",
                Self::Other(_) => return write!(formatter, "type {}", kind.0),
                known => return write!(formatter, "foreign {known}"),
            },
        })
    }
}
