#![doc = include_str!("../README.md")]

pub mod capture;
#[doc(hidden)]
pub mod internal;

mod access;
mod context;
mod destroy;
mod error;
mod graph;
#[doc(hidden)]
pub mod host_function;
mod interop;
mod memory;
mod module;
mod raw_stream;
mod reclaim;
mod registry;
mod stream;
mod sync;

pub use context::{Context, Device, Limits, Scheduling, capture_mode};
pub use destroy::{Kept, clones};
pub use error::{
    Cause, ContextName, Error, MemoryKind, Near, NoTime, Result, Which, WrongContext, WrongVariable,
};
pub use graph::{GraphExecHandle, GraphHandle, Owner, UserObject};
pub use host_function::{CallbackPanic, HostViews, Viewable, set_panic_hook};
pub use interop::{
    BarrierScope, Batch, BatchOperation, BatchWord, Compare, ExternalSemaphore, IpcBuffer, IpcEvent,
    SemaphoreKind,
};
pub use memory::{
    AddressInfo, Allocation, Buffer, Copy2d, Copy3d, CopyLayout, CopySide, Element, FillLayout, FixedMemory,
    GraphBuffer, GraphMemoryUsage, GraphSlice, HostBuffer, HostView, MemPool, MemorySpace, NodeMemory,
    NotUnique, Placeholder, PoolAccess, PoolOptions, PoolReuse, PoolUsage, Refused, RegisterOptions,
    SharedHostBuffer, SharedView, Slice,
};
#[cfg(feature = "nvrtc")]
pub use module::nvrtc;
pub use module::{
    EntryWait, Image, Kernel, KernelAttributes, Library, Linker, LoadOptions, Parameter, WaitingLibrary,
};
pub use reclaim::reaper;
pub use stream::{AsStream, DefaultStream, Event, EventOptions, Stream, StreamOptions};
pub use sync::{is_forked, panics, patience, set_patience};
