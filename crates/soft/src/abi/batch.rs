//! Batches of copies. Their ranges are checked as a whole before anything is enqueued. As on a GPU,
//! a copy to memory that is registered for reading is refused alone: those before it are done.

use cuda_sys::{CUdeviceptr, CUmemcpyAttributes, CUmemcpySrcAccessOrder as Order, CUresult, CUstream};

use super::copy;
use super::table::Entries;
use crate::driver::handle::number;
use crate::driver::pointer::{put_if, slice};
use crate::driver::result_code::{Answer, INVALID_VALUE};
use crate::graph::capture;
use crate::memory::copy::Copy3;
use crate::memory::memory_kind::Accept;
use crate::stream::{self, StreamKind};

pub(crate) const fn add(entries: Entries) -> Entries {
    Entries { cuMemcpyBatchAsync, cuMemcpyBatchAsync_v13000, ..entries }
}

/// Fails unless the numbers of entries begin with 0, rise and are below `count`.
fn check_firsts(firsts: &[usize], count: usize) -> Answer {
    let rises = firsts.windows(2).all(|pair| matches!(pair, [one, next] if one < next));
    let ends = firsts.last().is_some_and(|last| *last < count);
    if firsts.first() == Some(&0) && rises && ends { Ok(()) } else { Err(INVALID_VALUE) }
}

/// The arrays of a batch of copies.
struct Copies {
    dsts: *const CUdeviceptr,
    srcs: *const CUdeviceptr,
    sizes: *const usize,
    count: usize,
    attributes: *const CUmemcpyAttributes,
    firsts: *const usize,
    attribute_count: usize,
}

impl Copies {
    /// Enqueues the copies. The number of the one that is refused goes to `failed`.
    ///
    /// # Safety
    /// The arrays and the host memory of the copies are valid as CUDA's documentation demands.
    unsafe fn enqueue(&self, h_stream: CUstream, failed: &mut usize) -> Answer {
        let stream = stream::get(number(h_stream))?;
        if self.count == 0 || stream.kind == StreamKind::Legacy {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the caller's promise.
        let (dsts, srcs, sizes) = unsafe {
            (slice(self.dsts, self.count)?, slice(self.srcs, self.count)?, slice(self.sizes, self.count)?)
        };
        // SAFETY: as above.
        let (attributes, firsts) = unsafe {
            (slice(self.attributes, self.attribute_count)?, slice(self.firsts, self.attribute_count)?)
        };
        const PREFER_OVERLAP: u32 = 1;
        let orders = Order::CU_MEMCPY_SRC_ACCESS_ORDER_STREAM.0..=Order::CU_MEMCPY_SRC_ACCESS_ORDER_ANY.0;
        let is_good = |one: &CUmemcpyAttributes| {
            orders.contains(&one.srcAccessOrder.0) && one.flags & !PREFER_OVERLAP == 0
        };
        if !attributes.iter().all(is_good) {
            return Err(INVALID_VALUE);
        }
        check_firsts(firsts, self.count)?;
        capture::refuse_on(&stream)?;
        let copies = || dsts.iter().zip(srcs).zip(sizes).enumerate();
        for (index, ((dst, src), len)) in copies() {
            let has_nothing = *dst == 0 || *src == 0 || *len == 0;
            let good = if has_nothing { Err(INVALID_VALUE) } else { Ok(()) };
            good.and_then(|()| Copy3::linear(*dst, *src, *len, Accept::Allocated))
                .inspect_err(|_| *failed = index)?;
        }
        for (index, ((dst, src), len)) in copies() {
            // SAFETY: as above.
            unsafe { copy::linear(*dst, *src, *len, [copy::ANY; 2], Some(h_stream)) }
                .inspect_err(|_| *failed = index)?;
        }
        Ok(())
    }
}

entries! {
    owned fn cuMemcpyBatchAsync(
        dsts: *mut CUdeviceptr,
        srcs: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        attributes: *mut CUmemcpyAttributes,
        firsts: *mut usize,
        attribute_count: usize,
        fail_idx: *mut usize,
        h_stream: CUstream,
    ) {
        let mut failed = usize::MAX;
        let copies = Copies { dsts, srcs, sizes, count, attributes, firsts, attribute_count };
        let answer: Result<(), CUresult> = copies.enqueue(h_stream, &mut failed);
        if answer.is_err() {
            put_if(fail_idx, failed);
        }
        answer
    }

    owned fn cuMemcpyBatchAsync_v13000(
        dsts: *mut CUdeviceptr,
        srcs: *mut CUdeviceptr,
        sizes: *mut usize,
        count: usize,
        attributes: *mut CUmemcpyAttributes,
        firsts: *mut usize,
        attribute_count: usize,
        h_stream: CUstream,
    ) {
        Copies { dsts, srcs, sizes, count, attributes, firsts, attribute_count }.enqueue(h_stream, &mut 0)
    }
}
