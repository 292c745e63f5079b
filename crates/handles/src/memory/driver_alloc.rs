//! The driver calls that allocate memory, tried again where memory is short.

use cuda_sys::{CUdeviceptr, CUresult, Call};

use super::pool::MemPool;
use crate::context::{Context, capture_mode};
use crate::error::{Error, Result};
use crate::reclaim;
use crate::stream::Stream;

/// Allocates in the order of a stream. If memory is short, frees everything that is pending first,
/// and the stream waits for that.
pub(super) fn on_stream(home: &Stream, pool: Option<&MemPool>, bytes: usize) -> Result<CUdeviceptr> {
    let driver = home.context().driver();
    let mut address = 0;
    // Read access is taken for each attempt: freeing in between needs it as well.
    let attempt = || -> Result<CUresult> {
        let _access = home.raw_stream().enqueue()?;
        home.refuse_capture("allocating a buffer")?;
        let _mode = capture_mode::relaxed(driver);
        // SAFETY: stream and pool are alive and the out pointer valid.
        let code = unsafe {
            match pool {
                Some(pool) => {
                    driver.cuMemAllocFromPoolAsync(&raw mut address, bytes, pool.as_raw(), home.as_raw())
                }
                None => driver.cuMemAllocAsync(&raw mut address, bytes, home.as_raw()),
            }
        };
        Ok(code)
    };
    let code = insist(attempt, || reclaim::wait_for_frees(home.raw_stream()))?;
    let call = match pool {
        Some(_) => Call::cuMemAllocFromPoolAsync,
        None => Call::cuMemAllocAsync,
    };
    match (allocated(home.context(), call, code, bytes), pool.and_then(MemPool::max_bytes)) {
        // The device has the memory, but the pool may not take it.
        (Err(Error::OutOfMemory { asked, free, .. }), Some(limit)) if free >= asked => {
            Err(Error::PoolFull { asked, limit })
        }
        (outcome, _) => outcome.map(|()| address),
    }
}

/// The driver's allocation for all streams.
pub(super) fn plain(context: &Context, bytes: usize) -> Result<CUdeviceptr> {
    let mut address = 0;
    let attempt = || -> Result<CUresult> {
        let _current = context.enter()?;
        let _mode = capture_mode::relaxed(context.driver());
        // SAFETY: the context is current and the out pointer valid.
        Ok(unsafe { context.driver().cuMemAlloc(&raw mut address, bytes) })
    };
    let code = insist(attempt, || ())?;
    allocated(context, Call::cuMemAlloc, code, bytes)?;
    Ok(address)
}

/// Allocates. If memory is short, tries again after all pending frees, and a last time after the
/// destruction of deferred executables.
fn insist(mut attempt: impl FnMut() -> Result<CUresult>, freed: impl Fn()) -> Result<CUresult> {
    const SHORT: CUresult = CUresult::CUDA_ERROR_OUT_OF_MEMORY;
    let mut code = attempt()?;
    if code == SHORT {
        reclaim::free_pending();
        freed();
        code = attempt()?;
    }
    if code == SHORT && reclaim::destroy_all_deferred() {
        freed();
        code = attempt()?;
    }
    Ok(code)
}

/// The result of an allocation, with the numbers if memory is short.
fn allocated(context: &Context, call: Call, code: CUresult, bytes: usize) -> Result<()> {
    if code == CUresult::CUDA_ERROR_OUT_OF_MEMORY {
        let (free, total) = context.memory_info().unwrap_or((0, 0));
        return Err(Error::OutOfMemory { asked: bytes, free, total });
    }
    context.check(call, code)
}
