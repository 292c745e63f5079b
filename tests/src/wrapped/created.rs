//! The wrapped `cuGraphCreate`: it remembers the raw graph, so that tests can ask the driver about
//! it past the library.

use core::cell::Cell;
use core::ffi::c_uint;
use core::ptr;
use std::sync::OnceLock;

use cuda_sys::{CUgraph, CUresult, Table};

type Create = unsafe extern "C" fn(*mut CUgraph, c_uint) -> CUresult;

static CREATE: OnceLock<Create> = OnceLock::new();

thread_local! {
    static LAST: Cell<CUgraph> = const { Cell::new(ptr::null_mut()) };
}

unsafe extern "C" fn create(graph: *mut CUgraph, flags: c_uint) -> CUresult {
    let Some(original) = CREATE.get() else { return CUresult::CUDA_ERROR_NOT_INITIALIZED };
    // SAFETY: handed on as it came.
    let result = unsafe { original(graph, flags) };
    if result.is_success() {
        // SAFETY: the driver has written it.
        LAST.set(unsafe { *graph });
    }
    result
}

/// Installs the wrapper.
pub(crate) fn wrap(table: &mut Table) {
    if CREATE.set(table.cuGraphCreate).is_ok() {
        table.cuGraphCreate = create;
    }
}

/// The graph that this thread created last.
///
/// # Panics
/// The thread has created none.
#[must_use]
pub fn last_graph() -> CUgraph {
    let graph = LAST.get();
    assert!(!graph.is_null(), "this thread has created no graph");
    graph
}
