//! What a node does, as it was given when the node was made or last changed.

use cuda_handles::{Kernel, Owner};
use cuda_launch::LaunchConfig;
use cuda_sys::{CUdeviceptr, CUgraphNodeType};

use crate::kind::NodeKind;
use crate::table::Place;

/// What a node does.
#[derive(Clone, Debug)]
pub(crate) enum Detail {
    Empty,
    Kernel {
        kernel: Kernel,
        config: LaunchConfig,
    },
    Memcpy {
        source: CUdeviceptr,
        destination: CUdeviceptr,
        bytes: usize,
    },
    Memset {
        address: CUdeviceptr,
        value: u32,
        width: u8,
        count: usize,
    },
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
            Self::Memcpy { .. } => NodeKind::Memcpy,
            Self::Memset { .. } => NodeKind::Memset,
            Self::Child { .. } => NodeKind::ChildGraph,
            Self::Other { kind } => NodeKind::of(*kind),
        }
    }

    /// What it keeps alive besides the row's owners.
    pub(crate) fn owner(&self) -> Option<Owner> {
        match self {
            Self::Kernel { kernel, .. } => Some(Owner::Kernel(kernel.clone())),
            _ => None,
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
