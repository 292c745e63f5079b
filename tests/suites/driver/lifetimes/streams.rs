//! The work of a destroyed stream goes on, and a wait for the context includes it.

use std::ffi::c_void;
use std::ptr::{null_mut, with_exposed_provenance_mut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cuda_sys::{CUdeviceptr, Driver};
use cuda_tests::{SOON, until};

use crate::common::{OK, Session, session};

/// Long enough for a call that does not wait to come back.
const A_WHILE: Duration = Duration::from_millis(200);
/// A test that fails must still end.
const BOUND: Duration = Duration::from_secs(20);

unsafe extern "C" fn hold(open: *mut c_void) {
    let open = unsafe { &*open.cast::<AtomicBool>() };
    let _ = until(BOUND, || open.load(Ordering::SeqCst));
}

/// A fill of `address` with 7, behind a gate on a stream that is destroyed at once.
fn filled_by_a_destroyed_stream(s: &Session, open: &'static AtomicBool, address: CUdeviceptr) {
    let mut stream = null_mut();
    unsafe {
        assert_eq!(s.cuStreamCreate(&mut stream, 1), OK);
        assert_eq!(s.cuLaunchHostFunc(stream, Some(hold), (&raw const *open).cast_mut().cast()), OK);
        assert_eq!(s.cuMemsetD32Async(address, 7, 1, stream), OK);
        assert_eq!(s.cuStreamDestroy(stream), OK);
    }
}

/// A thread of its own makes the call: it does not come back before the gate is open.
fn assert_waits(s: &Session, open: &'static AtomicBool, call: impl FnOnce(&Driver) + Send) {
    let (back, driver, context) = (AtomicBool::new(false), &**s, s.context.expose_provenance());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            unsafe { assert_eq!(driver.cuCtxSetCurrent(with_exposed_provenance_mut(context)), OK) };
            call(driver);
            back.store(true, Ordering::SeqCst);
        });
        assert!(!until(A_WHILE, || back.load(Ordering::SeqCst)), "it waits");
        open.store(true, Ordering::SeqCst);
        assert!(until(SOON, || back.load(Ordering::SeqCst)), "until the work is done");
    });
}

#[test]
fn a_context_waits_for_them() {
    static OPEN: AtomicBool = AtomicBool::new(false);
    let s = session();
    let word = s.words(1);
    filled_by_a_destroyed_stream(&s, &OPEN, word);
    assert_waits(&s, &OPEN, |driver| unsafe { assert_eq!(driver.cuCtxSynchronize(), OK) });
    assert_eq!(s.read(word), 7);
    s.free(word);
}

#[test]
fn the_free_of_plain_memory_waits_for_them() {
    static OPEN: AtomicBool = AtomicBool::new(false);
    let s = session();
    let word = s.words(1);
    filled_by_a_destroyed_stream(&s, &OPEN, word);
    assert_waits(&s, &OPEN, |driver| unsafe { assert_eq!(driver.cuMemFree(word), OK) });
}
