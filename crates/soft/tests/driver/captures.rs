//! Stream capture.

use std::ffi::c_void;
use std::ptr::null_mut;

use crate::common::*;
use cuda_sys::*;

const GLOBAL: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL;
const LOCAL: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
const RELAXED: CUstreamCaptureMode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
const UNSUPPORTED: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
const INVALIDATED: CUresult = CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
const ILLEGAL: CUresult = CUresult::CUDA_ERROR_ILLEGAL_STATE;

fn begin(driver: &Driver, stream: CUstream, mode: CUstreamCaptureMode) {
    assert_eq!(unsafe { driver.cuStreamBeginCapture(stream, mode) }, OK);
}

fn end(driver: &Driver, stream: CUstream) -> Result<CUgraph, CUresult> {
    let mut graph = null_mut();
    let answer = unsafe { driver.cuStreamEndCapture(stream, &mut graph) };
    assert_eq!(answer != OK, graph.is_null());
    if answer == OK { Ok(graph) } else { Err(answer) }
}

fn status(driver: &Driver, stream: CUstream) -> u32 {
    let mut status = CUstreamCaptureStatus(9);
    assert_eq!(unsafe { driver.cuStreamIsCapturing(stream, &mut status) }, OK);
    status.0
}

fn event(driver: &Driver) -> CUevent {
    let mut event = null_mut();
    assert_eq!(unsafe { driver.cuEventCreate(&mut event, 0) }, OK);
    event
}

fn launch(
    driver: &Driver,
    stream: CUstream,
    function: CUfunction,
    mut address: CUdeviceptr,
    mut value: u32,
) -> CUresult {
    let mut arguments: [*mut c_void; 2] = [(&raw mut address).cast(), (&raw mut value).cast()];
    unsafe {
        driver.cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, stream, arguments.as_mut_ptr(), null_mut())
    }
}

#[test]
fn captured_work_runs_at_the_launch_alone() {
    let driver = &session();
    let library = library(driver);
    let (add, multiply) = (function(driver, library, "add"), function(driver, library, "multiply"));
    let (stream, address) = (stream(driver), words(driver, 1));
    begin(driver, stream, LOCAL);
    assert_eq!(status(driver, stream), 1);
    unsafe {
        assert_eq!(driver.cuMemsetD32Async(address, 2, 1, stream), OK);
        assert_eq!(launch(driver, stream, add, address, 3), OK);
        assert_eq!(launch(driver, stream, multiply, address, 4), OK);
        let mut out = 0u32;
        assert_eq!(driver.cuMemcpyDtoHAsync((&raw mut out).cast(), address, 4, stream), OK);
        let graph = end(driver, stream).unwrap();
        assert_eq!(status(driver, stream), 0);
        assert_eq!(read(driver, address, 1), [0]);
        let exec = instantiate(driver, graph);
        assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        assert_eq!((&raw const out).read(), 20);
    }
    assert_eq!(end(driver, stream), Err(ILLEGAL));
}

#[test]
fn forks_join_by_events() {
    let driver = &session();
    let library = library(driver);
    let (add, multiply) = (function(driver, library, "add"), function(driver, library, "multiply"));
    let (origin, fork, address) = (stream(driver), stream(driver), words(driver, 2));
    let (out, back) = (event(driver), event(driver));
    begin(driver, origin, LOCAL);
    unsafe {
        assert_eq!(launch(driver, origin, add, address, 1), OK);
        assert_eq!(driver.cuEventRecord(out, origin), OK);
        assert_eq!(driver.cuStreamWaitEvent(fork, out, 0), OK);
        assert_eq!(status(driver, fork), 1);
        assert_eq!(launch(driver, fork, add, address + 4, 5), OK);
        assert_eq!(driver.cuEventRecord(back, fork), OK);
        assert_eq!(launch(driver, origin, multiply, address, 7), OK);
        assert_eq!(driver.cuStreamWaitEvent(origin, back, 0), OK);
        let mut count = 0;
        let (mut state, mut id, mut graph, mut nodes) =
            (CUstreamCaptureStatus(9), 0, null_mut(), std::ptr::null());
        let told =
            driver.cuStreamGetCaptureInfo(origin, &mut state, &mut id, &mut graph, &mut nodes, &mut count);
        assert_eq!((told, state.0, count), (OK, 1, 2));
        assert_eq!(driver.cuGraphDestroy(graph), ILLEGAL);
        let ended = end(driver, origin).unwrap();
        assert_eq!(ended, graph);
        assert_eq!(status(driver, fork), 0);
        let mut edges = 0;
        assert_eq!(driver.cuGraphGetEdges(ended, null_mut(), null_mut(), &mut edges), OK);
        assert_eq!(edges, 2);
        // The event stood for nodes of the capture, which is over.
        assert_eq!(driver.cuEventQuery(back), IV);
    }
}

#[test]
fn an_unjoined_fork_discards_the_capture() {
    let driver = &session();
    let add = function(driver, library(driver), "add");
    let (origin, fork, address, out) = (stream(driver), stream(driver), words(driver, 1), event(driver));
    begin(driver, origin, LOCAL);
    unsafe {
        assert_eq!(driver.cuEventRecord(out, origin), OK);
        assert_eq!(driver.cuStreamWaitEvent(fork, out, 0), OK);
        assert_eq!(launch(driver, fork, add, address, 1), OK);
        assert_eq!(end(driver, origin), Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNJOINED));
        assert_eq!((status(driver, origin), status(driver, fork)), (0, 0));
        assert_eq!(end(driver, fork), Err(ILLEGAL));
        begin(driver, origin, LOCAL);
        assert_eq!(driver.cuEventRecord(out, origin), OK);
        assert_eq!(driver.cuStreamWaitEvent(fork, out, 0), OK);
        // Without work of its own it needs no join; but only the origin may end.
        assert_eq!(end(driver, fork), Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_UNMATCHED));
        assert_eq!(status(driver, origin), 2);
        assert_eq!(end(driver, origin), Err(INVALIDATED));
    }
}

#[test]
fn forbidden_calls_invalidate() {
    let driver = &session();
    let add = function(driver, library(driver), "add");
    let (origin, other, address) = (stream(driver), stream(driver), words(driver, 1));
    let check = |mode: CUstreamCaptureMode, call: &dyn Fn() -> CUresult, answer: CUresult, after: u32| {
        begin(driver, origin, mode);
        assert_eq!(call(), answer);
        assert_eq!(status(driver, origin), after);
        let ended = end(driver, origin);
        assert_eq!(ended.is_ok(), after == 1);
    };
    let alloc = || unsafe { driver.cuMemAlloc(&mut 0, 4) };
    unsafe {
        check(GLOBAL, &alloc, UNSUPPORTED, 2);
        check(LOCAL, &alloc, UNSUPPORTED, 2);
        check(RELAXED, &alloc, OK, 1);
        check(LOCAL, &|| driver.cuStreamSynchronize(origin), UNSUPPORTED, 2);
        check(RELAXED, &|| driver.cuStreamQuery(origin), UNSUPPORTED, 2);
        check(RELAXED, &|| driver.cuStreamGetFlags(origin, &mut 0), UNSUPPORTED, 2);
        check(RELAXED, &|| driver.cuCtxSynchronize(), UNSUPPORTED, 2);
        check(LOCAL, &|| driver.cuStreamSynchronize(other), UNSUPPORTED, 2);
        check(LOCAL, &|| launch(driver, other, add, address, 1), OK, 1);
        check(
            LOCAL,
            &|| launch(driver, origin, null_mut(), address, 1),
            CUresult::CUDA_ERROR_INVALID_HANDLE,
            1,
        );
        let no_grid = || driver.cuLaunchKernel(add, 0, 1, 1, 1, 1, 1, 0, origin, null_mut(), null_mut());
        check(LOCAL, &no_grid, IV, 2);
        let relaxed = || {
            let mut mode = RELAXED;
            assert_eq!(driver.cuThreadExchangeStreamCaptureMode(&mut mode), OK);
            assert_eq!(mode, GLOBAL);
            let answer = alloc();
            assert_eq!(driver.cuThreadExchangeStreamCaptureMode(&mut mode), OK);
            answer
        };
        check(GLOBAL, &relaxed, OK, 1);
        let exec = {
            let graph = graph(driver);
            empty(driver, graph, &[]);
            instantiate(driver, graph)
        };
        check(LOCAL, &|| driver.cuGraphLaunch(exec, origin), UNSUPPORTED, 2);
        assert_eq!(driver.cuStreamBeginCapture(null_mut(), LOCAL), UNSUPPORTED);
        assert_eq!(driver.cuStreamBeginCapture(origin, CUstreamCaptureMode(7)), IV);
        begin(driver, origin, LOCAL);
        assert_eq!(driver.cuStreamBeginCapture(origin, LOCAL), ILLEGAL);
        assert_eq!(driver.cuStreamDestroy(origin), OK);
        assert_eq!(alloc(), OK);
    }
}

#[test]
fn a_capture_is_ended_by_its_thread() {
    let driver = &session();
    let stream = stream(driver);
    let (driver, raw) = (driver.driver, stream.addr());
    let elsewhere = |mode| {
        begin(driver, stream, mode);
        std::thread::spawn(move || end(driver, raw as CUstream).map(CUgraph::addr)).join().unwrap()
    };
    assert_eq!(elsewhere(LOCAL), Err(CUresult::CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD));
    assert_eq!(status(driver, stream), 0);
    assert!(elsewhere(RELAXED).is_ok());
}

#[test]
fn the_legacy_stream_and_blocking_captures_exclude_each_other() {
    let driver = &session();
    let (mut blocking, address) = (null_mut(), words(driver, 1));
    unsafe {
        assert_eq!(driver.cuStreamCreate(&mut blocking, 0), OK);
        begin(driver, blocking, RELAXED);
        assert_eq!(driver.cuMemsetD32(address, 1, 1), CUresult::CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
        assert_eq!(end(driver, blocking), Err(INVALIDATED));
        let free = stream(driver);
        begin(driver, free, RELAXED);
        assert_eq!(driver.cuMemsetD32(address, 1, 1), OK);
        assert!(end(driver, free).is_ok());
    }
}

#[test]
fn captured_memory_becomes_nodes() {
    let driver = &session();
    let add = function(driver, library(driver), "add");
    let (stream, before) = (stream(driver), words(driver, 1));
    let mut address = 0;
    unsafe {
        begin(driver, stream, LOCAL);
        assert_eq!(driver.cuMemAllocAsync(&mut address, 64, stream), OK);
        assert_eq!(driver.cuMemsetD32Async(address, 0, 16, stream), OK);
        assert_eq!(launch(driver, stream, add, address, 1), OK);
        assert_eq!(driver.cuMemcpyDtoDAsync(before, address, 4, stream), OK);
        assert_eq!(driver.cuMemFreeAsync(before, stream), IV);
        assert_eq!(driver.cuMemFreeAsync(address, stream), OK);
        assert_eq!(driver.cuMemFreeAsync(address, stream), IV);
        let exec = instantiate(driver, end(driver, stream).unwrap());
        for _ in 0..3 {
            assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
        }
        assert_eq!(driver.cuStreamSynchronize(stream), OK);
    }
    assert_eq!(read(driver, before, 1), [1]);
}
