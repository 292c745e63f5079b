//! What the tests of the raw calls share.

use std::ffi::{CString, c_void};
use std::ops::Deref;
use std::ptr::{null, null_mut};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use cuda_sys::*;
use cuda_tests::Setup;

pub(crate) const OK: CUresult = CUresult::CUDA_SUCCESS;
pub(crate) const IV: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
pub(crate) const NS: CUresult = CUresult::CUDA_ERROR_NOT_SUPPORTED;
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
    setup: Setup,
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
    let (mut stream, mut library) = (null_mut(), null_mut());
    let text = CString::new(include_str!("../ptx/condition.ptx")).unwrap();
    unsafe {
        assert_eq!(driver.cuCtxSetCurrent(context), OK);
        assert_eq!(driver.cuStreamCreate(&mut stream, 1), OK);
        let (none, nothing) = (null_mut(), null_mut());
        let loaded = driver.cuLibraryLoadData(
            &mut library,
            text.as_ptr().cast(),
            none,
            nothing,
            0,
            null_mut(),
            null_mut(),
            0,
        );
        assert_eq!(loaded, OK);
    }
    Session { driver, context, stream, library, setup }
}

impl Session {
    pub(crate) fn has(&self, major: u16, minor: u8) -> bool {
        let _ = &self.setup;
        self.driver.version() >= Version::new(major, minor)
    }

    pub(crate) fn function(&self, name: &str) -> CUfunction {
        let (mut kernel, mut function) = (null_mut(), null_mut());
        let name = CString::new(name).unwrap();
        unsafe {
            assert_eq!(self.cuLibraryGetKernel(&mut kernel, self.library, name.as_ptr()), OK);
            assert_eq!(self.cuKernelGetFunction(&mut function, kernel), OK);
        }
        function
    }

    pub(crate) fn graph(&self) -> CUgraph {
        let mut graph = null_mut();
        assert_eq!(unsafe { self.cuGraphCreate(&mut graph, 0) }, OK);
        graph
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
        let mut address = 0;
        unsafe {
            assert_eq!(self.cuMemAlloc(&mut address, n * 4), OK);
            assert_eq!(self.cuMemsetD32(address, 0, n), OK);
        }
        address
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
        let mut word = 0u32;
        assert_eq!(self.try_read(address, &mut word), OK);
        word
    }

    pub(crate) fn try_read(&self, address: CUdeviceptr, word: &mut u32) -> CUresult {
        unsafe { self.cuMemcpyDtoH((&raw mut *word).cast(), address, 4) }
    }

    pub(crate) fn empty(&self, graph: CUgraph, after: &[CUgraphNode]) -> CUgraphNode {
        let mut node = null_mut();
        let answer = unsafe { self.cuGraphAddEmptyNode(&mut node, graph, after.as_ptr(), after.len()) };
        assert_eq!(answer, OK);
        node
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
        let params = self.kernel_params(name, &mut pointers);
        let (count, after) = (after.len(), after.as_ptr());
        let answer = unsafe { self.cuGraphAddKernelNode(&mut node, graph, after, count, &params) };
        assert_eq!(answer, OK);
        node
    }

    fn kernel_params(&self, name: &str, arguments: &mut [*mut c_void; 2]) -> CUDA_KERNEL_NODE_PARAMS_v2 {
        CUDA_KERNEL_NODE_PARAMS_v2 {
            func: self.function(name),
            gridDimX: 1,
            gridDimY: 1,
            gridDimZ: 1,
            blockDimX: 1,
            blockDimY: 1,
            blockDimZ: 1,
            kernelParams: arguments.as_mut_ptr(),
            ..Default::default()
        }
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
        let params = self.kernel_params(name, &mut pointers);
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
        let mut node = null_mut();
        let answer = unsafe { self.cuGraphAddNode(&mut node, graph, after.as_ptr(), after.len(), params) };
        (answer, node)
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

    /// What the driver says to such a node.
    pub(crate) fn try_conditional(&self, graph: CUgraph, handle: u64, kind: (Kind, u32)) -> CUresult {
        let mut params = conditional_params(self.context, handle, kind.0, kind.1);
        self.add(graph, &[], &mut params).0
    }

    pub(crate) fn instantiate(&self, graph: CUgraph) -> CUgraphExec {
        self.instantiate_with(graph, 0)
    }

    pub(crate) fn instantiate_with(&self, graph: CUgraph, flags: u64) -> CUgraphExec {
        let mut exec = null_mut();
        let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS { flags, ..Default::default() };
        assert_eq!(unsafe { self.cuGraphInstantiateWithParams(&mut exec, graph, &mut params) }, OK);
        exec
    }

    /// What instantiate says of a graph that it refuses: the code, the result and the node.
    pub(crate) fn refusal(&self, graph: CUgraph, flags: u64) -> (CUresult, u32, CUgraphNode) {
        let mut exec = null_mut();
        let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS { flags, ..Default::default() };
        let answer = unsafe { self.cuGraphInstantiateWithParams(&mut exec, graph, &mut params) };
        assert_ne!(answer, OK);
        (answer, params.result_out.0, params.hErrNode_out)
    }

    pub(crate) fn launch(&self, exec: CUgraphExec) -> CUresult {
        unsafe { self.cuGraphLaunch(exec, self.stream) }
    }

    pub(crate) fn wait(&self) {
        assert_eq!(unsafe { self.cuStreamSynchronize(self.stream) }, OK);
    }

    /// Runs an executable once, to its end.
    pub(crate) fn run(&self, exec: CUgraphExec) {
        assert_eq!(self.launch(exec), OK);
        self.wait();
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

pub(crate) fn conditional_params(ctx: CUcontext, handle: u64, type_: Kind, size: u32) -> CUgraphNodeParams {
    let mut params =
        CUgraphNodeParams { type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_CONDITIONAL, ..Default::default() };
    params.__bindgen_anon_1.conditional =
        CUDA_CONDITIONAL_NODE_PARAMS { handle, type_, size, phGraph_out: null_mut(), ctx };
    params
}

/// A stream held up by a host function until it is let go.
pub(crate) struct Gate {
    release: Sender<()>,
}

impl Gate {
    pub(crate) fn close(driver: &Driver, stream: CUstream) -> Self {
        unsafe extern "C" fn hold(wait: *mut c_void) {
            let wait = unsafe { Box::from_raw(wait.cast::<Receiver<()>>()) };
            let _ = wait.recv_timeout(Duration::from_secs(20));
        }
        let (release, wait) = channel();
        let wait: *mut Receiver<()> = Box::into_raw(Box::new(wait));
        assert_eq!(unsafe { driver.cuLaunchHostFunc(stream, Some(hold), wait.cast()) }, OK);
        Self { release }
    }

    pub(crate) fn open(self) {
        self.release.send(()).unwrap();
    }
}
