//! Device memory: allocations, the pools they come from, and the typed views of them.

mod allocation;
mod bits;
mod buffer;
mod element;
mod foreign;
mod host;
mod kind;
mod peer;
mod pitched;
mod pool;
mod range;
mod slice;
mod transfer;

pub use allocation::Allocation;
pub use buffer::Buffer;
pub use element::Element;
pub use host::{HostBuffer, SharedHostBuffer};
pub use kind::MemoryKind;
pub use pitched::{Copy2d, Copy3d};
pub use pool::{MemPool, PoolAccess, PoolOptions, PoolReuse, PoolUsage};
pub use slice::Slice;
