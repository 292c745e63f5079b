//! Device memory: allocations, and the typed views of them.

mod allocation;
mod buffer;
mod element;
mod range;
mod slice;
mod transfer;

pub use allocation::Allocation;
pub use buffer::Buffer;
pub use element::Element;
pub use slice::Slice;
