//! The nodes: small handles that keep their graph alive.

mod attribute;
mod batch;
mod child;
mod conditional;
mod empty;
mod event;
mod handle;
mod host;
mod keep;
mod kernel;
mod launch;
mod memcpy;
mod memset;
mod raw;
mod relaunch;
mod semaphore;

pub use attribute::{AccessPolicyWindow, CacheUse, ClusterScheduling, NodeAttribute, NodeAttributeKind};
pub use batch::BatchNode;
pub use child::ChildGraphNode;
pub use conditional::{IfElseNode, IfNode, SwitchNode, WhileNode};
pub(crate) use conditional::{ensure_conditionals, told};
pub use empty::EmptyNode;
pub use event::{EventRecordNode, EventWaitNode};
pub use handle::Node;
pub(crate) use handle::blank;
pub(crate) use host::Host;
pub use host::{HostCallbackNode, HostFunction};
pub use kernel::KernelNode;
pub(crate) use kernel::params as kernel_params;
pub use memcpy::MemcpyNode;
pub use memset::MemsetNode;
pub use raw::{RawCopy, RawFill, RawMemory};
pub(crate) use semaphore::Semaphores;
pub use semaphore::{SemaphoreSignalNode, SemaphoreWaitNode};
