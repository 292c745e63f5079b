#![doc = include_str!("../README.md")]

pub mod capture;
pub mod capture_mode;
pub mod clones;
pub mod panics;
pub mod reaper;

mod batch;
mod brief;
mod callback;
mod captures;
mod context;
mod default_stream;
mod device;
mod error;
mod event;
mod failure;
mod graph;
mod image;
mod ipc;
mod jit;
mod kept;
mod kernel;
mod library;
mod limits;
mod linker;
mod memory;
mod owner;
mod patience;
mod primary;
mod process;
mod raw;
mod recorded;
mod registry;
mod semaphore;
mod stream;
mod sync;
mod user_object;

pub use batch::{BarrierScope, Batch, BatchOperation, BatchWord, Compare};
pub use context::Context;
pub use default_stream::DefaultStream;
pub use device::Device;
pub use error::{Cause, Error, Result};
pub use event::{Event, EventOptions};
pub use graph::{ExecEnd, GraphExecHandle, GraphHandle};
pub use image::Image;
pub use ipc::{IpcBuffer, IpcEvent};
pub use jit::LoadOptions;
pub use kept::Kept;
pub use kernel::{Kernel, KernelAttributes, Parameter};
pub use library::Library;
pub use limits::Limits;
pub use linker::Linker;
#[doc(hidden)]
pub use memory::graph_memory;
pub use memory::{
    AddressInfo, Allocation, Buffer, Copy2d, Copy3d, CopyLayout, CopySide, Element, FillLayout, GraphBuffer,
    GraphMemoryUsage, GraphSlice, HostBuffer, MemPool, MemoryKind, MemorySpace, NodeMemory, PoolAccess,
    PoolOptions, PoolReuse, PoolUsage, SharedHostBuffer, Slice,
};
pub use owner::Owner;
#[doc(hidden)]
pub use patience::lock_unless_inside;
pub use patience::{patience, set_patience};
pub use process::is_forked;
pub use semaphore::{ExternalSemaphore, SemaphoreKind};
pub use stream::{AsStream, Stream, StreamOptions};
pub use user_object::UserObject;
