//! One node of a graph.

use super::edge::Edge;
use super::ordered_map::OrderedMap;
use super::param_block::ParamBlock;
use super::payload::Payload;

/// A node.
#[derive(Debug)]
pub(crate) struct Node {
    /// Unique, unlike the handle.
    pub(crate) uid: u64,
    /// Its number in its graph, never reused.
    pub(crate) local: u32,
    pub(crate) graph: u64,
    pub(crate) payload: Payload,
    /// The block that read-backs of kernel parameters point into, once there was one.
    pub(crate) block: Option<ParamBlock>,
    /// Its dependencies when it was added.
    pub(crate) added_after: Box<[u64]>,
    /// Its dependencies, in the order added.
    pub(crate) dependencies: OrderedMap<Edge>,
    /// Its dependents, in the order added.
    pub(crate) dependents: OrderedMap<Edge>,
}
