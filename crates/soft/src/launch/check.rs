//! The checks of every launch and every kernel node.

use std::sync::atomic::Ordering;

use cuda_sys::CUlaunchAttributeID;

use super::occupancy::blocks_per_sm;
use crate::device::limits::MAX_THREADS;
use crate::driver;
use crate::driver::result_code::{
    Answer, COOPERATIVE_LAUNCH_TOO_LARGE, INVALID_CLUSTER_SIZE, INVALID_VALUE, NOT_SUPPORTED,
};
use crate::module::Code;
use crate::stream::attribute::{Attributes, cluster, is_cooperative};

/// The sizes of a launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sizes {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    /// Dynamic shared memory, in bytes.
    pub(crate) shared: u32,
}

/// The most blocks of a portable cluster, and of a larger one that the kernel opts into.
const CLUSTER: u32 = 8;
const NON_PORTABLE_CLUSTER: u32 = 16;

/// The checks of every launch and every kernel node.
pub(crate) fn check(code: &Code, sizes: &Sizes, attributes: &Attributes) -> Answer {
    let Sizes { grid, block, shared } = *sizes;
    if grid.contains(&0) || block.contains(&0) {
        return Err(INVALID_VALUE);
    }
    let threads = block.iter().fold(1u64, |product, size| product.saturating_mul(u64::from(*size)));
    if threads > u64::from(MAX_THREADS) || block[2] > 64 {
        return Err(INVALID_VALUE);
    }
    if grid[0] > i32::MAX as u32 || grid[1] > 65535 || grid[2] > 65535 {
        return Err(INVALID_VALUE);
    }
    let allowed = code.most_dynamic_shared();
    if shared > allowed {
        return Err(INVALID_VALUE);
    }
    if threads > u64::from(code.kernel.max_threads())
        || code.kernel.required().is_some_and(|wanted| wanted != block)
    {
        return Err(INVALID_VALUE);
    }
    check_cluster(code, grid, attributes)?;
    if is_cooperative(attributes) {
        let per_sm = u64::from(blocks_per_sm(code, threads as u32, shared));
        let room = per_sm * u64::from(driver::config().multiprocessors);
        if grid.iter().map(|size| u64::from(*size)).product::<u64>() > room {
            return Err(COOPERATIVE_LAUNCH_TOO_LARGE);
        }
    }
    Ok(())
}

/// The most blocks of a cluster of this kernel.
pub(crate) fn most_cluster(code: &Code) -> u32 {
    if code.settings.non_portable_cluster.load(Ordering::Relaxed) { NON_PORTABLE_CLUSTER } else { CLUSTER }
}

/// Checks that the requested cluster, if any, fits the kernel and divides the grid.
pub(crate) fn check_cluster(code: &Code, grid: [u32; 3], attributes: &Attributes) -> Answer {
    let Some(cluster) = cluster(attributes) else { return Ok(()) };
    if cluster == [0, 0, 0] {
        return Ok(());
    }
    if driver::config().capability < (9, 0) {
        return Err(NOT_SUPPORTED);
    }
    let blocks = cluster.iter().fold(1u32, |product, size| product.saturating_mul(*size));
    let divides = cluster.iter().zip(grid).all(|(size, grid)| *size != 0 && grid % size == 0);
    if !divides || blocks > most_cluster(code) {
        return Err(INVALID_CLUSTER_SIZE);
    }
    check_preferred_cluster(grid, cluster, attributes)
}

/// Checks that the preferred cluster, if any, is a multiple of the cluster and divides the grid. It
/// may exceed the device.
fn check_preferred_cluster(grid: [u32; 3], cluster: [u32; 3], attributes: &Attributes) -> Answer {
    let id = CUlaunchAttributeID::CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION.0;
    // SAFETY: the attribute of this number holds this field.
    let Some(dim) = attributes.get(&id).map(|value| unsafe { value.0.preferredClusterDim }) else {
        return Ok(());
    };
    let preferred = [dim.x, dim.y, dim.z];
    if preferred == [0, 0, 0] {
        return Ok(());
    }
    let sizes = preferred.iter().zip(cluster).zip(grid);
    let divides = sizes.into_iter().all(|((size, cluster), grid)| {
        *size != 0 && size.is_multiple_of(cluster) && grid.is_multiple_of(*size)
    });
    if divides { Ok(()) } else { Err(INVALID_CLUSTER_SIZE) }
}
