//! Node types: reference-counted handles of nodes, each with the parameters of its type.

pub(crate) mod batch;
pub(crate) mod child;
mod conditional;
mod empty;
pub(crate) mod event;
pub(crate) mod host;
pub(crate) mod kernel;
pub(crate) mod memcpy;
mod memory;
pub(crate) mod memset;
mod raw;
pub(crate) mod semaphore;

pub use crate::state::host_function::HostFunction;
pub use batch::BatchNode;
pub use child::ChildGraphNode;
pub use conditional::{IfElseNode, IfNode, SwitchNode, WhileNode};
pub use empty::EmptyNode;
pub use event::{EventRecordNode, EventWaitNode};
pub use host::HostCallbackNode;
pub use kernel::KernelNode;
pub use kernel::argument::NodeArgument;
pub use kernel::attribute::{
    AccessPolicyWindow, CacheUse, ClusterScheduling, NodeAttribute, NodeAttributeKind,
};
pub use memcpy::MemcpyNode;
pub use memory::alloc::AllocNode;
pub use memory::free::FreeNode;
pub use memset::MemsetNode;
pub use raw::{RawCopy, RawFill, RawMemory};
pub use semaphore::{SemaphoreSignalNode, SemaphoreWaitNode};
