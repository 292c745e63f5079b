//! The nodes: small handles that keep their graph alive.

mod batch;
mod child;
mod conditional;
mod empty;
mod event;
mod host;
mod kernel;
mod memcpy;
mod memory;
mod memset;
mod raw;
mod semaphore;

pub use crate::graph::node::Node;
pub(crate) use crate::graph::node::blank;
pub use batch::BatchNode;
pub use child::ChildGraphNode;
pub use conditional::{IfElseNode, IfNode, SwitchNode, WhileNode};
pub(crate) use conditional::{ensure_conditionals, told};
pub use empty::EmptyNode;
pub use event::{EventRecordNode, EventWaitNode};
pub(crate) use host::Host;
pub use host::{HostCallbackNode, HostFunction};
pub use kernel::KernelNode;
pub use kernel::attribute::{
    AccessPolicyWindow, CacheUse, ClusterScheduling, NodeAttribute, NodeAttributeKind,
};
pub(crate) use kernel::params as kernel_params;
pub use memcpy::MemcpyNode;
pub use memory::alloc::AllocNode;
pub use memory::free::FreeNode;
pub use memset::MemsetNode;
pub use raw::{RawCopy, RawFill, RawMemory};
pub(crate) use semaphore::Semaphores;
pub use semaphore::{SemaphoreSignalNode, SemaphoreWaitNode};
