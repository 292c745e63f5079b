//! The names that most programs use, in one import: `use cuda_graph::prelude::*;`.
//!
//! ```no_run
//! use cuda_graph::prelude::*;
//!
//! # fn main() -> std::result::Result<(), Box<dyn std::error::Error>> {
//! let context = Device::new(0)?.context()?;
//! let stream = context.stream()?;
//! let zeros: Buffer<f32> = stream.zeros(1024)?;
//! let graph = context.graph()?;
//! graph.root().fill(&zeros, 1.0)?.then().empty()?;
//! graph.instantiate()?.launch(&stream)?;
//! # Ok(())
//! # }
//! ```

pub use cuda_handles::capture::CaptureMode;
pub use cuda_handles::{
    Buffer, Context, Device, Event, HostBuffer, Image, Kernel, Library, SharedHostBuffer, Slice, Stream,
};
pub use cuda_launch::{Launch, LaunchConfig, SafeKernel, TypedKernel, kernel, params, per, per_2d};

pub use crate::{
    CacheOptions, Condition, ContextExt, EdgeKind, Frontier, Graph, GraphBuilder, GraphCache, GraphExec,
    GraphParam, InstantiateOptions, Node, NodeKind, Repeat, StreamExt, Test,
};
