//! Calls of stream memory operations.

use core::ffi::c_uint;

use cuda_sys::{CUdeviceptr, CUstream, CUstreamBatchMemOpParams, cuuint32_t, cuuint64_t};

use super::table::Entries;
use crate::driver::handle::number;
use crate::driver::result_code::{Answer, INVALID_VALUE};
use crate::graph::capture;
use crate::graph::model::task::{BatchNode, Task};
use crate::graph::params::parse;
use crate::stream;
use crate::stream::mem_op::{self, MemOp};

pub(crate) const fn add(entries: Entries) -> Entries {
    Entries {
        cuStreamWaitValue32,
        cuStreamWaitValue64,
        cuStreamWriteValue32,
        cuStreamWriteValue64,
        cuStreamBatchMemOp,
        ..entries
    }
}

/// Enqueues operations, or captures them as a node.
fn enqueue(h_stream: CUstream, ops: impl FnOnce() -> Answer<Box<[MemOp]>>) -> Answer {
    let stream = stream::get(number(h_stream))?;
    let captured = capture::is_captured(&stream)?;
    let ops = ops()?;
    if captured {
        let node = BatchNode { ops, context: stream.context.handle };
        return capture::add(&stream, Task::Batch(node.into()), false).map(drop);
    }
    mem_op::ensure_reachable(&ops)?;
    let device = stream.context.device;
    stream.push(move || mem_op::run_all(&ops, device));
    Ok(())
}

fn one(op: Answer<MemOp>) -> Answer<Box<[MemOp]>> {
    Ok(Box::new([op?]))
}

entries! {
    owned fn cuStreamWaitValue32(h_stream: CUstream, address: CUdeviceptr, value: cuuint32_t, flags: c_uint) {
        enqueue(h_stream, || one(MemOp::wait(address, value.into(), false, flags)))
    }

    owned fn cuStreamWaitValue64(h_stream: CUstream, address: CUdeviceptr, value: cuuint64_t, flags: c_uint) {
        enqueue(h_stream, || one(MemOp::wait(address, value, true, flags)))
    }

    owned fn cuStreamWriteValue32(h_stream: CUstream, address: CUdeviceptr, value: cuuint32_t, flags: c_uint) {
        enqueue(h_stream, || one(MemOp::write(address, value.into(), false, flags)))
    }

    owned fn cuStreamWriteValue64(h_stream: CUstream, address: CUdeviceptr, value: cuuint64_t, flags: c_uint) {
        enqueue(h_stream, || one(MemOp::write(address, value, true, flags)))
    }

    owned_in_callbacks fn cuStreamBatchMemOp(
        h_stream: CUstream,
        count: c_uint,
        params: *mut CUstreamBatchMemOpParams,
        flags: c_uint,
    ) {
        if flags != 0 {
            return Err(INVALID_VALUE);
        }
        enqueue(h_stream, || parse::mem_ops(params, count))
    }
}
