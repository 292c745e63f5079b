//! What the tests of the raw calls share.
#![allow(dead_code, missing_docs, clippy::undocumented_unsafe_blocks)]

use std::ffi::{CString, c_void};
use std::ptr::null_mut;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Once, OnceLock};
use std::time::{Duration, Instant};

use cuda_soft::Config;
use cuda_sys::*;

pub const SMALL: &str = include_str!("../data/small.ptx");

pub const OK: CUresult = CUresult::CUDA_SUCCESS;
pub const IV: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
pub const NS: CUresult = CUresult::CUDA_ERROR_NOT_SUPPORTED;

/// The driver, installed once with the configuration, and the primary context current on this thread.
pub fn driver_with(config: Config) -> &'static Driver {
    static INSTALLED: OnceLock<&'static Driver> = OnceLock::new();
    static INIT: Once = Once::new();
    let driver = *INSTALLED.get_or_init(|| cuda_soft::loader(config).install().unwrap());
    INIT.call_once(|| assert_eq!(unsafe { driver.cuInit(0) }, OK));
    let mut context = null_mut();
    unsafe {
        assert_eq!(driver.cuDevicePrimaryCtxRetain(&mut context, 0), OK);
        assert_eq!(driver.cuCtxSetCurrent(context), OK);
    }
    driver
}

pub fn installed_driver() -> &'static Driver {
    driver_with(Config::new())
}

/// Runs `body` in a process of its own: this test binary again, with this test alone.
pub fn alone(name: &str, body: impl FnOnce()) {
    const MARK: &str = "CUDA_SOFT_TEST_ALONE";
    if std::env::var_os(MARK).is_some() {
        return body();
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(MARK, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned() + &String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("1 passed"), "no such test: {text}");
}

/// As [`alone`], for a body that the driver ends with a message.
pub fn aborts(name: &str, message: &str, body: impl FnOnce()) {
    const MARK: &str = "CUDA_SOFT_TEST_ALONE";
    if std::env::var_os(MARK).is_some() {
        return body();
    }
    let output = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", name, "--nocapture", "--test-threads=1"])
        .env(MARK, "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success());
    assert!(text.contains("cuda-soft: the real driver crashes here") && text.contains(message), "{text}");
}

pub fn stream(driver: &Driver) -> CUstream {
    let mut stream = null_mut();
    assert_eq!(unsafe { driver.cuStreamCreate(&mut stream, 1) }, OK);
    stream
}

pub fn library(driver: &Driver) -> CUlibrary {
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

pub fn kernel(driver: &Driver, library: CUlibrary, name: &str) -> CUkernel {
    let mut kernel = null_mut();
    let name = CString::new(name).unwrap();
    assert_eq!(unsafe { driver.cuLibraryGetKernel(&mut kernel, library, name.as_ptr()) }, OK);
    kernel
}

pub fn function(driver: &Driver, library: CUlibrary, name: &str) -> CUfunction {
    let mut function = null_mut();
    let answer = unsafe { driver.cuKernelGetFunction(&mut function, kernel(driver, library, name)) };
    assert_eq!(answer, OK);
    function
}

/// Device memory of `n` words, all 0.
pub fn words(driver: &Driver, n: usize) -> CUdeviceptr {
    let mut address = 0;
    unsafe {
        assert_eq!(driver.cuMemAlloc(&mut address, n * 4), OK);
        assert_eq!(driver.cuMemsetD32(address, 0, n), OK);
    }
    address
}

pub fn read(driver: &Driver, address: CUdeviceptr, n: usize) -> Vec<u32> {
    let mut out = vec![0u32; n];
    assert_eq!(unsafe { driver.cuMemcpyDtoH(out.as_mut_ptr().cast(), address, n * 4) }, OK);
    out
}

pub fn graph(driver: &Driver) -> CUgraph {
    let mut graph = null_mut();
    assert_eq!(unsafe { driver.cuGraphCreate(&mut graph, 0) }, OK);
    graph
}

pub fn empty(driver: &Driver, graph: CUgraph, after: &[CUgraphNode]) -> CUgraphNode {
    let mut node = null_mut();
    let answer = unsafe { driver.cuGraphAddEmptyNode(&mut node, graph, after.as_ptr(), after.len()) };
    assert_eq!(answer, OK);
    node
}

/// The parameters of a kernel of one block and thread, with the arguments that `with` gets pointers to.
pub fn params(function: CUfunction, arguments: &mut [*mut c_void]) -> CUDA_KERNEL_NODE_PARAMS_v2 {
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
pub fn word_node(
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
    let answer = unsafe { driver.cuGraphAddKernelNode(&mut node, graph, after.as_ptr(), after.len(), &params) };
    assert_eq!(answer, OK);
    node
}

pub fn instantiate(driver: &Driver, graph: CUgraph) -> CUgraphExec {
    let mut exec = null_mut();
    let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS::default();
    assert_eq!(unsafe { driver.cuGraphInstantiateWithParams(&mut exec, graph, &mut params) }, OK);
    exec
}

/// What instantiate says of a graph that it refuses.
pub fn refusal(driver: &Driver, graph: CUgraph, flags: u64) -> (CUresult, u32, CUgraphNode) {
    let mut exec = null_mut();
    let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS { flags, ..Default::default() };
    let answer = unsafe { driver.cuGraphInstantiateWithParams(&mut exec, graph, &mut params) };
    assert!(exec.is_null());
    (answer, params.result_out.0, params.hErrNode_out)
}

/// A stream held up by a host function until it is let go.
pub struct Gate {
    release: Sender<()>,
}

impl Gate {
    pub fn close(driver: &Driver, stream: CUstream) -> Self {
        let (release, wait) = channel();
        let wait: *mut Receiver<()> = Box::into_raw(Box::new(wait));
        unsafe extern "C" fn hold(wait: *mut c_void) {
            let wait = unsafe { Box::from_raw(wait.cast::<Receiver<()>>()) };
            let _ = wait.recv_timeout(Duration::from_secs(20));
        }
        assert_eq!(unsafe { driver.cuLaunchHostFunc(stream, Some(hold), wait.cast()) }, OK);
        Self { release }
    }

    pub fn open(self) {
        self.release.send(()).unwrap();
    }
}

/// A user object whose destructor says on which thread it ran.
pub fn user_object(driver: &Driver, count: u32) -> (CUuserObject, Receiver<std::thread::ThreadId>) {
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
pub fn eventually(what: &str, mut done: impl FnMut() -> bool) {
    let start = Instant::now();
    while !done() {
        assert!(start.elapsed() < Duration::from_secs(20), "{what} did not come");
        std::thread::yield_now();
    }
}
