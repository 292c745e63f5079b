//! The driver's own dump of a graph.

use core::ops::{BitOr, BitOrAssign};
use std::ffi::CString;
use std::path::Path;

use cuda_sys::{CUgraphDebugDot_flags as Flags, Call};

use crate::error::{DrawError, Error, Result};
use crate::graph::Graph;

/// What the driver's dump of a graph contains; see [`Graph::debug_dot`]. Flags are combined with
/// `|`.
///
/// ```
/// # use cuda_graph::DebugDotFlags;
/// let flags = DebugDotFlags::KERNEL_PARAMS | DebugDotFlags::HANDLES;
/// assert!(flags != DebugDotFlags::default() && flags != DebugDotFlags::VERBOSE);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[doc(alias = "CUgraphDebugDot_flags")]
#[doc(alias = "cudaGraphDebugDotFlags")]
pub struct DebugDotFlags(u32);

macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident = $raw:ident;)*) => {
        impl DebugDotFlags {
            $($(#[$doc])* pub const $name: Self = Self(Flags::$raw.0);)*
        }
    };
}

flags! {
    /// Everything.
    #[doc(alias = "CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE")]
    VERBOSE = CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE;
    /// Types as the runtime API names them.
    #[doc(alias = "CU_GRAPH_DEBUG_DOT_FLAGS_RUNTIME_TYPES")]
    RUNTIME_TYPES = CU_GRAPH_DEBUG_DOT_FLAGS_RUNTIME_TYPES;
    /// Parameters of kernel nodes.
    #[doc(alias = "CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS")]
    KERNEL_PARAMS = CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_PARAMS;
    /// Attributes of kernel nodes.
    #[doc(alias = "CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_ATTRIBUTES")]
    KERNEL_ATTRIBUTES = CU_GRAPH_DEBUG_DOT_FLAGS_KERNEL_NODE_ATTRIBUTES;
    /// Parameters of memcpy nodes.
    #[doc(alias = "CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS")]
    MEMCPY_PARAMS = CU_GRAPH_DEBUG_DOT_FLAGS_MEMCPY_NODE_PARAMS;
    /// Parameters of memset nodes.
    #[doc(alias = "CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS")]
    MEMSET_PARAMS = CU_GRAPH_DEBUG_DOT_FLAGS_MEMSET_NODE_PARAMS;
    /// Parameters of host function nodes.
    #[doc(alias = "CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS")]
    HOST_PARAMS = CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS;
    /// Parameters of event record and event wait nodes.
    #[doc(alias = "CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS")]
    EVENT_PARAMS = CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS;
    /// Parameters of semaphore signal nodes.
    #[doc(alias = "CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_SIGNAL_NODE_PARAMS")]
    SEMAPHORE_SIGNAL_PARAMS = CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_SIGNAL_NODE_PARAMS;
    /// Parameters of semaphore wait nodes.
    #[doc(alias = "CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_WAIT_NODE_PARAMS")]
    SEMAPHORE_WAIT_PARAMS = CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_WAIT_NODE_PARAMS;
    /// Raw handles of nodes, and of what they use.
    #[doc(alias = "CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES")]
    HANDLES = CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES;
    /// Parameters of allocation nodes.
    #[doc(alias = "CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS")]
    ALLOCATION_PARAMS = CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS;
    /// Parameters of free nodes.
    #[doc(alias = "CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS")]
    FREE_PARAMS = CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS;
    /// Operations of batch nodes.
    #[doc(alias = "CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS")]
    BATCH_PARAMS = CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS;
    /// More about edges.
    #[doc(alias = "CU_GRAPH_DEBUG_DOT_FLAGS_EXTRA_TOPO_INFO")]
    TOPOLOGY = CU_GRAPH_DEBUG_DOT_FLAGS_EXTRA_TOPO_INFO;
    /// Parameters of conditional nodes.
    #[doc(alias = "CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS")]
    CONDITIONAL_PARAMS = CU_GRAPH_DEBUG_DOT_FLAGS_CONDITIONAL_NODE_PARAMS;
}

impl BitOr for DebugDotFlags {
    type Output = Self;

    fn bitor(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }
}

impl BitOrAssign for DebugDotFlags {
    fn bitor_assign(&mut self, other: Self) {
        self.0 |= other.0;
    }
}

impl Graph {
    /// Has the driver write the graph to a file as DOT text; the file is created or replaced. The
    /// dump shows what the driver knows of the nodes, by raw handles rather than names, for
    /// comparison with [`to_dot`](Self::to_dot).
    ///
    /// ```no_run
    /// # use cuda_graph::DebugDotFlags;
    /// # fn example(graph: &cuda_graph::Graph) -> cuda_graph::Result<()> {
    /// graph.debug_dot("driver.dot", DebugDotFlags::KERNEL_PARAMS | DebugDotFlags::HANDLES)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Calls `cuGraphDebugDotPrint` (CUDA 11.3). The meaning of newer flags to an older driver is
    /// up to it.
    ///
    /// # Errors
    /// [`DrawError::PathWithNul`]: the path contains a NUL byte. The driver fails:
    /// `CUDA_ERROR_OPERATING_SYSTEM` if it cannot write the file.
    #[doc(alias = "cuGraphDebugDotPrint")]
    #[doc(alias = "cudaGraphDebugDotPrint")]
    pub fn debug_dot(&self, path: impl AsRef<Path>, flags: DebugDotFlags) -> Result<()> {
        let path = path.as_ref();
        let Ok(raw_path) = CString::new(path.as_os_str().as_encoded_bytes()) else {
            return Err(Error::Draw(DrawError::PathWithNul { path: path.display().to_string().into() }));
        };
        let guard = self.enter()?;
        // SAFETY: the graph is live and locked; the path is a NUL-terminated string that outlives
        // the call.
        let result = unsafe { guard.driver().cuGraphDebugDotPrint(guard.raw(), raw_path.as_ptr(), flags.0) };
        guard.answer(Call::cuGraphDebugDotPrint, result)
    }
}
