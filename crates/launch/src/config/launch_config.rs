//! The launch configuration: grid, block, shared memory and attributes.

use core::fmt;

use crate::config::attribute::{AttributeList, Attributes, MemorySyncDomain};
use crate::config::dim::Dim;

/// The launch configuration: grid, block, dynamic shared memory, and the attributes that launches
/// and kernel nodes share.
///
/// Any values can be set. [`check`](Self::check) checks them against a kernel and its device; every
/// launch and every kernel node calls it first.
///
/// ```
/// use cuda_launch::LaunchConfig;
///
/// let config = LaunchConfig::new((64, 64), (16, 16)).shared_bytes(1024);
/// assert_eq!(config.threads(), 64 * 64 * 16 * 16);
/// ```
#[doc(alias = "cudaLaunchConfig_t")]
#[doc(alias = "CUlaunchConfig")]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct LaunchConfig {
    grid: Dim,
    block: Dim,
    shared: u32,
    /// Whether any attribute is set.
    extended: bool,
    attributes: Attributes,
}

impl LaunchConfig {
    /// A grid of `grid` blocks of `block` threads, without dynamic shared memory.
    #[inline]
    #[must_use]
    pub fn new(grid: impl Into<Dim>, block: impl Into<Dim>) -> Self {
        Self {
            grid: grid.into(),
            block: block.into(),
            shared: 0,
            extended: false,
            attributes: Attributes::default(),
        }
    }

    /// Gives each block `bytes` bytes of dynamic shared memory.
    #[inline]
    #[must_use]
    pub fn shared_bytes(mut self, bytes: u32) -> Self {
        self.shared = bytes;
        self
    }

    /// Groups the blocks into clusters of these extents. The grid must be a multiple of them. A
    /// cluster has at most 8 blocks, or 16 if the kernel allows it. Needs compute capability 9.0.
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION")]
    #[doc(alias = "cudaLaunchAttributeClusterDimension")]
    #[must_use]
    pub fn cluster(self, cluster: impl Into<Dim>) -> Self {
        self.with(|attributes| attributes.cluster = Some(cluster.into()))
    }

    /// Groups the blocks into clusters of these extents where the device has room for them, and
    /// into those of [`cluster`](Self::cluster) elsewhere. They must be a multiple of that cluster
    /// and divide the grid; the limit on the number of blocks is the same. Nodes of a graph cannot
    /// have a preferred cluster. Needs CUDA 12.8 and compute capability 9.0.
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_PREFERRED_CLUSTER_DIMENSION")]
    #[doc(alias = "cudaLaunchAttributePreferredClusterDimension")]
    #[must_use]
    pub fn preferred_cluster(self, cluster: impl Into<Dim>) -> Self {
        self.with(|attributes| attributes.preferred_cluster = Some(cluster.into()))
    }

    /// Runs all blocks at the same time, so that they can wait for each other. A grid of more
    /// blocks than the device runs at once is refused;
    /// [`Occupancy::blocks_at_once`](crate::Occupancy::blocks_at_once) returns that number.
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_COOPERATIVE")]
    #[doc(alias = "cuLaunchCooperativeKernel")]
    #[doc(alias = "cudaLaunchCooperativeKernel")]
    #[must_use]
    pub fn cooperative(self) -> Self {
        self.with(|attributes| attributes.cooperative = true)
    }

    /// Sets the kernel's priority, in place of its stream's. Lower numbers run first. The driver
    /// clamps the value to the device's range.
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_PRIORITY")]
    #[must_use]
    pub fn priority(self, priority: i32) -> Self {
        self.with(|attributes| attributes.priority = Some(priority))
    }

    /// Sets the kernel's memory synchronization domain. The remote one needs compute capability
    /// 9.0.
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN")]
    #[must_use]
    pub fn memory_sync_domain(self, domain: MemorySyncDomain) -> Self {
        self.with(|attributes| attributes.domain = Some(domain))
    }

    /// Maps the default and the remote domain to domains of the device.
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_MEM_SYNC_DOMAIN_MAP")]
    #[must_use]
    pub fn memory_sync_domain_map(self, default: u8, remote: u8) -> Self {
        self.with(|attributes| attributes.domain_map = Some((default, remote)))
    }

    /// Sets the percentage of the memory common to L1 cache and shared memory that becomes shared
    /// memory. A hint, in place of the kernel's own. Needs CUDA 12.5.
    #[doc(alias = "CU_LAUNCH_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT")]
    #[must_use]
    pub fn shared_carveout(self, percent: u8) -> Self {
        self.with(|attributes| attributes.carveout = Some(percent))
    }

    /// Removes the carve-out, so that the kernel's own counts.
    #[must_use]
    pub fn default_shared_carveout(mut self) -> Self {
        self.attributes.carveout = None;
        self.extended = self.attributes != Attributes::default();
        self
    }

    /// Replaces all attributes with those of another configuration.
    #[doc(alias = "cuGraphKernelNodeCopyAttributes")]
    #[must_use]
    pub fn attributes_of(mut self, other: &Self) -> Self {
        self.attributes = other.attributes;
        self.extended = other.extended;
        self
    }

    /// Adds the attributes of another configuration. Where both have a value, the other one's
    /// counts.
    #[must_use]
    pub fn attributes_also_of(mut self, other: &Self) -> Self {
        let (own, new) = (&mut self.attributes, &other.attributes);
        *own = Attributes {
            cluster: new.cluster.or(own.cluster),
            preferred_cluster: new.preferred_cluster.or(own.preferred_cluster),
            cooperative: new.cooperative || own.cooperative,
            priority: new.priority.or(own.priority),
            domain: new.domain.or(own.domain),
            domain_map: new.domain_map.or(own.domain_map),
            carveout: new.carveout.or(own.carveout),
        };
        self.extended |= other.extended;
        self
    }

    fn with(mut self, set: impl FnOnce(&mut Attributes)) -> Self {
        set(&mut self.attributes);
        self.extended = true;
        self
    }

    /// The attributes in the driver's form, without those of a
    /// [`StreamConfig`](crate::StreamConfig).
    #[must_use]
    pub fn attributes(&self) -> AttributeList {
        self.attributes.list()
    }

    /// Whether any attribute is set.
    #[inline]
    #[must_use]
    pub fn has_attributes(&self) -> bool {
        self.extended
    }

    /// Whether all blocks run at the same time.
    #[inline]
    #[must_use]
    pub fn is_cooperative(&self) -> bool {
        self.attributes.cooperative
    }

    pub(crate) fn attributes_set(&self) -> &Attributes {
        &self.attributes
    }

    /// The extents of a cluster in blocks; (1, 1, 1) without clusters.
    #[must_use]
    pub fn cluster_dim(&self) -> Dim {
        self.attributes.cluster.unwrap_or(Dim { x: 1, y: 1, z: 1 })
    }

    /// The extents of the grid in blocks.
    #[inline]
    #[must_use]
    pub fn grid(&self) -> Dim {
        self.grid
    }

    /// The extents of a block in threads.
    #[inline]
    #[must_use]
    pub fn block(&self) -> Dim {
        self.block
    }

    /// The bytes of dynamic shared memory of each block.
    #[inline]
    #[must_use]
    pub fn shared(&self) -> u32 {
        self.shared
    }

    /// The number of threads of the grid, at most `u64::MAX`.
    #[must_use]
    pub fn threads(&self) -> u64 {
        self.grid.product().saturating_mul(self.block.product())
    }
}

impl fmt::Display for LaunchConfig {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "grid {}, block {}", self.grid, self.block)?;
        if self.shared > 0 {
            write!(formatter, ", {} bytes of shared memory", self.shared)?;
        }
        write!(formatter, "{}", self.attributes)
    }
}

/// A one-dimensional configuration with at least one thread for each of `n` elements, in blocks of
/// `block` threads.
///
/// The grid is rounded up, so the kernel must compare its index with `n`. For `n == 0` or
/// `block == 0` the grid is empty. [`LaunchConfig::check`] refuses an empty grid, and one too large
/// for the device.
///
/// ```
/// let config = cuda_launch::per(1000, 256);
/// assert_eq!((config.grid().x, config.block().x), (4, 256));
/// ```
///
/// The length of a graph parameter's memory (`GraphParam::len` of cuda-graph) makes a configuration
/// whose grid follows the parameter.
#[inline]
#[must_use]
pub fn per<N: GridLength>(n: N, block: u32) -> N::Config {
    n.per(block)
}

/// A number of elements for [`per`]: a `usize`, or the length of a graph parameter's memory.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no number of elements",
    label = "not a number of elements",
    note = "there are `usize`, and the length of a graph parameter: write `n as usize`"
)]
pub trait GridLength {
    /// The configuration that follows from it.
    type Config;

    /// At least one thread for each element, in blocks of `block` threads.
    fn per(self, block: u32) -> Self::Config;
}

impl GridLength for usize {
    type Config = LaunchConfig;

    #[inline]
    fn per(self, block: u32) -> LaunchConfig {
        LaunchConfig::new(blocks(self, block), block)
    }
}

/// A two-dimensional configuration with at least one thread for each element of `extent` (x, y), in
/// blocks of `block` (x, y) threads; otherwise like [`per`].
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

/// The number of blocks for `n` elements. Beyond 32 bits it saturates, which the check refuses.
#[inline]
fn blocks(n: usize, block: u32) -> u32 {
    match u32::try_from(n) {
        _ if block == 0 => 0,
        // A 32-bit division takes a fraction of the time of a 64-bit one.
        Ok(n) => n.div_ceil(block),
        Err(_) => u32::try_from((n as u64).div_ceil(u64::from(block))).unwrap_or(u32::MAX),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn per_rounds_up() {
        for (n, block, grid) in [(1, 256, 1), (256, 256, 1), (257, 256, 2), (1 << 20, 256, 4096)] {
            assert_eq!(per(n, block).grid(), Dim::from(grid));
        }
    }

    #[test]
    fn products_saturate() {
        let all = Dim::from([u32::MAX; 3]);
        assert_eq!(all.product(), u64::MAX);
        assert_eq!(LaunchConfig::new([2_147_483_647, 65_535, 65_535], 1024).threads(), u64::MAX);
    }
}
