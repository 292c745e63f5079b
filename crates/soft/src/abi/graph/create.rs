//! Calls that create, clone, print and destroy graphs, and destroy nodes.

use crate::graph::dot;
use crate::graph::edit::clone;
use crate::graph::edit::conditional;
use crate::graph::edit::remove;
use crate::graph::model::hierarchy;
use crate::graph::model::node_limits;
use core::ffi::{CStr, c_char, c_uint};

use cuda_sys::{CUcontext, CUgraph, CUgraphConditionalHandle, CUgraphNode};

use crate::abi::table::Entries;
use crate::driver::abort::crash;
use crate::driver::handle::{number, to_raw};
use crate::driver::pointer::{put, required};
use crate::driver::result_code::{ILLEGAL_STATE, INVALID_VALUE, NOT_SUPPORTED, OPERATING_SYSTEM};
use crate::graph::capture;
use crate::graph::model::graph::Owner;
use crate::graph::model::store::store;

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
        put(out, to_raw(store().graphs.create(Owner::User)))
    }

    initialised fn cuGraphDestroy(graph: CUgraph) {
        if capture::is_capturing(number(graph)) {
            return Err(ILLEGAL_STATE);
        }
        let leftovers = {
            let mut store = store();
            let own = store.graphs.graph(number(graph))?;
            if own.owner != Owner::User || own.is_lost {
                return Err(INVALID_VALUE);
            }
            hierarchy::ensure_whole(&store.graphs, store.graphs.nodes_of(number(graph))?, "a graph is destroyed");
            remove::remove_graph(&mut store.graphs, number(graph))
        };
        leftovers.end();
        Ok(())
    }

    init fn cuGraphClone(out: *mut CUgraph, original: CUgraph) {
        required(out)?;
        put(out, to_raw(clone::clone_graph(&mut store().graphs, number(original))?))
    }

    init fn cuGraphNodeFindInClone(out: *mut CUgraphNode, original: CUgraphNode, clone: CUgraph) {
        required(out)?;
        put(out, to_raw(clone::find_in_clone(&store().graphs, number(original), number(clone))?))
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
        put(out, conditional::create_condition(&mut store().graphs, number(graph), number(ctx), default)?)
    }

    init fn cuGraphDestroyNode(node: CUgraphNode) {
        if capture::holds(number(node)) {
            return Err(ILLEGAL_STATE);
        }
        let leftovers = {
            let mut store = store();
            if store.graphs.is_destroyed(number(node)) {
                drop(store);
                crash("a graph node is destroyed twice");
            }
            let own = store.graphs.node(number(node))?;
            if node_limits::holds_memory_nodes(&store.graphs, own.graph) || node_limits::of_payload(&store.graphs, &own.payload).updatable > 0 {
                return Err(NOT_SUPPORTED);
            }
            hierarchy::ensure_whole(&store.graphs, vec![number(node)], "a node is destroyed");
            remove::remove_node(&mut store.graphs, number(node))
        };
        leftovers.end();
        Ok(())
    }

    initialised fn cuGraphDebugDotPrint(graph: CUgraph, path: *const c_char, flags: c_uint) {
        required(path)?;
        let text = dot::dot(&store().graphs, number(graph), flags)?;
        let path = CStr::from_ptr(path).to_str().map_err(|_| INVALID_VALUE)?;
        std::fs::write(path, text).map_err(|_| OPERATING_SYSTEM)
    }
}
