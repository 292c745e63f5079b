//! Events and streams agree on completion.

use std::ptr::null_mut;

use cuda_sys::{CUevent, CUresult};
use cuda_tests::{SOON, until};

use crate::common::{OK, Session, session};

const ROUNDS: usize = 500;
const NOT_READY: CUresult = CUresult::CUDA_ERROR_NOT_READY;

/// Enqueues work with an event behind it, again and again, and lets `look` wait for one of the two
/// and ask the other.
fn each_round(look: impl Fn(&Session, CUevent)) {
    let s = session();
    let (word, mut event) = (s.words(1), null_mut());
    unsafe { assert_eq!(s.cuEventCreate(&mut event, 2), OK) };
    for round in 0..ROUNDS {
        unsafe {
            assert_eq!(s.cuMemsetD32Async(word, round as u32, 1, s.stream), OK);
            assert_eq!(s.cuEventRecord(event, s.stream), OK);
        }
        look(&s, event);
    }
    unsafe { assert_eq!(s.cuEventDestroy(event), OK) };
    s.free(word);
}

/// Whether the answer is that it is done; another one than yes and no fails the test.
fn is_done(answer: CUresult) -> bool {
    assert!([OK, NOT_READY].contains(&answer), "{answer}");
    answer == OK
}

#[test]
fn a_stream_is_idle_once_the_last_event_is_reached() {
    each_round(|s, event| unsafe {
        assert!(until(SOON, || is_done(s.cuEventQuery(event))));
        assert_eq!(s.cuStreamQuery(s.stream), OK);
    });
    each_round(|s, event| unsafe {
        assert_eq!(s.cuEventSynchronize(event), OK);
        assert_eq!(s.cuStreamQuery(s.stream), OK);
    });
}

#[test]
fn an_event_is_reached_once_its_stream_is_idle() {
    each_round(|s, event| unsafe {
        assert!(until(SOON, || is_done(s.cuStreamQuery(s.stream))));
        assert_eq!(s.cuEventQuery(event), OK);
    });
    each_round(|s, event| unsafe {
        assert_eq!(s.cuStreamSynchronize(s.stream), OK);
        assert_eq!(s.cuEventQuery(event), OK);
    });
}
