//! What is checked, as plain data: it knows nothing of drivers and locks, and the rules know
//! nothing else.

use cuda_handles::MemoryKind;
use cuda_launch::Access;

use super::region::Region;
use crate::edge_kind::EdgeKind;
use crate::error::memory_order::Disorder;
use crate::node_kind::NodeKind;
use crate::state::ids::{NodeId, SubgraphId};

/// A graph with those in its nodes.
#[derive(Debug, Default)]
pub(crate) struct Model {
    /// The outer before the inner; the first is the one that is checked.
    pub(crate) graphs: Vec<Subgraph>,
    pub(crate) nodes: Vec<ModelNode>,
    pub(crate) accesses: Vec<MemoryAccess>,
    pub(crate) allocations: Vec<AllocationInfo>,
    pub(crate) conditions: Vec<UnusedCondition>,
    pub(crate) lifetimes: Lifetimes,
}

/// One graph of a subject.
#[derive(Debug)]
pub(crate) struct Subgraph {
    pub(crate) subgraph: SubgraphId,
    /// The item that it is in.
    pub(crate) outer: Option<u32>,
    /// What it is called there, if it is a body.
    pub(crate) body: Option<String>,
    /// How many graphs are around it.
    pub(crate) depth: u32,
    /// Its items, in the order of their creation.
    pub(crate) nodes: core::ops::Range<u32>,
    /// Edges by the items at their ends.
    pub(crate) edges: Vec<(u32, u32, EdgeOrder)>,
}

/// What an edge says about the accesses of the nodes at its ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum EdgeOrder {
    /// The second comes after the first.
    Always,
    /// It does if the second kernel waits for that.
    IfWaitedFor,
    /// Nothing.
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
    /// Which graph it is in.
    pub(crate) graph: u32,
    pub(crate) id: NodeId,
    pub(crate) name: Box<str>,
    pub(crate) kind: NodeKind,
    /// The graphs in it.
    pub(crate) inside: core::ops::Range<u32>,
    /// Why it is not known what memory it touches.
    pub(crate) opaque: Option<Opaqueness>,
    /// What is wrong with it by itself, where it is.
    pub(crate) fault: Option<NodeFault>,
}

/// Why the accesses of a node are not known.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub enum Opaqueness {
    /// A kernel without a declaration, or of other code.
    Kernel,
    /// A kernel whose arguments are not those that it was given here.
    Changed,
    /// A function of the host.
    Host,
    /// A node of other code of which the driver does not tell enough.
    Foreign,
}

/// What is wrong with a node where it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum NodeFault {
    /// Nodes like it cannot be in a body.
    NotInBody,
    /// It reads or writes pageable memory of the host, in a body.
    PageableInBody,
    /// A kernel of another context, in a body.
    OtherContext,
    /// A kernel with a part of a launch only, or a ready-made loop or branch that was not built to
    /// its end.
    Incomplete,
}

/// What addresses are of: those of different spaces are of different memory, whatever they are.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum AddressSpace {
    /// Memory that all have in common.
    Memory,
    /// A condition, by its number, as if it were a byte.
    Condition(u64),
}

/// An access.
#[derive(Clone, Debug)]
pub(crate) struct MemoryAccess {
    pub(crate) node: u32,
    pub(crate) region: Region,
    pub(crate) kind: Access,
    /// What the memory is to the node.
    pub(crate) role: &'static str,
    /// Whether the role is a parameter of a kernel.
    pub(crate) is_argument: bool,
    pub(crate) space: AddressSpace,
    /// The allocation, if it is known.
    pub(crate) memory: Option<u32>,
    /// Whether it is made for being concurrent with others of its kind.
    pub(crate) synchronizes: bool,
}

/// An allocation.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct AllocationInfo {
    pub(crate) address: u64,
    pub(crate) bytes: u64,
    pub(crate) kind: MemoryKind,
}

/// A condition without a node.
#[derive(Debug)]
pub(crate) struct UnusedCondition {
    pub(crate) number: u64,
    pub(crate) default: Option<u32>,
    pub(crate) setters: Vec<String>,
}

/// The memory nodes of a subject, as far as something is to be said of them.
#[derive(Debug, Default)]
pub(crate) struct Lifetimes {
    /// Allocation nodes whose memory no node frees, with its size.
    pub(crate) unfreed: Vec<(u32, u64)>,
    pub(crate) disorders: Vec<MissingOrder>,
}

/// Nodes of which the first has to end before the second starts, and no edges say so.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct MissingOrder {
    pub(crate) what: Disorder,
    pub(crate) alloc: u32,
    pub(crate) first: u32,
    pub(crate) second: u32,
}
