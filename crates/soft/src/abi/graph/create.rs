//! Making, cloning and destroying graphs, and destroying nodes.

use core::ffi::{CStr, c_char, c_uint};

use cuda_sys::{CUcontext, CUgraph, CUgraphConditionalHandle, CUgraphNode};

use crate::abi::table::Entries;
use crate::device::loss::crash;
use crate::driver::handle::{number, to_raw};
use crate::driver::pointer::{put, required};
use crate::driver::result_code::{ILLEGAL_STATE, INVALID_VALUE, NOT_SUPPORTED, OPERATING_SYSTEM};
use crate::graph::capture;
use crate::graph::model::store::{Owner, graphs};

pub(super) const fn add(entries: Entries) -> Entries {
    Entries {
        cuGraphCreate,
        cuGraphDestroy,
        cuGraphClone,
        cuGraphNodeFindInClone,
        cuGraphConditionalHandleCreate,
        cuGraphDestroyNode,
        cuGraphDebugDotPrint,
        ..entries
    }
}

entries! {
    init fn cuGraphCreate(out: *mut CUgraph, flags: c_uint) {
        required(out)?;
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        put(out, to_raw(graphs().create(Owner::User)))
    }

    initialised fn cuGraphDestroy(graph: CUgraph) {
        if capture::is_capturing(number(graph)) {
            return Err(ILLEGAL_STATE);
        }
        let leftovers = {
            let mut all = graphs();
            let own = all.graph(number(graph))?;
            if own.owner != Owner::User || own.is_lost {
                return Err(INVALID_VALUE);
            }
            all.ensure_whole(all.nodes_of(number(graph))?, "a graph is destroyed");
            all.discard(number(graph))
        };
        leftovers.end();
        Ok(())
    }

    init fn cuGraphClone(out: *mut CUgraph, original: CUgraph) {
        required(out)?;
        put(out, to_raw(graphs().clone_alone(number(original))?))
    }

    init fn cuGraphNodeFindInClone(out: *mut CUgraphNode, original: CUgraphNode, clone: CUgraph) {
        required(out)?;
        put(out, to_raw(graphs().find_in_clone(number(original), number(clone))?))
    }

    initialised fn cuGraphConditionalHandleCreate(
        out: *mut CUgraphConditionalHandle,
        graph: CUgraph,
        ctx: CUcontext,
        default: c_uint,
        flags: c_uint,
    ) {
        const ASSIGN_DEFAULT: c_uint = 1;
        required(out)?;
        if flags & !ASSIGN_DEFAULT != 0 {
            return Err(INVALID_VALUE);
        }
        let default = (flags & ASSIGN_DEFAULT != 0).then_some(default);
        put(out, graphs().create_condition(number(graph), number(ctx), default)?)
    }

    init fn cuGraphDestroyNode(node: CUgraphNode) {
        if capture::is_pending(number(node)) {
            return Err(ILLEGAL_STATE);
        }
        let leftovers = {
            let mut all = graphs();
            if all.is_destroyed(number(node)) {
                drop(all);
                crash("a graph node is destroyed twice");
            }
            let own = all.node(number(node))?;
            if all.holds_memory_nodes(own.graph) || all.census_of(&own.payload).updatable > 0 {
                return Err(NOT_SUPPORTED);
            }
            all.ensure_whole(vec![number(node)], "a node is destroyed");
            all.remove(number(node))
        };
        leftovers.end();
        Ok(())
    }

    initialised fn cuGraphDebugDotPrint(graph: CUgraph, path: *const c_char, flags: c_uint) {
        required(path)?;
        let text = graphs().dot(number(graph), flags)?;
        let path = CStr::from_ptr(path).to_str().map_err(|_| INVALID_VALUE)?;
        std::fs::write(path, text).map_err(|_| OPERATING_SYSTEM)
    }
}
