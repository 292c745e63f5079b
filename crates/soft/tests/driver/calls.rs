//! Raw calls that succeed, for the tests here and for `tests/suites/driver`, which includes this
//! file.

use std::collections::BTreeMap;
use std::ffi::{CString, c_void};
use std::ptr::{null_mut, without_provenance_mut};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use cuda_sys::*;

pub(crate) const OK: CUresult = CUresult::CUDA_SUCCESS;
pub(crate) const IV: CUresult = CUresult::CUDA_ERROR_INVALID_VALUE;
pub(crate) const NS: CUresult = CUresult::CUDA_ERROR_NOT_SUPPORTED;

pub(crate) fn stream(driver: &Driver) -> CUstream {
    let mut stream = null_mut();
    assert_eq!(unsafe { driver.cuStreamCreate(&mut stream, 1) }, OK);
    stream
}

/// Loads PTX.
pub(crate) fn load(driver: &Driver, ptx: &str) -> CUlibrary {
    let mut library = null_mut();
    let (text, none, nothing) = (CString::new(ptx).unwrap(), null_mut(), null_mut());
    let answer = unsafe {
        let image = text.as_ptr().cast();
        driver.cuLibraryLoadData(&mut library, image, none, nothing, 0, null_mut(), null_mut(), 0)
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
        // The fill may still run, and streams of these tests do not wait for it.
        assert_eq!(driver.cuStreamSynchronize(null_mut()), OK);
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

/// The parameters of a kernel of one block and thread, with pointers to its arguments.
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

pub(crate) fn instantiate(driver: &Driver, graph: CUgraph) -> CUgraphExec {
    instantiate_with(driver, graph, 0)
}

pub(crate) fn instantiate_with(driver: &Driver, graph: CUgraph, flags: u64) -> CUgraphExec {
    let mut exec = null_mut();
    let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS { flags, ..Default::default() };
    assert_eq!(unsafe { driver.cuGraphInstantiateWithParams(&mut exec, graph, &mut params) }, OK);
    exec
}

/// The error of an instantiation: code, result and node.
pub(crate) fn refusal(driver: &Driver, graph: CUgraph, flags: u64) -> (CUresult, u32, CUgraphNode) {
    let mut exec = null_mut();
    let mut params = CUDA_GRAPH_INSTANTIATE_PARAMS { flags, ..Default::default() };
    let answer = unsafe { driver.cuGraphInstantiateWithParams(&mut exec, graph, &mut params) };
    assert_ne!(answer, OK);
    (answer, params.result_out.0, params.hErrNode_out)
}

/// The gates in streams, by number. A gate whose function is never called, since the device was
/// lost before, stays here.
static GATES: Mutex<BTreeMap<usize, Receiver<()>>> = Mutex::new(BTreeMap::new());

/// A stream held up by a host function until it is let go.
pub(crate) struct Gate {
    release: Sender<()>,
}

impl Gate {
    pub(crate) fn close(driver: &Driver, stream: CUstream) -> Self {
        static NEXT: AtomicUsize = AtomicUsize::new(1);
        let (release, wait) = channel();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        GATES.lock().unwrap().insert(number, wait);
        extern "C" fn hold(number: *mut c_void) {
            let wait = GATES.lock().unwrap().remove(&number.addr());
            let _ = wait.map(|wait| wait.recv_timeout(Duration::from_secs(20)));
        }
        let number = without_provenance_mut(number);
        assert_eq!(unsafe { driver.cuLaunchHostFunc(stream, Some(hold), number) }, OK);
        Self { release }
    }

    pub(crate) fn open(self) {
        self.release.send(()).unwrap();
    }
}

/// Adds a node by the generic call; returns result and node.
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

/// Runs an executable once to completion.
pub(crate) fn run(driver: &Driver, exec: CUgraphExec, stream: CUstream) {
    unsafe {
        assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
    }
}
