//! Occupancy calls.

use core::ffi::{c_int, c_uint};

use cuda_sys::{CUfunction, CUlaunchConfig, CUoccupancyB2DSize};

use super::table::Entries;
use crate::device::limits::{BLOCKS_PER_SM, MAX_SHARED, MAX_THREADS, SHARED_PER_SM};
use crate::driver;
use crate::driver::handle::number;
use crate::driver::pointer::{given, put, slice};
use crate::driver::result_code::{Answer, INVALID_VALUE, NOT_SUPPORTED};
use crate::launch::{self, blocks_per_sm};
use crate::module::{self, Code};
use crate::stream::attribute;

pub(crate) const fn add(entries: Entries) -> Entries {
    Entries {
        cuOccupancyMaxActiveBlocksPerMultiprocessor,
        cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags,
        cuOccupancyMaxPotentialBlockSize,
        cuOccupancyMaxPotentialBlockSizeWithFlags,
        cuOccupancyAvailableDynamicSMemPerBlock,
        cuOccupancyMaxActiveClusters,
        cuOccupancyMaxPotentialClusterSize,
        ..entries
    }
}

fn code(function: CUfunction) -> Answer<std::sync::Arc<Code>> {
    match module::kernel(number(function)) {
        Ok(kernel) => Ok(std::sync::Arc::clone(&kernel.code)),
        Err(_) => module::function(number(function)).map(|function| std::sync::Arc::clone(&function.code)),
    }
}

fn active(function: CUfunction, threads: c_int, shared: usize) -> Answer<c_int> {
    let code = code(function)?;
    let threads = u32::try_from(threads).ok().filter(|threads| *threads > 0).ok_or(INVALID_VALUE)?;
    let shared = u32::try_from(shared).unwrap_or(u32::MAX);
    Ok(blocks_per_sm(&code, threads, shared) as c_int)
}

fn grid(config: &CUlaunchConfig) -> [u32; 3] {
    [config.gridDimX, config.gridDimY, config.gridDimZ]
}

fn threads(config: &CUlaunchConfig) -> u32 {
    config.blockDimX.saturating_mul(config.blockDimY).saturating_mul(config.blockDimZ)
}

/// # Safety
/// `shared_of` is null or a function that may be called with any block size.
unsafe fn potential(
    function: CUfunction,
    shared_of: CUoccupancyB2DSize,
    shared: usize,
    limit: c_int,
) -> Answer<(c_int, c_int)> {
    let code = code(function)?;
    let most = if limit > 0 { limit.unsigned_abs().min(MAX_THREADS) } else { MAX_THREADS };
    let (mut best_threads, mut best) = (0, (0, 0));
    for threads in (1..=most.min(code.kernel.max_threads()) / 32).rev().map(|warps| warps * 32) {
        let shared = match shared_of {
            // SAFETY: the caller's promise.
            Some(shared_of) => unsafe { shared_of(threads as c_int) },
            None => shared,
        };
        let blocks = blocks_per_sm(&code, threads, u32::try_from(shared).unwrap_or(u32::MAX));
        if blocks * threads > best_threads {
            best_threads = blocks * threads;
            let grid = blocks.saturating_mul(driver::config().multiprocessors);
            best = (c_int::try_from(grid).unwrap_or(c_int::MAX), threads as c_int);
        }
    }
    Ok(best)
}

entries! {
    live fn cuOccupancyMaxActiveBlocksPerMultiprocessor(out: *mut c_int, f: CUfunction, threads: c_int, shared: usize) {
        put(out, active(f, threads, shared)?)
    }

    live fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        out: *mut c_int,
        f: CUfunction,
        threads: c_int,
        shared: usize,
        flags: c_uint,
    ) {
        if flags > 1 {
            return Err(INVALID_VALUE);
        }
        put(out, active(f, threads, shared)?)
    }

    live fn cuOccupancyMaxPotentialBlockSize(
        min_grid: *mut c_int,
        block: *mut c_int,
        f: CUfunction,
        shared_of: CUoccupancyB2DSize,
        shared: usize,
        limit: c_int,
    ) {
        let (grid, threads) = potential(f, shared_of, shared, limit)?;
        put(min_grid, grid)?;
        put(block, threads)
    }

    live fn cuOccupancyMaxPotentialBlockSizeWithFlags(
        min_grid: *mut c_int,
        block: *mut c_int,
        f: CUfunction,
        shared_of: CUoccupancyB2DSize,
        shared: usize,
        limit: c_int,
        flags: c_uint,
    ) {
        if flags > 1 {
            return Err(INVALID_VALUE);
        }
        let (grid, threads) = potential(f, shared_of, shared, limit)?;
        put(min_grid, grid)?;
        put(block, threads)
    }

    live fn cuOccupancyAvailableDynamicSMemPerBlock(out: *mut usize, f: CUfunction, blocks: c_int, threads: c_int) {
        let code = code(f)?;
        let blocks = u32::try_from(blocks).ok().filter(|blocks| (1..=BLOCKS_PER_SM).contains(blocks));
        if threads < 1 {
            return Err(INVALID_VALUE);
        }
        let each = (SHARED_PER_SM / blocks.ok_or(INVALID_VALUE)?).saturating_sub(1 << 10).min(MAX_SHARED);
        let dynamic = each.saturating_sub(code.kernel.static_shared_bytes());
        put(out, dynamic.min(code.most_dynamic_shared()) as usize)
    }

    live fn cuOccupancyMaxActiveClusters(out: *mut c_int, f: CUfunction, config: *const CUlaunchConfig) {
        let config = given(config)?;
        let code = code(f)?;
        let attributes = attribute::read_attributes(slice(config.attrs.cast_const(), config.numAttrs as usize)?)?;
        launch::check_cluster(&code, grid(config), &attributes)?;
        let cluster = attribute::cluster(&attributes).filter(|cluster| *cluster != [0; 3]).unwrap_or([1; 3]);
        let blocks = blocks_per_sm(&code, threads(config), config.sharedMemBytes);
        let blocks = u64::from(blocks) * u64::from(driver::config().multiprocessors);
        let clusters = blocks / cluster.iter().map(|size| u64::from(*size)).product::<u64>().max(1);
        put(out, c_int::try_from(clusters).unwrap_or(c_int::MAX))
    }

    live fn cuOccupancyMaxPotentialClusterSize(out: *mut c_int, f: CUfunction, config: *const CUlaunchConfig) {
        let config = given(config)?;
        let code = code(f)?;
        if driver::config().capability < (9, 0) {
            return Err(NOT_SUPPORTED);
        }
        if blocks_per_sm(&code, threads(config), config.sharedMemBytes) == 0 {
            return Err(INVALID_VALUE);
        }
        put(out, launch::most_cluster(&code) as c_int)
    }
}
