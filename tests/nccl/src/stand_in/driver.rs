//! The driver's calls that the stand-in makes, with its errors.

use core::ffi::c_void;
use core::ptr;

use cuda_sys::{
    CUcontext, CUevent, CUevent_flags, CUgraph, CUkernel, CUlibrary, CUresult, CUstream,
    CUstreamCaptureStatus, CUuserObject_flags, CUuserObjectRetain_flags, Driver,
};

use super::{Answer, INTERNAL_ERROR, UNHANDLED_CUDA_ERROR};

/// `CU_EVENT_RECORD_EXTERNAL`, and `CU_EVENT_WAIT_EXTERNAL`: the captured call becomes a node.
const EXTERNAL: u32 = 1;

pub(super) fn driver() -> Answer<&'static Driver> {
    cuda_sys::installed().ok_or(INTERNAL_ERROR)
}

pub(super) fn ok(result: CUresult) -> Answer {
    if result.is_success() { Ok(()) } else { Err(UNHANDLED_CUDA_ERROR) }
}

/// Makes a context current while `work` runs.
///
/// # Safety
/// The context is live.
pub(super) unsafe fn within<T>(
    context: CUcontext,
    work: impl FnOnce(&'static Driver) -> Answer<T>,
) -> Answer<T> {
    let driver = driver()?;
    // SAFETY: the caller's promise.
    ok(unsafe { driver.cuCtxPushCurrent(context) })?;
    let outcome = work(driver);
    let mut popped = ptr::null_mut();
    // SAFETY: the out pointer is valid, and a context was pushed.
    ok(unsafe { driver.cuCtxPopCurrent(&raw mut popped) })?;
    outcome
}

/// An event without times, of the current context.
pub(super) fn new_event(driver: &Driver) -> Answer<CUevent> {
    let mut event = ptr::null_mut();
    // SAFETY: the out pointer is valid.
    ok(unsafe { driver.cuEventCreate(&raw mut event, CUevent_flags::CU_EVENT_DISABLE_TIMING.0) })?;
    Ok(event)
}

/// Plain memory of the current context; null if no bytes are asked for.
pub(super) fn new_memory(driver: &Driver, bytes: usize) -> Answer<u64> {
    let mut address = 0;
    if bytes > 0 {
        // SAFETY: the out pointer is valid.
        ok(unsafe { driver.cuMemAlloc(&raw mut address, bytes) })?;
    }
    Ok(address)
}

/// Records an event on a stream. It is `lasting` in captures alone: then the record is a node.
///
/// # Safety
/// Both are live.
pub(super) unsafe fn record(driver: &Driver, event: CUevent, stream: CUstream, lasting: bool) -> Answer {
    let flags = if lasting { EXTERNAL } else { 0 };
    // SAFETY: the caller's promise.
    ok(unsafe { driver.cuEventRecordWithFlags(event, stream, flags) })
}

/// Lets a stream wait for an event. It is `lasting` in captures alone: then the wait is a node.
///
/// # Safety
/// Both are live.
pub(super) unsafe fn wait(driver: &Driver, stream: CUstream, event: CUevent, lasting: bool) -> Answer {
    let flags = if lasting { EXTERNAL } else { 0 };
    // SAFETY: the caller's promise.
    ok(unsafe { driver.cuStreamWaitEvent(stream, event, flags) })
}

/// The graph that a stream captures into, if it captures.
///
/// # Safety
/// The stream is live.
pub(super) unsafe fn captured_graph(driver: &Driver, stream: CUstream) -> Answer<Option<CUgraph>> {
    let mut status = CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE;
    let (mut id, mut graph, mut nodes, mut count) = (0, ptr::null_mut(), ptr::null(), 0);
    // SAFETY: the caller's promise, and the out pointers are valid.
    ok(unsafe {
        driver.cuStreamGetCaptureInfo(
            stream,
            &raw mut status,
            &raw mut id,
            &raw mut graph,
            &raw mut nodes,
            &raw mut count,
        )
    })?;
    match status {
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE => Ok(None),
        CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE => Ok(Some(graph)),
        _ => Err(UNHANDLED_CUDA_ERROR),
    }
}

/// Gives a graph a value. `end` gets it back when the last graph and executable with it are gone,
/// on a thread of the driver.
///
/// # Safety
/// The graph is live, and `end` takes such a value.
pub(super) unsafe fn give<T>(
    driver: &Driver,
    graph: CUgraph,
    value: Box<T>,
    end: unsafe extern "C" fn(*mut c_void),
) -> Answer {
    let (mut object, value) = (ptr::null_mut(), Box::into_raw(value));
    let flags = CUuserObject_flags::CU_USER_OBJECT_NO_DESTRUCTOR_SYNC.0;
    // SAFETY: the out pointer is valid, and the caller promises the rest.
    let made = ok(unsafe { driver.cuUserObjectCreate(&raw mut object, value.cast(), Some(end), 1, flags) });
    if let Err(failure) = made {
        // SAFETY: the driver did not take it.
        unsafe { end(value.cast()) };
        return Err(failure);
    }
    let mine = CUuserObjectRetain_flags::CU_GRAPH_USER_OBJECT_MOVE.0;
    // SAFETY: graph and object are live.
    let given = ok(unsafe { driver.cuGraphRetainUserObject(graph, object, 1, mine) });
    if given.is_err() {
        // SAFETY: the reference is still ours.
        let _ends_it = unsafe { driver.cuUserObjectRelease(object, 1) };
    }
    given
}

/// The library of kernels, and one of them by each name.
pub(super) fn kernels<const N: usize>(
    driver: &Driver,
    image: &core::ffi::CStr,
    names: [&core::ffi::CStr; N],
) -> Answer<(CUlibrary, [CUkernel; N])> {
    let mut library = ptr::null_mut();
    // SAFETY: the image is a C string, there are no options, and the out pointer is valid.
    ok(unsafe {
        driver.cuLibraryLoadData(
            &raw mut library,
            image.as_ptr().cast(),
            ptr::null_mut(),
            ptr::null_mut(),
            0,
            ptr::null_mut(),
            ptr::null_mut(),
            0,
        )
    })?;
    let mut kernels = [ptr::null_mut(); N];
    for (kernel, name) in kernels.iter_mut().zip(names) {
        // SAFETY: the library is live, and the out pointer valid.
        let found = ok(unsafe { driver.cuLibraryGetKernel(kernel, library, name.as_ptr()) });
        if let Err(failure) = found {
            // SAFETY: nothing uses the library.
            let _failed_before = unsafe { driver.cuLibraryUnload(library) };
            return Err(failure);
        }
    }
    Ok((library, kernels))
}
