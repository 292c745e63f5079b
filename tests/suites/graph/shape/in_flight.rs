//! What other code gives a captured graph, as a user object, lives until the runs of its
//! executables are over, also where these are made of another graph.

use core::ffi::c_void;
use core::ptr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cuda_graph::{Error, Fallback, Graph, GraphExec, InstantiateOptions, Shape, StreamExt};
use cuda_handles::capture::CaptureMode;
use cuda_handles::{Owner, reaper};
use cuda_sys::{
    CUgraph, CUresult, CUstream, CUstreamCaptureStatus, CUuserObject_flags, CUuserObjectRetain_flags, Call,
};
use cuda_tests::{Gate, SOON, fail, no_leaks, raw, setup, until};

use super::{first, shapes};
use crate::capture::Bench;

/// The user object's destructor. It sets a flag.
unsafe extern "C" fn end(flag: *mut c_void) {
    // SAFETY: it is from `give`, and the driver calls this once.
    unsafe { Arc::from_raw(flag.cast::<AtomicBool>()) }.store(true, Ordering::SeqCst);
}

/// Gives the graph that a stream captures into a user object, whose destructor sets the flag.
fn give(stream: CUstream, flag: &Arc<AtomicBool>) {
    let driver = raw::driver();
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    let (mut graph, mut object): (CUgraph, _) = (ptr::null_mut(), ptr::null_mut());
    let data = Arc::into_raw(Arc::clone(flag)).cast_mut().cast();
    let flags = CUuserObject_flags::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC.0;
    let mine = CUuserObjectRetain_flags::CU_GRAPH_USER_OBJECT_MOVE.0;
    let (no_id, no_nodes, no_count) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
    // SAFETY: the stream is live and captures, and the out pointers are valid or null.
    unsafe {
        raw::ok(driver.cuStreamGetCaptureInfo(
            stream,
            &raw mut status,
            no_id,
            &raw mut graph,
            no_nodes,
            no_count,
        ));
        raw::ok(driver.cuUserObjectCreate(&raw mut object, data, Some(end), 1, flags));
        raw::ok(driver.cuGraphRetainUserObject(graph, object, 1, mine));
    }
}

/// A graph with work of other code, which fills the numbers, and with something to shape: an empty
/// node between that and another fill.
fn graph_of(bench: &Bench, value: u32, flag: &Arc<AtomicBool>) -> Graph {
    let work = |stream| {
        give(stream, flag);
        // SAFETY: the memory is the buffer's, which is kept.
        raw::ok(unsafe { raw::driver().cuMemsetD32Async(bench.numbers.address(), value, 4, stream) });
    };
    let graph = bench
        .stream
        .capture(CaptureMode::Relaxed, |capture| {
            // SAFETY: the work fills only the buffer, and only on the stream that it gets.
            unsafe { capture.foreign(work, [Owner::from(&bench.numbers)]) }?;
            Ok::<_, Error>(())
        })
        .unwrap();
    let filled = graph.nodes().unwrap().remove(0);
    filled.then().empty().unwrap().then().fill(&bench.others, value).unwrap();
    graph
}

fn shaped(graph: &Graph, shape: Option<Shape>) -> GraphExec {
    let options = InstantiateOptions::new().shape(shape.unwrap_or(Shape::AsBuilt));
    let exec = graph.instantiate_with(options).unwrap();
    if shape.is_some() {
        let report = exec.shape_report().unwrap();
        assert!(report.reason_to_leave().is_none() && report.before() != report.after(), "{report}");
    }
    exec
}

fn flag() -> Arc<AtomicBool> {
    Arc::new(AtomicBool::new(false))
}

#[track_caller]
fn ends(flag: &AtomicBool) {
    let has_ended = || {
        reaper::drain();
        flag.load(Ordering::SeqCst)
    };
    assert!(until(SOON, has_ended), "the run is over");
}

#[test]
fn an_executable_is_dropped_with_its_graph() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        for shape in [None].into_iter().chain(shapes().map(Some)) {
            let flag = flag();
            let graph = graph_of(&bench, 3, &flag);
            let mut exec = shaped(&graph, shape);
            let gate = Gate::close(&bench.stream);
            exec.launch(&bench.stream).unwrap();
            drop((exec, graph));
            assert!(!flag.load(Ordering::SeqCst), "{shape:?}: the run uses it");
            gate.open();
            assert_eq!([&bench.numbers, &bench.others].map(|numbers| first(numbers, &bench.stream)), [3; 2]);
            ends(&flag);
        }
    });
}

#[test]
fn the_graph_of_an_update_goes_while_its_run_is_in_flight() {
    let context = setup();
    no_leaks(|| {
        let bench = Bench::new(&context);
        for shape in [None].into_iter().chain(shapes().map(Some)) {
            let flags = [(); 3].map(|()| flag());
            let graphs = [0, 1, 2].map(|number| graph_of(&bench, number as u32, &flags[number]));
            let mut exec = shaped(&graphs[0], shape);
            assert!(exec.update(&graphs[1]).unwrap().is_updated(), "{shape:?}");
            let gate = Gate::close(&bench.stream);
            exec.launch(&bench.stream).unwrap();
            assert!(exec.update(&graphs[2]).unwrap().is_updated(), "{shape:?}");
            drop(graphs);
            assert!(!flags[1].load(Ordering::SeqCst), "{shape:?}: the run uses it");
            gate.open();
            assert_eq!(first(&bench.numbers, &bench.stream), 1);
            ends(&flags[1]);
            exec.launch(&bench.stream).unwrap();
            assert_eq!(first(&bench.numbers, &bench.stream), 2);
            assert!(!flags[2].load(Ordering::SeqCst));
            drop(exec);
            flags.iter().for_each(|flag| ends(flag));
        }
    });
}

#[test]
fn an_executable_in_which_the_host_decides_is_dropped_after_a_failed_run() {
    let context = setup();
    no_leaks(|| {
        let (bench, flag) = (Bench::new(&context), flag());
        let graph = graph_of(&bench, 3, &flag);
        let options = InstantiateOptions::new();
        let mut exec = graph.instantiate_with_fallback(Fallback::HostLoopAlways, options).unwrap();
        let gate = Gate::close(&bench.stream);
        let failing = fail(Call::cuStreamSynchronize, 1, CUresult::CUDA_ERROR_OPERATING_SYSTEM);
        exec.run_blocking(&bench.stream).unwrap_err();
        drop(failing);
        drop((exec, graph));
        assert!(!flag.load(Ordering::SeqCst), "the run uses it");
        gate.open();
        assert_eq!(first(&bench.numbers, &bench.stream), 3);
        ends(&flag);
    });
}
