//! New parameters for nodes of an executable, inside a host function.

use std::ffi::c_void;
use std::ptr::null_mut;
use std::sync::mpsc::{Sender, channel};
use std::time::Duration;

use cuda_sys::*;

use crate::common::table::{Table, said};
use crate::common::*;

type T = CUgraphNodeType;

/// A node with the parameters that it has already.
struct Node {
    what: &'static str,
    raw: CUgraphNode,
    params: CUgraphNodeParams,
}

/// The nodes of an executable, and the receiver of the answers.
struct Inside {
    exec: CUgraphExec,
    nodes: Vec<Node>,
    answers: Sender<Vec<CUresult>>,
}

unsafe extern "C" fn nothing(_: *mut c_void) {}

unsafe extern "C" fn set_all(inside: *mut c_void) {
    let inside = unsafe { Box::from_raw(inside.cast::<Inside>()) };
    inside.answers.send(answers(inside.exec, &inside.nodes)).unwrap();
}

/// The answer for each node.
fn answers(exec: CUgraphExec, nodes: &[Node]) -> Vec<CUresult> {
    let driver = cuda_tests::raw::driver();
    let set = |node: &Node| {
        let mut params = node.params;
        unsafe { driver.cuGraphExecNodeSetParams(exec, node.raw, &mut params) }
    };
    nodes.iter().map(set).collect()
}

fn blank(type_: T) -> CUgraphNodeParams {
    CUgraphNodeParams { type_, ..Default::default() }
}

fn kernel(driver: &Session, arguments: &mut [*mut c_void; 2]) -> CUgraphNodeParams {
    let mut params = blank(T::CU_GRAPH_NODE_TYPE_KERNEL);
    params.__bindgen_anon_1.kernel = CUDA_KERNEL_NODE_PARAMS_v3 {
        func: driver.function("add"),
        gridDimX: 1,
        gridDimY: 1,
        gridDimZ: 1,
        blockDimX: 1,
        blockDimY: 1,
        blockDimZ: 1,
        sharedMemBytes: 0,
        kernelParams: arguments.as_mut_ptr(),
        extra: null_mut(),
        kern: null_mut(),
        ctx: null_mut(),
    };
    params
}

fn fill(driver: &Session, dst: CUdeviceptr) -> CUgraphNodeParams {
    let mut params = blank(T::CU_GRAPH_NODE_TYPE_MEMSET);
    params.__bindgen_anon_1.memset = CUDA_MEMSET_NODE_PARAMS_v2 {
        dst,
        pitch: 0,
        value: 1,
        elementSize: 4,
        width: 1,
        height: 1,
        ctx: driver.context,
    };
    params
}

fn host() -> CUgraphNodeParams {
    let mut params = blank(T::CU_GRAPH_NODE_TYPE_HOST);
    params.__bindgen_anon_1.host = CUDA_HOST_NODE_PARAMS_v2 { fn_: Some(nothing), ..Default::default() };
    params
}

fn events(event: CUevent) -> [CUgraphNodeParams; 2] {
    let mut record = blank(T::CU_GRAPH_NODE_TYPE_EVENT_RECORD);
    record.__bindgen_anon_1.eventRecord.event = event;
    let mut wait = blank(T::CU_GRAPH_NODE_TYPE_WAIT_EVENT);
    wait.__bindgen_anon_1.eventWait.event = event;
    [record, wait]
}

#[test]
fn nodes_are_set_nowhere_inside() {
    let driver = session();
    let (mut table, words, own) = (Table::default(), driver.words(4), driver.graph());
    let mut event = null_mut();
    assert_eq!(unsafe { driver.cuEventCreate(&mut event, 0) }, OK);
    let mut numbers = [words, 1];
    let mut arguments = numbers.each_mut().map(|number| (&raw mut *number).cast::<c_void>());
    let [record, wait] = events(event);
    let all = [
        ("kernel", kernel(&driver, &mut arguments)),
        ("fill", fill(&driver, words)),
        ("copy", copy_params(&driver, words, words + 8, 4)),
        ("host function", host()),
        ("event record", record),
        ("event wait", wait),
    ];
    let nodes: Vec<Node> = all
        .into_iter()
        .map(|(what, mut params)| {
            let (answer, raw) = driver.add(own, &[], &mut params);
            assert_eq!(answer, OK, "{what}");
            Node { what, raw, params }
        })
        .collect();
    let exec = driver.instantiate(own);
    assert_eq!(answers(exec, &nodes), [OK; 6]);
    let names: Vec<&str> = nodes.iter().map(|node| node.what).collect();
    let (sender, receiver) = channel();
    let inside = Box::into_raw(Box::new(Inside { exec, nodes, answers: sender }));
    unsafe { assert_eq!(driver.cuLaunchHostFunc(driver.stream, Some(set_all), inside.cast()), OK) };
    let seen = receiver.recv_timeout(Duration::from_secs(20)).unwrap();
    for (what, answer) in names.iter().zip(seen) {
        table.row(what, said(answer));
    }
    driver.wait();
    driver.run(exec);
    driver.end(exec);
    driver.destroy(&[own]);
    assert_eq!(unsafe { driver.cuEventDestroy(event) }, OK);
    driver.free(words);
    table.is(ANSWERS);
}

const ANSWERS: &str = "
kernel: INVALID_VALUE
fill: INVALID_VALUE
copy: INVALID_VALUE
host function: INVALID_VALUE
event record: INVALID_VALUE
event wait: INVALID_VALUE
";
