//! The nodes: small handles that keep their graph alive.

mod empty;
mod handle;
mod kernel;
mod memcpy;
mod memset;

pub use empty::EmptyNode;
pub use handle::Node;
pub use kernel::KernelNode;
pub use memcpy::MemcpyNode;
pub use memset::MemsetNode;
