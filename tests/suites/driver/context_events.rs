//! Events that stand for all work of a context, or that all of it waits for.

use std::ptr::null_mut;

use cuda_sys::*;

use crate::calls::{self, Gate};
use crate::common::*;

fn event(s: &Session) -> CUevent {
    let mut event = null_mut();
    assert_eq!(unsafe { s.cuEventCreate(&mut event, 0) }, OK);
    event
}

#[test]
fn an_event_of_a_context_comes_after_all_its_streams() {
    cuda_tests::alone!();
    let s = session();
    let (event, other) = (event(&s), calls::stream(&s));
    let gate = Gate::close(&s, other);
    let Ok(answer) = (unsafe { s.cuCtxRecordEvent(s.context, event) }) else { return gate.open() };
    assert_eq!(answer, OK);
    assert_eq!(unsafe { s.cuEventQuery(event) }, CUresult::CUDA_ERROR_NOT_READY);
    gate.open();
    unsafe {
        assert_eq!(s.cuEventSynchronize(event), OK);
        assert_eq!(s.cuEventQuery(event), OK);
        assert_eq!(s.cuEventDestroy(event), OK);
        assert_eq!(s.cuStreamDestroy(other), OK);
    }
}

#[test]
fn all_streams_of_a_context_wait_for_an_event() {
    cuda_tests::alone!();
    let s = session();
    let (event, held, word) = (event(&s), calls::stream(&s), s.words(1));
    let gate = Gate::close(&s, held);
    assert_eq!(unsafe { s.cuEventRecord(event, held) }, OK);
    let Ok(answer) = (unsafe { s.cuCtxWaitEvent(s.context, event) }) else { return gate.open() };
    assert_eq!(answer, OK);
    // One that was there, and one that came later.
    let later = calls::stream(&s);
    for stream in [s.stream, later] {
        unsafe {
            assert_eq!(s.cuMemsetD32Async(word, 7, 1, stream), OK);
            assert_eq!(s.cuStreamQuery(stream), CUresult::CUDA_ERROR_NOT_READY);
        }
    }
    gate.open();
    unsafe {
        assert_eq!(s.cuCtxSynchronize(), OK);
        assert_eq!(s.cuStreamQuery(later), OK);
        assert_eq!(s.read(word), 7);
        assert_eq!(s.cuEventDestroy(event), OK);
        assert_eq!(s.cuStreamDestroy(held), OK);
        assert_eq!(s.cuStreamDestroy(later), OK);
    }
    s.free(word);
}

#[test]
fn they_end_captures() {
    let s = session();
    let event = event(&s);
    let forbidden = CUresult::CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    for waits in [false, true] {
        let mut graph = null_mut();
        let relaxed = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        assert_eq!(unsafe { s.cuStreamBeginCapture(s.stream, relaxed) }, OK);
        let answer = unsafe {
            if waits { s.cuCtxWaitEvent(s.context, event) } else { s.cuCtxRecordEvent(s.context, event) }
        };
        let ended = unsafe { s.cuStreamEndCapture(s.stream, &mut graph) };
        let Ok(answer) = answer else { return s.destroy(&[graph]) };
        assert_eq!(answer, forbidden, "waits: {waits}");
        assert_eq!(ended, CUresult::CUDA_ERROR_STREAM_CAPTURE_INVALIDATED, "waits: {waits}");
    }
    assert_eq!(unsafe { s.cuEventDestroy(event) }, OK);
}
