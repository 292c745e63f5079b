//! Errors about memory that a graph allocates.

use cuda_handles::Error as HandleError;

use crate::alloc_options::AllocPlace;
use crate::error::memory_order::{MemoryOrder, Orders};
use crate::node_name::NodeName;
use crate::wording::{A, Count, More};

/// Memory of a graph cannot be used as asked.
#[derive(Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// Nodes may use memory of the graph before it is allocated or after it is freed: no edges
    /// prevent that.
    #[error("the graph cannot be instantiated, since its memory may not be there when it is used: {}{}; add edges", Orders(found), More(*more))]
    MemoryOrder {
        /// The pairs of nodes in the wrong order.
        found: Vec<MemoryOrder>,
        /// The number of further pairs.
        more: usize,
    },
    /// A node would use memory of an allocation node of another graph.
    #[error(
        "node `{node}` was given memory of an allocation node of another graph; such memory is for the nodes of its own graph. Memory that a launch leaves can be used \
         everywhere (GraphExec::launch_with_outputs)"
    )]
    ForeignMemory {
        /// The node, by its name or its kind.
        node: NodeName,
    },
    /// Memory of a graph is freed by another node already.
    #[error("the memory of node `{memory}` is freed by node `{free}` already")]
    FreedTwice {
        /// The allocation node, by name.
        memory: NodeName,
        /// The free node, by name.
        free: NodeName,
    },
    /// Memory of a graph cannot be freed by a new node, since the graph was instantiated without
    /// one.
    #[error(
        "the memory of node `{memory}` can no longer be freed by a node of the graph, since an executable was made of that with the allocation node and without a \
         free node: the driver refuses it for good. Add the free node before the first executable, or release the memory that launches leave: drop it, or have the next \
         launch free it (InstantiateOptions::auto_free)"
    )]
    FreedTooLate {
        /// The allocation node, by name.
        memory: NodeName,
    },
    /// The driver refused a free node for a reason that this library does not know.
    #[error(
        "the driver takes no free node for the memory of node `{memory}`: {cause}. Other code has made an executable of the graph, or frees the memory in another \
         graph; if it does not, release the memory that launches leave: drop it, or have the next launch free it (InstantiateOptions::auto_free)"
    )]
    FreeRefused {
        /// The allocation node, by name.
        memory: NodeName,
        /// The driver's error.
        cause: Box<HandleError>,
    },
    /// A copy or fill node cannot use memory of a graph for which there is a free node already.
    #[error(
        "{} cannot be added with the memory of node `{memory}`, since there is node `{free}`, which frees it: from then on the driver refuses that, whatever \
         the nodes wait for. Add copies and fills first and the free node last; kernels can still be added",
        A(format_args!("{kind} node"))
    )]
    FreedBefore {
        /// The kind of the new node.
        kind: crate::node_kind::NodeKind,
        /// The allocation node, by name.
        memory: NodeName,
        /// The free node, by name.
        free: NodeName,
    },
    /// An allocation node would allocate more memory than its device has.
    #[error(
        "an allocation node of {} cannot be, since device {device} has {total}; the driver would say so at a launch only, and keep all memory of the device \
         for itself from then on. Allocate less, or let the graph work in parts",
        Count(*bytes, "byte")
    )]
    LargerThanDevice {
        /// The bytes requested.
        bytes: usize,
        /// The number of the device.
        device: usize,
        /// The memory of the device, in bytes.
        total: usize,
    },
    /// A copy node would use memory from a pool of another device that the graph's device may not
    /// access.
    #[error(
        "device {own} may not access the pool on device {of} that memory of the copy is from, as it has to for a node: let it (MemPool::grant_access), or take plain memory \
         (Context::alloc_blocking); a copy on a stream needs neither"
    )]
    PoolOutOfReach {
        /// The number of the graph's device.
        own: usize,
        /// The number of the pool's device.
        of: usize,
    },
    /// An embedded graph cannot have allocation and free nodes.
    #[error(
        "{kind} nodes cannot be in a graph that is embedded in a node, as the driver refuses it; add it to the graph around it that is in no node, or before the \
         graph is moved into the node (Frontier::child_moved)"
    )]
    MemoryEmbedded {
        /// The kind of the new node.
        kind: crate::node_kind::NodeKind,
    },
    /// A graph with allocation or free nodes, or with nodes that use their memory, cannot be
    /// cloned.
    #[error(
        "a graph with allocation or free nodes, or with nodes that use their memory, can be neither cloned nor embedded as a clone: the driver refuses it. Move \
         it into the node (Frontier::child_moved), or build it a second time"
    )]
    HasMemory,
    /// The driver removes nothing from a graph with allocation or free nodes.
    #[error(
        "no {what} can be taken out of a graph with allocation or free nodes: the driver refuses it; build the graph without them"
    )]
    KeepsAll {
        /// The things to remove: `nodes` or `edges`.
        what: &'static str,
    },
    /// The driver cannot allocate memory of graphs at this place.
    #[error("the driver has no memory of graphs at this place ({place}): {cause}")]
    NoMemoryThere {
        /// The place.
        place: AllocPlace,
        /// The driver's error.
        cause: Box<HandleError>,
    },
    /// A graph cannot be launched while memory from an earlier launch is in use.
    #[error(
        "what an earlier launch left of the memory of node `{node}` is still in use, or being freed; drop it first, and what keeps it: nodes of other graphs, \
         holders of arguments"
    )]
    OutputInUse {
        /// The allocation node, by name.
        node: NodeName,
    },
    /// A launch leaves nothing of the memory that was asked for.
    #[error(
        "the launch leaves nothing of the memory at {address:#x}: it is freed by the graph, or of another graph"
    )]
    NoOutput {
        /// The address of the memory.
        address: u64,
    },
    /// The memory that a launch left was taken before.
    #[error("what the launch left of the memory at {address:#x} was taken already")]
    OutputTaken {
        /// The address of the memory.
        address: u64,
    },
}

shown!(MemoryError);
