//! User object calls.

use core::ffi::{c_uint, c_void};

use cuda_sys::{CUgraph, CUhostFn, CUuserObject};

use crate::abi::table::Entries;
use crate::driver::handle::{number, to_raw};
use crate::driver::pointer::{put, required};
use crate::driver::result_code::INVALID_VALUE;
use crate::graph::model::store::store;
use crate::graph::model::user_object;
use crate::stream::callback::Callback;

pub(super) const fn add(entries: Entries) -> Entries {
    Entries {
        cuUserObjectCreate,
        cuUserObjectRetain,
        cuUserObjectRelease,
        cuGraphRetainUserObject,
        cuGraphReleaseUserObject,
        ..entries
    }
}

const NO_DESTRUCTOR_SYNC: c_uint = 1;
const MOVE: c_uint = 1;
const MOST: c_uint = i32::MAX as c_uint;

entries! {
    always fn cuUserObjectCreate(
        out: *mut CUuserObject,
        ptr: *mut c_void,
        destroy: CUhostFn,
        count: c_uint,
        flags: c_uint,
    ) {
        required(out)?;
        let function = destroy.ok_or(INVALID_VALUE)?;
        if flags != NO_DESTRUCTOR_SYNC || count == 0 {
            return Err(INVALID_VALUE);
        }
        put(out, to_raw(user_object::create(Callback { function, data: ptr }, count)))
    }

    initialised fn cuUserObjectRetain(object: CUuserObject, count: c_uint) {
        if object.is_null() || count == 0 || count > MOST {
            return Err(INVALID_VALUE);
        }
        user_object::retain(number(object), count);
        Ok(())
    }

    initialised fn cuUserObjectRelease(object: CUuserObject, count: c_uint) {
        if object.is_null() || count == 0 || count > MOST {
            return Err(INVALID_VALUE);
        }
        if let Some(destructor) = user_object::release(number(object), count) {
            destructor.destruct();
        }
        Ok(())
    }

    initialised fn cuGraphRetainUserObject(graph: CUgraph, object: CUuserObject, count: c_uint, flags: c_uint) {
        if object.is_null() || count == 0 || count > MOST || flags & !MOVE != 0 {
            return Err(INVALID_VALUE);
        }
        let mut store = store();
        let graph = store.graphs.graph_mut(number(graph))?;
        if flags == MOVE {
            user_object::expect_live(number(object));
        } else {
            user_object::retain(number(object), count);
        }
        graph.objects.add(number(object), count);
        Ok(())
    }

    initialised fn cuGraphReleaseUserObject(graph: CUgraph, object: CUuserObject, count: c_uint) {
        if object.is_null() || count == 0 || count > MOST {
            return Err(INVALID_VALUE);
        }
        let destructor = {
            let mut store = store();
            store.graphs.graph_mut(number(graph))?.objects.remove(number(object), count);
            user_object::release(number(object), count)
        };
        if let Some(destructor) = destructor {
            destructor.destruct();
        }
        Ok(())
    }
}
