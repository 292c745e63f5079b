//! Device memory: allocations, the pools they come from, and the typed views of them.

mod allocation;
mod bits;
mod buffer;
mod element;
mod fill;
mod foreign;
mod graph;
mod graph_life;
pub mod graph_memory;
mod graph_usage;
mod host;
pub(crate) mod kind;
mod layout;
mod peer;
mod pitched;
mod pool;
mod range;
mod rectangle;
mod slice;
mod space;
mod transfer;

pub use allocation::Allocation;
pub use buffer::Buffer;
pub use element::Element;
pub use fill::FillLayout;
pub use graph::{GraphBuffer, GraphSlice, NodeMemory};
pub(crate) use graph_life::Freeing;
pub use graph_usage::GraphMemoryUsage;
pub use host::{HostBuffer, SharedHostBuffer};
pub use kind::MemoryKind;
pub use layout::{CopyLayout, CopySide};
pub use pool::{MemPool, PoolAccess, PoolOptions, PoolReuse, PoolUsage};
pub use rectangle::{Copy2d, Copy3d};
pub use slice::Slice;
pub use space::{AddressInfo, MemorySpace};
