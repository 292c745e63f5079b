//! Context flags and the profiler's calls. Seen on an H200, driver 580.159.04.

use std::ptr::null_mut;

use cuda_sys::{CUresult, CUstreamCaptureMode};
use cuda_tests::alone;

use crate::common::table::{Table, said};
use crate::common::{OK, Session, session};

fn told(s: &Session) -> u32 {
    let mut flags = 0;
    assert_eq!(unsafe { s.cuCtxGetFlags(&mut flags) }, OK);
    flags
}

#[test]
fn a_context_says_its_flags_but_for_core_dumps_and_always_maps_host_memory() {
    alone!();
    let s = session();
    let mut table = Table::default();
    for flags in [0, 1, 2, 4, 3, 5, 8, 16, 32, 64, 256] {
        let answer = unsafe { s.cuCtxSetFlags(flags) };
        table.row(format!("set {flags}"), format!("{}, then {}", said(answer), told(&s)));
    }
    assert_eq!(unsafe { s.cuCtxSetFlags(0) }, OK);
    table.is("
        set 0: ok, then 8
        set 1: ok, then 9
        set 2: ok, then 10
        set 4: ok, then 12
        set 3: INVALID_VALUE, then 12
        set 5: INVALID_VALUE, then 12
        set 8: ok, then 8
        set 16: ok, then 24
        set 32: ok, then 8
        set 64: ok, then 8
        set 256: INVALID_VALUE, then 8
    ");
}

#[test]
fn the_primary_context_is_given_flags_by_its_device_as_well() {
    alone!();
    let s = session();
    let mut table = Table::default();
    let mut device = 0;
    assert_eq!(unsafe { s.cuCtxGetDevice(&mut device) }, OK);
    for flags in [1, 2, 4, 3, 8, 16, 0] {
        let answer = unsafe { s.cuDevicePrimaryCtxSetFlags(device, flags) };
        let (mut own, mut active) = (99, 99);
        assert_eq!(unsafe { s.cuDevicePrimaryCtxGetState(device, &mut own, &mut active) }, OK);
        assert_eq!(active, 1);
        table.row(format!("set {flags}"), format!("{}, then {own}, told {}", said(answer), told(&s)));
    }
    table.is("
        set 1: ok, then 1, told 9
        set 2: ok, then 2, told 10
        set 4: ok, then 4, told 12
        set 3: INVALID_VALUE, then 4, told 12
        set 8: INVALID_VALUE, then 4, told 12
        set 16: ok, then 16, told 24
        set 0: ok, then 0, told 8
    ");
}

#[test]
fn a_profiler_needs_a_context_and_is_forbidden_near_captures() {
    let s = session();
    let calls: [(&str, &dyn Fn() -> CUresult); 2] =
        [("start", &|| unsafe { s.cuProfilerStart() }), ("stop", &|| unsafe { s.cuProfilerStop() })];
    let mut table = Table::default();
    for (name, call) in calls {
        table.row(name, said(call()));
        table.row(format!("{name} again"), said(call()));
        assert_eq!(unsafe { s.cuCtxSetCurrent(null_mut()) }, OK);
        table.row(format!("{name} without a context"), said(call()));
        assert_eq!(unsafe { s.cuCtxSetCurrent(s.context) }, OK);
        for mode in 0..3 {
            let mut graph = null_mut();
            unsafe {
                assert_eq!(s.cuStreamBeginCapture(s.stream, CUstreamCaptureMode(mode)), OK);
                let answer = call();
                let end = s.cuStreamEndCapture(s.stream, &mut graph);
                table.row(format!("{name}, mode {mode}"), format!("{}, end {}", said(answer), said(end)));
                if !graph.is_null() {
                    assert_eq!(s.cuGraphDestroy(graph), OK);
                }
            }
        }
    }
    table.is("
        start: ok
        start again: ok
        start without a context: INVALID_CONTEXT
        start, mode 0: STREAM_CAPTURE_UNSUPPORTED, end STREAM_CAPTURE_INVALIDATED
        start, mode 1: STREAM_CAPTURE_UNSUPPORTED, end STREAM_CAPTURE_INVALIDATED
        start, mode 2: ok, end ok
        stop: ok
        stop again: ok
        stop without a context: INVALID_CONTEXT
        stop, mode 0: STREAM_CAPTURE_UNSUPPORTED, end STREAM_CAPTURE_INVALIDATED
        stop, mode 1: STREAM_CAPTURE_UNSUPPORTED, end STREAM_CAPTURE_INVALIDATED
        stop, mode 2: ok, end ok
    ");
}
