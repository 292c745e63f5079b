//! External semaphore calls.

use core::ffi::c_uint;
use std::sync::Arc;

use cuda_sys::{
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC, CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
    CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS, CUexternalSemaphore, CUstream,
};

use super::table::Entries;
use crate::device::context::current;
use crate::device::loss::Loss;
use crate::driver::handle::{number, to_raw};
use crate::driver::pointer::{given, put, required};
use crate::driver::result_code::{Answer, INVALID_VALUE};
use crate::graph::capture;
use crate::graph::model::task::{SemaphoreNode, Task};
use crate::graph::params::parse;
use crate::stream;
use crate::stream::semaphore::{self, SignalParams, WaitParams};

pub(crate) const fn add(entries: Entries) -> Entries {
    Entries {
        cuImportExternalSemaphore,
        cuDestroyExternalSemaphore,
        cuSignalExternalSemaphoresAsync,
        cuWaitExternalSemaphoresAsync,
        ..entries
    }
}

/// Enqueues `run` on semaphores, or captures it as a node.
fn enqueue<P: Send + Sync + 'static>(
    h_stream: CUstream,
    node: Arc<SemaphoreNode<P>>,
    task: fn(Arc<SemaphoreNode<P>>) -> Task,
    run: fn(&SemaphoreNode<P>, i32) -> Result<(), Loss>,
) -> Answer {
    let stream = stream::get(number(h_stream))?;
    if capture::is_captured(&stream)? {
        return capture::add(&stream, task(node), false).map(drop);
    }
    let device = stream.context.device;
    stream.push(move || run(&node, device));
    Ok(())
}

entries! {
    live fn cuImportExternalSemaphore(
        out: *mut CUexternalSemaphore,
        desc: *const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC,
    ) {
        required(out)?;
        let desc = given(desc)?;
        current()?;
        if desc.flags != 0 || desc.reserved != [0; 16] {
            return Err(INVALID_VALUE);
        }
        put(out, to_raw(semaphore::import(desc.type_, desc.handle.fd)?))
    }

    live fn cuDestroyExternalSemaphore(semaphore: CUexternalSemaphore) {
        semaphore::destroy(number(semaphore))
    }

    owned fn cuSignalExternalSemaphoresAsync(
        handles: *const CUexternalSemaphore,
        params: *const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS,
        count: c_uint,
        h_stream: CUstream,
    ) {
        let node = parse::semaphores(handles, params, count, core::ptr::null_mut(), SignalParams)?;
        enqueue(h_stream, node, Task::Signal, |node, _| {
            node.signal();
            Ok(())
        })
    }

    owned fn cuWaitExternalSemaphoresAsync(
        handles: *const CUexternalSemaphore,
        params: *const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS,
        count: c_uint,
        h_stream: CUstream,
    ) {
        let node = parse::semaphores(handles, params, count, core::ptr::null_mut(), WaitParams)?;
        enqueue(h_stream, node, Task::Wait, |node, device| node.wait(device))
    }
}
