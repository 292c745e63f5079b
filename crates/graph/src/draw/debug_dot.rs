//! The driver's own dump of a graph.

use core::ops::{BitOr, BitOrAssign};
use std::ffi::CString;
use std::path::Path;

use cuda_sys::{CUgraphDebugDot_flags as Flags, Call};

use crate::error::{Error, Result};
use crate::graph::Graph;

/// What the driver's dump of a graph tells; see [`Graph::debug_dot`]. Joined by `|`.
///
/// ```
/// # use cuda_graph::DebugDotFlags;
/// let flags = DebugDotFlags::KERNEL_PARAMS | DebugDotFlags::HANDLES;
/// assert!(flags != DebugDotFlags::default() && flags != DebugDotFlags::VERBOSE);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
#[doc(alias = "CUgraphDebugDot_flags")]
pub struct DebugDotFlags(u32);

macro_rules! flags {
    ($($(#[$doc:meta])* $name:ident = $raw:ident;)*) => {
        impl DebugDotFlags {
            $($(#[$doc])* pub const $name: Self = Self(Flags::$raw.0);)*
        }
    };
}

flags! {
    /// Everything that it can tell.
    #[doc(alias = "CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE")]
    VERBOSE = CU_GRAPH_DEBUG_DOT_FLAGS_VERBOSE;
    /// Types in the words of the runtime API.
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
    /// Parameters of nodes that call functions on the host.
    #[doc(alias = "CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS")]
    HOST_PARAMS = CU_GRAPH_DEBUG_DOT_FLAGS_HOST_NODE_PARAMS;
    /// Parameters of nodes that record events and wait for them.
    #[doc(alias = "CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS")]
    EVENT_PARAMS = CU_GRAPH_DEBUG_DOT_FLAGS_EVENT_NODE_PARAMS;
    /// Parameters of nodes that signal external semaphores.
    #[doc(alias = "CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_SIGNAL_NODE_PARAMS")]
    SEMAPHORE_SIGNAL_PARAMS = CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_SIGNAL_NODE_PARAMS;
    /// Parameters of nodes that wait for external semaphores.
    #[doc(alias = "CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_WAIT_NODE_PARAMS")]
    SEMAPHORE_WAIT_PARAMS = CU_GRAPH_DEBUG_DOT_FLAGS_EXT_SEMAS_WAIT_NODE_PARAMS;
    /// Raw values of nodes, and of what they use.
    #[doc(alias = "CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES")]
    HANDLES = CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES;
    /// Parameters of nodes that allocate memory.
    #[doc(alias = "CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS")]
    ALLOCATION_PARAMS = CU_GRAPH_DEBUG_DOT_FLAGS_MEM_ALLOC_NODE_PARAMS;
    /// Parameters of nodes that free memory.
    #[doc(alias = "CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS")]
    FREE_PARAMS = CU_GRAPH_DEBUG_DOT_FLAGS_MEM_FREE_NODE_PARAMS;
    /// Operations of batch nodes.
    #[doc(alias = "CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS")]
    BATCH_PARAMS = CU_GRAPH_DEBUG_DOT_FLAGS_BATCH_MEM_OP_NODE_PARAMS;
    /// More on edges.
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
    /// Has the driver write the graph as DOT text to a file, which is made or replaced. It has what
    /// the driver knows of the nodes, by raw values and not by name, so that it can be held beside
    /// [`to_dot`](Self::to_dot).
    ///
    /// ```no_run
    /// # use cuda_graph::DebugDotFlags;
    /// # fn example(graph: &cuda_graph::Graph) -> cuda_graph::Result<()> {
    /// graph.debug_dot("driver.dot", DebugDotFlags::KERNEL_PARAMS | DebugDotFlags::HANDLES)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// Stands on `cuGraphDebugDotPrint`, CUDA 11.3. What flags of newer drivers mean to an older
    /// one is up to it.
    ///
    /// # Errors
    /// A path with a NUL byte in it, or what the driver answers: `CUDA_ERROR_OPERATING_SYSTEM`
    /// where it cannot write the file.
    #[doc(alias = "cuGraphDebugDotPrint")]
    pub fn debug_dot(&self, path: impl AsRef<Path>, flags: DebugDotFlags) -> Result<()> {
        let path = path.as_ref();
        let Ok(raw_path) = CString::new(path.as_os_str().as_encoded_bytes()) else {
            return Err(Error::PathWithNul { path: path.display().to_string().into() });
        };
        let guard = self.enter()?;
        // SAFETY: the graph is live and locked; the path is a string that ends with a NUL and
        // outlives the call.
        let result = unsafe { guard.driver().cuGraphDebugDotPrint(guard.raw(), raw_path.as_ptr(), flags.0) };
        guard.answer(Call::cuGraphDebugDotPrint, result)
    }
}
