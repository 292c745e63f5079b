//! The limits of a context: what it has by default, and what it gets of what is asked for. Seen on
//! an H200, driver 580.159.04; the largest stack and the share of the heap are near what it has.

use cuda_sys::CUlimit;

use crate::driver;
use crate::driver::result_code::{Answer, INVALID_VALUE, UNSUPPORTED_LIMIT};
use crate::ptx::Heap;

/// The largest stack of a thread.
const MOST_STACK: usize = 512 << 10;
const LEAST_FIFO: usize = 512 << 10;
const MOST_FIFO: usize = 2 << 30;
const LEAST_HEAP: usize = 4 << 20;
/// The largest heap of `malloc` is this part of the device's memory.
const HEAP_SHARE: u64 = 8;
const LEAST_LAUNCHES: usize = 32;
const MOST_LAUNCHES: usize = 599_186;
const MOST_GRANULARITY: usize = 128;
/// Buffers have multiples of this many bytes.
const GRAIN: usize = 16;

/// The limit of a context in which nobody has set it.
pub(crate) fn default(limit: CUlimit) -> Answer<usize> {
    Ok(match limit {
        CUlimit::CU_LIMIT_STACK_SIZE => 1024,
        CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE => 8_650_752,
        CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE => Heap::DEFAULT_BYTES as usize,
        CUlimit::CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT => 2048,
        CUlimit::CU_LIMIT_MAX_L2_FETCH_GRANULARITY => 64,
        CUlimit::CU_LIMIT_PERSISTING_L2_CACHE_SIZE => 0,
        _ => return Err(UNSUPPORTED_LIMIT),
    })
}

/// The limit that a context gets where `value` is asked for.
pub(crate) fn granted(limit: CUlimit, value: usize) -> Answer<usize> {
    default(limit)?;
    match limit {
        CUlimit::CU_LIMIT_STACK_SIZE if value > MOST_STACK => Err(INVALID_VALUE),
        CUlimit::CU_LIMIT_MAX_L2_FETCH_GRANULARITY if value > MOST_GRANULARITY => Err(INVALID_VALUE),
        CUlimit::CU_LIMIT_PRINTF_FIFO_SIZE => Ok(buffer(value, LEAST_FIFO, MOST_FIFO)),
        CUlimit::CU_LIMIT_MALLOC_HEAP_SIZE => {
            let most = (driver::config().memory / HEAP_SHARE).min(Heap::MOST_BYTES);
            Ok(buffer(value, LEAST_HEAP, usize::try_from(most).unwrap_or(usize::MAX)))
        }
        CUlimit::CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT => Ok(value.clamp(LEAST_LAUNCHES, MOST_LAUNCHES)),
        _ => Ok(value),
    }
}

/// The size of a buffer where `value` bytes are asked for. As on a GPU, the largest numbers wrap
/// around when they are rounded up.
fn buffer(value: usize, least: usize, most: usize) -> usize {
    let rounded = value.max(least).wrapping_add(GRAIN - 1) & !(GRAIN - 1);
    rounded.min(most)
}
