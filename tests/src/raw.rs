//! What the driver itself says, asked without the library. The raw handles given must be of objects that live; a test has them in hand.
#![allow(clippy::not_unsafe_ptr_arg_deref)] // Handles: names that go to the driver, followed by nobody here.

use core::mem::MaybeUninit;
use core::ptr;

use cuda_handles::{Kernel, Stream};
use cuda_sys::{
    CUDA_KERNEL_NODE_PARAMS_v2, CUDA_MEMCPY3D_v2, CUDA_MEMSET_NODE_PARAMS_v1, CUgraph, CUgraphNode,
    CUgraphNodeType, CUresult, Driver,
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
    let mut len = 0;
    // SAFETY: the graph lives; null arrays ask for the count.
    ok(unsafe { driver().cuGraphGetEdges(graph, ptr::null_mut(), ptr::null_mut(), &raw mut len) });
    let mut from: Vec<CUgraphNode> = vec![ptr::null_mut(); len];
    let mut to = from.clone();
    if len > 0 {
        // SAFETY: both arrays have room for `len`.
        ok(unsafe { driver().cuGraphGetEdges(graph, from.as_mut_ptr(), to.as_mut_ptr(), &raw mut len) });
    }
    let nodes = nodes(graph);
    let place =
        |node: &CUgraphNode| nodes.iter().position(|other| other == node).expect("the edge's node is listed");
    let mut edges: Vec<_> = from.iter().zip(&to).map(|(from, to)| (place(from), place(to))).collect();
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

/// Launches one block of `threads` threads, without the launch crate. Every argument is given as 64 bits, of which the kernel takes the
/// low ones that it needs; that the arguments' memory is ready and lives is the caller's business.
///
/// # Panics
/// The driver refuses.
#[track_caller]
pub fn launch(stream: &Stream, kernel: &Kernel, threads: u32, arguments: &[u64]) {
    let mut pointers: Vec<_> =
        arguments.iter().map(|argument| ptr::from_ref(argument).cast_mut().cast()).collect();
    // SAFETY: function and stream live; there is a pointer for each argument, to at least as many bytes as it has.
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
