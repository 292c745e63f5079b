//! Adopted objects of other code. The library never destroys them: they outlive the last handle,
//! wherever that is dropped.

use core::ptr;
use std::ffi::CString;
use std::sync::{Mutex, PoisonError};

use cuda_handles::{Context, Event, GraphHandle, Kernel, Library, Stream};
use cuda_sys::CUstreamCaptureMode;
use cuda_tests::SMALL;
use cuda_tests::raw::{driver, ok};
use cuda_tests::states::{CALLS, DEVICE, Foreign, PERMITTED, PURE, Refusal, Row, Things, done, prepared};

pub(crate) fn rows() -> Vec<Row> {
    [makers(), streams()].into_iter().flatten().collect()
}

/// A handle of the driver's on its way to the thread where it is adopted.
struct Raw<T>(*mut T);

// SAFETY: the driver takes its handles on every thread.
unsafe impl<T> Send for Raw<T> {}

impl<T> Raw<T> {
    fn get(&self) -> *mut T {
        self.0
    }
}

fn makers() -> Vec<Row> {
    vec![
        prepared("Context::from_raw, adopting", DEVICE, context, |_, raw| {
            // SAFETY: the context is never destroyed.
            done(unsafe { Context::from_raw(raw.get()) }?)
        }),
        prepared("Stream::from_raw, adopting", PURE, raw_stream, |things, raw| {
            // SAFETY: the stream is never destroyed, nobody captures it, and the handle is never
            // dropped.
            let stream = unsafe { Stream::from_raw(&things.context, raw.get()) }?;
            keep_forever(stream);
            Ok(())
        }),
        prepared("Event::from_raw, adopting", PURE, event, |things, raw| {
            // SAFETY: the event is never destroyed.
            done(unsafe { Event::from_raw(&things.context, raw.get()) }?)
        }),
        prepared("GraphHandle::from_raw, adopting", PURE, graph, |things, raw| {
            // SAFETY: the graph is never destroyed.
            done(unsafe { GraphHandle::from_raw(&things.context, raw.get()) }?)
        }),
        prepared("Kernel::from_raw_in, adopting", CALLS, kernel, |_, (library, raw)| {
            // SAFETY: the kernel is of that library, which is never unloaded.
            done(unsafe { Kernel::from_raw_in(raw.get(), Some(&library)) }?)
        }),
    ]
}

fn streams() -> Vec<Row> {
    vec![
        prepared("Enqueue::is_captured of an adopted stream", PERMITTED, stream, |_, stream| {
            assert!(!stream.enqueue()?.is_captured()?);
            Ok(())
        }),
        // It leaves the loss to the call that follows.
        prepared("refuse_capture of an adopted stream", PURE, stream, |_, stream| {
            Ok(stream.refuse_capture("nothing")?)
        }),
        prepared("Stream::query of an adopted stream", PERMITTED, stream, |_, stream| done(stream.query()?)),
        prepared("fill on an adopted stream", PERMITTED, used_stream, |things, stream| {
            Ok(stream.fill(&things.buffer, 0)?)
        }),
        prepared("Enqueue::keep in a capture of other code", PERMITTED, captured, |things, stream| {
            let kept = keep(things, &stream);
            let mut graph = ptr::null_mut();
            // SAFETY: the stream lives and the out pointer is valid.
            if unsafe { driver().cuStreamEndCapture(stream.as_raw(), &raw mut graph) }.is_success() {
                let graph = graph.expose_provenance();
                // On another thread: a destructor that ran inside a host function would lift what
                // is not permitted there.
                let destroy = std::thread::spawn(move || {
                    // SAFETY: the graph is ours, and this is its only use.
                    let _ = unsafe { driver().cuGraphDestroy(ptr::with_exposed_provenance_mut(graph)) };
                });
                let _ = destroy.join();
            }
            kept
        }),
    ]
}

fn keep(things: &Things, stream: &Stream) -> Result<(), Refusal> {
    let turn = stream.enqueue()?;
    assert!(turn.is_captured()?);
    Ok(turn.keep(things.buffer.allocation())?)
}

fn context(things: &Things) -> Result<Raw<cuda_sys::CUctx_st>, Refusal> {
    let (mut context, mut popped) = (ptr::null_mut(), ptr::null_mut());
    let device = things.context.device().as_raw();
    // SAFETY: the out pointers are valid; what creating made current is popped.
    unsafe {
        ok(driver().cuCtxCreate(&raw mut context, ptr::null_mut(), 0, 0, device));
        ok(driver().cuCtxPopCurrent(&raw mut popped));
    }
    Ok(Raw(context))
}

fn raw_stream(things: &Things) -> Result<Raw<cuda_sys::CUstream_st>, Refusal> {
    let stream = Foreign::new(&things.context);
    let raw = stream.as_raw();
    core::mem::forget(stream);
    Ok(Raw(raw))
}

/// Keeps a handle to the end of the process, where the search for leaks can see it: the last one
/// must not be dropped inside a host function.
fn keep_forever(stream: Stream) {
    static KEPT: Mutex<Vec<Stream>> = Mutex::new(Vec::new());
    KEPT.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
}

/// An adopted stream with a handle that is never dropped.
fn stream(things: &Things) -> Result<Stream, Refusal> {
    let raw = raw_stream(things)?;
    // SAFETY: the stream is never destroyed.
    let stream = unsafe { Stream::from_raw(&things.context, raw.get()) }?;
    keep_forever(stream.clone());
    Ok(stream)
}

fn used_stream(things: &Things) -> Result<Stream, Refusal> {
    let stream = stream(things)?;
    stream.fill(&things.buffer, 0)?;
    stream.synchronize_blocking()?;
    Ok(stream)
}

fn captured(things: &Things) -> Result<Stream, Refusal> {
    let stream = stream(things)?;
    let mode = CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_RELAXED;
    // SAFETY: the stream lives, and nobody else uses it.
    ok(unsafe { driver().cuStreamBeginCapture(stream.as_raw(), mode) });
    Ok(stream)
}

fn event(things: &Things) -> Result<Raw<cuda_sys::CUevent_st>, Refusal> {
    let mut event = ptr::null_mut();
    // SAFETY: a context is current and the out pointer valid.
    things.context.with_current(|| ok(unsafe { driver().cuEventCreate(&raw mut event, 0) }))?;
    Ok(Raw(event))
}

fn graph(_: &Things) -> Result<Raw<cuda_sys::CUgraph_st>, Refusal> {
    let mut graph = ptr::null_mut();
    // SAFETY: the out pointer is valid.
    ok(unsafe { driver().cuGraphCreate(&raw mut graph, 0) });
    Ok(Raw(graph))
}

fn kernel(things: &Things) -> Result<(Library, Raw<cuda_sys::CUkern_st>), Refusal> {
    let image = CString::new(SMALL).unwrap();
    let (mut library, mut kernel) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: image and name are C strings, there are no options, and the out pointers are valid.
    unsafe {
        ok(driver().cuLibraryLoadData(
            &raw mut library,
            image.as_ptr().cast(),
            ptr::null_mut(),
            ptr::null_mut(),
            0,
            ptr::null_mut(),
            ptr::null_mut(),
            0,
        ));
        ok(driver().cuLibraryGetKernel(&raw mut kernel, library, c"increment".as_ptr()));
    }
    // SAFETY: the library is never unloaded.
    Ok((unsafe { Library::from_raw(&things.context, library) }, Raw(kernel)))
}
