//! Raw calls: what the driver itself answers, past the library. Raw handles given to these
//! functions belong to living objects.
#![allow(clippy::not_unsafe_ptr_arg_deref)] // Handles: names that go to the driver, followed by nobody here.

use core::mem::MaybeUninit;
use core::ptr;
use std::collections::HashMap;

use cuda_handles::{Kernel, Stream};
use cuda_sys::{
    CUDA_KERNEL_NODE_PARAMS_v2, CUDA_MEMCPY3D_v2, CUDA_MEMSET_NODE_PARAMS_v1, CUgraph, CUgraphEdgeData,
    CUgraphNode, CUgraphNodeType, CUresult, Driver,
};

/// The driver in use.
///
/// # Panics
/// None is.
#[must_use]
pub fn driver() -> &'static Driver {
    cuda_sys::installed().expect("setup() installs the driver")
}

/// Asserts that a raw call succeeded.
///
/// # Panics
/// It did not.
#[track_caller]
pub fn ok(result: CUresult) {
    assert!(result.is_success(), "the driver answered {result}");
}

/// The nodes of a graph, in creation order.
#[must_use]
pub fn nodes(graph: CUgraph) -> Vec<CUgraphNode> {
    let mut len = 0;
    // SAFETY: the graph lives; a null array asks for the count.
    ok(unsafe { driver().cuGraphGetNodes(graph, ptr::null_mut(), &raw mut len) });
    let mut nodes: Vec<CUgraphNode> = vec![ptr::null_mut(); len];
    if len > 0 {
        // SAFETY: the array has room for `len`.
        ok(unsafe { driver().cuGraphGetNodes(graph, nodes.as_mut_ptr(), &raw mut len) });
    }
    nodes.truncate(len);
    nodes
}

/// The edges of a graph, as positions in [`nodes`], sorted.
///
/// # Panics
/// An edge names a node that the graph does not list.
#[must_use]
pub fn edges(graph: CUgraph) -> Vec<(usize, usize)> {
    edges_with_data(graph).into_iter().map(|(from, to, _)| (from, to)).collect()
}

/// The edges of a graph, as positions in [`nodes`], each with its port of origin and its type,
/// sorted. A driver before 12.3 has none but 0 and 0.
///
/// # Panics
/// An edge names a node that the graph does not list.
#[must_use]
pub fn edges_with_data(graph: CUgraph) -> Vec<(usize, usize, (u8, u8))> {
    let ask = |from: *mut CUgraphNode, to: *mut CUgraphNode, data: *mut CUgraphEdgeData, len: &mut usize| {
        // SAFETY: the graph lives; null arrays ask for the count, others have room for it.
        let newer = unsafe { driver().cuGraphGetEdges_v12030(graph, from, to, data, len) };
        // SAFETY: as above.
        ok(newer.unwrap_or_else(|_| unsafe { driver().cuGraphGetEdges(graph, from, to, len) }));
    };
    let mut len = 0;
    ask(ptr::null_mut(), ptr::null_mut(), ptr::null_mut(), &mut len);
    let mut from: Vec<CUgraphNode> = vec![ptr::null_mut(); len];
    let mut to = from.clone();
    let mut data = vec![CUgraphEdgeData::default(); len];
    if len > 0 {
        ask(from.as_mut_ptr(), to.as_mut_ptr(), data.as_mut_ptr(), &mut len);
    }
    let places: HashMap<CUgraphNode, usize> = nodes(graph).into_iter().zip(0..).collect();
    let place = |node: &CUgraphNode| *places.get(node).expect("the edge's node is listed");
    let ends = from.iter().zip(&to).zip(&data);
    let mut edges: Vec<_> =
        ends.map(|((from, to), data)| (place(from), place(to), (data.from_port, data.type_))).collect();
    edges.sort_unstable();
    edges
}

/// A node's type.
#[must_use]
pub fn kind(node: CUgraphNode) -> CUgraphNodeType {
    let mut kind = CUgraphNodeType::CU_GRAPH_NODE_TYPE_EMPTY;
    // SAFETY: the node lives.
    ok(unsafe { driver().cuGraphNodeGetType(node, &raw mut kind) });
    kind
}

/// A kernel node's parameters.
#[must_use]
pub fn kernel(node: CUgraphNode) -> CUDA_KERNEL_NODE_PARAMS_v2 {
    let mut params = MaybeUninit::zeroed();
    // SAFETY: a live kernel node.
    ok(unsafe { driver().cuGraphKernelNodeGetParams(node, params.as_mut_ptr()) });
    // SAFETY: the driver has filled it.
    unsafe { params.assume_init() }
}

/// A memset node's parameters.
#[must_use]
pub fn memset(node: CUgraphNode) -> CUDA_MEMSET_NODE_PARAMS_v1 {
    let mut params = MaybeUninit::zeroed();
    // SAFETY: a live memset node.
    ok(unsafe { driver().cuGraphMemsetNodeGetParams(node, params.as_mut_ptr()) });
    // SAFETY: the driver has filled it.
    unsafe { params.assume_init() }
}

/// A memcpy node's parameters.
#[must_use]
pub fn memcpy(node: CUgraphNode) -> CUDA_MEMCPY3D_v2 {
    let mut params = MaybeUninit::zeroed();
    // SAFETY: a live memcpy node.
    ok(unsafe { driver().cuGraphMemcpyNodeGetParams(node, params.as_mut_ptr()) });
    // SAFETY: the driver has filled it.
    unsafe { params.assume_init() }
}

/// Launches one block of `threads` threads, without the launch crate. Every argument is given as 64
/// bits, of which the kernel takes the low ones that it needs; that the arguments' memory is ready
/// and lives is the caller's business.
///
/// # Panics
/// The driver refuses.
#[track_caller]
pub fn launch(stream: &Stream, kernel: &Kernel, threads: u32, arguments: &[u64]) {
    let mut pointers: Vec<_> =
        arguments.iter().map(|argument| ptr::from_ref(argument).cast_mut().cast()).collect();
    // SAFETY: function and stream live; there is a pointer for each argument, to at least as many
    // bytes as it has.
    ok(unsafe {
        driver().cuLaunchKernel(
            kernel.function(),
            1,
            1,
            1,
            threads,
            1,
            1,
            0,
            stream.as_raw(),
            pointers.as_mut_ptr(),
            ptr::null_mut(),
        )
    });
}
