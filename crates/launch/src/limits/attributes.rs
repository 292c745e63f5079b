//! Checks of launch attributes against driver, device and kernel.
//!
//! Cold code: a launch without attributes never gets here.

use std::sync::atomic::Ordering;

use cuda_handles::Kernel;
use cuda_sys::{CUdevice_attribute, CUfunction_attribute, Call, Feature};

use crate::config::attribute::{AttributeList, MemorySyncDomain};
use crate::config::dim::Dim;
use crate::config::launch_config::LaunchConfig;
use crate::config::stream_config::StreamConfig;
use crate::error::{AttributeRefused, Error, Result};
use crate::limits::occupancy::Occupancy;

/// The most blocks of a cluster for any kernel, and for a kernel that allows more.
const PORTABLE: u64 = 8;
const NON_PORTABLE: u64 = 16;
const ALLOW_NON_PORTABLE: &str = ", which `Kernel::set_attribute` raises to 16, if the device can do that, with a 1 for \
                                  `CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED`";

/// One configuration and the kernel it is checked against.
struct Check<'a> {
    kernel: &'a Kernel,
    config: &'a LaunchConfig,
}

impl LaunchConfig {
    /// Checks the attributes. May query the driver for attributes of device and kernel.
    #[cold]
    pub(crate) fn check_attributes(self, kernel: &Kernel) -> Result<()> {
        let check = Check { kernel, config: &self };
        let attributes = self.attributes_set();
        if let Some(cluster) = attributes.cluster {
            check.cluster(cluster)?;
        }
        if let Some(preferred) = attributes.preferred_cluster {
            check.preferred_cluster(preferred, attributes.cluster)?;
        }
        if attributes.cooperative {
            check.cooperative()?;
        }
        if let Some(map) = attributes.domain_map {
            check.domains(map)?;
        } else if attributes.domain == Some(MemorySyncDomain::Remote) {
            check.needs_capability("a memory synchronization domain")?;
        }
        if let Some(percent) = attributes.carveout {
            const WHAT: &str = "a shared-memory carve-out for one launch";
            check.needs_feature(Feature::SharedCarveout)?;
            if percent > 100 {
                return Err(check.refused(WHAT, format!("{percent} % is more than all")));
            }
        }
        Ok(())
    }
}

impl LaunchConfig {
    /// The attributes in the driver's form, for a kernel node.
    ///
    /// # Errors
    /// [`Error::Attribute`] for a preferred cluster, which nodes cannot have.
    #[doc(hidden)]
    pub fn node_attributes(&self, kernel: &Kernel) -> Result<AttributeList> {
        if self.attributes_set().preferred_cluster.is_some() {
            let check = Check { kernel, config: self };
            return Err(check.refused("a preferred cluster", "nodes of a graph cannot have one".to_owned()));
        }
        Ok(self.attributes())
    }
}

impl StreamConfig<'_> {
    /// [`LaunchConfig::check`], and the check of the attributes that only streams have.
    #[inline(always)]
    pub(crate) fn check(&self, kernel: &Kernel) -> Result<()> {
        self.config().check(kernel)?;
        if self.is_programmatic() { self.check_programmatic(kernel) } else { Ok(()) }
    }

    /// Checks the attributes that only launches on a stream have. Makes no driver call.
    #[cold]
    pub(crate) fn check_programmatic(self, kernel: &Kernel) -> Result<()> {
        let check = Check { kernel, config: self.config() };
        check.needs_capability("programmatic launch")?;
        if self.completion.is_some() {
            check.needs_feature(Feature::CompletionEvent)?;
        }
        for (event, what) in self.events() {
            kernel.context().ensure_same(event.context(), what)?;
            if event.options().is_some_and(|options| options.timing || options.ipc) {
                let reason = "the event must be created with `timing: false` and `ipc: false`".to_owned();
                return Err(check.refused(what, reason));
            }
        }
        Ok(())
    }
}

impl Check<'_> {
    /// Checks that all blocks fit on the device at once. The kernel remembers the last answer of
    /// the driver, so repeated launches make no call.
    fn cooperative(&self) -> Result<()> {
        const WHAT: &str = "a cooperative launch";
        if !self.kernel.context().limits().cooperative_launch {
            return Err(self.refused(WHAT, "the device cannot do it".to_owned()));
        }
        let (blocks, most) = (self.config.grid().product(), self.blocks_at_once()?);
        if blocks > most {
            let reason = format!("it has {blocks} blocks; {most} can run at once");
            return Err(self.refused(WHAT, reason));
        }
        Ok(())
    }

    fn blocks_at_once(&self) -> Result<u64> {
        let (memo, multiprocessors) =
            (self.kernel.occupancy_memo(), u64::from(self.kernel.context().limits().multiprocessors));
        // The key is never 0: a block has at least one thread. 11 bits suffice for the threads, 32
        // for the shared memory, and 16 for the blocks that fit on a multiprocessor.
        let key = (self.config.block().product() << 32 | u64::from(self.config.shared())) << 16;
        let known = memo.load(Ordering::Relaxed);
        if known & !0xFFFF == key {
            return Ok((known & 0xFFFF) * multiprocessors);
        }
        let blocks = self.kernel.blocks_at_once(self.config)?;
        let each = blocks / multiprocessors.max(1);
        if each <= 0xFFFF {
            memo.store(key | each, Ordering::Relaxed);
        }
        Ok(blocks)
    }

    fn cluster(&self, cluster: Dim) -> Result<()> {
        const WHAT: &str = "a cluster";
        self.needs_capability(WHAT)?;
        self.fits_as_cluster(WHAT, cluster)
    }

    fn fits_as_cluster(&self, what: &'static str, cluster: Dim) -> Result<()> {
        let (grid, blocks) = (self.config.grid(), cluster.product());
        if blocks == 0 {
            return Err(self.refused(what, format!("{cluster} has no blocks")));
        }
        let most = if blocks > PORTABLE { self.most_blocks()? } else { PORTABLE };
        if blocks > most {
            let raise = match blocks <= NON_PORTABLE {
                true => ALLOW_NON_PORTABLE,
                false => "",
            };
            let reason = format!("{cluster} has {blocks} blocks; the limit is {most}{raise}");
            return Err(self.refused(what, reason));
        }
        if !divides(cluster, grid) {
            return Err(self.refused(what, format!("{cluster} does not divide the grid {grid}")));
        }
        Ok(())
    }

    /// The most blocks of a cluster for this kernel.
    fn most_blocks(&self) -> Result<u64> {
        let context = self.kernel.context();
        context.ensure_usable()?;
        let (mut allowed, device) = (0, context.device().as_raw());
        let attribute = CUfunction_attribute::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED;
        // SAFETY: the kernel's library is loaded and the out pointer valid.
        let code = unsafe {
            context.driver().cuKernelGetAttribute(&raw mut allowed, attribute, self.kernel.as_raw(), device)
        };
        context.check(Call::cuKernelGetAttribute, code)?;
        Ok(if allowed != 0 { NON_PORTABLE } else { PORTABLE })
    }

    fn preferred_cluster(&self, preferred: Dim, cluster: Option<Dim>) -> Result<()> {
        const WHAT: &str = "a preferred cluster";
        self.needs_feature(Feature::PreferredCluster)?;
        self.needs_capability(WHAT)?;
        match cluster {
            None => Err(self.refused(WHAT, "there must be a cluster to fall back on".to_owned())),
            Some(cluster) if preferred.product() == 0 || !divides(cluster, preferred) => {
                Err(self.refused(WHAT, format!("{preferred} is not a multiple of the cluster {cluster}")))
            }
            Some(_) => self.fits_as_cluster(WHAT, preferred),
        }
    }

    fn domains(&self, (default, remote): (u8, u8)) -> Result<()> {
        const WHAT: &str = "a map of memory synchronization domains";
        let count = CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEM_SYNC_DOMAIN_COUNT;
        let count = self.kernel.context().device().attribute(count)?;
        let most = default.max(remote);
        if i32::from(most) < count.max(1) {
            return Ok(());
        }
        Err(self.refused(WHAT, format!("there is no domain {most}; the device has {count}, counted from 0")))
    }

    fn needs_feature(&self, feature: Feature) -> Result<()> {
        Ok(self.kernel.context().driver().version().ensure(feature)?)
    }

    fn needs_capability(&self, what: &'static str) -> Result<()> {
        match self.kernel.context().limits().compute_capability {
            (major, _) if major >= 9 => Ok(()),
            (major, minor) => {
                let reason =
                    format!("it needs compute capability 9.0 or higher; the device has {major}.{minor}");
                Err(self.refused(what, reason))
            }
        }
    }

    fn refused(&self, what: &'static str, reason: String) -> Error {
        let kernel = self.kernel.name().to_owned();
        Error::Attribute(Box::new(AttributeRefused { kernel, config: *self.config, what, reason }))
    }
}

/// Whether every extent of `whole` is a multiple of the same extent of `part`.
fn divides(part: Dim, whole: Dim) -> bool {
    part.axes().into_iter().zip(whole.axes()).all(|(part, whole)| part != 0 && whole % part == 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clusters_divide_by_axis() {
        assert!(divides(Dim::from((2, 1)), Dim::from((8, 3))));
        assert!(!divides(Dim::from((2, 2)), Dim::from((8, 3))));
        assert!(!divides(Dim::from((0, 1)), Dim::from((8, 3))));
    }
}
