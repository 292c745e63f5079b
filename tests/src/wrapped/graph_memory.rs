//! The wrapped calls that free memory: no call of its own creates memory of a graph, so freeing it
//! must not count as the end of an allocation. Tests learn from the device whether some is left.

use std::collections::BTreeSet;
use std::sync::{Mutex, OnceLock, PoisonError};

use cuda_sys::{
    CUDA_MEM_ALLOC_NODE_PARAMS, CUdeviceptr, CUgraph, CUgraphNode, CUgraphNodeParams, CUgraphNodeType,
    CUresult, CUstream, Table,
};

use crate::record::live::{Kind, change_by};

type AddAlloc = unsafe extern "C" fn(
    *mut CUgraphNode,
    CUgraph,
    *const CUgraphNode,
    usize,
    *mut CUDA_MEM_ALLOC_NODE_PARAMS,
) -> CUresult;
type Free = unsafe extern "C" fn(CUdeviceptr) -> CUresult;
type FreeAsync = unsafe extern "C" fn(CUdeviceptr, CUstream) -> CUresult;

static ADD_ALLOC: OnceLock<AddAlloc> = OnceLock::new();
static FREE: OnceLock<Free> = OnceLock::new();
static FREE_ASYNC: OnceLock<FreeAsync> = OnceLock::new();

/// The addresses of all allocation nodes so far. A driver never gives them to other memory.
static ADDRESSES: Mutex<BTreeSet<CUdeviceptr>> = Mutex::new(BTreeSet::new());

fn remember(address: CUdeviceptr) {
    ADDRESSES.lock().unwrap_or_else(PoisonError::into_inner).insert(address);
}

/// Notes the address if the added node is an allocation node.
///
/// # Safety
/// The parameters describe a node.
pub(crate) unsafe fn note(params: &CUgraphNodeParams) {
    if params.type_ == CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEM_ALLOC {
        // SAFETY: the type says which field counts, and every byte has a value.
        remember(unsafe { params.__bindgen_anon_1.alloc.dptr });
    }
}

fn freed(address: CUdeviceptr, result: CUresult) -> CUresult {
    if result.is_success() && ADDRESSES.lock().unwrap_or_else(PoisonError::into_inner).contains(&address) {
        change_by(Kind::Allocation, 1);
    }
    result
}

unsafe extern "C" fn add_alloc(
    node: *mut CUgraphNode,
    graph: CUgraph,
    dependencies: *const CUgraphNode,
    count: usize,
    params: *mut CUDA_MEM_ALLOC_NODE_PARAMS,
) -> CUresult {
    let Some(original) = ADD_ALLOC.get() else { return CUresult::CUDA_ERROR_NOT_INITIALIZED };
    // SAFETY: handed on as it came; after its success the parameters are there.
    unsafe {
        let result = original(node, graph, dependencies, count, params);
        if result.is_success() {
            remember((*params).dptr);
        }
        result
    }
}

unsafe extern "C" fn free(address: CUdeviceptr) -> CUresult {
    let Some(original) = FREE.get() else { return CUresult::CUDA_ERROR_NOT_INITIALIZED };
    // SAFETY: handed on as it came.
    freed(address, unsafe { original(address) })
}

unsafe extern "C" fn free_async(address: CUdeviceptr, stream: CUstream) -> CUresult {
    let Some(original) = FREE_ASYNC.get() else { return CUresult::CUDA_ERROR_NOT_INITIALIZED };
    // SAFETY: handed on as it came.
    freed(address, unsafe { original(address, stream) })
}

/// Installs the wrappers.
pub(crate) fn wrap(table: &mut Table) {
    if ADD_ALLOC.set(table.cuGraphAddMemAllocNode).is_ok() {
        table.cuGraphAddMemAllocNode = add_alloc;
    }
    if FREE.set(table.cuMemFree).is_ok() {
        table.cuMemFree = free;
    }
    if FREE_ASYNC.set(table.cuMemFreeAsync).is_ok() {
        table.cuMemFreeAsync = free_async;
    }
}
