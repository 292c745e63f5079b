//! Stream and host function calls.

use core::ffi::{c_int, c_uint, c_ulonglong, c_void};
use std::sync::Arc;

use cuda_sys::{CUcontext, CUdevice, CUevent, CUgreenCtx, CUhostFn, CUstream, CUstreamCallback};

use super::table::Entries;
use crate::abi::gate::refuse_in_callbacks;
use crate::device::context::current;
use crate::device::loss;
use crate::device::properties::GREATEST_PRIORITY;
use crate::driver::abort;
use crate::driver::handle::{number, to_raw};
use crate::driver::pointer::{put, put_if, required};
use crate::driver::result_code::{Answer, ILLEGAL_STATE, INVALID_HANDLE, INVALID_VALUE, NOT_READY};
use crate::graph::capture::open_captures;
use crate::graph::capture::{self, Wait};
use crate::graph::model::task::Task;
use crate::stream::callback::{self, Callback};
use crate::stream::event;
use crate::stream::{self, Stream, StreamKind};

pub(crate) const fn add(entries: Entries) -> Entries {
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
        ..entries
    }
}

/// # Safety
/// `ph_stream` is null or valid for a write.
unsafe fn create(ph_stream: *mut CUstream, flags: c_uint, priority: c_int) -> Answer {
    required(ph_stream)?;
    let kind = match flags {
        0 => StreamKind::Blocking,
        1 => StreamKind::NonBlocking,
        _ => return Err(INVALID_VALUE),
    };
    let handle = stream::create(&current()?, kind, priority.clamp(GREATEST_PRIORITY, 0));
    // SAFETY: not null, and so valid by the caller's promise.
    unsafe { put(ph_stream, to_raw(handle)) }
}

/// The stream of a synchronisation or query, which is not permitted while it captures and during
/// some other captures.
fn question(h_stream: CUstream) -> Answer<Arc<Stream>> {
    let stream = stream::get(number(h_stream))?;
    capture::refuse_on(&stream)?;
    open_captures::check_call()?;
    Ok(stream)
}

/// The flag of a wait or record that becomes a node in a capture.
const EXTERNAL: c_uint = 1;

fn launch_host_func(h_stream: CUstream, function: CUhostFn, data: *mut c_void) -> Answer {
    let function = function.ok_or(INVALID_VALUE)?;
    let stream = stream::get(number(h_stream))?;
    let (callback, context) = (Callback { function, data }, stream.context.handle);
    if capture::is_captured(&stream)? {
        return capture::add(&stream, Task::Host(callback), false).map(drop);
    }
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

    owned_in_callbacks fn cuStreamDestroy(h_stream: CUstream) {
        if number(h_stream) <= 2 {
            return Err(INVALID_HANDLE);
        }
        refuse_in_callbacks()?;
        capture::forget_stream(&*stream::get(number(h_stream))?);
        stream::destroy(number(h_stream)).map(drop).ok_or(INVALID_HANDLE)
    }

    owned_in_callbacks fn cuStreamSynchronize(h_stream: CUstream) {
        let stream = question(h_stream)?;
        if callback::is_waited_for_by(stream.id) {
            abort::hang("a host function waits for the stream that runs it");
        }
        stream.synchronize()
    }

    owned_in_callbacks fn cuStreamQuery(h_stream: CUstream) {
        let stream = question(h_stream)?;
        let idle = stream.is_idle();
        loss::check_device(stream.context.device)?;
        if idle { Ok(()) } else { Err(NOT_READY) }
    }

    owned_in_callbacks fn cuStreamWaitEvent(h_stream: CUstream, h_event: CUevent, flags: c_uint) {
        let stream = stream::get(number(h_stream))?;
        capture::refuse_invalid(&stream)?;
        if flags > 1 {
            return Err(INVALID_VALUE);
        }
        let event = capture::invalidate_on(&stream, event::get(number(h_event)))?;
        if flags == EXTERNAL {
            // Such a wait is for captures alone.
            return match capture::is_captured(&stream)? {
                true => capture::add(&stream, Task::EventWait(number(h_event)), false).map(drop),
                false => Err(ILLEGAL_STATE),
            };
        }
        match capture::wait(&stream, number(h_event), event.last().is_some())? {
            Wait::Captured => {}
            Wait::Plain => event.make_wait(&stream),
        }
        Ok(())
    }

    owned fn cuStreamAddCallback(h_stream: CUstream, callback: CUstreamCallback, user_data: *mut c_void, flags: c_uint) {
        let callback = callback.ok_or(INVALID_VALUE)?;
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        let stream = stream::get(number(h_stream))?;
        capture::refuse_on(&stream)?;
        let (context, device) = (stream.context.handle, stream.context.device);
        let (raw, data) = (h_stream.expose_provenance(), user_data.expose_provenance());
        stream.push_always(move || {
            callback::on_host_thread(context, move || {
                let status = loss::check_device(device).err().unwrap_or(cuda_sys::CUresult::CUDA_SUCCESS);
                // The user passed this function to be called with these arguments.
                callback(to_raw(raw as u64), status, core::ptr::with_exposed_provenance_mut(data));
            });
        });
        Ok(())
    }

    owned_in_callbacks fn cuLaunchHostFunc(h_stream: CUstream, function: CUhostFn, user_data: *mut c_void) {
        launch_host_func(h_stream, function, user_data)
    }

    owned_in_callbacks fn cuLaunchHostFunc_v13010(h_stream: CUstream, function: CUhostFn, user_data: *mut c_void, sync_mode: c_uint) {
        let _ = sync_mode;
        launch_host_func(h_stream, function, user_data)
    }

    owned fn cuStreamGetFlags(h_stream: CUstream, flags: *mut c_uint) {
        let stream = stream::get(number(h_stream))?;
        capture::refuse_on(&stream)?;
        put(flags, c_uint::from(stream.kind == StreamKind::NonBlocking))
    }

    owned fn cuStreamGetPriority(h_stream: CUstream, priority: *mut c_int) {
        put(priority, stream::get(number(h_stream))?.priority)
    }

    owned fn cuStreamGetCtx(h_stream: CUstream, pctx: *mut CUcontext) {
        put(pctx, to_raw(stream::get(number(h_stream))?.context.handle))
    }

    owned fn cuStreamGetCtx_v12050(h_stream: CUstream, pctx: *mut CUcontext, green: *mut CUgreenCtx) {
        put(pctx, to_raw(stream::get(number(h_stream))?.context.handle))?;
        put_if(green, core::ptr::null_mut());
        Ok(())
    }

    owned fn cuStreamGetId(h_stream: CUstream, stream_id: *mut c_ulonglong) {
        let stream = stream::get(number(h_stream))?;
        capture::refuse_on(&stream)?;
        put(stream_id, stream.id)
    }

    owned fn cuStreamGetDevice(h_stream: CUstream, device: *mut CUdevice) {
        let stream = stream::get(number(h_stream))?;
        capture::refuse_on(&stream)?;
        put(device, stream.context.device)
    }
}
