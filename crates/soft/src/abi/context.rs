//! Context calls.

use core::ffi::{c_int, c_uint, c_ulonglong};
use std::sync::atomic::Ordering;

use cuda_sys::{
    CUcontext, CUctx_flags, CUctxCreateParams, CUdevice, CUevent, CUexecAffinityParam, CUfunc_cache, CUlimit,
    CUsharedconfig, CUstreamCaptureMode,
};

use super::device::{check_flags, end};
use super::table::Entries;
use crate::device::context::{self, check_device, current};
use crate::device::properties::GREATEST_PRIORITY;
use crate::device::{context_limits, loss};
use crate::driver::abort::crash;
use crate::driver::handle::{number, to_raw};
use crate::driver::pointer::{put, put_if, required};
use crate::driver::result_code::{Answer, INVALID_CONTEXT, INVALID_HANDLE, INVALID_VALUE};
use crate::graph::capture::{self, open_captures};
use crate::stream;
use crate::stream::{context_event, event};
use crate::sync::lock;

pub(crate) const fn add(entries: Entries) -> Entries {
    Entries {
        cuCtxCreate,
        cuCtxCreate_v12050,
        cuCtxDestroy,
        cuCtxGetApiVersion,
        cuCtxGetCacheConfig,
        cuCtxSetCacheConfig,
        cuCtxGetSharedMemConfig,
        cuCtxSetSharedMemConfig,
        cuCtxGetCurrent,
        cuCtxSetCurrent,
        cuCtxPushCurrent,
        cuCtxPopCurrent,
        cuCtxRecordEvent,
        cuCtxWaitEvent,
        cuCtxGetDevice,
        cuCtxGetDevice_v13000,
        cuCtxGetFlags,
        cuCtxSetFlags,
        cuCtxGetId,
        cuCtxGetLimit,
        cuCtxSetLimit,
        cuCtxGetStreamPriorityRange,
        cuCtxResetPersistingL2Cache,
        cuCtxSynchronize,
        cuCtxSynchronize_v13000,
        cuThreadExchangeStreamCaptureMode,
        ..entries
    }
}

/// The context of an argument; null is the current one.
pub(crate) fn given_or_current(ctx: CUcontext) -> Answer<std::sync::Arc<context::Context>> {
    if ctx.is_null() { current() } else { context::get(number(ctx)) }
}

/// Every context maps host memory, whether requested or not.
const MAP_HOST: c_uint = CUctx_flags::CU_CTX_MAP_HOST.0;
/// Flags that can be set but are not reported.
const NOT_TOLD: c_uint = CUctx_flags::CU_CTX_COREDUMP_ENABLE.0 | CUctx_flags::CU_CTX_USER_COREDUMP_ENABLE.0;

/// # Safety
/// `pctx` is null or valid for a write.
unsafe fn create(pctx: *mut CUcontext, flags: c_uint, dev: CUdevice) -> Answer {
    required(pctx)?;
    check_device(dev)?;
    check_flags(flags)?;
    // SAFETY: not null, and so valid by the caller's promise.
    unsafe { put(pctx, to_raw(context::create(dev, flags)?)) }
}

entries! {
    live fn cuCtxCreate(
        pctx: *mut CUcontext,
        params: *mut CUexecAffinityParam,
        num_params: c_int,
        flags: c_uint,
        dev: CUdevice,
    ) {
        let _ = (params, num_params);
        create(pctx, flags, dev)
    }

    live fn cuCtxCreate_v12050(pctx: *mut CUcontext, params: *mut CUctxCreateParams, flags: c_uint, dev: CUdevice) {
        let _ = params;
        create(pctx, flags, dev)
    }

    init fn cuCtxDestroy(ctx: CUcontext) {
        end(&*context::destroy(number(ctx))?);
        Ok(())
    }

    init fn cuCtxGetApiVersion(ctx: CUcontext, version: *mut c_uint) {
        given_or_current(ctx)?;
        put(version, 3020)
    }

    init fn cuCtxGetCacheConfig(config: *mut CUfunc_cache) {
        current()?;
        put(config, CUfunc_cache(0))
    }

    init fn cuCtxSetCacheConfig(config: CUfunc_cache) {
        let _ = config;
        current().map(drop)
    }

    init fn cuCtxGetSharedMemConfig(config: *mut CUsharedconfig) {
        current()?;
        put(config, CUsharedconfig(1))
    }

    init fn cuCtxSetSharedMemConfig(config: CUsharedconfig) {
        let _ = config;
        current().map(drop)
    }

    init fn cuCtxGetCurrent(pctx: *mut CUcontext) {
        put(pctx, to_raw(context::current_handle()))
    }

    init fn cuCtxSetCurrent(ctx: CUcontext) {
        let handle = number(ctx);
        if handle != 0 && !context::exists(handle) {
            return Err(INVALID_CONTEXT);
        }
        context::set_current(handle);
        Ok(())
    }

    init fn cuCtxPushCurrent(ctx: CUcontext) {
        if !context::exists(number(ctx)) {
            return Err(INVALID_CONTEXT);
        }
        context::push(number(ctx));
        Ok(())
    }

    init fn cuCtxPopCurrent(pctx: *mut CUcontext) {
        let popped = context::pop()?;
        put_if(pctx, to_raw(popped));
        Ok(())
    }

    init fn cuCtxGetDevice(dev: *mut CUdevice) {
        put(dev, current()?.device)
    }

    init fn cuCtxGetDevice_v13000(dev: *mut CUdevice, ctx: CUcontext) {
        put(dev, given_or_current(ctx)?.device)
    }

    init fn cuCtxGetFlags(flags: *mut c_uint) {
        let own = current()?.flags.load(Ordering::Relaxed);
        put(flags, own & !NOT_TOLD | MAP_HOST)
    }

    init fn cuCtxSetFlags(flags: c_uint) {
        check_flags(flags)?;
        current()?.flags.store(flags, Ordering::Relaxed);
        Ok(())
    }

    init fn cuCtxGetId(ctx: CUcontext, ctx_id: *mut c_ulonglong) {
        put(ctx_id, given_or_current(ctx)?.id)
    }

    live fn cuCtxGetLimit(pvalue: *mut usize, limit: CUlimit) {
        let context = current()?;
        let default = context_limits::default(limit)?;
        let limits = lock(&context.limits);
        put(pvalue, limits.get(&limit.0).copied().unwrap_or(default))
    }

    guarded fn cuCtxSetLimit(limit: CUlimit, value: usize) {
        let context = current()?;
        let granted = context_limits::granted(limit, value)?;
        // The heap keeps its size once kernels use it.
        if limit == CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE && !context.heap.resize(granted as u64) {
            return Err(INVALID_VALUE);
        }
        lock(&context.limits).insert(limit.0, granted);
        Ok(())
    }

    init fn cuCtxGetStreamPriorityRange(least: *mut c_int, greatest: *mut c_int) {
        current()?;
        put_if(least, 0);
        put_if(greatest, GREATEST_PRIORITY);
        Ok(())
    }

    live fn cuCtxResetPersistingL2Cache() {
        current().map(drop)
    }

    owned fn cuCtxRecordEvent(ctx: CUcontext, h_event: CUevent) {
        let context = context::get(number(ctx))?;
        loss::check_device(context.device)?;
        let event = event::get(number(h_event))?;
        if event.context.id != context.id {
            return Err(INVALID_HANDLE);
        }
        open_captures::check_synchronize()?;
        capture::forget_event(number(h_event));
        context_event::record(&context, &event);
        Ok(())
    }

    owned fn cuCtxWaitEvent(ctx: CUcontext, h_event: CUevent) {
        let context = context::get(number(ctx))?;
        loss::check_device(context.device)?;
        let event = event::get(number(h_event))?;
        // This includes captures that recorded the event.
        open_captures::check_synchronize()?;
        context_event::make_wait(&context, &event);
        Ok(())
    }

    live fn cuCtxSynchronize() {
        open_captures::check_synchronize()?;
        stream::synchronize_context(&*current()?)
    }

    live fn cuCtxSynchronize_v13000(ctx: CUcontext) {
        open_captures::check_synchronize()?;
        stream::synchronize_context(&*given_or_current(ctx)?)
    }

    initialised fn cuThreadExchangeStreamCaptureMode(mode: *mut CUstreamCaptureMode) {
        if mode.is_null() {
            crash("cuThreadExchangeStreamCaptureMode is given a null pointer");
        }
        mode.write_unaligned(open_captures::exchange(mode.read_unaligned()));
        Ok(())
    }
}
