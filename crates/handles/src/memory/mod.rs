//! Device memory: allocations, the pools they come from, and the typed views of them.

mod alloc;
mod allocation;
mod buffer;
mod copy;
mod element;
mod fill;
mod foreign;
mod graph_buffer;
mod graph_life;
pub mod graph_memory;
mod graph_usage;
mod host;
mod info;
mod pool;
mod range;
mod registered;
mod slice;
mod space;
mod users;
mod view;

pub use allocation::Allocation;
pub use buffer::Buffer;
pub use copy::{Copy2d, Copy3d, CopyLayout, CopySide};
pub use element::Element;
pub use fill::{FillLayout, assert_value};
pub use graph_buffer::{GraphBuffer, GraphSlice, NodeMemory};
pub use graph_usage::GraphMemoryUsage;
pub use host::{HostBuffer, NotUnique, SharedHostBuffer};
pub use pool::{MemPool, PoolAccess, PoolOptions, PoolReuse, PoolUsage};
pub(crate) use range::{bytes_of, same_length};
pub use registered::{Refused, RegisterOptions};
pub use slice::Slice;
pub use space::{AddressInfo, MemorySpace};
pub use view::{HostView, SharedView};
