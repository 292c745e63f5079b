#![doc = include_str!("../README.md")]

mod adopt;
mod ask;
mod body;
mod check;
mod clone;
mod condition;
mod conditions;
mod configuration;
mod copy;
mod deciding;
mod detail;
mod edge;
mod elsewhere;
mod ending;
mod error;
mod exec;
mod frontier;
mod graph;
mod home;
mod host_loop;
mod insert;
mod instantiate;
mod instantiate_error;
mod interop;
mod kind;
mod last_runs;
mod lent;
mod lineage;
mod loops;
mod memory;
mod name;
mod node;
mod options;
mod order;
mod owners;
mod picture;
mod place;
mod read;
mod ready;
mod setter;
mod share;
mod shared;
mod summary;
mod table;
mod topology;
mod words;

pub use cuda_handles::{CallbackPanic, HostView, set_panic_hook};

pub use check::{
    CheckOptions, Finding, FoundNode, NotCompared, OpaqueNode, Opaqueness, Race, RacingAccess, RacingMemory,
    Report, Severity, Stopped,
};
pub use condition::Condition;
pub use edge::EdgeKind;
pub use error::{Error, HalfDone, HostLoopError, HostRound, Result};
pub use exec::GraphExec;
pub use frontier::Frontier;
pub use graph::{ContextExt, Graph};
pub use host_loop::{Fallback, HostCounts, HostLoopExec};
pub use instantiate_error::InstantiateError;
pub use kind::NodeKind;
pub use loops::{Branch, Loop, LoopBody, Repeat, Test, Testable};
pub use memory::{AllocOptions, AllocPlace, Disorder, MemoryOrder, OutputBuffer, Outputs};
pub use name::NodeName;
pub use node::{
    AccessPolicyWindow, AllocNode, BatchNode, CacheUse, ChildGraphNode, ClusterScheduling, EmptyNode,
    EventRecordNode, EventWaitNode, FreeNode, HostCallbackNode, HostFunction, IfElseNode, IfNode, KernelNode,
    MemcpyNode, MemsetNode, Node, NodeAttribute, NodeAttributeKind, RawCopy, RawFill, RawMemory,
    SemaphoreSignalNode, SemaphoreWaitNode, SwitchNode, WhileNode,
};
pub use options::InstantiateOptions;
pub use picture::DebugDotFlags;
pub use topology::Edge;
