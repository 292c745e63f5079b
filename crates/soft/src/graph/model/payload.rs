//! The payload of a node: a task, or graphs.

use std::sync::Arc;

use cuda_sys::CUgraphNodeType;

use super::task::{KernelSpec, Task};

/// The parameters of a node.
#[derive(Debug)]
pub(crate) enum Payload {
    Task(Task),
    /// The embedded graph.
    Child(u64),
    Conditional(ConditionalNode),
}

impl Payload {
    pub(crate) fn kind(&self) -> CUgraphNodeType {
        match self {
            Self::Task(task) => task.kind(),
            Self::Child(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH,
            Self::Conditional(_) => CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL,
        }
    }

    /// The graphs inside it.
    pub(crate) fn graphs(&self) -> &[u64] {
        match self {
            Self::Task(_) => &[],
            Self::Child(child) => core::slice::from_ref(child),
            Self::Conditional(conditional) => &conditional.bodies,
        }
    }

    pub(crate) fn kernel(&self) -> Option<&Arc<KernelSpec>> {
        match self {
            Self::Task(Task::Kernel(spec)) => Some(spec),
            Self::Task(_) | Self::Child(_) | Self::Conditional(_) => None,
        }
    }
}

/// The kinds of conditional node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum ConditionalKind {
    If = 0,
    While,
    Switch,
}

/// A conditional node.
#[derive(Debug)]
pub(crate) struct ConditionalNode {
    /// The number of the condition in the root graph.
    pub(crate) handle: u64,
    pub(crate) condition: ConditionalKind,
    /// The bodies. The user may read this array.
    pub(crate) bodies: Box<[u64]>,
    pub(crate) context: u64,
}
