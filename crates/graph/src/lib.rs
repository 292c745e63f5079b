#![doc = include_str!("../README.md")]

mod error;
mod exec;
mod frontier;
mod graph;
mod node;
mod order;
mod owners;
mod picture;
mod topology;

pub use error::{Error, InstantiateError, Result};
pub use exec::GraphExec;
pub use frontier::Frontier;
pub use graph::{ContextExt, Graph};
pub use node::{EmptyNode, KernelNode, MemcpyNode, MemsetNode, Node, NodeKind};
pub use topology::Edge;
