#![doc = include_str!("../README.md")]

pub mod capture;
pub mod capture_mode;
pub mod clones;
#[doc(hidden)]
pub mod host_function;
#[cfg(feature = "nvrtc")]
pub mod nvrtc;
pub mod panics;
pub mod reaper;

mod batch;
mod brief;
mod callback;
mod captures;
mod context;
mod default_stream;
mod device;
mod elapsed;
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
mod names;
mod no_time;
mod owner;
mod patience;
mod primary;
mod process;
mod profiler;
mod raw;
mod recorded;
mod registry;
mod same;
mod scheduling;
mod semaphore;
mod shared_library;
mod stream;
mod sync;
mod user_object;
mod wrong_context;
mod wrong_variable;

pub use batch::{BarrierScope, Batch, BatchOperation, BatchWord, Compare};
pub use context::Context;
pub use default_stream::DefaultStream;
pub use device::Device;
pub use error::{Cause, Error, Result};
pub use event::{Event, EventOptions};
pub use graph::{ExecEnd, GraphExecHandle, GraphHandle};
pub use host_function::{CallbackPanic, HostViews, Viewable, set_panic_hook};
pub use image::Image;
pub use ipc::{IpcBuffer, IpcEvent};
pub use jit::LoadOptions;
pub use kept::Kept;
pub use kernel::{Kernel, KernelAttributes, Parameter};
pub use library::Library;
pub use limits::Limits;
pub use linker::Linker;
pub use memory::{
    AddressInfo, Allocation, Buffer, Copy2d, Copy3d, CopyLayout, CopySide, Element, FillLayout, GraphBuffer,
    GraphMemoryUsage, GraphSlice, HostBuffer, HostView, MemPool, MemoryKind, MemorySpace, NodeMemory,
    NotUnique, PoolAccess, PoolOptions, PoolReuse, PoolUsage, Refused, RegisterOptions, SharedHostBuffer,
    SharedView, Slice,
};
#[doc(hidden)]
pub use memory::{assert_value, graph_memory};
pub use names::Near;
pub use no_time::{NoTime, Which};
pub use owner::Owner;
#[doc(hidden)]
pub use patience::lock_unless_inside;
pub use patience::{patience, set_patience};
pub use process::is_forked;
pub use scheduling::Scheduling;
pub use semaphore::{ExternalSemaphore, SemaphoreKind};
#[doc(hidden)]
pub use stream::WeakStream;
pub use stream::{AsStream, Stream, StreamOptions};
pub use user_object::UserObject;
pub use wrong_context::{ContextName, WrongContext};
pub use wrong_variable::WrongVariable;
