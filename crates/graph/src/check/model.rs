//! The graph that is checked, as plain data. It knows nothing of drivers and locks, and the rules
//! know nothing else.

use cuda_handles::MemoryKind;
use cuda_launch::Access;

use super::region::Region;
use crate::edge_kind::EdgeKind;
use crate::error::memory_order::Disorder;
use crate::node_kind::NodeKind;
use crate::state::ids::{NodeId, SubgraphId};

/// A graph with all graphs in its nodes. Graphs, nodes, accesses and allocations are known by their
/// positions in these lists.
#[derive(Debug, Default)]
pub(crate) struct Model {
    /// Outer graphs before inner ones; the first is the graph that is checked.
    pub(crate) graphs: Vec<Subgraph>,
    pub(crate) nodes: Vec<ModelNode>,
    pub(crate) accesses: Vec<MemoryAccess>,
    pub(crate) allocations: Vec<AllocationInfo>,
    pub(crate) conditions: Vec<UnusedCondition>,
    pub(crate) lifetimes: Lifetimes,
}

/// One graph of the model.
#[derive(Debug)]
pub(crate) struct Subgraph {
    pub(crate) subgraph: SubgraphId,
    /// The node that holds it.
    pub(crate) outer: Option<u32>,
    /// The name of the body, if it is one.
    pub(crate) body: Option<String>,
    /// How many graphs are around it.
    pub(crate) depth: u32,
    /// Its nodes, in the order of their creation.
    pub(crate) nodes: core::ops::Range<u32>,
    /// Edges, by the nodes at their ends.
    pub(crate) edges: Vec<(u32, u32, EdgeOrder)>,
}

/// Whether an edge orders the accesses of the nodes at its ends; see the [module page](super).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EdgeOrder {
    /// The second node's accesses come after the first's.
    Always,
    /// They do if the second node's kernel waits for the first.
    IfWaitedFor,
    /// The edge does not order them.
    Never,
}

impl From<EdgeKind> for EdgeOrder {
    fn from(kind: EdgeKind) -> Self {
        match kind {
            EdgeKind::Full => Self::Always,
            EdgeKind::LaunchOrder => Self::Never,
            EdgeKind::Programmatic | EdgeKind::ProgrammaticLaunchOrder | EdgeKind::Other { .. } => {
                Self::IfWaitedFor
            }
        }
    }
}

/// A node.
#[derive(Debug)]
pub(crate) struct ModelNode {
    /// The graph it is in.
    pub(crate) graph: u32,
    pub(crate) id: NodeId,
    pub(crate) name: Box<str>,
    pub(crate) kind: NodeKind,
    /// The graphs in it.
    pub(crate) inside: core::ops::Range<u32>,
    /// Why its accesses are unknown, if they are.
    pub(crate) opaque: Option<Opaqueness>,
    /// A fault of the node itself.
    pub(crate) fault: Option<NodeFault>,
}

/// Why the accesses of a node are unknown.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Opaqueness {
    /// An untyped kernel, or a kernel node of other code.
    Kernel,
    /// A kernel node whose arguments other code has changed.
    Changed,
    /// A host function.
    Host,
    /// A node of other code about which the driver reports too little, or a batch with an operation
    /// that the check does not know.
    Foreign,
}

/// A fault of a node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NodeFault {
    /// A body cannot hold nodes of its type.
    NotInBody,
    /// It copies pageable host memory, in a body.
    PageableInBody,
    /// A kernel of another context, in a body.
    OtherContext,
}

/// The space of an address. Equal addresses of different spaces are different memory.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum AddressSpace {
    /// Device-accessible memory.
    Memory,
    /// A condition, by its number. It counts as one byte at address 0.
    Condition(u64),
}

/// An access of a node.
#[derive(Clone, Debug)]
pub(crate) struct MemoryAccess {
    pub(crate) node: u32,
    pub(crate) region: Region,
    pub(crate) kind: Access,
    /// The role of the memory for the node.
    pub(crate) role: &'static str,
    /// Whether the role is the name of a kernel's parameter.
    pub(crate) is_argument: bool,
    pub(crate) space: AddressSpace,
    /// The allocation, if it is known.
    pub(crate) memory: Option<u32>,
    /// Whether it is made for concurrent use: it does not conflict with others of its kind.
    pub(crate) synchronizes: bool,
}

impl MemoryAccess {
    /// Whether it stands for a condition, and not for memory.
    pub(crate) fn is_of_condition(&self) -> bool {
        matches!(self.space, AddressSpace::Condition(_))
    }
}

/// An allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct AllocationInfo {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) kind: MemoryKind,
}

/// A condition that no conditional node uses.
#[derive(Debug)]
pub(crate) struct UnusedCondition {
    pub(crate) number: u64,
    pub(crate) default: Option<u32>,
    pub(crate) setters: Vec<String>,
}

/// The facts for the memory-order rule.
#[derive(Debug, Default)]
pub(crate) struct Lifetimes {
    /// Allocation nodes whose memory no node frees, with its size.
    pub(crate) unfreed: Vec<(u32, u64)>,
    pub(crate) disorders: Vec<MissingOrder>,
}

/// Two nodes of which the first has to end before the second starts, without edges that say so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MissingOrder {
    pub(crate) what: Disorder,
    pub(crate) alloc: u32,
    pub(crate) first: u32,
    pub(crate) second: u32,
}
