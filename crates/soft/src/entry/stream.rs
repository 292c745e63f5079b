//! Streams, host functions and what a stream says of its capture.

use core::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::cell::Cell;

use cuda_sys::{
    CUcontext, CUdevice, CUevent, CUgraph, CUgraphEdgeData, CUgraphNode, CUgreenCtx, CUhostFn, CUstream,
    CUstreamCallback, CUstreamCaptureMode, CUstreamCaptureStatus, cuuint64_t,
};

use super::Entries;
use crate::callback::{self, Callback};
use crate::code::{Answer, INVALID_HANDLE, INVALID_VALUE, NOT_READY};
use crate::context::current;
use crate::device::GREATEST_PRIORITY;
use crate::gate::{put, put_if, required};
use crate::handle::{number, to_raw};
use crate::stream::{self, Manner};
use crate::{event, fault};

pub(super) const fn add(entries: Entries) -> Entries {
    Entries {
        cuStreamCreate,
        cuStreamCreateWithPriority,
        cuStreamDestroy,
        cuStreamSynchronize,
        cuStreamQuery,
        cuStreamWaitEvent,
        cuStreamAddCallback,
        cuLaunchHostFunc,
        cuLaunchHostFunc_v13010,
        cuStreamGetFlags,
        cuStreamGetPriority,
        cuStreamGetCtx,
        cuStreamGetCtx_v12050,
        cuStreamGetId,
        cuStreamGetDevice,
        cuStreamIsCapturing,
        cuStreamGetCaptureInfo,
        cuStreamGetCaptureInfo_v12030,
        ..entries
    }
}

thread_local! {
    static MODE: Cell<CUstreamCaptureMode> = const { Cell::new(CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_GLOBAL) };
}

/// Sets the thread's capture mode and gives the one before.
pub(super) fn exchange_mode(mode: CUstreamCaptureMode) -> CUstreamCaptureMode {
    MODE.replace(mode)
}

/// # Safety
/// `ph_stream` is null or valid for a write.
unsafe fn create(ph_stream: *mut CUstream, flags: c_uint, priority: c_int) -> Answer {
    required(ph_stream)?;
    let manner = match flags {
        0 => Manner::Blocking,
        1 => Manner::NonBlocking,
        _ => return Err(INVALID_VALUE),
    };
    let handle = stream::create(&current()?, manner, priority.clamp(GREATEST_PRIORITY, 0));
    // SAFETY: not null, and so valid by the caller's promise.
    unsafe { put(ph_stream, to_raw(handle)) }
}

fn launch_host_func(h_stream: CUstream, function: CUhostFn, data: *mut c_void) -> Answer {
    let function = function.ok_or(INVALID_VALUE)?;
    let stream = stream::get(number(h_stream))?;
    let (callback, context) = (Callback { function, data }, stream.context.handle);
    stream.push(move || {
        callback::on_host_thread(context, move || callback.call());
        Ok(())
    });
    Ok(())
}

entries! {
    live fn cuStreamCreate(ph_stream: *mut CUstream, flags: c_uint) {
        create(ph_stream, flags, 0)
    }

    live fn cuStreamCreateWithPriority(ph_stream: *mut CUstream, flags: c_uint, priority: c_int) {
        create(ph_stream, flags, priority)
    }

    live fn cuStreamDestroy(h_stream: CUstream) {
        if number(h_stream) <= 2 {
            return Err(INVALID_HANDLE);
        }
        stream::get(number(h_stream))?;
        stream::destroy(number(h_stream)).map(drop).ok_or(INVALID_HANDLE)
    }

    live fn cuStreamSynchronize(h_stream: CUstream) {
        stream::get(number(h_stream))?.synchronize()
    }

    live_in_callbacks fn cuStreamQuery(h_stream: CUstream) {
        let idle = stream::get(number(h_stream))?.is_idle();
        fault::check()?;
        if idle { Ok(()) } else { Err(NOT_READY) }
    }

    live fn cuStreamWaitEvent(h_stream: CUstream, h_event: CUevent, flags: c_uint) {
        if flags > 1 {
            return Err(INVALID_VALUE);
        }
        let event = event::get(number(h_event))?;
        event.make_wait(&stream::get(number(h_stream))?);
        Ok(())
    }

    live fn cuStreamAddCallback(h_stream: CUstream, callback: CUstreamCallback, user_data: *mut c_void, flags: c_uint) {
        let callback = callback.ok_or(INVALID_VALUE)?;
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        let stream = stream::get(number(h_stream))?;
        let context = stream.context.handle;
        let (raw, data) = (h_stream.expose_provenance(), user_data.expose_provenance());
        stream.push_always(move || {
            callback::on_host_thread(context, move || {
                let status = fault::check().err().unwrap_or(cuda_sys::CUresult::CUDA_SUCCESS);
                // The user gave the driver this function to be called with these arguments.
                callback(to_raw(raw as u64), status, core::ptr::with_exposed_provenance_mut(data));
            });
        });
        Ok(())
    }

    live fn cuLaunchHostFunc(h_stream: CUstream, function: CUhostFn, user_data: *mut c_void) {
        launch_host_func(h_stream, function, user_data)
    }

    live fn cuLaunchHostFunc_v13010(h_stream: CUstream, function: CUhostFn, user_data: *mut c_void, sync_mode: c_uint) {
        let _ = sync_mode;
        launch_host_func(h_stream, function, user_data)
    }

    live fn cuStreamGetFlags(h_stream: CUstream, flags: *mut c_uint) {
        let stream = stream::get(number(h_stream))?;
        put(flags, c_uint::from(stream.manner == Manner::NonBlocking))
    }

    live fn cuStreamGetPriority(h_stream: CUstream, priority: *mut c_int) {
        put(priority, stream::get(number(h_stream))?.priority)
    }

    live fn cuStreamGetCtx(h_stream: CUstream, pctx: *mut CUcontext) {
        put(pctx, to_raw(stream::get(number(h_stream))?.context.handle))
    }

    live fn cuStreamGetCtx_v12050(h_stream: CUstream, pctx: *mut CUcontext, green: *mut CUgreenCtx) {
        put(pctx, to_raw(stream::get(number(h_stream))?.context.handle))?;
        put_if(green, core::ptr::null_mut());
        Ok(())
    }

    live fn cuStreamGetId(h_stream: CUstream, stream_id: *mut c_ulonglong) {
        put(stream_id, stream::get(number(h_stream))?.id)
    }

    live fn cuStreamGetDevice(h_stream: CUstream, device: *mut CUdevice) {
        put(device, stream::get(number(h_stream))?.context.device)
    }

    live fn cuStreamIsCapturing(h_stream: CUstream, status: *mut CUstreamCaptureStatus) {
        stream::get(number(h_stream))?;
        put(status, CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    live fn cuStreamGetCaptureInfo(
        h_stream: CUstream,
        status: *mut CUstreamCaptureStatus,
        id: *mut cuuint64_t,
        graph: *mut CUgraph,
        dependencies: *mut *const CUgraphNode,
        count: *mut usize,
    ) {
        let _ = (id, graph, dependencies, count);
        stream::get(number(h_stream))?;
        put(status, CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }

    live fn cuStreamGetCaptureInfo_v12030(
        h_stream: CUstream,
        status: *mut CUstreamCaptureStatus,
        id: *mut cuuint64_t,
        graph: *mut CUgraph,
        dependencies: *mut *const CUgraphNode,
        edges: *mut *const CUgraphEdgeData,
        count: *mut usize,
    ) {
        let _ = (id, graph, dependencies, edges, count);
        stream::get(number(h_stream))?;
        put(status, CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE)
    }
}
