//! The wrapped `cuUserObjectCreate`: it sees destructors, which the driver calls by itself.

use core::ffi::{c_uint, c_void};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use cuda_sys::{CUhostFn, CUresult, CUuserObject, Table};

use crate::record::heap;
use crate::record::live::{Kind, change_by};
use crate::record::watch::in_destructor;

type Create = unsafe extern "C" fn(*mut CUuserObject, *mut c_void, CUhostFn, c_uint, c_uint) -> CUresult;

static CREATE: OnceLock<Create> = OnceLock::new();
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

struct Wrapped {
    data: *mut c_void,
    destroy: CUhostFn,
}

unsafe extern "C" fn destroyed(data: *mut c_void) {
    // SAFETY: `create` made the pointer from a box, and the driver calls a destructor once.
    let wrapped = unsafe { Box::from_raw(data.cast::<Wrapped>()) };
    let before = heap::allocations();
    let inside = heap::set_in_driver(false);
    // Before the destructor, since a test that waits for it may look at the count at once.
    change_by(Kind::UserObject, -1);
    in_destructor(|| {
        if let Some(destroy) = wrapped.destroy {
            // SAFETY: the destructor and its argument, as they were given.
            unsafe { destroy(wrapped.data) };
        }
    });
    ALLOCATIONS.fetch_add(heap::allocations() - before, Ordering::SeqCst);
    heap::set_in_driver(inside);
}

unsafe extern "C" fn create(
    object: *mut CUuserObject,
    data: *mut c_void,
    destroy: CUhostFn,
    count: c_uint,
    flags: c_uint,
) -> CUresult {
    let Some(original) = CREATE.get() else { return CUresult::CUDA_ERROR_NOT_INITIALIZED };
    if destroy.is_none() {
        // SAFETY: handed on as it came.
        return unsafe { original(object, data, destroy, count, flags) };
    }
    let wrapped = Box::into_raw(Box::new(Wrapped { data, destroy }));
    // SAFETY: handed on as it came, but for the destructor and its argument, which go together.
    let result = unsafe { original(object, wrapped.cast(), Some(destroyed), count, flags) };
    if !result.is_success() {
        // SAFETY: the driver took nothing, so the box is still ours alone.
        drop(unsafe { Box::from_raw(wrapped) });
    }
    result
}

/// Installs the wrapper.
pub(crate) fn wrap(table: &mut Table) {
    if CREATE.set(table.cuUserObjectCreate).is_ok() {
        table.cuUserObjectCreate = create;
    }
}

/// The number of heap allocations inside destructors of user objects.
#[must_use]
pub fn allocations_in_destructors() -> u64 {
    ALLOCATIONS.load(Ordering::SeqCst)
}
