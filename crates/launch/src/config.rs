//! How many blocks of how many threads a launch has, and whether device and kernel allow that.

use core::fmt;

use cuda_handles::Kernel;

use crate::error::{Error, LimitExceeded, Result};

/// The extent of a grid (in blocks) or of a block (in threads) in three dimensions.
///
/// ```
/// use cuda_launch::Dim;
///
/// assert_eq!(Dim::from(7), Dim { x: 7, y: 1, z: 1 });
/// assert_eq!(Dim::from((7, 2)), Dim::from([7, 2, 1]));
/// assert_eq!(Dim::from((7, 2)).to_string(), "(7, 2, 1)");
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Dim {
    /// The extent in the direction whose index changes fastest.
    pub x: u32,
    /// The extent in the second direction.
    pub y: u32,
    /// The extent in the third direction.
    pub z: u32,
}

impl Dim {
    /// The product of the three extents; `u64::MAX` where it is larger than that.
    #[must_use]
    pub fn product(self) -> u64 {
        (u64::from(self.x) * u64::from(self.y)).saturating_mul(u64::from(self.z))
    }

    fn axes(self) -> [u32; 3] {
        [self.x, self.y, self.z]
    }

    /// Whether each extent is at least one and at most its limit.
    #[inline]
    fn within(self, max: &[u32; 3]) -> bool {
        // An extent of zero wraps around and is beyond every limit.
        self.x.wrapping_sub(1) < max[0] && self.y.wrapping_sub(1) < max[1] && self.z.wrapping_sub(1) < max[2]
    }
}

impl From<u32> for Dim {
    fn from(x: u32) -> Self {
        Self { x, y: 1, z: 1 }
    }
}

impl From<(u32, u32)> for Dim {
    fn from((x, y): (u32, u32)) -> Self {
        Self { x, y, z: 1 }
    }
}

impl From<(u32, u32, u32)> for Dim {
    fn from((x, y, z): (u32, u32, u32)) -> Self {
        Self { x, y, z }
    }
}

impl From<[u32; 3]> for Dim {
    fn from([x, y, z]: [u32; 3]) -> Self {
        Self { x, y, z }
    }
}

impl fmt::Display for Dim {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "({}, {}, {})", self.x, self.y, self.z)
    }
}

/// The launch configuration: grid, block and dynamic shared memory.
///
/// Any values can be put in; [`check`](Self::check) tells whether a kernel can be launched so, and every launch and every kernel node
/// asks it first.
///
/// ```
/// use cuda_launch::LaunchConfig;
///
/// let config = LaunchConfig::new((64, 64), (16, 16)).shared_bytes(1024);
/// assert_eq!(config.threads(), 64 * 64 * 16 * 16);
/// ```
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LaunchConfig {
    grid: Dim,
    block: Dim,
    shared: u32,
}

impl LaunchConfig {
    /// A grid of `grid` blocks of `block` threads, without dynamic shared memory.
    #[inline]
    #[must_use]
    pub fn new(grid: impl Into<Dim>, block: impl Into<Dim>) -> Self {
        Self { grid: grid.into(), block: block.into(), shared: 0 }
    }

    /// The same with `bytes` bytes of dynamic shared memory for each block.
    #[inline]
    #[must_use]
    pub fn shared_bytes(mut self, bytes: u32) -> Self {
        self.shared = bytes;
        self
    }

    /// The number of blocks in each direction.
    #[inline]
    #[must_use]
    pub fn grid(&self) -> Dim {
        self.grid
    }

    /// The number of threads of a block in each direction.
    #[inline]
    #[must_use]
    pub fn block(&self) -> Dim {
        self.block
    }

    /// The bytes of dynamic shared memory that each block gets.
    #[inline]
    #[must_use]
    pub fn shared(&self) -> u32 {
        self.shared
    }

    /// The number of all threads; `u64::MAX` where it is larger than that.
    #[must_use]
    pub fn threads(&self) -> u64 {
        self.grid.product().saturating_mul(self.block.product())
    }

    /// Whether `kernel` can be launched with this configuration on its device. Makes no driver call.
    ///
    /// # Errors
    /// [`Error::Limit`] names the first limit that is exceeded, the value asked for and the kernel. An extent of zero is one.
    #[inline]
    pub fn check(&self, kernel: &Kernel) -> Result<()> {
        let bounds = Bounds::of(kernel);
        if self.fits(&bounds) { Ok(()) } else { Err(self.refusal(kernel, &bounds)) }
    }

    #[inline]
    fn fits(&self, bounds: &Bounds<'_>) -> bool {
        self.grid.within(bounds.grid)
            && self.block.within(bounds.block)
            && self.block.product() <= u64::from(bounds.threads())
            && self.shared <= bounds.shared
    }

    #[cold]
    fn refusal(&self, kernel: &Kernel, bounds: &Bounds<'_>) -> Error {
        let (what, asked, limit) =
            self.exceeded(bounds).unwrap_or(("launch configuration", self.threads(), u64::MAX));
        Error::Limit(Box::new(LimitExceeded {
            kernel: kernel.name().to_owned(),
            config: *self,
            what,
            asked,
            limit,
        }))
    }

    /// The first limit that the configuration does not keep: its name, the value asked for, the limit.
    fn exceeded(&self, bounds: &Bounds<'_>) -> Option<(&'static str, u64, u64)> {
        const GRID: [&str; 3] = ["grid extent in x", "grid extent in y", "grid extent in z"];
        const BLOCK: [&str; 3] = ["block extent in x", "block extent in y", "block extent in z"];
        let extents = |names: [&'static str; 3], dim: Dim, max: &[u32; 3]| {
            let axes = names.into_iter().zip(dim.axes()).zip(*max);
            axes.map(|((name, asked), limit)| (name, u64::from(asked), u64::from(limit)))
                .find(|&(_, asked, limit)| asked == 0 || asked > limit)
        };
        extents(GRID, self.grid, bounds.grid)
            .or_else(|| extents(BLOCK, self.block, bounds.block))
            .or_else(|| {
                let (asked, limit) = (self.block.product(), u64::from(bounds.threads()));
                let what = if bounds.kernel_threads < bounds.device_threads {
                    "number of threads per block, for this kernel,"
                } else {
                    "number of threads per block"
                };
                (asked > limit).then_some((what, asked, limit))
            })
            .or_else(|| {
                let (asked, limit) = (u64::from(self.shared), u64::from(bounds.shared));
                (asked > limit).then_some(("number of bytes of dynamic shared memory", asked, limit))
            })
    }
}

impl fmt::Display for LaunchConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "grid {}, block {}", self.grid, self.block)?;
        if self.shared > 0 {
            write!(formatter, ", {} bytes of shared memory", self.shared)?;
        }
        Ok(())
    }
}

/// The limits that hold for one kernel on its device. The arrays stay where they are: copied, they would be read back before they are written.
#[derive(Clone, Copy)]
struct Bounds<'a> {
    grid: &'a [u32; 3],
    block: &'a [u32; 3],
    device_threads: u32,
    kernel_threads: u32,
    shared: u32,
}

impl<'a> Bounds<'a> {
    #[inline]
    fn of(kernel: &'a Kernel) -> Self {
        let (limits, attributes) = (kernel.context().limits(), kernel.attributes());
        Self {
            grid: &limits.max_grid,
            block: &limits.max_block,
            device_threads: limits.max_threads_per_block,
            kernel_threads: attributes.max_threads_per_block,
            shared: attributes.max_dynamic_shared_bytes,
        }
    }

    #[inline]
    fn threads(&self) -> u32 {
        self.device_threads.min(self.kernel_threads)
    }
}

/// A one-dimensional configuration with at least one thread for each of `n` elements, in blocks of `block` threads.
///
/// The grid is rounded up, so the kernel has to compare its index with `n`. For `n == 0` or `block == 0` the grid is empty, which
/// [`LaunchConfig::check`] refuses; so is a grid too large for the device.
///
/// ```
/// let config = cuda_launch::per(1000, 256);
/// assert_eq!((config.grid().x, config.block().x), (4, 256));
/// ```
#[inline]
#[must_use]
pub fn per(n: usize, block: u32) -> LaunchConfig {
    LaunchConfig::new(blocks(n, block), block)
}

/// A two-dimensional configuration with at least one thread for each element of `extent` (x, y), in blocks of `block` (x, y) threads;
/// otherwise like [`per`].
///
/// ```
/// let config = cuda_launch::per_2d((1000, 30), (32, 8));
/// assert_eq!(config.grid(), (32, 4).into());
/// ```
#[inline]
#[must_use]
pub fn per_2d(extent: (usize, usize), block: (u32, u32)) -> LaunchConfig {
    LaunchConfig::new((blocks(extent.0, block.0), blocks(extent.1, block.1)), block)
}

/// Blocks needed for `n` elements. What does not fit 32 bits becomes a number that no device takes, so that the check refuses it.
#[inline]
fn blocks(n: usize, block: u32) -> u32 {
    match u32::try_from(n) {
        _ if block == 0 => 0,
        // A division of half the width takes a fraction of the time.
        Ok(n) => n.div_ceil(block),
        Err(_) => u32::try_from((n as u64).div_ceil(u64::from(block))).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Bounds<'static> = Bounds {
        grid: &[2_147_483_647, 65_535, 65_535],
        block: &[1024, 1024, 64],
        device_threads: 1024,
        kernel_threads: 1024,
        shared: 49_152,
    };

    fn exceeded(config: LaunchConfig) -> Option<(&'static str, u64, u64)> {
        let found = config.exceeded(&BOUNDS);
        assert_eq!(found.is_none(), config.fits(&BOUNDS), "{config}: {found:?}");
        found
    }

    #[test]
    fn per_rounds_up() {
        for (n, block, grid) in [(1, 256, 1), (256, 256, 1), (257, 256, 2), (1 << 20, 256, 4096)] {
            assert_eq!(per(n, block).grid(), Dim::from(grid));
        }
    }

    #[test]
    fn nothing_to_do_is_refused() {
        assert_eq!(exceeded(per(0, 256)), Some(("grid extent in x", 0, 2_147_483_647)));
        assert_eq!(exceeded(per(10, 0)), Some(("grid extent in x", 0, 2_147_483_647)));
        assert_eq!(exceeded(LaunchConfig::new(1, (1, 0))), Some(("block extent in y", 0, 1024)));
    }

    #[test]
    fn too_many_elements_are_refused_not_cut() {
        let config = per(usize::MAX, 1);
        assert_eq!(exceeded(config), Some(("grid extent in x", u64::from(u32::MAX), 2_147_483_647)));
    }

    #[test]
    fn each_limit_is_named() {
        let config = |grid: [u32; 3], block: [u32; 3]| LaunchConfig::new(grid, block);
        assert_eq!(exceeded(config([1, 65_536, 1], [1, 1, 1])), Some(("grid extent in y", 65_536, 65_535)));
        assert_eq!(exceeded(config([1, 1, 65_536], [1, 1, 1])), Some(("grid extent in z", 65_536, 65_535)));
        assert_eq!(exceeded(config([1, 1, 1], [1025, 1, 1])), Some(("block extent in x", 1025, 1024)));
        assert_eq!(exceeded(config([1, 1, 1], [1, 1, 65])), Some(("block extent in z", 65, 64)));
        assert_eq!(
            exceeded(config([1, 1, 1], [32, 32, 2])),
            Some(("number of threads per block", 2048, 1024))
        );
        assert_eq!(
            exceeded(LaunchConfig::new(1, 1).shared_bytes(49_153)),
            Some(("number of bytes of dynamic shared memory", 49_153, 49_152))
        );
        assert_eq!(
            exceeded(LaunchConfig::new([2_147_483_647, 65_535, 65_535], 1024).shared_bytes(49_152)),
            None
        );
    }

    #[test]
    fn the_kernels_own_limit_counts() {
        let bounds = Bounds { kernel_threads: 256, ..BOUNDS };
        let config = LaunchConfig::new(1, 512);
        assert!(!config.fits(&bounds));
        let (what, asked, limit) = config.exceeded(&bounds).unwrap();
        assert!(what.contains("this kernel"));
        assert_eq!((asked, limit), (512, 256));
    }

    #[test]
    fn products_saturate() {
        let all = Dim::from([u32::MAX; 3]);
        assert_eq!(all.product(), u64::MAX);
        assert_eq!(LaunchConfig::new([2_147_483_647, 65_535, 65_535], 1024).threads(), u64::MAX);
    }
}
