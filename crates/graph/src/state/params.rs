//! The parameters of a node, as given when the node was added or last changed.

use std::sync::Arc;

use cuda_handles::{
    Allocation, BatchOperation, CopyLayout, Event, ExternalSemaphore, FillLayout, Kernel, Owner,
};
use cuda_launch::ConditionalHandle;
use cuda_launch::internal::Accesses;
use cuda_sys::{CUdeviceptr, CUgraphNodeType};

use smallvec::SmallVec;

use crate::alloc_options::AllocOptions;
use crate::node_kind::NodeKind;
use crate::state::host_function::Host;
use crate::state::ids::{NodeId, SubgraphId};
use crate::state::kernel_config::KernelConfig;
use crate::state::loop_control::LoopControl;

/// The parameters of a node of any type.
#[derive(Clone, Debug)]
pub(crate) enum NodeParams {
    Empty,
    Kernel {
        kernel: Kernel,
        config: KernelConfig,
        /// The memory accesses that the launch declares.
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
    /// A node that other code added and of which only the type is known.
    Other {
        kind: CUgraphNodeType,
    },
}

/// The parameters of a conditional node.
#[derive(Clone, Debug)]
pub(crate) struct Conditional {
    pub(crate) kind: ConditionalKind,
    /// The source of the node's decision.
    pub(crate) source: ConditionSource,
    /// The control data of a ready-made loop or branch.
    pub(crate) control: Option<Arc<LoopControl>>,
    pub(crate) bodies: Box<[SubgraphId]>,
    /// The node in the same graph that sets the condition to its default.
    pub(crate) default: Option<NodeId>,
}

/// The source of a conditional node's decision.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum ConditionSource {
    /// A condition of this library, by its number.
    Condition(u64),
    /// A condition made by other code, by its number.
    Foreign(u64),
    /// The host decides. The driver has no conditional node; an empty node is the placeholder.
    Host,
}

/// The condition handles among a kernel's arguments.
pub(crate) type KernelHandles = SmallVec<[ConditionalHandle; 1]>;

/// Semaphores, each with the value that is signalled or waited for.
pub(crate) type Semaphores = Arc<[(ExternalSemaphore, u64)]>;

/// The kinds of conditional nodes.
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

    /// The name of a body in texts and pictures.
    pub(crate) fn body_name(self, index: usize) -> String {
        match (self, index) {
            (Self::If | Self::IfElse, 0) => "then".to_owned(),
            (Self::IfElse, _) => "else".to_owned(),
            (Self::While, _) => "body".to_owned(),
            (Self::If | Self::Switch, _) => format!("branch {index}"),
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
            // Also if there is a typed node for it: typed handles promise more than is known here.
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

    /// Whether it is a conditional node of any kind, including unknown kinds and placeholders.
    #[inline]
    pub(crate) fn is_conditional(&self) -> bool {
        self.kind().raw() == CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL
    }

    /// Sets the bodies of a conditional node.
    pub(crate) fn set_bodies(&mut self, subgraphs: Box<[SubgraphId]>) {
        if let Self::Conditional(conditional) = self {
            conditional.bodies = subgraphs;
        }
    }

    /// The owner in the parameters themselves. The node's other owners are in its record.
    pub(crate) fn owner(&self) -> Option<Owner> {
        match self {
            Self::Kernel { kernel, .. } => Some(Owner::Kernel(kernel.clone())),
            Self::EventRecord(event) | Self::EventWait(event) => Some(Owner::Event(event.clone())),
            Self::Empty
            | Self::Memcpy(_)
            | Self::Memset(_)
            | Self::Host(_)
            | Self::Batch(_)
            | Self::Alloc { .. }
            | Self::Free { .. }
            | Self::SignalSemaphores(_)
            | Self::WaitSemaphores(_)
            | Self::Other { .. }
            | Self::Child { .. }
            | Self::Conditional(_) => None,
        }
    }

    /// Sets the embedded graph of a child graph node.
    pub(crate) fn set_embedded(&mut self, subgraph: SubgraphId) {
        if let Self::Child { graph } = self {
            *graph = subgraph;
        }
    }

    /// The embedded graph of a child graph node.
    pub(crate) fn embedded(&self) -> Option<SubgraphId> {
        match self {
            Self::Child { graph } => Some(*graph),
            Self::Empty
            | Self::Memcpy(_)
            | Self::Memset(_)
            | Self::Host(_)
            | Self::Batch(_)
            | Self::Alloc { .. }
            | Self::Free { .. }
            | Self::SignalSemaphores(_)
            | Self::WaitSemaphores(_)
            | Self::Other { .. }
            | Self::Kernel { .. }
            | Self::EventRecord(_)
            | Self::EventWait(_)
            | Self::Conditional(_) => None,
        }
    }

    /// The graphs in the node: the embedded graph, or the bodies.
    pub(crate) fn subgraphs(&self) -> &[SubgraphId] {
        match self {
            Self::Child { graph } => core::slice::from_ref(graph),
            Self::Conditional(conditional) => &conditional.bodies,
            Self::Empty
            | Self::Memcpy(_)
            | Self::Memset(_)
            | Self::Host(_)
            | Self::Batch(_)
            | Self::Alloc { .. }
            | Self::Free { .. }
            | Self::SignalSemaphores(_)
            | Self::WaitSemaphores(_)
            | Self::Other { .. }
            | Self::Kernel { .. }
            | Self::EventRecord(_)
            | Self::EventWait(_) => &[],
        }
    }
}
