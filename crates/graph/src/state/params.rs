//! What a node does, as it was given when the node was made or last changed.

use std::sync::Arc;

use cuda_handles::{
    Allocation, BatchOperation, CopyLayout, Event, ExternalSemaphore, FillLayout, Kernel, Owner,
};
use cuda_launch::{Accesses, ConditionalHandle};
use cuda_sys::{CUdeviceptr, CUgraphNodeType};

use smallvec::SmallVec;

use crate::alloc_options::AllocOptions;
use crate::node_kind::NodeKind;
use crate::state::host_function::Host;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::kernel_config::KernelConfig;
use crate::state::loop_control::LoopControl;

/// What a node does.
#[derive(Clone, Debug)]
pub(crate) enum NodeParams {
    Empty,
    Kernel {
        kernel: Kernel,
        config: KernelConfig,
        /// What it declares to do with memory.
        accesses: Accesses,
    },
    Memcpy(CopyLayout),
    Memset(FillLayout),
    Host(Host),
    EventRecord(Event),
    EventWait(Event),
    Batch(Arc<[BatchOperation]>),
    Alloc {
        memory: Arc<Allocation>,
        options: Arc<AllocOptions>,
    },
    Free {
        address: CUdeviceptr,
        /// `None` if other code added the node.
        memory: Option<Arc<Allocation>>,
    },
    SignalSemaphores(Semaphores),
    WaitSemaphores(Semaphores),
    Child {
        graph: SubgraphId,
    },
    Conditional(Conditional),
    /// A node of a graph that other code made, of which nothing but the type is known.
    Other {
        kind: CUgraphNodeType,
    },
}

/// What a conditional node does.
#[derive(Clone, Debug)]
pub(crate) struct Conditional {
    pub(crate) kind: ConditionalKind,
    pub(crate) source: ConditionSource,
    /// What a ready-made one goes by.
    pub(crate) control: Option<Arc<LoopControl>>,
    pub(crate) bodies: Box<[SubgraphId]>,
    /// The node in the same graph that gives the condition its default.
    pub(crate) default: Option<NodeId>,
}

/// What a conditional node goes by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConditionSource {
    /// A condition, by its number.
    Condition(u64),
    /// A condition that other code made, by its number.
    Foreign(u64),
    /// What the host says: the driver has no such node, and an empty one has its place.
    Host,
}

/// The handles of conditions among a kernel's arguments.
pub(crate) type KernelHandles = SmallVec<[ConditionalHandle; 1]>;

/// Semaphores, each with the number that it is raised to or waited for.
pub(crate) type Semaphores = Arc<[(ExternalSemaphore, u64)]>;

/// The classes of conditional nodes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConditionalKind {
    If,
    IfElse,
    While,
    Switch,
}

impl ConditionalKind {
    pub(crate) fn node_kind(self) -> NodeKind {
        match self {
            Self::If => NodeKind::If,
            Self::IfElse => NodeKind::IfElse,
            Self::While => NodeKind::While,
            Self::Switch => NodeKind::Switch,
        }
    }

    /// What a body is called in words.
    pub(crate) fn body_name(self, index: usize) -> String {
        match (self, index) {
            (Self::If | Self::IfElse, 0) => "then".to_owned(),
            (Self::IfElse, _) => "else".to_owned(),
            (Self::While, _) => "body".to_owned(),
            _ => format!("branch {index}"),
        }
    }
}

impl NodeParams {
    pub(crate) fn kind(&self) -> NodeKind {
        match self {
            Self::Empty => NodeKind::Empty,
            Self::Kernel { .. } => NodeKind::Kernel,
            Self::Memcpy(_) => NodeKind::Memcpy,
            Self::Memset(_) => NodeKind::Memset,
            Self::Host(_) => NodeKind::HostCallback,
            Self::EventRecord(_) => NodeKind::EventRecord,
            Self::EventWait(_) => NodeKind::EventWait,
            Self::Batch(_) => NodeKind::Batch,
            Self::Alloc { .. } => NodeKind::Alloc,
            Self::Free { .. } => NodeKind::Free,
            Self::SignalSemaphores(_) => NodeKind::SemaphoreSignal,
            Self::WaitSemaphores(_) => NodeKind::SemaphoreWait,
            Self::Child { .. } => NodeKind::ChildGraph,
            Self::Conditional(conditional) => conditional.kind.node_kind(),
            // Also where there is a type for it: the handles of that promise more than is known
            // here.
            Self::Other { kind } => NodeKind::Other(*kind),
        }
    }

    /// The type of the driver's node.
    pub(crate) fn raw_kind(&self) -> CUgraphNodeType {
        match self {
            Self::Conditional(Conditional { source: ConditionSource::Host, .. }) => {
                CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY
            }
            other => other.kind().raw(),
        }
    }

    /// Whether it is a conditional node of any class, be it one of which that is not known, or one
    /// that is not the driver's.
    pub(crate) fn is_conditional(&self) -> bool {
        self.kind().raw() == CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL
    }

    /// Says where the bodies of a conditional node are.
    pub(crate) fn set_bodies(&mut self, subgraphs: Box<[SubgraphId]>) {
        if let Self::Conditional(conditional) = self {
            conditional.bodies = subgraphs;
        }
    }

    /// What it keeps alive besides the row's owners.
    pub(crate) fn owner(&self) -> Option<Owner> {
        match self {
            Self::Kernel { kernel, .. } => Some(Owner::Kernel(kernel.clone())),
            Self::EventRecord(event) | Self::EventWait(event) => Some(Owner::Event(event.clone())),
            _ => None,
        }
    }

    /// Says where the graph embedded in the node is.
    pub(crate) fn set_embedded(&mut self, subgraph: SubgraphId) {
        if let Self::Child { graph } = self {
            *graph = subgraph;
        }
    }

    /// The graph embedded in a child graph node.
    pub(crate) fn embedded(&self) -> Option<SubgraphId> {
        match self {
            Self::Child { graph } => Some(*graph),
            _ => None,
        }
    }

    /// The graphs that are in the node: the embedded one, or its bodies.
    pub(crate) fn subgraphs(&self) -> &[SubgraphId] {
        match self {
            Self::Child { graph } => core::slice::from_ref(graph),
            Self::Conditional(conditional) => &conditional.bodies,
            _ => &[],
        }
    }
}
