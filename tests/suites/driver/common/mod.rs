//! Helpers for raw calls.

pub(crate) mod table;

use std::ffi::c_void;
use std::ops::Deref;
use std::ptr::{null, null_mut};

use cuda_sys::*;
use cuda_tests::Setup;

use crate::calls;
pub(crate) use crate::calls::{Gate, IV, NS, OK};

pub(crate) const UPDATE_FAILED: CUresult = CUresult::CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE;

pub(crate) type Kind = CUgraphConditionalNodeType;
pub(crate) const IF: Kind = Kind::CU_GRAPH_COND_TYPE_IF;
pub(crate) const WHILE: Kind = Kind::CU_GRAPH_COND_TYPE_WHILE;
pub(crate) const SWITCH: Kind = Kind::CU_GRAPH_COND_TYPE_SWITCH;

/// The driver for one test, with a context current on its thread, a stream and the kernels.
pub(crate) struct Session {
    driver: &'static Driver,
    pub(crate) context: CUcontext,
    pub(crate) stream: CUstream,
    library: CUlibrary,
    pub(crate) setup: Setup,
}

impl Deref for Session {
    type Target = Driver;

    fn deref(&self) -> &Driver {
        self.driver
    }
}

impl Drop for Session {
    fn drop(&mut self) {
        // With a lost device these fail, and nothing is to be done about it.
        unsafe {
            self.driver.cuStreamDestroy(self.stream);
            self.driver.cuLibraryUnload(self.library);
            self.driver.cuCtxSetCurrent(null_mut());
        }
    }
}

pub(crate) fn session() -> Session {
    let setup = cuda_tests::setup();
    let (driver, context) = (cuda_tests::raw::driver(), setup.as_raw());
    assert_eq!(unsafe { driver.cuCtxSetCurrent(context) }, OK);
    let library = calls::load(driver, include_str!("../../ptx/condition.ptx"));
    Session { driver, context, stream: calls::stream(driver), library, setup }
}

impl Session {
    pub(crate) fn has(&self, major: u16, minor: u8) -> bool {
        let _ = &self.setup;
        self.driver.version() >= Version::new(major, minor)
    }

    pub(crate) fn function(&self, name: &str) -> CUfunction {
        calls::function(self, self.library, name)
    }

    pub(crate) fn graph(&self) -> CUgraph {
        calls::graph(self)
    }

    pub(crate) fn destroy(&self, graphs: &[CUgraph]) {
        for graph in graphs {
            assert_eq!(unsafe { self.cuGraphDestroy(*graph) }, OK);
        }
    }

    pub(crate) fn end(&self, exec: CUgraphExec) {
        assert_eq!(unsafe { self.cuGraphExecDestroy(exec) }, OK);
    }

    /// Plain device memory of `n` words, all 0.
    pub(crate) fn words(&self, n: usize) -> CUdeviceptr {
        calls::words(self, n)
    }

    pub(crate) fn free(&self, address: CUdeviceptr) {
        assert_eq!(unsafe { self.cuMemFree(address) }, OK);
    }

    pub(crate) fn write(&self, address: CUdeviceptr, value: u32) {
        unsafe {
            assert_eq!(self.cuMemsetD32(address, value, 1), OK);
            assert_eq!(self.cuStreamSynchronize(null_mut()), OK);
        }
    }

    pub(crate) fn read(&self, address: CUdeviceptr) -> u32 {
        calls::read(self, address, 1)[0]
    }

    pub(crate) fn try_read(&self, address: CUdeviceptr, word: &mut u32) -> CUresult {
        unsafe { self.cuMemcpyDtoH((&raw mut *word).cast(), address, 4) }
    }

    pub(crate) fn empty(&self, graph: CUgraph, after: &[CUgraphNode]) -> CUgraphNode {
        calls::empty(self, graph, after)
    }

    /// A node of one of the kernels.
    pub(crate) fn kernel(
        &self,
        graph: CUgraph,
        after: &[CUgraphNode],
        name: &str,
        mut arguments: [u64; 2],
    ) -> CUgraphNode {
        let mut node = null_mut();
        let mut pointers = pointers(&mut arguments);
        let params = calls::params(self.function(name), &mut pointers);
        let (count, after) = (after.len(), after.as_ptr());
        let answer = unsafe { self.cuGraphAddKernelNode(&mut node, graph, after, count, &params) };
        assert_eq!(answer, OK);
        node
    }

    /// Other arguments for a kernel node of an executable.
    pub(crate) fn set_kernel(
        &self,
        exec: CUgraphExec,
        node: CUgraphNode,
        name: &str,
        mut arguments: [u64; 2],
    ) -> CUresult {
        let mut pointers = pointers(&mut arguments);
        let params = calls::params(self.function(name), &mut pointers);
        unsafe { self.cuGraphExecKernelNodeSetParams(exec, node, &params) }
    }

    /// Launches a kernel on the stream, in no graph.
    pub(crate) fn launch_alone(&self, name: &str, mut arguments: [u64; 2]) -> CUresult {
        let mut pointers = pointers(&mut arguments);
        let (function, params) = (self.function(name), pointers.as_mut_ptr());
        unsafe { self.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, self.stream, params, null_mut()) }
    }

    /// A fill of one word.
    pub(crate) fn fill(
        &self,
        graph: CUgraph,
        after: &[CUgraphNode],
        address: CUdeviceptr,
        value: u32,
    ) -> CUgraphNode {
        let (mut node, params) = (null_mut(), fill_params(address, value));
        let (context, count, after) = (self.context, after.len(), after.as_ptr());
        let answer = unsafe { self.cuGraphAddMemsetNode(&mut node, graph, after, count, &params, context) };
        assert_eq!(answer, OK);
        node
    }

    pub(crate) fn child(&self, graph: CUgraph, inner: CUgraph) -> (CUresult, CUgraphNode) {
        let mut node = null_mut();
        (unsafe { self.cuGraphAddChildGraphNode(&mut node, graph, null(), 0, inner) }, node)
    }

    /// The graph that a child node holds.
    pub(crate) fn embedded(&self, node: CUgraphNode) -> CUgraph {
        let mut graph = null_mut();
        assert_eq!(unsafe { self.cuGraphChildGraphNodeGetGraph(node, &mut graph) }, OK);
        graph
    }

    /// A child node by the generic call: clone (0) or move (1).
    pub(crate) fn embed(&self, graph: CUgraph, inner: CUgraph, ownership: i32) -> (CUresult, CUgraphNode) {
        let mut params =
            CUgraphNodeParams { type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_GRAPH, ..Default::default() };
        let ownership = CUgraphChildGraphNodeOwnership(ownership);
        params.__bindgen_anon_1.graph = CUDA_CHILD_GRAPH_NODE_PARAMS { graph: inner, ownership };
        self.add(graph, &[], &mut params)
    }

    pub(crate) fn add(
        &self,
        graph: CUgraph,
        after: &[CUgraphNode],
        params: &mut CUgraphNodeParams,
    ) -> (CUresult, CUgraphNode) {
        calls::add(self, graph, after, params)
    }

    /// A condition with a default that each launch sets.
    pub(crate) fn condition(&self, graph: CUgraph, default: u32) -> u64 {
        self.condition_with(graph, default, 1)
    }

    pub(crate) fn condition_with(&self, graph: CUgraph, default: u32, flags: u32) -> u64 {
        let mut handle = 0;
        let context = self.context;
        let answer =
            unsafe { self.cuGraphConditionalHandleCreate(&mut handle, graph, context, default, flags) };
        assert_eq!(answer.unwrap(), OK);
        handle
    }

    /// Adds a conditional node: it and its bodies.
    pub(crate) fn conditional(
        &self,
        graph: CUgraph,
        after: &[CUgraphNode],
        handle: u64,
        (kind, size): (Kind, u32),
    ) -> (CUgraphNode, Vec<CUgraph>) {
        let mut params = conditional_params(self.context, handle, kind, size);
        let (answer, node) = self.add(graph, after, &mut params);
        assert_eq!(answer, OK);
        let bodies = unsafe { params.__bindgen_anon_1.conditional.phGraph_out };
        (node, unsafe { std::slice::from_raw_parts(bodies, size as usize) }.to_vec())
    }

    /// The driver's answer to such a node.
    pub(crate) fn try_conditional(&self, graph: CUgraph, handle: u64, kind: (Kind, u32)) -> CUresult {
        let mut params = conditional_params(self.context, handle, kind.0, kind.1);
        self.add(graph, &[], &mut params).0
    }

    pub(crate) fn instantiate(&self, graph: CUgraph) -> CUgraphExec {
        calls::instantiate(self, graph)
    }

    pub(crate) fn instantiate_with(&self, graph: CUgraph, flags: u64) -> CUgraphExec {
        calls::instantiate_with(self, graph, flags)
    }

    /// The answer of a refused instantiation: code, result and node.
    pub(crate) fn refusal(&self, graph: CUgraph, flags: u64) -> (CUresult, u32, CUgraphNode) {
        calls::refusal(self, graph, flags)
    }

    pub(crate) fn launch(&self, exec: CUgraphExec) -> CUresult {
        unsafe { self.cuGraphLaunch(exec, self.stream) }
    }

    pub(crate) fn wait(&self) {
        assert_eq!(unsafe { self.cuStreamSynchronize(self.stream) }, OK);
    }

    /// Runs an executable once, to its end.
    pub(crate) fn run(&self, exec: CUgraphExec) {
        calls::run(self, exec, self.stream);
    }

    /// A whole update: the code, the result and the node.
    pub(crate) fn update(&self, exec: CUgraphExec, graph: CUgraph) -> (CUresult, u32, CUgraphNode) {
        let mut info = CUgraphExecUpdateResultInfo {
            result: CUgraphExecUpdateResult(99),
            errorNode: null_mut(),
            errorFromNode: null_mut(),
        };
        let answer = unsafe { self.cuGraphExecUpdate(exec, graph, &mut info) };
        (answer, info.result.0, info.errorNode)
    }

    /// The nodes of a graph, in their order.
    pub(crate) fn nodes(&self, graph: CUgraph) -> Vec<CUgraphNode> {
        let mut count = self.count(graph).unwrap();
        let mut nodes = vec![null_mut(); count];
        assert_eq!(unsafe { self.cuGraphGetNodes(graph, nodes.as_mut_ptr(), &mut count) }, OK);
        nodes
    }

    /// The number of nodes of a graph, or what the driver says instead.
    pub(crate) fn count(&self, graph: CUgraph) -> Result<usize, CUresult> {
        let mut count = 0;
        match unsafe { self.cuGraphGetNodes(graph, null_mut(), &mut count) } {
            OK => Ok(count),
            code => Err(code),
        }
    }
}

fn pointers(arguments: &mut [u64; 2]) -> [*mut c_void; 2] {
    arguments.each_mut().map(|argument| (&raw mut *argument).cast())
}

pub(crate) fn fill_params(address: CUdeviceptr, value: u32) -> CUDA_MEMSET_NODE_PARAMS_v1 {
    CUDA_MEMSET_NODE_PARAMS_v1 { dst: address, value, elementSize: 4, width: 1, height: 1, pitch: 0 }
}

/// A copy of some bytes of device memory in one row, as a node's parameters.
pub(crate) fn copy_params(
    session: &Session,
    source: CUdeviceptr,
    destination: CUdeviceptr,
    bytes: usize,
) -> CUgraphNodeParams {
    let mut params =
        CUgraphNodeParams { type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_MEMCPY, ..Default::default() };
    params.__bindgen_anon_1.memcpy.copyCtx = session.context;
    params.__bindgen_anon_1.memcpy.copyParams = CUDA_MEMCPY3D_v2 {
        srcMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        srcDevice: source,
        srcPitch: bytes,
        srcHeight: 1,
        dstMemoryType: CUmemorytype::CU_MEMORYTYPE_DEVICE,
        dstDevice: destination,
        dstPitch: bytes,
        dstHeight: 1,
        WidthInBytes: bytes,
        Height: 1,
        Depth: 1,
        ..Default::default()
    };
    params
}

pub(crate) fn conditional_params(ctx: CUcontext, handle: u64, type_: Kind, size: u32) -> CUgraphNodeParams {
    let mut params =
        CUgraphNodeParams { type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL, ..Default::default() };
    params.__bindgen_anon_1.conditional =
        CUDA_CONDITIONAL_NODE_PARAMS { handle, type_, size, phGraph_out: null_mut(), ctx };
    params
}
