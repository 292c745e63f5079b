//! Occupancy: how many blocks and clusters of a kernel run at once.

use core::ffi::c_int;

use cuda_handles::{Kernel, Stream};
use cuda_sys::{CUlaunchConfig, CUresult, Call};

use crate::config::driver_config::raw_config;
use crate::config::launch_config::LaunchConfig;
use crate::error::Result;

/// Occupancy queries: how many blocks and clusters of a kernel the device runs at once.
///
/// Each query makes the kernel's context current for its driver call. None disturbs a capture.
///
/// ```no_run
/// # fn example(kernel: &cuda_handles::Kernel) -> cuda_launch::Result<()> {
/// use cuda_launch::Occupancy;
///
/// let best = kernel.best_block(0)?;
/// println!("{} blocks of {} threads fill the device", best.grid, best.block);
/// # Ok(())
/// # }
/// ```
pub trait Occupancy: sealed::Sealed {
    /// The number of blocks of `threads` threads with `shared` bytes of dynamic shared memory that
    /// a multiprocessor runs at once; 0 if none fits.
    ///
    /// Calls `cuOccupancyMaxActiveBlocksPerMultiprocessor` (CUDA 6.5).
    ///
    /// # Errors
    /// The driver's.
    #[doc(alias = "cuOccupancyMaxActiveBlocksPerMultiprocessor")]
    #[doc(alias = "cudaOccupancyMaxActiveBlocksPerMultiprocessor")]
    fn blocks_per_multiprocessor(&self, threads: u32, shared: u32) -> Result<u32>;

    /// The number of blocks with the block and the shared memory of `config` that the device runs
    /// at once: the largest grid of a [cooperative](LaunchConfig::cooperative) launch.
    ///
    /// Calls `cuOccupancyMaxActiveBlocksPerMultiprocessor` (CUDA 6.5).
    ///
    /// # Errors
    /// The driver's.
    #[doc(alias = "cuOccupancyMaxActiveBlocksPerMultiprocessor")]
    fn blocks_at_once(&self, config: &LaunchConfig) -> Result<u64>;

    /// The block size with the most threads running at once, if each block has `shared` bytes of
    /// dynamic shared memory, and the smallest grid that fills the device with such blocks.
    ///
    /// Calls `cuOccupancyMaxPotentialBlockSize` (CUDA 6.5).
    ///
    /// # Errors
    /// The driver's.
    #[doc(alias = "cuOccupancyMaxPotentialBlockSize")]
    #[doc(alias = "cudaOccupancyMaxPotentialBlockSize")]
    fn best_block(&self, shared: u32) -> Result<BestBlock>;

    /// The bytes of dynamic shared memory available to each of `blocks` blocks of `threads` threads
    /// on one multiprocessor.
    ///
    /// Calls `cuOccupancyAvailableDynamicSMemPerBlock` (CUDA 10.2).
    ///
    /// # Errors
    /// The driver's, also if that many blocks do not fit.
    #[doc(alias = "cuOccupancyAvailableDynamicSMemPerBlock")]
    #[doc(alias = "cudaOccupancyAvailableDynamicSMemPerBlock")]
    fn shared_bytes_available(&self, blocks: u32, threads: u32) -> Result<usize>;

    /// The number of [clusters](LaunchConfig::cluster) of a launch with `config` that the device
    /// runs at once.
    ///
    /// Calls `cuOccupancyMaxActiveClusters` (CUDA 11.7).
    ///
    /// # Errors
    /// Those of [`LaunchConfig::check`], or the driver's.
    #[doc(alias = "cuOccupancyMaxActiveClusters")]
    #[doc(alias = "cudaOccupancyMaxActiveClusters")]
    fn clusters_at_once(&self, config: &LaunchConfig) -> Result<u32>;

    /// The largest cluster, in blocks, for a launch with `config`. The cluster of `config` itself
    /// does not count.
    ///
    /// Calls `cuOccupancyMaxPotentialClusterSize` (CUDA 11.7).
    ///
    /// # Errors
    /// Those of [`LaunchConfig::check`], or the driver's.
    #[doc(alias = "cuOccupancyMaxPotentialClusterSize")]
    #[doc(alias = "cudaOccupancyMaxPotentialClusterSize")]
    fn largest_cluster(&self, config: &LaunchConfig) -> Result<u32>;
}

/// A block size and its grid; see [`Occupancy::best_block`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct BestBlock {
    /// The threads of a block.
    pub block: u32,
    /// The smallest number of blocks that fills the device.
    pub grid: u32,
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Kernel {}
}

impl Occupancy for Kernel {
    fn blocks_per_multiprocessor(&self, threads: u32, shared: u32) -> Result<u32> {
        let mut blocks = 0;
        // SAFETY: the kernel's library is loaded, its context current, and the out pointer valid.
        ask(self, Call::cuOccupancyMaxActiveBlocksPerMultiprocessor, || unsafe {
            self.context().driver().cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &raw mut blocks,
                self.function(),
                int(threads),
                shared as usize,
            )
        })?;
        Ok(number(blocks))
    }

    fn blocks_at_once(&self, config: &LaunchConfig) -> Result<u64> {
        let threads = u32::try_from(config.block().product()).unwrap_or(u32::MAX);
        let blocks = self.blocks_per_multiprocessor(threads, config.shared())?;
        Ok(u64::from(blocks) * u64::from(self.context().limits().multiprocessors))
    }

    fn best_block(&self, shared: u32) -> Result<BestBlock> {
        let (mut grid, mut block) = (0, 0);
        // SAFETY: as above; without a function the shared memory is the same for all sizes.
        ask(self, Call::cuOccupancyMaxPotentialBlockSize, || unsafe {
            self.context().driver().cuOccupancyMaxPotentialBlockSize(
                &raw mut grid,
                &raw mut block,
                self.function(),
                None,
                shared as usize,
                0,
            )
        })?;
        Ok(BestBlock { block: number(block), grid: number(grid) })
    }

    fn shared_bytes_available(&self, blocks: u32, threads: u32) -> Result<usize> {
        let mut bytes = 0;
        // SAFETY: as above.
        ask(self, Call::cuOccupancyAvailableDynamicSMemPerBlock, || unsafe {
            self.context().driver().cuOccupancyAvailableDynamicSMemPerBlock(
                &raw mut bytes,
                self.function(),
                int(blocks),
                int(threads),
            )
        })?;
        Ok(bytes)
    }

    fn clusters_at_once(&self, config: &LaunchConfig) -> Result<u32> {
        config.check(self)?;
        let mut clusters = 0;
        with_config(config, |raw| {
            // SAFETY: as above; the configuration lives as long as the call.
            ask(self, Call::cuOccupancyMaxActiveClusters, || unsafe {
                self.context().driver().cuOccupancyMaxActiveClusters(&raw mut clusters, self.function(), raw)
            })
        })?;
        Ok(number(clusters))
    }

    fn largest_cluster(&self, config: &LaunchConfig) -> Result<u32> {
        let plain = LaunchConfig::new(config.grid(), config.block()).shared_bytes(config.shared());
        plain.check(self)?;
        let mut blocks = 0;
        with_config(&plain, |raw| {
            // SAFETY: as above; the configuration lives as long as the call.
            ask(self, Call::cuOccupancyMaxPotentialClusterSize, || unsafe {
                self.context().driver().cuOccupancyMaxPotentialClusterSize(
                    &raw mut blocks,
                    self.function(),
                    raw,
                )
            })
        })?;
        Ok(number(blocks))
    }
}

/// One query, with the kernel's context current.
fn ask(kernel: &Kernel, call: Call, query: impl FnOnce() -> CUresult) -> Result<()> {
    let context = kernel.context();
    let code = context.with_current(query)?;
    Ok(context.check(call, code)?)
}

fn with_config<R>(config: &LaunchConfig, call: impl FnOnce(*const CUlaunchConfig) -> R) -> R {
    let mut attributes = config.attributes();
    let raw = raw_config(config, None::<&Stream>, &mut attributes);
    call(&raw const raw)
}

/// Saturates: such a number fits no device.
fn int(value: u32) -> c_int {
    c_int::try_from(value).unwrap_or(c_int::MAX)
}

fn number(value: c_int) -> u32 {
    u32::try_from(value).unwrap_or(0)
}
