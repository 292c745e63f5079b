//! What the tests of the raw calls share.

use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use cuda_soft::{Config, control};
use cuda_sys::*;

pub(crate) const SMALL: &str = include_str!("data/small.ptx");

pub(crate) const OK: CUresult = CUresult::CUDA_SUCCESS;
pub(crate) const IV: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
pub(crate) const NS: CUresult = CUresult::CUDA_ERROR_NOT_SUPPORTED;

/// The driver for one test. Tests take turns: they hold streams up, which would hold each other's frees up.
pub(crate) struct Session {
    pub(crate) driver: &'static Driver,
    _turn: MutexGuard<'static, ()>,
}

impl std::ops::Deref for Session {
    type Target = Driver;

    fn deref(&self) -> &Driver {
        self.driver
    }
}

/// The driver, installed once with the configuration, and the primary context current on this thread.
pub(crate) fn session_with(config: Config) -> Session {
    static INSTALLED: OnceLock<&'static Driver> = OnceLock::new();
    static TURN: Mutex<()> = Mutex::new(());
    let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
    let driver = *INSTALLED.get_or_init(|| cuda_soft::loader(config).install().unwrap());
    let mut context = null_mut();
    unsafe {
        assert_eq!(driver.cuInit(0), OK);
        assert_eq!(driver.cuDevicePrimaryCtxRetain(&mut context, 0), OK);
        assert_eq!(driver.cuCtxSetCurrent(context), OK);
    }
    Session { driver, _turn: turn }
}

pub(crate) fn session() -> Session {
    session_with(Config::new())
}

/// The handle of the current context.
pub(crate) fn context(driver: &Driver) -> CUcontext {
    let mut context = null_mut();
    assert_eq!(unsafe { driver.cuCtxGetCurrent(&mut context) }, OK);
    context
}

/// Runs `body` in a process of its own: this test binary again, with this test alone.
pub(crate) fn alone(name: &str, body: impl FnOnce()) {
    let Some(output) = child(name) else { return body() };
    let text =
        String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "no such test: {text}");
}

/// As [`alone`], for a body that the driver ends with a message.
pub(crate) fn aborts(name: &str, message: &str, body: impl FnOnce()) {
    let Some(output) = child(name) else { return body() };
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    let says =
        text.lines().any(|line| line.starts_with("cuda-soft: the real driver ") && line.contains(message));
    assert!(says, "{text}");
}

/// What a process that runs this test alone said; `None` in that process.
fn child(name: &str) -> Option<std::process::Output> {
    const MARK: &str = "CUDA_SOFT_TEST_ALONE";
    if std::env::var_os(MARK).is_some() {
        return None;
    }
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(MARK, "1");
    Some(command.output().unwrap())
}

pub(crate) fn stream(driver: &Driver) -> CUstream {
    let mut stream = null_mut();
    assert_eq!(unsafe { driver.cuStreamCreate(&mut stream, 1) }, OK);
    stream
}

pub(crate) fn library(driver: &Driver) -> CUlibrary {
    let mut library = null_mut();
    let text = CString::new(SMALL).unwrap();
    let answer = unsafe {
        driver.cuLibraryLoadData(
            &mut library,
            text.as_ptr().cast(),
            null_mut(),
            null_mut(),
            0,
            null_mut(),
            null_mut(),
            0,
        )
    };
    assert_eq!(answer, OK);
    library
}

pub(crate) fn kernel(driver: &Driver, library: CUlibrary, name: &str) -> CUkernel {
    let mut kernel = null_mut();
    let name = CString::new(name).unwrap();
    assert_eq!(unsafe { driver.cuLibraryGetKernel(&mut kernel, library, name.as_ptr()) }, OK);
    kernel
}

pub(crate) fn function(driver: &Driver, library: CUlibrary, name: &str) -> CUfunction {
    let mut function = null_mut();
    let answer = unsafe { driver.cuKernelGetFunction(&mut function, kernel(driver, library, name)) };
    assert_eq!(answer, OK);
    function
}

/// Device memory of `n` words, all 0.
pub(crate) fn words(driver: &Driver, n: usize) -> CUdeviceptr {
    let mut address = 0;
    unsafe {
        assert_eq!(driver.cuMemAlloc(&mut address, n * 4), OK);
        assert_eq!(driver.cuMemsetD32(address, 0, n), OK);
    }
    address
}

pub(crate) fn read(driver: &Driver, address: CUdeviceptr, n: usize) -> Vec<u32> {
    let mut out = vec![0u32; n];
    assert_eq!(unsafe { driver.cuMemcpyDtoH(out.as_mut_ptr().cast(), address, n * 4) }, OK);
    out
}

pub(crate) fn graph(driver: &Driver) -> CUgraph {
    let mut graph = null_mut();
    assert_eq!(unsafe { driver.cuGraphCreate(&mut graph, 0) }, OK);
    graph
}

pub(crate) fn empty(driver: &Driver, graph: CUgraph, after: &[CUgraphNode]) -> CUgraphNode {
    let mut node = null_mut();
    let answer = unsafe { driver.cuGraphAddEmptyNode(&mut node, graph, after.as_ptr(), after.len()) };
    assert_eq!(answer, OK);
    node
}

/// The parameters of a kernel of one block and thread, with the arguments that `with` gets pointers to.
pub(crate) fn params(function: CUfunction, arguments: &mut [*mut c_void]) -> CUDA_KERNEL_NODE_PARAMS_v2 {
    CUDA_KERNEL_NODE_PARAMS_v2 {
        func: function,
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

/// Adds a node of one of the kernels that take an address and a value.
pub(crate) fn word_node(
    driver: &Driver,
    graph: CUgraph,
    after: &[CUgraphNode],
    function: CUfunction,
    mut address: CUdeviceptr,
    mut value: u32,
) -> CUgraphNode {
    let mut node = null_mut();
    let mut arguments = [(&raw mut address).cast(), (&raw mut value).cast()];
    let params = params(function, &mut arguments);
    let answer =
        unsafe { driver.cuGraphAddKernelNode(&mut node, graph, after.as_ptr(), after.len(), &params) };
    assert_eq!(answer, OK);
    node
}

pub(crate) fn instantiate(driver: &Driver, graph: CUgraph) -> CUgraphExec {
    let mut exec = null_mut();
    let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS::default();
    assert_eq!(unsafe { driver.cuGraphInstantiateWithParams(&mut exec, graph, &mut params) }, OK);
    exec
}

/// What instantiate says of a graph that it refuses.
pub(crate) fn refusal(driver: &Driver, graph: CUgraph, flags: u64) -> (CUresult, u32, CUgraphNode) {
    let mut exec = null_mut();
    let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS { flags, ..Default::default() };
    let answer = unsafe { driver.cuGraphInstantiateWithParams(&mut exec, graph, &mut params) };
    assert!(exec.is_null());
    (answer, params.result_out.0, params.hErrNode_out)
}

/// A stream held up by a host function until it is let go.
pub(crate) struct Gate {
    release: Sender<()>,
}

impl Gate {
    pub(crate) fn close(driver: &Driver, stream: CUstream) -> Self {
        let (release, wait) = channel();
        let wait: *mut Receiver<()> = Box::into_raw(Box::new(wait));
        unsafe extern "C" fn hold(wait: *mut c_void) {
            let wait = unsafe { Box::from_raw(wait.cast::<Receiver<()>>()) };
            let _ = wait.recv_timeout(Duration::from_secs(20));
        }
        assert_eq!(unsafe { driver.cuLaunchHostFunc(stream, Some(hold), wait.cast()) }, OK);
        Self { release }
    }

    pub(crate) fn open(self) {
        self.release.send(()).unwrap();
    }
}

/// A user object whose destructor says on which thread it ran.
pub(crate) fn user_object(driver: &Driver, count: u32) -> (CUuserObject, Receiver<std::thread::ThreadId>) {
    let (ended, news) = channel();
    unsafe extern "C" fn destroy(ended: *mut c_void) {
        let ended = unsafe { Box::from_raw(ended.cast::<Sender<std::thread::ThreadId>>()) };
        let _ = ended.send(std::thread::current().id());
    }
    let mut object = null_mut();
    let data = Box::into_raw(Box::new(ended));
    let answer = unsafe { driver.cuUserObjectCreate(&mut object, data.cast(), Some(destroy), count, 1) };
    assert_eq!(answer, OK);
    (object, news)
}

/// Polls until `done`, for a bounded time.
pub(crate) fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what} did not come");
        std::thread::yield_now();
    }
}

/// Runs `body` in a process of its own, in which nothing may live at the end.
pub(crate) fn leaves_nothing(name: &str, body: impl FnOnce()) {
    alone(name, || {
        body();
        eventually("the end of all objects", || control::live_objects().iter().all(|(_, count)| *count == 0));
    });
}

/// The parameters of a node of this type for the generic call, to be filled in.
pub(crate) fn generic(kind: CUgraphNodeType) -> CUgraphNodeParams {
    CUgraphNodeParams { type_: kind, ..Default::default() }
}

/// As [`generic`], filled in by `fill`.
pub(crate) fn with(
    kind: CUgraphNodeType,
    fill: impl FnOnce(&mut CUgraphNodeParams_st__bindgen_ty_1),
) -> CUgraphNodeParams {
    let mut params = generic(kind);
    fill(&mut params.__bindgen_anon_1);
    params
}

/// Adds a node by the generic call: what it answers, and the node.
pub(crate) fn add(
    driver: &Driver,
    graph: CUgraph,
    after: &[CUgraphNode],
    params: &mut CUgraphNodeParams,
) -> (CUresult, CUgraphNode) {
    let mut node = null_mut();
    let answer = unsafe { driver.cuGraphAddNode(&mut node, graph, after.as_ptr(), after.len(), params) };
    (answer, node)
}

/// The nodes of a graph.
pub(crate) fn nodes(driver: &Driver, graph: CUgraph) -> Vec<CUgraphNode> {
    let mut count = 0;
    unsafe {
        assert_eq!(driver.cuGraphGetNodes(graph, null_mut(), &mut count), OK);
        let mut nodes = vec![null_mut(); count];
        if count > 0 {
            assert_eq!(driver.cuGraphGetNodes(graph, nodes.as_mut_ptr(), &mut count), OK);
        }
        nodes
    }
}

/// The edges of a graph with their data.
pub(crate) fn edges(driver: &Driver, graph: CUgraph) -> Vec<(CUgraphNode, CUgraphNode, CUgraphEdgeData)> {
    let mut count = 0;
    unsafe {
        assert_eq!(driver.cuGraphGetEdges(graph, null_mut(), null_mut(), &mut count), OK);
        let (mut from, mut to) = (vec![null_mut(); count], vec![null_mut(); count]);
        let mut data = vec![CUgraphEdgeData::default(); count];
        if count > 0 {
            let (from, to, data) = (from.as_mut_ptr(), to.as_mut_ptr(), data.as_mut_ptr());
            assert_eq!(driver.cuGraphGetEdges_v12030(graph, from, to, data, &mut count), Ok(OK));
        }
        from.into_iter().zip(to).zip(data).map(|((from, to), data)| (from, to, data)).collect()
    }
}

/// Runs an executable once, to its end.
pub(crate) fn run(driver: &Driver, exec: CUgraphExec, stream: CUstream) {
    unsafe {
        assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
    }
}
