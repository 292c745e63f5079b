//! Edge calls, and queries of nodes and edges.

use cuda_sys::{CUgraph, CUgraphEdgeData, CUgraphNode};

use super::node_list::up_to_unknown;
use crate::abi::table::Entries;
use crate::driver::handle::{number, to_raw};
use crate::driver::pointer::{required, slice};
use crate::driver::result_code::{Answer, INVALID_VALUE, LOSSY_QUERY};
use crate::graph::edit::edge;
use crate::graph::model::edge::Edge;
use crate::graph::model::graphs::Graphs;
use crate::graph::model::node::Node;
use crate::graph::model::ordered_map::OrderedMap;
use crate::graph::model::store::store;

pub(super) const fn add(entries: Entries) -> Entries {
    Entries {
        cuGraphAddDependencies,
        cuGraphAddDependencies_v12030,
        cuGraphRemoveDependencies,
        cuGraphRemoveDependencies_v12030,
        cuGraphGetNodes,
        cuGraphGetRootNodes,
        cuGraphGetEdges,
        cuGraphGetEdges_v12030,
        cuGraphNodeGetDependencies,
        cuGraphNodeGetDependencies_v12030,
        cuGraphNodeGetDependentNodes,
        cuGraphNodeGetDependentNodes_v12030,
        ..entries
    }
}

/// Applies `act` to edges one by one. A failure leaves the earlier ones done.
///
/// # Safety
/// The arrays are null or valid for `count` elements.
unsafe fn each_edge(
    graph: CUgraph,
    from: *const CUgraphNode,
    to: *const CUgraphNode,
    count: usize,
    act: impl Fn(&mut Graphs, u64, u64) -> Answer,
) -> Answer {
    let mut store = store();
    store.graphs.graph(number(graph))?;
    // SAFETY: the caller's promise.
    let (from, to) = unsafe { (slice(from, count)?, slice(to, count)?) };
    from.iter().zip(to).try_for_each(|(from, to)| act(&mut store.graphs, number(*from), number(*to)))
}

/// The number of edges up to the first one without a node, where the call fails.
///
/// # Safety
/// As [`each_edge`].
unsafe fn possible(from: *const CUgraphNode, to: *const CUgraphNode, count: usize) -> Answer<usize> {
    // SAFETY: the caller's promise.
    let (from, to) = unsafe { (slice(from, count)?, slice(to, count)?) };
    Ok(up_to_unknown(from).len().min(up_to_unknown(to).len()))
}

/// Parses the edge data of one call; null is plain edges.
///
/// # Safety
/// The data is null or valid for `count` elements.
unsafe fn parse_all(data: *const CUgraphEdgeData, count: usize) -> Answer<Vec<Edge>> {
    if data.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: the caller's promise.
    unsafe { slice(data, count)? }.iter().map(|raw| edge::parse(Some(raw))).collect()
}

/// Adds edges. All of them get the data of the first.
///
/// # Safety
/// As [`each_edge`]; the edge data too.
unsafe fn add_edges(
    graph: CUgraph,
    from: *const CUgraphNode,
    to: *const CUgraphNode,
    data: *const CUgraphEdgeData,
    count: usize,
) -> Answer {
    // SAFETY: the caller's promise.
    unsafe {
        let count = possible(from, to, count)?;
        let edge = parse_all(data, count)?.first().copied().unwrap_or_default();
        each_edge(graph, from, to, count, |graphs, from, to| {
            edge::add_edge(graphs, number(graph), from, to, edge)
        })
    }
}

/// Removes edges. Their data need not match, but must be the same for all.
///
/// # Safety
/// As [`add_edges`].
unsafe fn remove_edges(
    graph: CUgraph,
    from: *const CUgraphNode,
    to: *const CUgraphNode,
    data: *const CUgraphEdgeData,
    count: usize,
) -> Answer {
    // SAFETY: the caller's promise.
    unsafe {
        let count = possible(from, to, count)?;
        let differs = !data.is_null() && slice(data, count)?.windows(2).any(|pair| !same(&pair[0], &pair[1]));
        if differs {
            return Err(INVALID_VALUE);
        }
        each_edge(graph, from, to, count, |graphs, from, to| {
            edge::remove_edge(graphs, number(graph), from, to)
        })
    }
}

fn same(one: &CUgraphEdgeData, other: &CUgraphEdgeData) -> bool {
    let fields = |data: &CUgraphEdgeData| (data.from_port, data.to_port, data.type_);
    fields(one) == fields(other)
}

/// Larger buffers exceed the address space.
const MOST_ROOM: usize = isize::MAX as usize / size_of::<CUgraphNode>();

/// Writes a list as queries do: without a buffer its length, otherwise as many elements as fit, and
/// null for the rest.
///
/// # Safety
/// `out` is null or valid for `*count` elements.
unsafe fn write_list(list: &[u64], out: *mut CUgraphNode, count: *mut usize) -> Answer {
    required(count)?;
    // SAFETY: not null, and so valid by the caller's promise.
    let room = unsafe { count.read_unaligned() };
    if out.is_null() {
        // SAFETY: as above.
        unsafe { count.write_unaligned(list.len()) };
        return Ok(());
    }
    if room == 0 || room > MOST_ROOM {
        return Err(INVALID_VALUE);
    }
    for index in 0..room {
        // SAFETY: inside the room that the caller promised.
        unsafe {
            out.add(index)
                .write_unaligned(list.get(index).map_or(core::ptr::null_mut(), |node| to_raw(*node)))
        };
    }
    // SAFETY: as above.
    unsafe { count.write_unaligned(room.min(list.len())) };
    Ok(())
}

/// Writes the data of the edges that fit. Without a buffer, they must all be plain.
///
/// # Safety
/// `out` is null or valid for `room` elements.
unsafe fn write_data(edges: &[Edge], out: *mut CUgraphEdgeData, room: usize) -> Answer {
    let returned = edges.get(..room.min(edges.len())).unwrap_or(edges);
    if out.is_null() {
        return if returned.iter().all(|edge| edge.is_plain()) { Ok(()) } else { Err(LOSSY_QUERY) };
    }
    if room > MOST_ROOM {
        return Err(INVALID_VALUE);
    }
    for index in 0..room {
        let raw = returned.get(index).map_or_else(CUgraphEdgeData::default, |edge| edge.raw());
        // SAFETY: inside the room that the caller promised.
        unsafe { out.add(index).write_unaligned(raw) };
    }
    Ok(())
}

/// # Safety
/// The buffers are null or valid for `*count` elements.
unsafe fn write_neighbours(
    node: CUgraphNode,
    which: fn(&Node) -> &OrderedMap<Edge>,
    out: *mut CUgraphNode,
    data: *mut CUgraphEdgeData,
    count: *mut usize,
) -> Answer {
    required(count)?;
    let (nodes, edges): (Vec<u64>, Vec<Edge>) = which(store().graphs.node(number(node))?).iter().unzip();
    if out.is_null() && !data.is_null() {
        return Err(INVALID_VALUE);
    }
    if !out.is_null() {
        // SAFETY: the caller's promise.
        unsafe { write_data(&edges, data, count.read_unaligned())? };
    }
    // SAFETY: the caller's promise.
    unsafe { write_list(&nodes, out, count) }
}

/// # Safety
/// The buffers are null or valid for `*count` elements.
unsafe fn write_edges(
    graph: CUgraph,
    from: *mut CUgraphNode,
    to: *mut CUgraphNode,
    data: *mut CUgraphEdgeData,
    count: *mut usize,
) -> Answer {
    required(count)?;
    let edges = edge::edges(&store().graphs, number(graph))?;
    if from.is_null() != to.is_null() || (from.is_null() && !data.is_null()) {
        return Err(INVALID_VALUE);
    }
    let ends = |pick: fn(&(u64, u64, Edge)) -> u64| -> Vec<u64> { edges.iter().map(pick).collect() };
    let kinds: Vec<Edge> = edges.iter().map(|(_, _, edge)| *edge).collect();
    // SAFETY: the caller's promise.
    unsafe {
        let room = count.read_unaligned();
        if !from.is_null() {
            write_data(&kinds, data, room)?;
        }
        write_list(&ends(|edge| edge.0), from, count)?;
        let written = count.read_unaligned();
        count.write_unaligned(room);
        write_list(&ends(|edge| edge.1), to, count)?;
        count.write_unaligned(written);
    }
    Ok(())
}

entries! {
    initialised fn cuGraphAddDependencies(graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, count: usize) {
        add_edges(graph, from, to, core::ptr::null(), count)
    }

    initialised fn cuGraphAddDependencies_v12030(
        graph: CUgraph,
        from: *const CUgraphNode,
        to: *const CUgraphNode,
        data: *const CUgraphEdgeData,
        count: usize,
    ) {
        add_edges(graph, from, to, data, count)
    }

    initialised fn cuGraphRemoveDependencies(graph: CUgraph, from: *const CUgraphNode, to: *const CUgraphNode, count: usize) {
        remove_edges(graph, from, to, core::ptr::null(), count)
    }

    initialised fn cuGraphRemoveDependencies_v12030(
        graph: CUgraph,
        from: *const CUgraphNode,
        to: *const CUgraphNode,
        data: *const CUgraphEdgeData,
        count: usize,
    ) {
        remove_edges(graph, from, to, data, count)
    }

    init fn cuGraphGetNodes(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize) {
        let list = store().graphs.nodes_of(number(graph))?;
        write_list(&list, nodes, count)
    }

    init fn cuGraphGetRootNodes(graph: CUgraph, nodes: *mut CUgraphNode, count: *mut usize) {
        let list = {
            let store = store();
            let mut list = store.graphs.nodes_of(number(graph))?;
            list.retain(|node| store.graphs.node(*node).is_ok_and(|node| node.dependencies.is_empty()));
            list
        };
        write_list(&list, nodes, count)
    }

    init fn cuGraphGetEdges(graph: CUgraph, from: *mut CUgraphNode, to: *mut CUgraphNode, count: *mut usize) {
        write_edges(graph, from, to, core::ptr::null_mut(), count)
    }

    init fn cuGraphGetEdges_v12030(
        graph: CUgraph,
        from: *mut CUgraphNode,
        to: *mut CUgraphNode,
        data: *mut CUgraphEdgeData,
        count: *mut usize,
    ) {
        write_edges(graph, from, to, data, count)
    }

    init fn cuGraphNodeGetDependencies(node: CUgraphNode, out: *mut CUgraphNode, count: *mut usize) {
        write_neighbours(node, |node| &node.dependencies, out, core::ptr::null_mut(), count)
    }

    init fn cuGraphNodeGetDependencies_v12030(
        node: CUgraphNode,
        out: *mut CUgraphNode,
        data: *mut CUgraphEdgeData,
        count: *mut usize,
    ) {
        write_neighbours(node, |node| &node.dependencies, out, data, count)
    }

    init fn cuGraphNodeGetDependentNodes(node: CUgraphNode, out: *mut CUgraphNode, count: *mut usize) {
        write_neighbours(node, |node| &node.dependents, out, core::ptr::null_mut(), count)
    }

    init fn cuGraphNodeGetDependentNodes_v12030(
        node: CUgraphNode,
        out: *mut CUgraphNode,
        data: *mut CUgraphEdgeData,
        count: *mut usize,
    ) {
        write_neighbours(node, |node| &node.dependents, out, data, count)
    }
}
