//! The nodes: small handles that keep their graph alive.

mod empty;
mod handle;
mod kernel;
mod memcpy;
mod memset;

pub use empty::EmptyNode;
pub use handle::{Node, NodeKind};
pub use kernel::KernelNode;
pub use memcpy::MemcpyNode;
pub use memset::MemsetNode;

pub(crate) use empty::params as empty_params;
pub(crate) use kernel::params as kernel_params;
pub(crate) use memcpy::params as memcpy_params;
pub(crate) use memset::{Fill, params as memset_params};
