//! External semaphores on streams and in graphs.

use std::os::fd::{AsRawFd, IntoRawFd, OwnedFd};
use std::ptr::{null, null_mut};

use crate::common::*;
use cuda_soft::control::ExternalSemaphore;
use cuda_sys::CUexternalSemaphoreHandleType as Kind;
use cuda_sys::CUgraphNodeType as T;
use cuda_sys::*;

const OPAQUE: Kind = Kind::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD;
const TIMELINE: Kind = Kind::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD;

fn import(driver: &Driver, kind: Kind, descriptor: OwnedFd) -> (CUresult, CUexternalSemaphore) {
    let mut desc = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC { type_: kind, ..Default::default() };
    desc.handle.fd = descriptor.as_raw_fd();
    let mut semaphore = null_mut();
    let answer = unsafe { driver.cuImportExternalSemaphore(&mut semaphore, &desc) };
    if answer == OK {
        // It is the driver's now.
        let _ = descriptor.into_raw_fd();
    }
    (answer, semaphore)
}

/// A semaphore and its handle.
fn pair(driver: &Driver, kind: Kind) -> (ExternalSemaphore, CUexternalSemaphore) {
    let other = ExternalSemaphore::new().unwrap();
    let (answer, semaphore) = import(driver, kind, other.descriptor().unwrap());
    assert_eq!(answer, OK);
    (other, semaphore)
}

fn signal_params(value: u64) -> CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS {
    let mut params = CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS::default();
    params.params.fence.value = value;
    params
}

fn wait_params(value: u64) -> CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS {
    let mut params = CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS::default();
    params.params.fence.value = value;
    params
}

fn signal(driver: &Driver, semaphore: CUexternalSemaphore, value: u64, stream: CUstream) -> CUresult {
    unsafe { driver.cuSignalExternalSemaphoresAsync(&semaphore, &signal_params(value), 1, stream) }
}

fn wait(driver: &Driver, semaphore: CUexternalSemaphore, value: u64, stream: CUstream) -> CUresult {
    unsafe { driver.cuWaitExternalSemaphoresAsync(&semaphore, &wait_params(value), 1, stream) }
}

#[test]
fn imports_are_checked() {
    leaves_nothing("semaphores::imports_are_checked", || {
        let driver = &session();
        let fresh = || ExternalSemaphore::new().unwrap().descriptor().unwrap();
        assert_eq!(import(driver, Kind::CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32, fresh()).0, NS);
        assert_eq!(import(driver, Kind(0), fresh()).0, IV);
        assert_eq!(import(driver, Kind(77), fresh()).0, IV);
        let file: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
        assert_eq!(import(driver, OPAQUE, file).0, CUresult::CUDA_ERROR_OPERATING_SYSTEM);
        let desc = CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC { type_: OPAQUE, flags: 1, ..Default::default() };
        let mut semaphore = null_mut();
        unsafe {
            assert_eq!(driver.cuImportExternalSemaphore(&mut semaphore, &desc), IV);
            assert_eq!(driver.cuImportExternalSemaphore(&mut semaphore, null()), IV);
            assert_eq!(driver.cuImportExternalSemaphore(null_mut(), &desc), IV);
            assert_eq!(driver.cuDestroyExternalSemaphore(null_mut()), CUresult::CUDA_ERROR_INVALID_HANDLE);
        }
        let (_, semaphore) = pair(driver, TIMELINE);
        unsafe {
            assert_eq!(driver.cuDestroyExternalSemaphore(semaphore), OK);
            let again = driver.cuDestroyExternalSemaphore(semaphore);
            assert_eq!(again, CUresult::CUDA_ERROR_INVALID_HANDLE);
        }
    });
}

#[test]
fn both_sides_signal_and_wait() {
    leaves_nothing("semaphores::both_sides_signal_and_wait", || {
        let driver = &session();
        let stream = stream(driver);
        let ((timeline, semaphore), (binary, flag)) = (pair(driver, TIMELINE), pair(driver, OPAQUE));
        let sync = || assert_eq!(unsafe { driver.cuStreamSynchronize(stream) }, OK);
        let busy = || {
            let answer = unsafe { driver.cuStreamQuery(stream) };
            assert_eq!(answer, CUresult::CUDA_ERROR_NOT_READY);
        };
        assert_eq!(signal(driver, semaphore, 3, stream), OK);
        assert_eq!(wait(driver, semaphore, 3, stream), OK);
        sync();
        assert_eq!(timeline.value(), 3);
        assert_eq!(wait(driver, semaphore, 5, stream), OK);
        busy();
        timeline.set_value(4);
        busy();
        timeline.set_value(6);
        sync();
        // A wait for a flag takes it.
        assert_eq!(wait(driver, flag, 0, stream), OK);
        busy();
        binary.set_value(1);
        sync();
        assert_eq!(binary.value(), 0);
        // Two at once, in their order.
        let (both, params) = ([flag, semaphore], [signal_params(0), signal_params(9)]);
        unsafe {
            assert_eq!(driver.cuSignalExternalSemaphoresAsync(both.as_ptr(), params.as_ptr(), 2, stream), OK);
            sync();
            assert_eq!((binary.value(), timeline.value()), (1, 9));
            assert_eq!(driver.cuSignalExternalSemaphoresAsync(null(), params.as_ptr(), 2, stream), IV);
            assert_eq!(driver.cuSignalExternalSemaphoresAsync(both.as_ptr(), null(), 2, stream), IV);
            assert_eq!(driver.cuDestroyExternalSemaphore(semaphore), OK);
            assert_eq!(driver.cuDestroyExternalSemaphore(flag), OK);
            assert_eq!(signal(driver, semaphore, 1, stream), CUresult::CUDA_ERROR_INVALID_HANDLE);
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
    });
}

#[test]
fn nodes_signal_wait_read_back_and_change() {
    leaves_nothing("semaphores::nodes_signal_wait_read_back_and_change", || {
        let driver = &session();
        let (own, stream) = (graph(driver), stream(driver));
        let (other, mut semaphore) = pair(driver, TIMELINE);
        let (params, until) = (signal_params(2), wait_params(7));
        let signals = CUDA_EXT_SEM_SIGNAL_NODE_PARAMS {
            extSemArray: &mut semaphore,
            paramsArray: &params,
            numExtSems: 1,
        };
        let waits =
            CUDA_EXT_SEM_WAIT_NODE_PARAMS { extSemArray: &mut semaphore, paramsArray: &until, numExtSems: 1 };
        unsafe {
            let (mut first, mut second) = (null_mut(), null_mut());
            assert_eq!(
                driver.cuGraphAddExternalSemaphoresSignalNode(&mut first, own, null(), 0, &signals),
                OK
            );
            assert_eq!(driver.cuGraphAddExternalSemaphoresWaitNode(&mut second, own, &first, 1, &waits), OK);
            let nobody = CUDA_EXT_SEM_WAIT_NODE_PARAMS { extSemArray: null_mut(), ..waits };
            assert_eq!(
                driver.cuGraphAddExternalSemaphoresWaitNode(&mut null_mut(), own, null(), 0, &nobody),
                IV
            );
            let mut third = generic(T::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL);
            let last = signal_params(100);
            third.__bindgen_anon_1.extSemSignal.extSemArray = &mut semaphore;
            third.__bindgen_anon_1.extSemSignal.paramsArray = &last;
            third.__bindgen_anon_1.extSemSignal.numExtSems = 1;
            let (answer, third) = add(driver, own, &[second], &mut third);
            assert_eq!(answer, OK);
            for (node, expected) in [
                (first, T::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL),
                (second, T::CU_GRAPH_NODE_TYPE_EXT_SEMAS_WAIT),
                (third, T::CU_GRAPH_NODE_TYPE_EXT_SEMAS_SIGNAL),
            ] {
                let mut kind = T(99);
                assert_eq!(driver.cuGraphNodeGetType(node, &mut kind), OK);
                assert_eq!(kind, expected);
            }
            let mut back = CUDA_EXT_SEM_WAIT_NODE_PARAMS::default();
            assert_eq!(driver.cuGraphExternalSemaphoresWaitNodeGetParams(second, &mut back), OK);
            assert_eq!((*back.extSemArray, back.numExtSems), (semaphore, 1));
            assert_eq!((*back.paramsArray).params.fence.value, 7);
            assert_eq!(driver.cuGraphExternalSemaphoresWaitNodeSetParams(second, &back), OK);

            let exec = instantiate(driver, own);
            assert_eq!(driver.cuGraphLaunch(exec, stream), OK);
            eventually("the signal", || other.value() == 2);
            assert_eq!(driver.cuStreamQuery(stream), CUresult::CUDA_ERROR_NOT_READY);
            other.set_value(7);
            assert_eq!(driver.cuStreamSynchronize(stream), OK);
            assert_eq!(other.value(), 100);
            // In the executable other values, and as many.
            let one = wait_params(1);
            let changed = CUDA_EXT_SEM_WAIT_NODE_PARAMS { paramsArray: &one, ..waits };
            assert_eq!(driver.cuGraphExecExternalSemaphoresWaitNodeSetParams(exec, second, &changed), OK);
            let none = CUDA_EXT_SEM_WAIT_NODE_PARAMS { numExtSems: 0, ..waits };
            assert_eq!(driver.cuGraphExecExternalSemaphoresWaitNodeSetParams(exec, second, &none), IV);
            assert_eq!(driver.cuGraphExecExternalSemaphoresSignalNodeSetParams(exec, second, &signals), IV);
            assert_eq!(driver.cuGraphNodeSetEnabled(exec, second, 0), IV);
            run(driver, exec, stream);
            let mut clone = null_mut();
            assert_eq!(driver.cuGraphClone(&mut clone, own), OK);
            assert_eq!(driver.cuGraphExecUpdate(exec, clone, null_mut()), OK);
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            assert_eq!(driver.cuGraphDestroy(clone), OK);
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuDestroyExternalSemaphore(semaphore), OK);
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
    });
}

#[test]
fn calls_are_captured() {
    leaves_nothing("semaphores::calls_are_captured", || {
        let driver = &session();
        let (stream, (other, semaphore)) = (stream(driver), pair(driver, TIMELINE));
        let mut own = null_mut();
        let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
        unsafe {
            assert_eq!(driver.cuStreamBeginCapture(stream, mode), OK);
            assert_eq!(signal(driver, semaphore, 4, stream), OK);
            assert_eq!(wait(driver, semaphore, 4, stream), OK);
            assert_eq!(driver.cuStreamEndCapture(stream, &mut own), OK);
            assert_eq!((nodes(driver, own).len(), edges(driver, own).len(), other.value()), (2, 1, 0));
            let exec = instantiate(driver, own);
            run(driver, exec, stream);
            assert_eq!(other.value(), 4);
            assert_eq!(driver.cuGraphExecDestroy(exec), OK);
            assert_eq!(driver.cuGraphDestroy(own), OK);
            assert_eq!(driver.cuDestroyExternalSemaphore(semaphore), OK);
            assert_eq!(driver.cuStreamDestroy(stream), OK);
        }
    });
}

#[test]
fn a_destroyed_semaphore_cannot_be_launched() {
    aborts("semaphores::a_destroyed_semaphore_cannot_be_launched", "semaphore is destroyed", || {
        let driver = &session();
        let (own, stream, (_, mut semaphore)) = (graph(driver), stream(driver), pair(driver, TIMELINE));
        let (mut node, params) = (null_mut(), signal_params(2));
        let signals = CUDA_EXT_SEM_SIGNAL_NODE_PARAMS {
            extSemArray: &mut semaphore,
            paramsArray: &params,
            numExtSems: 1,
        };
        unsafe {
            assert_eq!(
                driver.cuGraphAddExternalSemaphoresSignalNode(&mut node, own, null(), 0, &signals),
                OK
            );
            let exec = instantiate(driver, own);
            assert_eq!(driver.cuDestroyExternalSemaphore(semaphore), OK);
            let _ = driver.cuGraphLaunch(exec, stream);
        }
    });
}
