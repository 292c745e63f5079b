//! Checks of grid, block and shared memory against device and kernel.

use cuda_handles::Kernel;

use crate::config::dim::Dim;
use crate::config::launch_config::LaunchConfig;
use crate::error::{Error, LimitExceeded, Result};

impl LaunchConfig {
    /// Checks that `kernel` can be launched with this configuration on its device. Makes no driver
    /// call, except for attributes whose limit only the driver knows.
    ///
    /// # Errors
    /// - [`Error::Limit`] names the first limit that is exceeded, the value and the kernel. An
    ///   extent of zero counts as exceeded.
    /// - [`Error::Attribute`] if device or kernel do not allow an attribute.
    /// - [`Error::DriverTooOld`] if the driver lacks an attribute.
    #[inline]
    pub fn check(&self, kernel: &Kernel) -> Result<()> {
        if !self.fits(&Bounds::of(kernel)) {
            return Err(self.refusal(kernel));
        }
        if self.has_attributes() { self.check_attributes(kernel) } else { Ok(()) }
    }

    #[inline]
    fn fits(&self, bounds: &Bounds<'_>) -> bool {
        self.grid().within(bounds.grid)
            && self.block().within(bounds.block)
            && self.block().product() <= u64::from(bounds.threads)
            && self.shared() <= bounds.shared
    }

    /// By value: a reference would force every launch to write the configuration to memory.
    #[cold]
    fn refusal(self, kernel: &Kernel) -> Error {
        let bounds = Bounds::of(kernel);
        let (what, asked, limit) =
            self.exceeded(&bounds).unwrap_or(("launch configuration", self.threads(), u64::MAX));
        let advice = match what {
            SHARED => raising_shared(kernel, asked, limit),
            KERNEL_THREADS => {
                format!(
                    "the kernel was compiled for no larger blocks (`__launch_bounds__`, or its {} registers a thread); the device has up to {}",
                    kernel.attributes().registers,
                    bounds.device_threads
                )
            }
            _ => String::new(),
        };
        let kernel = kernel.name().to_owned();
        Error::Limit(Box::new(LimitExceeded { kernel, config: self, what, asked, limit, advice }))
    }

    /// The first limit that the configuration exceeds: its name, the value and the limit.
    fn exceeded(&self, bounds: &Bounds<'_>) -> Option<(&'static str, u64, u64)> {
        const GRID: [&str; 3] = ["grid extent in x", "grid extent in y", "grid extent in z"];
        const BLOCK: [&str; 3] = ["block extent in x", "block extent in y", "block extent in z"];
        let extents = |names: [&'static str; 3], dim: Dim, max: &[u32; 3]| {
            let axes = names.into_iter().zip(dim.axes()).zip(*max);
            axes.map(|((name, asked), limit)| (name, u64::from(asked), u64::from(limit)))
                .find(|&(_, asked, limit)| asked == 0 || asked > limit)
        };
        extents(GRID, self.grid(), bounds.grid)
            .or_else(|| extents(BLOCK, self.block(), bounds.block))
            .or_else(|| {
                let (asked, limit) = (self.block().product(), u64::from(bounds.threads));
                let what = if bounds.threads < bounds.device_threads {
                    KERNEL_THREADS
                } else {
                    "number of threads per block"
                };
                (asked > limit).then_some((what, asked, limit))
            })
            .or_else(|| {
                let (asked, limit) = (u64::from(self.shared()), u64::from(bounds.shared));
                (asked > limit).then_some((SHARED, asked, limit))
            })
    }
}

const SHARED: &str = "number of bytes of dynamic shared memory";
const KERNEL_THREADS: &str = "number of threads per block, for this kernel,";

/// Advice on raising the limit of dynamic shared memory.
fn raising_shared(kernel: &Kernel, asked: u64, limit: u64) -> String {
    let (limits, own) = (kernel.context().limits(), u64::from(kernel.attributes().static_shared_bytes));
    let (default, device) = (u64::from(limits.max_shared_bytes), u64::from(limits.max_shared_bytes_opt_in));
    let most = default.max(device).saturating_sub(own);
    if asked > most {
        let device = most + own;
        return format!(
            "a block of this device has {device} at most, of which the kernel declares {own} itself"
        );
    }
    const HOW: &str = "`Kernel::set_max_dynamic_shared_bytes`";
    match default.saturating_sub(own) {
        usual if limit < usual => {
            format!("it was lowered from the default {usual}; {HOW} raises it to up to {most}")
        }
        _ => format!("{HOW} raises it, for this kernel on this device to up to {most}"),
    }
}

/// The limits of one kernel on its device. The arrays are borrowed: a copy would be stored and
/// loaded again right away.
#[derive(Clone, Copy)]
struct Bounds<'a> {
    grid: &'a [u32; 3],
    block: &'a [u32; 3],
    device_threads: u32,
    /// The kernel's limit, at most the device's.
    threads: u32,
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
            threads: attributes.max_threads_per_block,
            shared: kernel.max_dynamic_shared_bytes(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::launch_config::per;

    const BOUNDS: Bounds<'static> = Bounds {
        grid: &[2_147_483_647, 65_535, 65_535],
        block: &[1024, 1024, 64],
        device_threads: 1024,
        threads: 1024,
        shared: 49_152,
    };

    fn exceeded(config: LaunchConfig) -> Option<(&'static str, u64, u64)> {
        let found = config.exceeded(&BOUNDS);
        assert_eq!(found.is_none(), config.fits(&BOUNDS), "{config}: {found:?}");
        found
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
        let bounds = Bounds { threads: 256, ..BOUNDS };
        let config = LaunchConfig::new(1, 512);
        assert!(!config.fits(&bounds));
        let (what, asked, limit) = config.exceeded(&bounds).unwrap();
        assert!(what.contains("this kernel"));
        assert_eq!((asked, limit), (512, 256));
    }
}
