//! Launch configurations in a compact form for the state.

use cuda_launch::{Dim, LaunchConfig};

/// A launch configuration. Configurations without attributes, which are most of them, take half the
/// space.
#[derive(Clone, Debug)]
pub(crate) enum KernelConfig {
    Plain { grid: Dim, block: Dim, shared: u32 },
    WithAttributes(Box<LaunchConfig>),
}

impl KernelConfig {
    /// The public form.
    pub(crate) fn get(&self) -> LaunchConfig {
        match self {
            Self::Plain { grid, block, shared } => LaunchConfig::new(*grid, *block).shared_bytes(*shared),
            Self::WithAttributes(config) => **config,
        }
    }
}

impl From<LaunchConfig> for KernelConfig {
    #[inline]
    fn from(config: LaunchConfig) -> Self {
        match config.has_attributes() {
            false => Self::Plain { grid: config.grid(), block: config.block(), shared: config.shared() },
            true => Self::WithAttributes(Box::new(config)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn configurations_come_back() {
        let plain = LaunchConfig::new((3, 2), (16, 8)).shared_bytes(64);
        for config in [plain, plain.cooperative(), plain.cluster(2)] {
            assert_eq!(KernelConfig::from(config).get(), config);
        }
        assert!(size_of::<KernelConfig>() <= size_of::<LaunchConfig>() / 2);
    }
}
