//! How many blocks of a kernel fit on the device at once.

use core::ffi::c_int;

use cuda_handles::{Kernel, Stream};
use cuda_sys::{CUlaunchConfig, CUresult, Call};

use crate::config::driver_config::raw_config;
use crate::config::launch_config::LaunchConfig;
use crate::error::Result;

/// What fits on the device at once. Each query makes the kernel's context current for its driver
/// call; none disturbs a capture.
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
    /// How many blocks of `threads` threads with `shared` bytes of dynamic shared memory a
    /// multiprocessor runs at once; 0 if none fits.
    ///
    /// Stands on `cuOccupancyMaxActiveBlocksPerMultiprocessor`, CUDA 6.5.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuOccupancyMaxActiveBlocksPerMultiprocessor")]
    fn blocks_per_multiprocessor(&self, threads: u32, shared: u32) -> Result<u32>;

    /// How many blocks with the block and the shared memory of `config` the device runs at once:
    /// the largest grid of a [cooperative](LaunchConfig::cooperative) launch.
    ///
    /// Stands on `cuOccupancyMaxActiveBlocksPerMultiprocessor`, CUDA 6.5.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuOccupancyMaxActiveBlocksPerMultiprocessor")]
    fn blocks_at_once(&self, config: &LaunchConfig) -> Result<u64>;

    /// The block size with which most threads run at once, when each block has `shared` bytes of
    /// dynamic shared memory, and the smallest grid that fills the device with such blocks.
    ///
    /// Stands on `cuOccupancyMaxPotentialBlockSize`, CUDA 6.5.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuOccupancyMaxPotentialBlockSize")]
    fn best_block(&self, shared: u32) -> Result<BestBlock>;

    /// How many bytes of dynamic shared memory each of `blocks` blocks of `threads` threads on one
    /// multiprocessor can have.
    ///
    /// Stands on `cuOccupancyAvailableDynamicSMemPerBlock`, CUDA 10.2.
    ///
    /// # Errors
    /// What the driver answers, also if that many blocks do not fit.
    #[doc(alias = "cuOccupancyAvailableDynamicSMemPerBlock")]
    fn shared_bytes_available(&self, blocks: u32, threads: u32) -> Result<usize>;

    /// How many [clusters](LaunchConfig::cluster) of a launch with `config` the device runs at
    /// once.
    ///
    /// Stands on `cuOccupancyMaxActiveClusters`, CUDA 11.7.
    ///
    /// # Errors
    /// The configuration is not possible, or what the driver answers.
    #[doc(alias = "cuOccupancyMaxActiveClusters")]
    fn clusters_at_once(&self, config: &LaunchConfig) -> Result<u32>;

    /// The largest number of blocks of a cluster with which a launch with `config`, whose own
    /// cluster does not count, is possible.
    ///
    /// Stands on `cuOccupancyMaxPotentialClusterSize`, CUDA 11.7.
    ///
    /// # Errors
    /// What the driver answers.
    #[doc(alias = "cuOccupancyMaxPotentialClusterSize")]
    fn largest_cluster(&self, config: &LaunchConfig) -> Result<u32>;
}

/// A block size and the grid that goes with it; see [`Occupancy::best_block`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
#[non_exhaustive]
pub struct BestBlock {
    /// Threads of a block.
    pub block: u32,
    /// Blocks that fill the device.
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

/// What does not fit becomes a number that fits no device.
fn int(value: u32) -> c_int {
    c_int::try_from(value).unwrap_or(c_int::MAX)
}

fn number(value: c_int) -> u32 {
    u32::try_from(value).unwrap_or(0)
}
