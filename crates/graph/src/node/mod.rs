//! The nodes: small handles that keep their graph alive.

mod batch;
mod child;
mod empty;
mod handle;
mod keep;
mod kernel;
mod memcpy;
mod memset;
mod raw;
mod semaphore;

pub use batch::BatchNode;
pub use child::ChildGraphNode;
pub use empty::EmptyNode;
pub use handle::Node;
pub use kernel::KernelNode;
pub use memcpy::MemcpyNode;
pub use memset::MemsetNode;
pub use raw::{RawCopy, RawFill, RawMemory};
pub(crate) use semaphore::Semaphores;
pub use semaphore::{SemaphoreSignalNode, SemaphoreWaitNode};
