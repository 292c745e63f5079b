//! Arrays of nodes and edge data as arguments.

use cuda_sys::{CUgraphEdgeData, CUgraphNode};

use crate::driver::handle::number;
use crate::driver::pointer::slice;
use crate::driver::result_code::Answer;
use crate::graph::edit::edge;
use crate::graph::model::edge::Edge;
use crate::graph::model::store::store;

/// The nodes up to the first that does not exist: a call fails there, whatever its count.
pub(in crate::abi) fn up_to_unknown(nodes: &[CUgraphNode]) -> &[CUgraphNode] {
    let store = store();
    let unknown = nodes.iter().position(|node| store.graphs.node(number(*node)).is_err());
    unknown.and_then(|unknown| nodes.get(..=unknown)).unwrap_or(nodes)
}

/// Parses nodes and edge data; null edge data is plain edges.
///
/// # Safety
/// The arrays are null or valid for `count` elements.
pub(in crate::abi) unsafe fn read_nodes(
    nodes: *const CUgraphNode,
    edges: *const CUgraphEdgeData,
    count: usize,
) -> Answer<Vec<(u64, Edge)>> {
    // SAFETY: the caller's promise.
    let nodes = up_to_unknown(unsafe { slice(nodes, count)? });
    // SAFETY: the caller's promise.
    let edges = if edges.is_null() { &[] } else { unsafe { slice(edges, nodes.len())? } };
    let read =
        nodes.iter().enumerate().map(|(index, node)| Ok((number(*node), edge::parse(edges.get(index))?)));
    read.collect()
}
