//! What a node does: the parameters of each type of node.

use std::ffi::c_void;
use std::sync::Arc;

use cuda_sys::{CUDA_MEMCPY3D_v2, CUgraphNodeType};

use super::memory_node::Reservation;
use crate::callback::Callback;
use crate::copy::{Copy3, Fill};
use crate::launch::{Arguments, Attributes, Sizes};
use crate::module::Function;

/// The parameters of a node.
#[derive(Debug)]
pub(crate) enum Payload {
    Kernel(KernelNode),
    Copy(CopyNode),
    Fill(FillNode),
    Host(Callback),
    /// The embedded graph.
    Child(u64),
    Empty,
    /// The event.
    EventWait(u64),
    /// The event.
    EventRecord(u64),
    Alloc(AllocNode),
    /// The address.
    Free(u64),
    Conditional(ConditionalNode),
}

impl Payload {
    pub(crate) fn kind(&self) -> CUgraphNodeType {
        match self {
            Self::Kernel(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL,
            Self::Copy(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY,
            Self::Fill(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMSET,
            Self::Host(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_HOST,
            Self::Child(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH,
            Self::Empty => CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY,
            Self::EventWait(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_WAIT_EVENT,
            Self::EventRecord(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_EVENT_RECORD,
            Self::Alloc(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC,
            Self::Free(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_FREE,
            Self::Conditional(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
        }
    }
}

/// A kernel with everything that a launch of it needs.
#[derive(Debug, Clone)]
pub(crate) struct KernelSpec {
    pub(crate) function: Arc<Function>,
    pub(crate) sizes: Sizes,
    pub(crate) arguments: Arguments,
    pub(crate) attributes: Attributes,
}

/// A kernel node: the specification, and the block that a read-back points into.
#[derive(Debug)]
pub(crate) struct KernelNode {
    pub(crate) spec: KernelSpec,
    pub(crate) block: ParamBlock,
}

impl KernelNode {
    pub(crate) fn new(spec: KernelSpec) -> Self {
        let block = ParamBlock::new(&spec);
        Self { spec, block }
    }

    /// Takes new parameters; the block stays where it is as long as its layout does.
    pub(crate) fn set(&mut self, spec: KernelSpec) {
        if self.block.fits(&spec) {
            self.block.write(&spec.arguments.bytes);
        } else {
            self.block = ParamBlock::new(&spec);
        }
        self.spec = spec;
    }
}

/// A node's own copy of its arguments, to which the read-back hands out pointers. The user may read through them as long as the node
/// lives, so the block is only ever reached by raw pointers.
#[derive(Debug)]
pub(crate) struct ParamBlock {
    bytes: *mut [u64],
    pointers: *mut [*mut c_void],
    layout: Vec<(u32, u32)>,
    packed: Option<usize>,
}

// SAFETY: the block is only written under the lock of the graphs.
unsafe impl Send for ParamBlock {}
// SAFETY: as above.
unsafe impl Sync for ParamBlock {}

impl ParamBlock {
    fn new(spec: &KernelSpec) -> Self {
        let params = spec.function.code.kernel.params();
        let layout: Vec<_> = params.iter().map(|param| (param.offset, param.size)).collect();
        let words = spec.arguments.bytes.len().div_ceil(8) + 1;
        let bytes = Box::into_raw(vec![0u64; words].into_boxed_slice());
        let base: *mut u8 = bytes.cast();
        let packed = spec.arguments.packed.then_some(spec.arguments.given);
        let pointers: Vec<*mut c_void> = match packed {
            // The list of `extra`: buffer, size, end. The size lies behind the bytes.
            Some(_) => {
                // SAFETY: the last word of the block.
                let size = unsafe { bytes.cast::<u64>().add(words - 1) };
                let key = |key: usize| core::ptr::without_provenance_mut(key);
                vec![key(1), base.cast(), key(2), size.cast(), key(0)]
            }
            // SAFETY: each parameter starts inside the block.
            None => layout.iter().map(|(offset, _)| unsafe { base.add(*offset as usize) }.cast()).collect(),
        };
        let block = Self { bytes, pointers: Box::into_raw(pointers.into_boxed_slice()), layout, packed };
        block.write(&spec.arguments.bytes);
        if let Some(given) = packed {
            // SAFETY: the last word of the block, which holds the size.
            unsafe { bytes.cast::<u64>().add(words - 1).write(given as u64) };
        }
        block
    }

    fn fits(&self, spec: &KernelSpec) -> bool {
        let params = spec.function.code.kernel.params();
        let same = params.iter().map(|param| (param.offset, param.size)).eq(self.layout.iter().copied());
        same && self.packed == spec.arguments.packed.then_some(spec.arguments.given)
    }

    fn write(&self, bytes: &[u8]) {
        // SAFETY: the block was made for as many bytes; it is only reached by raw pointers.
        unsafe { self.bytes.cast::<u8>().copy_from_nonoverlapping(bytes.as_ptr(), bytes.len()) };
    }

    /// `kernelParams` and `extra` of the read-back.
    pub(crate) fn raw(&self) -> (*mut *mut c_void, *mut *mut c_void) {
        match self.packed {
            Some(_) => (core::ptr::null_mut(), self.pointers.cast()),
            None if self.layout.is_empty() => (core::ptr::null_mut(), core::ptr::null_mut()),
            None => (self.pointers.cast(), core::ptr::null_mut()),
        }
    }
}

impl Drop for ParamBlock {
    fn drop(&mut self) {
        // SAFETY: both came out of boxes and are given back once.
        unsafe {
            drop(Box::from_raw(self.bytes));
            drop(Box::from_raw(self.pointers));
        }
    }
}

/// A copy node.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CopyNode {
    /// The parameters as they were given.
    pub(crate) raw: CUDA_MEMCPY3D_v2,
    pub(crate) copy: Copy3,
    pub(crate) context: u64,
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
}

/// An allocation node.
#[derive(Debug, Clone)]
pub(crate) struct AllocNode {
    pub(crate) memory: Arc<Reservation>,
    /// The pool's largest size as it was given.
    pub(crate) max: usize,
}

/// The kinds of conditional node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Condition {
    If = 0,
    While,
    Switch,
}

/// A conditional node.
#[derive(Debug)]
pub(crate) struct ConditionalNode {
    /// The number of the condition in the root graph.
    pub(crate) handle: u64,
    pub(crate) condition: Condition,
    /// The bodies, and the driver's array of them.
    pub(crate) bodies: Box<[u64]>,
    pub(crate) context: u64,
}
