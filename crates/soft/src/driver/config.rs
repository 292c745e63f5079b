//! The configuration of the driver.

use std::fmt;

use cuda_sys::{Printable, Version};

use super::checks::Check;

/// How the software driver presents itself. The default is a driver of CUDA 13.0 with one device of
/// compute capability 9.0 and 4 GiB of memory.
///
/// ```
/// use cuda_soft::Config;
/// use cuda_sys::Version;
///
/// let config = Config::new().version(Version::new(12, 4)).devices(2).memory(1 << 30);
/// # let _ = config;
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Config {
    pub(crate) version: Version,
    pub(crate) devices: u32,
    pub(crate) capability: (u32, u32),
    pub(crate) memory: u64,
    pub(crate) multiprocessors: u32,
    pub(crate) reuse_addresses: bool,
    pub(crate) branch_seed: Option<u64>,
    pub(crate) early_seed: u64,
    pub(crate) checks: Vec<Check>,
}

/// The most devices of a driver.
const MOST_DEVICES: u32 = 128;

/// An environment variable or an option with a value that makes no sense.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
#[error("{variable} is `{}`, which is not {expected}", Printable(value))]
#[non_exhaustive]
pub struct ConfigError {
    /// The name of the variable or of the method of [`Config`].
    pub variable: &'static str,
    /// Its value.
    pub value: String,
    /// The values that it may have.
    pub expected: &'static str,
}

// A `main` that returns an error prints it in this form.
impl fmt::Debug for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, formatter)
    }
}

impl Default for Config {
    fn default() -> Self {
        Self {
            version: Version::new(13, 0),
            devices: 1,
            capability: (9, 0),
            memory: 4 << 30,
            multiprocessors: 132,
            reuse_addresses: false,
            branch_seed: None,
            early_seed: 0,
            checks: Vec::new(),
        }
    }
}

impl Config {
    /// The default configuration.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Poses as a driver of this version. Calls newer than it are not found, and older layouts are
    /// served. The faults of such a driver in conditional nodes (an empty body before 12.8,
    /// children in an IF with two bodies in 12.8 and 12.9) lose the context.
    #[must_use]
    pub fn version(mut self, version: Version) -> Self {
        self.version = version;
        self
    }

    /// The number of devices, up to 128. With 0, `cuInit` returns `CUDA_ERROR_NO_DEVICE`.
    #[must_use]
    pub fn devices(mut self, devices: u32) -> Self {
        self.devices = devices;
        self
    }

    /// The compute capability of every device, such as (9, 0).
    #[must_use]
    pub fn compute_capability(mut self, major: u32, minor: u32) -> Self {
        self.capability = (major, minor);
        self
    }

    /// The memory of each device in bytes. Host memory is used as it is allocated.
    #[must_use]
    pub fn memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// The number of multiprocessors that each device reports. It limits cooperative launches.
    #[must_use]
    pub fn multiprocessors(mut self, count: u32) -> Self {
        self.multiprocessors = count.max(1);
        self
    }

    /// Reuses the addresses of freed memory for later allocations of the same size, as the real
    /// driver does. Off (the default), every use of freed memory is caught. On, code that takes an
    /// address for an identity is caught.
    #[must_use]
    pub fn reuse_addresses(mut self, reuse: bool) -> Self {
        self.reuse_addresses = reuse;
        self
    }

    /// Runs the nodes of graphs in a pseudorandom order that the edges allow, instead of the order
    /// of creation. A missing edge shows with some seed.
    #[must_use]
    pub fn branch_order(mut self, seed: u64) -> Self {
        self.branch_seed = Some(seed);
        self
    }

    /// The seed of the order in which the nodes of a graph with programmatic edges run: a kernel
    /// behind such an edge begins before the kernel in front has ended, and may overtake others.
    /// Every seed, 0 by default, gives an order that the edges allow.
    #[must_use]
    pub fn early_order(mut self, seed: u64) -> Self {
        self.early_seed = seed;
        self
    }

    /// Checks kernels for errors that a GPU does not report. It makes no check by default.
    #[must_use]
    pub fn checks(mut self, checks: impl IntoIterator<Item = Check>) -> Self {
        self.checks = checks.into_iter().collect();
        self
    }

    /// Fails if no driver can have this configuration.
    pub(crate) fn check(&self) -> Result<(), ConfigError> {
        let error = |variable, value: String, expected| Err(ConfigError { variable, value, expected });
        if self.devices > MOST_DEVICES {
            return error("Config::devices", self.devices.to_string(), DEVICES);
        }
        if !is_capability(&self.capability) {
            let (major, minor) = self.capability;
            return error("Config::compute_capability", format!("{major}.{minor}"), CAPABILITY);
        }
        Ok(())
    }

    /// The default configuration, overridden by the environment variables `CUDA_SOFT_VERSION`
    /// (`12.4`), `CUDA_SOFT_DEVICES` (`2`), `CUDA_SOFT_CAPABILITY` (`8.0`), `CUDA_SOFT_MEMORY`
    /// (bytes), `CUDA_SOFT_BRANCH_ORDER` and `CUDA_SOFT_EARLY_ORDER` (seeds), and `CUDA_SOFT_CHECK`
    /// (`all`, or some of `unwritten-shared,shared-races,global-races`). Unset and empty variables
    /// change nothing.
    ///
    /// # Errors
    /// Returns [`ConfigError`] if a variable has any other value.
    pub fn from_environment() -> Result<Self, ConfigError> {
        let mut config = Self::new();
        // The driver reports its version with two digits for the minor part.
        let version = |text: &str| pair(text).filter(|(_, minor)| *minor < 100);
        if let Some((major, minor)) = read("CUDA_SOFT_VERSION", "a version such as 12.4", version)? {
            config.version = Version::new(major, minor);
        }
        let devices = |text: &str| text.parse().ok().filter(|devices| *devices <= MOST_DEVICES);
        if let Some(devices) = read("CUDA_SOFT_DEVICES", DEVICES, devices)? {
            config.devices = devices;
        }
        let capability =
            |text: &str| pair(text).map(|(major, minor)| (major.into(), minor.into())).filter(is_capability);
        if let Some(capability) = read("CUDA_SOFT_CAPABILITY", CAPABILITY, capability)? {
            config.capability = capability;
        }
        if let Some(bytes) = read("CUDA_SOFT_MEMORY", "a number of bytes", |text| text.parse().ok())? {
            config.memory = bytes;
        }
        config.branch_seed = read("CUDA_SOFT_BRANCH_ORDER", "a number", |text| text.parse().ok())?;
        if let Some(seed) = read("CUDA_SOFT_EARLY_ORDER", "a number", |text| text.parse().ok())? {
            config.early_seed = seed;
        }
        if let Some(checks) = read("CUDA_SOFT_CHECK", CHECKS, Check::parse_list)? {
            config.checks = checks;
        }
        Ok(config)
    }
}

const DEVICES: &str = "a number of devices from 0 to 128";
const CAPABILITY: &str = "a compute capability such as 9.0";

const CHECKS: &str = "`all` or a list of unwritten-shared, shared-races and global-races";

/// Whether this can be a compute capability.
fn is_capability((major, minor): &(u32, u32)) -> bool {
    (1..100).contains(major) && *minor < 10
}

fn pair(text: &str) -> Option<(u16, u8)> {
    let (major, minor) = text.split_once('.')?;
    Some((major.parse().ok()?, minor.parse().ok()?))
}

fn read<T>(
    variable: &'static str,
    expected: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, ConfigError> {
    let Some(value) = std::env::var_os(variable).filter(|value| !value.is_empty()) else { return Ok(None) };
    let value = value.to_string_lossy().into_owned();
    match parse(&value) {
        Some(parsed) => Ok(Some(parsed)),
        None => Err(ConfigError { variable, value, expected }),
    }
}
