#![doc = include_str!("../README.md")]

mod detail;
mod edge;
mod error;
mod exec;
mod frontier;
mod graph;
mod kind;
mod node;
mod order;
mod picture;
mod table;
mod topology;

pub use edge::EdgeKind;
pub use error::{Error, InstantiateError, Result};
pub use exec::GraphExec;
pub use frontier::Frontier;
pub use graph::{ContextExt, Graph};
pub use kind::NodeKind;
pub use node::{EmptyNode, KernelNode, MemcpyNode, MemsetNode, Node};
pub use topology::Edge;
