//! The chain of kernels by raw calls.

use core::ffi::c_void;
use core::hint::black_box;
use core::ptr;

use cuda_graph::Graph;
use cuda_sys::{
    CUgraph, CUgraphExec, CUgraphExecUpdateResultInfo, CUgraphNode, CUgraphNodeParams, CUgraphNodeType,
};

use super::NODES;
use crate::Outcome;
use crate::figures::launch::launch_raw;
use crate::figures::{Bench, N, RawArguments, ok};

/// A graph with an executable.
pub(super) struct RawGraph<'b> {
    bench: &'b Bench,
    /// Keeps the driver's graph.
    _graph: Graph,
    graph: CUgraph,
    nodes: Vec<CUgraphNode>,
    exec: CUgraphExec,
}

impl<'b> RawGraph<'b> {
    pub(super) fn instantiated(bench: &'b Bench) -> Outcome<Self> {
        let mut raw: CUgraph = ptr::null_mut();
        // SAFETY: the out pointer is valid.
        ok(unsafe { bench.driver().cuGraphCreate(&raw mut raw, 0) })?;
        let mut nodes: Vec<CUgraphNode> = Vec::new();
        for _ in 0..NODES {
            let before: &[CUgraphNode] = nodes.last().map_or(&[], core::slice::from_ref);
            let mut node = ptr::null_mut();
            with_kernel(bench, 2.0, bench.x.address(), |params| {
                // SAFETY: graph and nodes live, and the parameters are those of the kernel.
                ok(unsafe {
                    bench.driver().cuGraphAddNode(&raw mut node, raw, before.as_ptr(), before.len(), params)
                })
            })?;
            nodes.push(node);
        }
        // SAFETY: the graph is ours, and nobody else has it.
        let graph = unsafe { Graph::from_raw_owned(&bench.context, raw) }?;
        let mut made = Self { bench, _graph: graph, graph: raw, nodes, exec: ptr::null_mut() };
        made.instantiate()?;
        made.launch()?;
        Ok(made)
    }

    /// Replaces the executable.
    pub(super) fn instantiate(&mut self) -> Outcome<()> {
        let mut exec = ptr::null_mut();
        // SAFETY: graph and out pointer are valid.
        ok(unsafe { self.bench.driver().cuGraphInstantiateWithFlags(&raw mut exec, self.graph, 0) })?;
        let former = core::mem::replace(&mut self.exec, exec);
        self.destroy(former)
    }

    fn destroy(&self, exec: CUgraphExec) -> Outcome<()> {
        if exec.is_null() {
            return Ok(());
        }
        // SAFETY: the executable is ours, and this is its last use.
        ok(unsafe { self.bench.driver().cuGraphExecDestroy(exec) })
    }

    /// Sets the arguments of a node of the executable, by the generic call: the faster one.
    #[inline]
    pub(super) fn set_in_exec(&self, node: usize, a: f32, x: u64) -> Outcome<()> {
        with_kernel(self.bench, a, x, |params| {
            // SAFETY: executable and node live, and the parameters are those of the kernel.
            ok(unsafe { self.bench.driver().cuGraphExecNodeSetParams(self.exec, self.nodes[node], params) })
        })
    }

    /// Sets the arguments of all nodes of the graph.
    pub(super) fn set_all(&self, a: f32, x: u64) -> Outcome<()> {
        self.nodes.iter().try_for_each(|node| {
            with_kernel(self.bench, a, x, |params| {
                // SAFETY: the node lives, and the parameters are those of the kernel.
                ok(unsafe { self.bench.driver().cuGraphNodeSetParams(*node, params) })
            })
        })
    }

    /// Updates the executable to the graph.
    pub(super) fn update(&self) -> Outcome<()> {
        let mut result = CUgraphExecUpdateResultInfo::default();
        // SAFETY: executable, graph and out pointer are valid.
        ok(unsafe { self.bench.driver().cuGraphExecUpdate(self.exec, self.graph, &raw mut result) })
    }

    #[inline]
    pub(super) fn launch(&self) -> Outcome<()> {
        // SAFETY: executable and stream live.
        ok(unsafe { self.bench.driver().cuGraphLaunch(self.exec, black_box(self.bench.stream.as_raw())) })
    }
}

impl Drop for RawGraph<'_> {
    fn drop(&mut self) {
        let _ = self.destroy(self.exec);
    }
}

/// Hands out the parameters of a node that launches the kernel.
#[inline]
fn with_kernel<T>(bench: &Bench, a: f32, x: u64, call: impl FnOnce(*mut CUgraphNodeParams) -> T) -> T {
    let mut arguments = RawArguments { x, ..RawArguments::new(bench, N, a) };
    let mut pointers = arguments.pointers();
    let mut params = kernel(bench, pointers.as_mut_ptr());
    call(&raw mut params)
}

#[inline]
fn kernel(bench: &Bench, pointers: *mut *mut c_void) -> CUgraphNodeParams {
    let type_ = CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL;
    let mut params = CUgraphNodeParams { type_, ..CUgraphNodeParams::default() };
    let to = &mut params.__bindgen_anon_1;
    to.kernel.gridDimX = 1;
    to.kernel.gridDimY = 1;
    to.kernel.gridDimZ = 1;
    to.kernel.blockDimX = N;
    to.kernel.blockDimY = 1;
    to.kernel.blockDimZ = 1;
    to.kernel.kernelParams = pointers;
    to.kernel.kern = bench.saxpy.as_raw();
    to.kernel.ctx = bench.context.as_raw();
    params
}

/// A launch of the kernel on the stream.
#[inline]
pub(super) fn launch_kernel(bench: &Bench, x: u64) -> Outcome<()> {
    let mut arguments = RawArguments { x, ..RawArguments::new(bench, N, 2.0) };
    ok(launch_raw(bench, 1, &mut arguments.pointers()))
}
