//! What a node does, as it was given when the node was made or last changed.

use std::sync::Arc;

use cuda_handles::{BatchOperation, CopyLayout, Event, FillLayout, Kernel, Owner};
use cuda_launch::LaunchConfig;
use cuda_sys::CUgraphNodeType;

use crate::kind::NodeKind;
use crate::node::{Host, Semaphores};
use crate::table::Place;

/// What a node does.
#[derive(Clone, Debug)]
pub(crate) enum Detail {
    Empty,
    Kernel {
        kernel: Kernel,
        config: LaunchConfig,
    },
    Memcpy(CopyLayout),
    Memset(FillLayout),
    Host(Host),
    EventRecord(Event),
    EventWait(Event),
    Batch(Arc<[BatchOperation]>),
    SignalSemaphores(Semaphores),
    WaitSemaphores(Semaphores),
    Child {
        graph: Place,
    },
    /// A node of a graph that other code made, of which nothing but the type is known.
    Other {
        kind: CUgraphNodeType,
    },
}

impl Detail {
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
            Self::SignalSemaphores(_) => NodeKind::SemaphoreSignal,
            Self::WaitSemaphores(_) => NodeKind::SemaphoreWait,
            Self::Child { .. } => NodeKind::ChildGraph,
            // Also where there is a type for it: the handles of that promise more than is known here.
            Self::Other { kind } => NodeKind::Other(*kind),
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
    pub(crate) fn set_embedded(&mut self, place: Place) {
        if let Self::Child { graph } = self {
            *graph = place;
        }
    }

    /// The graph embedded in the node.
    pub(crate) fn embedded(&self) -> Option<Place> {
        match self {
            Self::Child { graph } => Some(*graph),
            _ => None,
        }
    }
}
