//! One node of a graph.

use super::edge::Edge;
use super::ordered_map::OrderedMap;
use super::param_block::ParamBlock;
use super::payload::Payload;

/// A node.
#[derive(Debug)]
pub(crate) struct Node {
    /// Never reused, unlike the handle.
    pub(crate) uid: u64,
    /// Its number in its graph, counting up and never reused.
    pub(crate) local: u32,
    pub(crate) graph: u64,
    pub(crate) payload: Payload,
    /// What a read-back of kernel parameters points into, once there was one.
    pub(crate) block: Option<ParamBlock>,
    /// What it depended on as it was added.
    pub(crate) added_after: Box<[u64]>,
    /// What it depends on, in the order added.
    pub(crate) dependencies: OrderedMap<Edge>,
    /// What depends on it, in the order added.
    pub(crate) dependents: OrderedMap<Edge>,
}
