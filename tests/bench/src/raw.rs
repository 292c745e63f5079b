//! Graphs by raw calls.

use core::ffi::c_void;
use core::ptr;

use cuda_handles::{Kernel, Stream};
use cuda_sys::{CUgraph, CUgraphExec, CUgraphNode, CUgraphNodeParams, CUgraphNodeType, CUresult, Driver};

use crate::Outcome;
use crate::bench::Bench;

/// The result of a raw call.
#[inline]
pub(crate) fn ok(code: CUresult) -> Outcome<()> {
    if code.is_success() { Ok(()) } else { refused(code) }
}

#[cold]
fn refused(code: CUresult) -> Outcome<()> {
    Err(format!("a raw call answered {code}").into())
}

/// The parameters of a node with one row of blocks.
#[inline]
pub(crate) fn kernel_node(
    bench: &Bench,
    kernel: &Kernel,
    (grid, block): (u32, u32),
    arguments: *mut *mut c_void,
) -> CUgraphNodeParams {
    let type_ = CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL;
    let mut params = CUgraphNodeParams { type_, ..CUgraphNodeParams::default() };
    let to = &mut params.__bindgen_anon_1;
    to.kernel.gridDimX = grid;
    to.kernel.gridDimY = 1;
    to.kernel.gridDimZ = 1;
    to.kernel.blockDimX = block;
    to.kernel.blockDimY = 1;
    to.kernel.blockDimZ = 1;
    to.kernel.kernelParams = arguments;
    to.kernel.kern = kernel.as_raw();
    to.kernel.ctx = bench.context.as_raw();
    params
}

/// A graph, destroyed with this.
pub(crate) struct RawGraph {
    driver: &'static Driver,
    graph: CUgraph,
}

impl RawGraph {
    pub(crate) fn new(bench: &Bench) -> Outcome<Self> {
        let (driver, mut graph) = (bench.driver(), ptr::null_mut());
        // SAFETY: the out pointer is valid.
        ok(unsafe { driver.cuGraphCreate(&raw mut graph, 0) })?;
        Ok(Self { driver, graph })
    }

    /// A graph that a capture has made.
    pub(crate) fn of(bench: &Bench, graph: CUgraph) -> Self {
        Self { driver: bench.driver(), graph }
    }

    pub(crate) fn as_raw(&self) -> CUgraph {
        self.graph
    }

    /// Adds a node behind others.
    #[inline]
    pub(crate) fn add(&self, before: &[CUgraphNode], params: &mut CUgraphNodeParams) -> Outcome<CUgraphNode> {
        let mut node = ptr::null_mut();
        let (from, count) = (before.as_ptr(), before.len());
        // SAFETY: graph and nodes live, and the parameters point to the kernel's arguments.
        ok(unsafe { self.driver.cuGraphAddNode(&raw mut node, self.graph, from, count, params) })?;
        Ok(node)
    }

    pub(crate) fn instantiate(&self) -> Outcome<RawExec> {
        let mut exec = ptr::null_mut();
        // SAFETY: graph and out pointer are valid.
        ok(unsafe { self.driver.cuGraphInstantiateWithFlags(&raw mut exec, self.graph, 0) })?;
        Ok(RawExec { driver: self.driver, exec })
    }
}

impl Drop for RawGraph {
    fn drop(&mut self) {
        // SAFETY: the graph is ours, and this is its last use.
        let _ = unsafe { self.driver.cuGraphDestroy(self.graph) };
    }
}

/// An executable, destroyed with this.
pub(crate) struct RawExec {
    driver: &'static Driver,
    exec: CUgraphExec,
}

impl RawExec {
    pub(crate) fn as_raw(&self) -> CUgraphExec {
        self.exec
    }

    #[inline]
    pub(crate) fn launch(&self, bench: &Bench) -> Outcome<()> {
        let stream = core::hint::black_box(bench.stream.as_raw());
        // SAFETY: executable and stream live.
        ok(unsafe { self.driver.cuGraphLaunch(self.exec, stream) })
    }
}

impl RawExec {
    /// As [`launch`](Self::launch), on another stream.
    #[inline]
    pub(crate) fn launch_on(&self, stream: &Stream) -> Outcome<()> {
        // SAFETY: executable and stream live.
        ok(unsafe { self.driver.cuGraphLaunch(self.exec, stream.as_raw()) })
    }
}

impl Drop for RawExec {
    fn drop(&mut self) {
        // SAFETY: the executable is ours, and this is its last use.
        let _ = unsafe { self.driver.cuGraphExecDestroy(self.exec) };
    }
}
