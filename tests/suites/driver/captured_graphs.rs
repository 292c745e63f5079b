//! Edits of a graph while a stream captures into it.

use std::ffi::c_void;
use std::mem::MaybeUninit;
use std::ptr::{null, null_mut};

use cuda_sys::*;

use crate::common::table::{Table, all_said, said};
use crate::common::*;

const MODES: [CUstreamCaptureMode; 2] = [
    CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL,
    CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED,
];

/// A graph with two captured kernels, a fill and a host function, one after the other.
struct Captured<'s> {
    driver: &'s Session,
    graph: CUgraph,
    nodes: Vec<CUgraphNode>,
}

type Edit = fn(&Captured<'_>) -> Vec<CUresult>;

const EDITS: [(&str, Edit); 10] = [
    ("destroy the first node", |captured| vec![captured.destroy(captured.nodes[0])]),
    ("destroy one between", |captured| vec![captured.destroy(captured.nodes[2])]),
    ("destroy the last one", |captured| vec![captured.destroy(captured.nodes[3])]),
    ("destroy one added by hand", |captured| {
        vec![captured.destroy(captured.driver.empty(captured.graph, &[]))]
    }),
    ("set a kernel", |captured| vec![captured.set_kernel(0)]),
    ("set a kernel by the generic call", |captured| vec![captured.set_generic(1)]),
    ("set the fill and the host function", |captured| vec![captured.set_fill(), captured.set_host()]),
    ("add an edge", |captured| {
        let (from, to) = (captured.nodes[0], captured.nodes[2]);
        vec![unsafe { captured.driver.cuGraphAddDependencies(captured.graph, &from, &to, 1) }]
    }),
    ("remove an edge", |captured| {
        let (from, to) = (captured.nodes[0], captured.nodes[1]);
        vec![unsafe { captured.driver.cuGraphRemoveDependencies(captured.graph, &from, &to, 1) }]
    }),
    ("once it is invalidated: destroy a node, set a kernel", |captured| {
        let queried = unsafe { captured.driver.cuStreamQuery(captured.driver.stream) };
        vec![queried, captured.destroy(captured.nodes[0]), captured.set_kernel(0)]
    }),
];

impl Captured<'_> {
    fn destroy(&self, node: CUgraphNode) -> CUresult {
        unsafe { self.driver.cuGraphDestroyNode(node) }
    }

    /// The parameters of a kernel, with another grid.
    fn other_kernel(&self, index: usize) -> CUDA_KERNEL_NODE_PARAMS_v2 {
        let mut params = MaybeUninit::zeroed();
        let read = unsafe { self.driver.cuGraphKernelNodeGetParams(self.nodes[index], params.as_mut_ptr()) };
        assert_eq!(read, OK);
        CUDA_KERNEL_NODE_PARAMS_v2 { gridDimX: 2, ..unsafe { params.assume_init() } }
    }

    fn set_kernel(&self, index: usize) -> CUresult {
        unsafe { self.driver.cuGraphKernelNodeSetParams(self.nodes[index], &self.other_kernel(index)) }
    }

    fn set_generic(&self, index: usize) -> CUresult {
        let other = self.other_kernel(index);
        let mut params =
            CUgraphNodeParams { type_: CUgraphNodeType::CU_GRAPH_NODE_TYPE_KERNEL, ..Default::default() };
        params.__bindgen_anon_1.kernel = CUDA_KERNEL_NODE_PARAMS_v3 {
            func: other.func,
            gridDimX: other.gridDimX,
            gridDimY: other.gridDimY,
            gridDimZ: other.gridDimZ,
            blockDimX: other.blockDimX,
            blockDimY: other.blockDimY,
            blockDimZ: other.blockDimZ,
            sharedMemBytes: other.sharedMemBytes,
            kernelParams: other.kernelParams,
            extra: other.extra,
            kern: other.kern,
            ctx: other.ctx,
        };
        unsafe { self.driver.cuGraphNodeSetParams(self.nodes[index], &mut params) }
    }

    fn set_fill(&self) -> CUresult {
        let mut params = MaybeUninit::zeroed();
        unsafe {
            assert_eq!(self.driver.cuGraphMemsetNodeGetParams(self.nodes[2], params.as_mut_ptr()), OK);
            let params = CUDA_MEMSET_NODE_PARAMS_v1 { value: 5, ..params.assume_init() };
            self.driver.cuGraphMemsetNodeSetParams(self.nodes[2], &params)
        }
    }

    fn set_host(&self) -> CUresult {
        let params = CUDA_HOST_NODE_PARAMS_v1 { fn_: Some(nothing), userData: null_mut() };
        unsafe { self.driver.cuGraphHostNodeSetParams(self.nodes[3], &params) }
    }
}

unsafe extern "C" fn nothing(_: *mut c_void) {}

/// Captures the calls on the stream of the session.
fn capture(driver: &Session, word: CUdeviceptr) -> Captured<'_> {
    let (mut status, mut graph) = (CUstreamCaptureStatus(9), null_mut());
    for _ in 0..2 {
        assert_eq!(driver.launch_alone("add", [word, 1]), OK);
    }
    unsafe {
        assert_eq!(driver.cuMemsetD32Async(word, 1, 1, driver.stream), OK);
        assert_eq!(driver.cuLaunchHostFunc(driver.stream, Some(nothing), null_mut()), OK);
        let (stream, no_nodes, no_count) = (driver.stream, null_mut(), null_mut());
        let told =
            driver.cuStreamGetCaptureInfo(stream, &mut status, null_mut(), &mut graph, no_nodes, no_count);
        assert_eq!(told, OK);
    }
    Captured { driver, graph, nodes: driver.nodes(graph) }
}

/// Ends the capture: its code, and the numbers of nodes and edges.
fn end(driver: &Session) -> String {
    let (mut graph, mut edges) = (null_mut(), 0);
    let code = unsafe { driver.cuStreamEndCapture(driver.stream, &mut graph) };
    if code != OK {
        return said(code);
    }
    assert_eq!(unsafe { driver.cuGraphGetEdges(graph, null_mut(), null_mut(), &mut edges) }, OK);
    let nodes = driver.count(graph).unwrap();
    driver.destroy(&[graph]);
    format!("{nodes} nodes, {edges} edges")
}

#[test]
fn nodes_are_set_and_linked_but_not_destroyed() {
    for mode in MODES {
        let driver = session();
        let (mut table, word) = (Table::default(), driver.words(1));
        for (what, edit) in EDITS {
            assert_eq!(unsafe { driver.cuStreamBeginCapture(driver.stream, mode) }, OK);
            let answers = edit(&capture(&driver, word));
            table.row(what, format!("{}; {}", all_said(&answers), end(&driver)));
        }
        driver.free(word);
        table.is(ANSWERS);
    }
}

const ANSWERS: &str = "
destroy the first node: ILLEGAL_STATE; 4 nodes, 3 edges
destroy one between: ILLEGAL_STATE; 4 nodes, 3 edges
destroy the last one: ILLEGAL_STATE; 4 nodes, 3 edges
destroy one added by hand: ILLEGAL_STATE; 5 nodes, 3 edges
set a kernel: ok; 4 nodes, 3 edges
set a kernel by the generic call: ok; 4 nodes, 3 edges
set the fill and the host function: ok, ok; 4 nodes, 3 edges
add an edge: ok; 4 nodes, 4 edges
remove an edge: ok; 4 nodes, 2 edges
once it is invalidated: destroy a node, set a kernel: STREAM_CAPTURE_UNSUPPORTED, ILLEGAL_STATE, ok; \
STREAM_CAPTURE_INVALIDATED
";

#[test]
fn a_node_from_before_the_capture_stays_until_the_end() {
    let driver = session();
    if !driver.has(12, 3) {
        cuda_tests::skip!("captures into existing graphs came with CUDA 12.3");
    }
    let (own, word) = (driver.graph(), driver.words(1));
    let before = driver.empty(own, &[]);
    unsafe {
        let (stream, mode) = (driver.stream, MODES[0]);
        assert_eq!(driver.cuStreamBeginCaptureToGraph(stream, own, null(), null(), 0, mode), Ok(OK));
        let captured = capture(&driver, word);
        assert_eq!(captured.graph, own);
        let refused = CUresult::CUDA_ERROR_ILLEGAL_STATE;
        assert_eq!([captured.destroy(before), captured.destroy(captured.nodes[1])], [refused; 2]);
        let mut graph = null_mut();
        assert_eq!(driver.cuStreamEndCapture(stream, &mut graph), OK);
        assert_eq!((graph, driver.count(own)), (own, Ok(5)));
        assert_eq!(driver.cuGraphDestroyNode(before), OK);
    }
    driver.destroy(&[own]);
    driver.free(word);
}
