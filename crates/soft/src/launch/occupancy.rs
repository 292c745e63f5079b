//! Occupancy: the number of blocks that fit on a multiprocessor.

use crate::device::limits::{
    BLOCKS_PER_SM, MAX_SHARED, REGISTERS_PER_SM, RESERVED_SHARED, SHARED_PER_SM, THREADS_PER_SM,
};
use crate::module::Code;

/// The number of blocks of a kernel that fit on a multiprocessor.
pub(crate) fn blocks_per_sm(code: &Code, threads: u32, dynamic_shared: u32) -> u32 {
    if threads == 0 || threads > code.kernel.max_threads() {
        return 0;
    }
    let warps = threads.div_ceil(32) * 32;
    let shared =
        code.kernel.static_shared_bytes().saturating_add(dynamic_shared).saturating_add(RESERVED_SHARED);
    if shared > MAX_SHARED + RESERVED_SHARED {
        return 0;
    }
    let registers = code.kernel.registers().next_multiple_of(8).max(8) * warps;
    BLOCKS_PER_SM
        .min(THREADS_PER_SM / warps)
        .min(SHARED_PER_SM / shared)
        .min(REGISTERS_PER_SM / registers)
        .max(1)
}
