//! Helpers of the tests.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use cuda_soft::{Config, control};
use cuda_sys::*;

pub(crate) use crate::calls::*;

pub(crate) const SMALL: &str = include_str!("data/small.ptx");

/// The driver for one test. Tests run one at a time, since they block streams, which would block
/// each other's frees.
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

/// The driver, installed once with the configuration, and the primary context current on this
/// thread.
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

/// Runs `body` in a process of its own, which runs this test alone.
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

/// The output of a process that runs this test alone; `None` in that process.
fn child(name: &str) -> Option<std::process::Output> {
    const MARK: &str = "CUDA_SOFT_TEST_ALONE";
    if std::env::var_os(MARK).is_some() {
        return None;
    }
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", name, "--nocapture", "--test-threads=1"]).env(MARK, "1");
    // The sanitiser's allocator is to return null, as others do, if there is too little memory.
    command.env("ASAN_OPTIONS", "allocator_may_return_null=1");
    Some(command.output().unwrap())
}

pub(crate) fn library(driver: &Driver) -> CUlibrary {
    load(driver, SMALL)
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

/// A user object whose destructor reports its thread.
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
