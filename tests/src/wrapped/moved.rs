//! The wrapped calls that add nodes: a graph that is moved into a node no longer has to be
//! destroyed.

use std::sync::OnceLock;

use cuda_sys::{
    CUgraph, CUgraphChildGraphNodeOwnership, CUgraphEdgeData, CUgraphNode, CUgraphNodeParams,
    CUgraphNodeType, CUresult, Table,
};

use super::graph_memory;
use crate::record::live::{Kind, change_by};

type Add = unsafe extern "C" fn(
    *mut CUgraphNode,
    CUgraph,
    *const CUgraphNode,
    usize,
    *mut CUgraphNodeParams,
) -> CUresult;
type AddWithEdges = unsafe extern "C" fn(
    *mut CUgraphNode,
    CUgraph,
    *const CUgraphNode,
    *const CUgraphEdgeData,
    usize,
    *mut CUgraphNodeParams,
) -> CUresult;

static ADD: OnceLock<Add> = OnceLock::new();
static ADD_WITH_EDGES: OnceLock<AddWithEdges> = OnceLock::new();

/// Notes whether an added node has moved a graph, or is an allocation node.
///
/// # Safety
/// The parameters are null or describe a node.
unsafe fn note(params: *const CUgraphNodeParams, result: CUresult) {
    // SAFETY: as the caller promises.
    let Some(params) = (unsafe { params.as_ref() }) else { return };
    if result.is_success() {
        // SAFETY: as the caller promises.
        unsafe { graph_memory::note(params) };
    }
    if !result.is_success() || params.type_ != CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH {
        return;
    }
    // SAFETY: the type says which field counts, and every byte has a value.
    let ownership = unsafe { params.__bindgen_anon_1.graph.ownership };
    if ownership == CUgraphChildGraphNodeOwnership::CU_GRAPH_CHILD_GRAPH_OWNERSHIP_MOVE {
        change_by(Kind::Graph, -1);
    }
}

unsafe extern "C" fn add(
    node: *mut CUgraphNode,
    graph: CUgraph,
    dependencies: *const CUgraphNode,
    count: usize,
    params: *mut CUgraphNodeParams,
) -> CUresult {
    let Some(original) = ADD.get() else { return CUresult::CUDA_ERROR_NOT_INITIALIZED };
    // SAFETY: handed on as it came.
    unsafe {
        let result = original(node, graph, dependencies, count, params);
        note(params, result);
        result
    }
}

unsafe extern "C" fn add_with_edges(
    node: *mut CUgraphNode,
    graph: CUgraph,
    dependencies: *const CUgraphNode,
    edges: *const CUgraphEdgeData,
    count: usize,
    params: *mut CUgraphNodeParams,
) -> CUresult {
    let Some(original) = ADD_WITH_EDGES.get() else { return CUresult::CUDA_ERROR_NOT_INITIALIZED };
    // SAFETY: handed on as it came.
    unsafe {
        let result = original(node, graph, dependencies, edges, count, params);
        note(params, result);
        result
    }
}

/// Installs the wrappers.
pub(crate) fn wrap(table: &mut Table) {
    if ADD.set(table.cuGraphAddNode).is_ok() {
        table.cuGraphAddNode = add;
    }
    if let Some(original) = table.cuGraphAddNode_v12030
        && ADD_WITH_EDGES.set(original).is_ok()
    {
        table.cuGraphAddNode_v12030 = Some(add_with_edges);
    }
}
