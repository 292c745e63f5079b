#![doc = include_str!("../README.md")]

// The table of `runtime` names this crate's items as a user would.
extern crate self as cuda_graph;

mod alloc_options;
mod build;
mod cache;
pub mod capture;
mod check;
mod clone;
mod condition;
mod draw;
mod edge;
mod edge_kind;
mod error;
mod exec;
mod footprint;
mod graph;
#[doc(hidden)]
pub mod internal;
mod interop;
mod loops;
mod memory;
mod node;
mod node_kind;
mod node_name;
mod own_kernels;
mod param;
pub mod prelude;
#[doc = include_str!("runtime.md")]
pub mod runtime {}
mod shape;
mod state;
mod toposort;
mod update;
mod wording;

pub use cuda_handles as handles;
pub use cuda_launch as launch;
pub use cuda_sys as sys;

pub use cuda_handles::{CallbackPanic, HostView, set_panic_hook};

pub use alloc_options::{AllocOptions, AllocPlace};
pub use build::dataflow::Dataflow;
pub use build::frontier::Frontier;
pub use cache::cached_exec::CachedExec;
pub use cache::executable::Executable;
pub use cache::graph_cache::GraphCache;
pub use cache::options::CacheOptions;
pub use cache::pool::{ExecPool, PooledExec};
pub use cache::statistics::{CachePath, CacheStatistics, EntryStatistics, LastCall};
pub use capture::{GraphBuilder, StreamExt};
pub use check::{
    CheckOptions, Finding, FoundNode, NotCompared, OpaqueNode, Opaqueness, Race, RacingAccess, RacingMemory,
    Report, Severity, Stopped,
};
pub use condition::Condition;
pub use draw::DebugDotFlags;
pub use edge::Edge;
pub use edge_kind::EdgeKind;
pub use error::instantiate::InstantiateError;
pub use error::memory_order::{Disorder, MemoryOrder};
pub use error::{
    Broken, CacheError, CaptureError, ConditionError, DrawError, EdgeError, EmbedError, Error, ExecError,
    HostLoopError, HostRound, InteropError, LoopError, Meeting, MemoryError, NodeError, ParamError, Refusal,
    RefusalReason, Result, StaleConstant, UpdateError,
};
pub use exec::GraphExec;
pub use exec::options::InstantiateOptions;
pub use graph::node::Node;
pub use graph::{ContextExt, Graph};
pub use loops::host::{Fallback, HostCounts, HostLoopExec};
pub use loops::{Branch, Loop, LoopBody, Repeat, Test, Testable};
pub use memory::{OutputBuffer, Outputs};
pub use node::{
    AccessPolicyWindow, AllocNode, BatchNode, CacheUse, ChildGraphNode, ClusterScheduling, EmptyNode,
    EventRecordNode, EventWaitNode, FreeNode, HostCallbackNode, HostFunction, IfElseNode, IfNode, KernelNode,
    MemcpyNode, MemsetNode, NodeArgument, NodeAttribute, NodeAttributeKind, RawCopy, RawFill, RawMemory,
    SemaphoreSignalNode, SemaphoreWaitNode, SwitchNode, WhileNode,
};
pub use node_kind::NodeKind;
pub use node_name::NodeName;
pub use param::config::{NodeConfig, ParamConfig};
pub use param::fill_value::FillValue;
pub use param::graph_param::{ByValue, GraphParam, IntoParam, ParamArg, ParamLen, ParamType};
pub use param::node_event::NodeEvent;
pub use shape::by_data::dropped::WhyDropped;
pub use shape::options::{Order, Shape};
pub use shape::report::{DroppedEdge, ShapeFigures, ShapeReport};
pub use update::enable::CanBeDisabled;
pub use update::exec_node::ExecNode;
pub use update::params::ParamValues;
pub use update::whole::Update;
