//! Tasks: the work of nodes without graphs inside, in graphs and executables.

use std::sync::Arc;

use cuda_sys::{CUDA_MEMCPY3D_v2, CUgraphNodeType};

use crate::device::loss::Loss;
use crate::graph::model::node_memory::NodeMemory;
use crate::launch::declared::Declared;
use crate::launch::{Arguments, Sizes};
use crate::memory::copy::Copy3;
use crate::memory::fill::Fill;
use crate::module::Function;
use crate::stream::attribute::Attributes;
use crate::stream::callback::Callback;
use crate::stream::mem_op::MemOp;
use crate::stream::poll::poll;
use crate::stream::semaphore::{Semaphore, SignalParams, WaitParams};

/// The task of a node. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) enum Task {
    Kernel(Arc<KernelSpec>),
    Copy(Arc<CopyNode>),
    Fill(FillNode),
    Host(Callback),
    Empty,
    /// The event.
    EventWait(u64),
    /// The event.
    EventRecord(u64),
    Alloc(AllocNode),
    Free(Arc<NodeMemory>),
    Batch(Arc<BatchNode>),
    Signal(Arc<SemaphoreNode<SignalParams>>),
    Wait(Arc<SemaphoreNode<WaitParams>>),
}

impl Task {
    pub(crate) fn kind(&self) -> CUgraphNodeType {
        type T = CUgraphNodeType;
        match self {
            Self::Kernel(_) => T::CU_GRAPH_NODE_TYPE_KERNEL,
            Self::Copy(_) => T::CU_GRAPH_NODE_TYPE_MEMCPY,
            Self::Fill(_) => T::CU_GRAPH_NODE_TYPE_MEMSET,
            Self::Host(_) => T::CU_GRAPH_NODE_TYPE_HOST,
            Self::Empty => T::CU_GRAPH_NODE_TYPE_EMPTY,
            Self::EventWait(_) => T::CU_GRAPH_NODE_TYPE_WAIT_EVENT,
            Self::EventRecord(_) => T::CU_GRAPH_NODE_TYPE_EVENT_RECORD,
            Self::Alloc(_) => T::CU_GRAPH_NODE_TYPE_MEM_ALLOC,
            Self::Free(_) => T::CU_GRAPH_NODE_TYPE_MEM_FREE,
            Self::Batch(_) => T::CU_GRAPH_NODE_TYPE_BATCH_MEM_OP,
            Self::Signal(_) => T::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL,
            Self::Wait(_) => T::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT,
        }
    }
}

impl Task {
    /// Whether it may wait for another branch or stream.
    pub(crate) fn waits(&self) -> bool {
        match self {
            Self::Batch(node) => node.ops.iter().any(MemOp::waits),
            Self::Wait(_) => true,
            Self::Kernel(_)
            | Self::Copy(_)
            | Self::Fill(_)
            | Self::Host(_)
            | Self::Empty
            | Self::EventWait(_)
            | Self::EventRecord(_)
            | Self::Alloc(_)
            | Self::Free(_)
            | Self::Signal(_) => false,
        }
    }

    /// The addresses in its parameters that the driver checks. Kernel arguments are only numbers.
    pub(crate) fn addresses(&self) -> Vec<u64> {
        match self {
            Self::Copy(node) => vec![node.copy.src.address, node.copy.dst.address],
            Self::Fill(node) => vec![node.fill.address],
            Self::Kernel(_)
            | Self::Host(_)
            | Self::Empty
            | Self::EventWait(_)
            | Self::EventRecord(_)
            | Self::Alloc(_)
            | Self::Free(_)
            | Self::Batch(_)
            | Self::Signal(_)
            | Self::Wait(_) => Vec::new(),
        }
    }
}

/// A kernel with everything that its launch needs.
#[derive(Debug, Clone)]
pub(crate) struct KernelSpec {
    pub(crate) function: Arc<Function>,
    pub(crate) sizes: Sizes,
    pub(crate) arguments: Arguments,
    pub(crate) attributes: Attributes,
    /// The memory that it may access; all of it, if `None`.
    pub(crate) declared: Option<Arc<Declared>>,
}

/// A copy node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopyNode {
    /// The parameters as the user gave them.
    pub(crate) raw: CUDA_MEMCPY3D_v2,
    pub(crate) copy: Copy3,
    pub(crate) context: u64,
    /// Whether it was captured while no context was current, with memory that has none: a step of
    /// an executable keeps it.
    pub(crate) has_no_context: bool,
}

// SAFETY: the pointers in the parameters are only handed back, and used as the interface allows.
unsafe impl Send for CopyNode {}
// SAFETY: as above.
unsafe impl Sync for CopyNode {}

/// A fill node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FillNode {
    pub(crate) fill: Fill,
    pub(crate) context: u64,
    /// Whether a stream of the context made it, rather than a call for a node.
    pub(crate) is_captured: bool,
}

/// An allocation node.
#[derive(Debug, Clone)]
pub(crate) struct AllocNode {
    pub(crate) memory: Arc<NodeMemory>,
    /// The pool's largest size as the user gave it.
    pub(crate) max: usize,
    pub(crate) is_managed: bool,
}

/// A batch of memory operations. Read-back pointers point into `ops`.
#[derive(Debug)]
pub(crate) struct BatchNode {
    pub(crate) ops: Box<[MemOp]>,
    pub(crate) context: u64,
}

/// A node that signals or waits for semaphores. Read-back pointers point into `handles` and
/// `params`.
#[derive(Debug)]
pub(crate) struct SemaphoreNode<P> {
    pub(crate) semaphores: Box<[Arc<Semaphore>]>,
    pub(crate) handles: Box<[u64]>,
    pub(crate) params: Box<[P]>,
    pub(crate) context: u64,
}

impl SemaphoreNode<SignalParams> {
    pub(crate) fn signal(&self) {
        for (semaphore, params) in self.semaphores.iter().zip(&self.params) {
            semaphore.signal(params);
        }
    }
}

impl SemaphoreNode<WaitParams> {
    /// Waits for the semaphores in order from number `next` on until one is not signalled; true if
    /// all are.
    pub(crate) fn advance(&self, next: &mut usize) -> bool {
        while let Some((semaphore, params)) = self.semaphores.get(*next).zip(self.params.get(*next)) {
            if !semaphore.try_wait(params) {
                return false;
            }
            *next += 1;
        }
        true
    }

    /// Waits for all semaphores in order, or until the device is lost.
    pub(crate) fn wait(&self, device: i32) -> Result<(), Loss> {
        let mut next = 0;
        poll(device, || Ok(self.advance(&mut next)))
    }
}

impl<P> SemaphoreNode<P> {
    pub(crate) fn is_alive(&self) -> bool {
        self.semaphores.iter().all(|semaphore| semaphore.is_alive())
    }
}
